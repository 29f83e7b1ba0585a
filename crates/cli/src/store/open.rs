//! Opening a store for a command, with errors that advise the user.

use std::path::{Path, PathBuf};

use millpond::internals::heap::RecordId;
use millpond::{Db, Error, ErrorKind, HashIndex, Heap, Options, RawTree, Structure, TypeNames};
use millpond_base::size::Size;

use super::compression::CompressionArg;
use crate::error::Failure;

/// Memory of a command that reads a few pages.
const MEMORY_SMALL: u64 = 32 << 20;

/// The store that a command is about.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct StoreArgs {
    /// The store
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// The tree, hash index or heap that a command is about.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TreeArgs {
    /// The tree, hash index or heap; needed if the store has several
    #[arg(long, short, value_name = "NAME")]
    pub tree: Option<String>,
}

/// Parses a size such as 64MiB.
pub(crate) fn size_of(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(Size::Frames(bytes) | Size::Bytes(bytes)) => Ok(bytes),
        Ok(Size::Share(_)) => Err("a share of what? Say bytes, such as 64MiB".to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Converts a store's error to a command's failure.
pub(crate) fn failed(error: Error) -> Failure {
    match error {
        Error::Options(_) => Failure::Usage(error.to_string()),
        _ if error.kind() == ErrorKind::Cancelled => Failure::Interrupted,
        other => Failure::Store(other.to_string()),
    }
}

/// Opens a store that must exist.
pub(crate) fn open(file: &Path, read_only: bool, memory: Option<u64>) -> Result<Db, Failure> {
    let options = Options::new().read_only(read_only).create_if_missing(false);
    open_with(file, options.memory(memory.unwrap_or(MEMORY_SMALL)))
}

/// Opens a store, or creates one.
pub(crate) fn create(
    file: &Path,
    page_size: Option<u64>,
    compression: Option<CompressionArg>,
    memory: Option<u64>,
) -> Result<Db, Failure> {
    let mut options = Options::new().memory(memory.unwrap_or(MEMORY_SMALL));
    options.compression = compression.unwrap_or_default().into();
    if let Some(bytes) = page_size {
        options = options.page_size(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
    open_with(file, options)
}

fn open_with(file: &Path, options: Options) -> Result<Db, Failure> {
    Db::open(file, options).map_err(unopened)
}

/// Converts an error of opening a store to a failure with advice.
pub(crate) fn unopened(error: Error) -> Failure {
    match error {
        Error::NoStore { path } => {
            Failure::Store(format!("there is no store at {}", path.display()))
        }
        other => failed(other),
    }
}

/// Closes a store and returns its errors.
pub(crate) fn close(db: Db) -> Result<(), Failure> {
    db.close().map_err(failed)
}

/// A structure of a store, of any kind.
pub(crate) enum Opened {
    Tree(RawTree),
    Hash(HashIndex<Vec<u8>, Vec<u8>>),
    Heap(Heap<Vec<u8>>),
}

impl Opened {
    /// Returns its kind and name, for messages.
    pub(crate) fn title(&self) -> String {
        match self {
            Opened::Tree(tree) => format!("tree '{}'", tree.name()),
            Opened::Hash(index) => format!("hash index '{}'", index.name()),
            Opened::Heap(heap) => format!("heap '{}'", heap.name()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Opened::Tree(tree) => tree.name(),
            Opened::Hash(index) => index.name(),
            Opened::Heap(heap) => heap.name(),
        }
    }

    pub(crate) fn kind(&self) -> Structure {
        match self {
            Opened::Tree(_) => Structure::Tree,
            Opened::Hash(_) => Structure::Hash,
            Opened::Heap(_) => Structure::Heap,
        }
    }
}

/// Returns the key and value types that the store knows for a structure.
pub(crate) fn types(db: &Db, of: &Opened) -> Result<TypeNames, Failure> {
    db.types(of.name()).map_err(failed)
}

/// Parses the id of a heap's record, which is typed and printed as a number.
pub(crate) fn record_id(text: &str) -> Result<RecordId, Failure> {
    let no_id = |error| {
        Failure::Usage(format!("'{text}' is no id of a heap's record, which is a number: {error}"))
    };
    text.parse().map(RecordId).map_err(no_id)
}

/// Returns the names and kinds of a store's structures.
pub(crate) fn names(db: &Db) -> Result<Vec<(String, Structure)>, Failure> {
    let all = db.trees().map_err(failed)?;
    Ok(all.into_iter().map(|(name, entry)| (name, entry.structure)).collect())
}

fn listed(names: &[(String, Structure)]) -> String {
    if names.is_empty() {
        return "it has none".to_string();
    }
    let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    format!("it has {}", names.join(", "))
}

/// Returns the structure of this name and kind.
pub(crate) fn named(db: &Db, name: &str, kind: Structure) -> Result<Opened, Failure> {
    match kind {
        Structure::Tree => db.open_tree(name).map(Opened::Tree),
        Structure::Hash => db.open_hash_index(name).map(Opened::Hash),
        Structure::Heap => db.open_heap(name).map(Opened::Heap),
    }
    .map_err(failed)
}

/// Returns the structure that the user named, or the only one.
pub(crate) fn structure(db: &Db, asked: &TreeArgs) -> Result<Opened, Failure> {
    let names = names(db)?;
    let found = match (&asked.tree, &names[..]) {
        (Some(name), _) => names.iter().find(|(found, _)| found == name).ok_or_else(|| {
            let list = listed(&names);
            Failure::Store(format!("there is no tree '{name}' in the store: {list}"))
        })?,
        (None, [only]) => only,
        (None, []) => return Err(Failure::Store("the store has no trees".to_string())),
        (None, names) => {
            let text = format!("which tree? Say --tree NAME: {}", listed(names));
            return Err(Failure::Usage(text));
        }
    };
    named(db, &found.0, found.1)
}
