//! Opening a store for a command, with errors that say what to do.

use std::path::{Path, PathBuf};

use millpond::db::{Db, Error, Options, RawTree};
use millpond_base::size::Size;

use crate::error::Failure;

/// Memory of a command that looks at a few pages.
const MEMORY_SMALL: u64 = 32 << 20;

/// The store that a command is about.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct StoreArgs {
    /// The store
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// The tree that a command is about.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TreeArgs {
    /// The tree; needed if the store has several
    #[arg(long, short, value_name = "NAME")]
    pub tree: Option<String>,
}

/// A size such as 64MiB.
pub(crate) fn size_of(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(Size::Frames(bytes) | Size::Bytes(bytes)) => Ok(bytes),
        Ok(Size::Share(_)) => Err("a share of what? Say bytes, such as 64MiB".to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// What a store failed with.
pub(crate) fn failed(error: Error) -> Failure {
    match error {
        Error::Options(_) => Failure::Usage(error.to_string()),
        other => Failure::Store(other.to_string()),
    }
}

/// Opens a store that must exist.
pub(crate) fn open(file: &Path, read_only: bool, memory: Option<u64>) -> Result<Db, Failure> {
    let options = Options::new().read_only(read_only).create_if_missing(false);
    open_with(file, options.memory(memory.unwrap_or(MEMORY_SMALL)))
}

/// Opens a store, or makes one.
pub(crate) fn create(
    file: &Path,
    page_size: Option<u64>,
    memory: Option<u64>,
) -> Result<Db, Failure> {
    let mut options = Options::new().memory(memory.unwrap_or(MEMORY_SMALL));
    if let Some(bytes) = page_size {
        options = options.page_size(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
    open_with(file, options)
}

fn open_with(file: &Path, options: Options) -> Result<Db, Failure> {
    Db::open(file, options).map_err(|error| match error {
        Error::NoStore { path } => {
            Failure::Store(format!("there is no store at {}", path.display()))
        }
        other => failed(other),
    })
}

/// Closes a store where errors are seen.
pub(crate) fn close(db: Db) -> Result<(), Failure> {
    db.close().map_err(failed)
}

/// The names of a store's trees.
pub(crate) fn names(db: &Db) -> Result<Vec<String>, Failure> {
    let all = db.trees().map_err(failed)?;
    let is_tree = |entry: &millpond::db::Entry| entry.structure == millpond::db::Structure::Tree;
    Ok(all.into_iter().filter(|(_, entry)| is_tree(entry)).map(|(name, _)| name).collect())
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "it has none".to_string(),
        names => format!("it has {}", names.join(", ")),
    }
}

/// The tree that was asked for, or the only one.
pub(crate) fn tree(db: &Db, asked: &TreeArgs) -> Result<RawTree, Failure> {
    let names = names(db)?;
    let name = match (&asked.tree, &names[..]) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, []) => return Err(Failure::Store("the store has no trees".to_string())),
        (None, names) => {
            let text = format!("which tree? Say --tree NAME: {}", listed(names));
            return Err(Failure::Usage(text));
        }
    };
    db.open_tree(name).map_err(|error| match error {
        Error::NoTree { name } => {
            Failure::Store(format!("there is no tree '{name}' in the store: {}", listed(&names)))
        }
        other => failed(other),
    })
}
