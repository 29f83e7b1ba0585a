//! `millpond load`: a store from a dump.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use millpond::internals::admin::dump::{DumpReader, LoadError, Loader, load};
use millpond::internals::btree::{BulkError, BulkOptions};
use millpond::{Db, Error, HashIndex, Heap, Structure, TypeNames};

use super::compression::CompressionArg;
use super::open::{self, StoreArgs, size_of};
use crate::error::Failure;
use crate::interrupt;
use crate::output::complain;
use crate::progress::Progress;

const EXAMPLES: &str = "Examples:
  millpond load new.db shop.dump
  millpond dump old.db | millpond load new.db --page-size 16KiB
  millpond load shop.db more.dump --add

Records of a heap are appended in the order of their numbers; they keep these where the heap had no \
gaps and the page size is the same, and standard error says where they did not.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// The dump, in any form; - is standard input
    #[arg(value_name = "DUMP", default_value = "-")]
    dump: PathBuf,
    /// Load into an existing store; entries of the same key are replaced
    #[arg(long)]
    add: bool,
    /// Bytes of a page of the new store: 4KiB to 64KiB
    #[arg(long, value_name = "SIZE", value_parser = size_of, conflicts_with = "add")]
    page_size: Option<u64>,
    /// Compression of pages of the new store
    #[arg(long, value_enum, value_name = "HOW", conflicts_with = "add")]
    compression: Option<CompressionArg>,
    /// Memory for pages
    #[arg(long, value_name = "SIZE", value_parser = size_of)]
    memory: Option<u64>,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// The reason that an entry was not loaded.
#[derive(Debug, thiserror::Error)]
enum IntoError {
    /// The store.
    #[error(transparent)]
    Store(#[from] Error),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// Fails if Ctrl-C was pressed.
fn go_on() -> Result<(), IntoError> {
    if interrupt::asked() { Err(IntoError::Interrupted) } else { Ok(()) }
}

/// Target of the entries, if it is no tree.
enum Target {
    Hash(HashIndex<Vec<u8>, Vec<u8>>),
    Heap(Heap<Vec<u8>>),
}

/// Store that receives the entries.
struct Into<'d> {
    db: &'d Db,
    target: Option<Target>,
    /// Heaps whose records got new ids.
    renumbered: Vec<String>,
    progress: Progress,
    entries: u64,
}

impl Loader for Into<'_> {
    type Error = IntoError;

    fn make(&mut self, kind: Structure, name: &str, types: &TypeNames) -> Result<(), IntoError> {
        Ok(self.db.make(kind, name, types)?)
    }

    fn sorted(
        &mut self,
        name: &str,
        rows: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<u64, IntoError> {
        let tree = self.db.raw_tree(name)?;
        let before = self.entries;
        let (progress, entries) = (&self.progress, &mut self.entries);
        let mut counted = rows.take_while(|_| !interrupt::asked()).inspect(|_| {
            *entries += 1;
            if entries.is_multiple_of(4096) {
                progress.show("loading", None, *entries, "entries");
            }
        });
        if tree.is_empty()? {
            match tree.bulk_load(&mut counted, BulkOptions::default()) {
                // Nobody else can have written: the store is ours.
                Err(Error::Bulk(BulkError::NotEmpty)) => {}
                other => {
                    other?;
                }
            }
        }
        for (key, value) in counted {
            tree.put(&key, &value)?;
        }
        go_on()?;
        Ok(self.entries - before)
    }

    fn put(&mut self, name: &str, key: &[u8], value: &[u8]) -> Result<(), IntoError> {
        go_on()?;
        self.entries += 1;
        self.db.raw_tree(name)?.put(key, value)?;
        Ok(())
    }

    fn begin(&mut self, kind: Structure, name: &str) -> Result<(), IntoError> {
        self.target = match kind {
            Structure::Tree => None,
            Structure::Hash => Some(Target::Hash(self.db.raw_hash_index(name)?)),
            Structure::Heap => Some(Target::Heap(self.db.raw_heap(name)?)),
        };
        Ok(())
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), IntoError> {
        go_on()?;
        self.entries += 1;
        match &self.target {
            Some(Target::Hash(index)) => {
                index.put(key, value)?;
            }
            Some(Target::Heap(heap)) => {
                let id = heap.append(value)?;
                let is_same = key == id.0.to_string().as_bytes();
                if !is_same && self.renumbered.last().is_none_or(|last| last != heap.name()) {
                    self.renumbered.push(heap.name().to_string());
                }
            }
            None => {}
        }
        if self.entries.is_multiple_of(4096) {
            self.progress.show("loading", None, self.entries, "entries");
        }
        Ok(())
    }
}

fn input(args: &Args) -> Result<Box<dyn BufRead>, Failure> {
    if args.dump.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let named = |error: io::Error| Failure::Store(format!("{}: {error}", args.dump.display()));
    Ok(Box::new(BufReader::with_capacity(1 << 20, File::open(&args.dump).map_err(named)?)))
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    // The reader comes first, so that no store is created from a file that is no dump.
    let mut reader =
        DumpReader::new(input(args)?).map_err(|error| Failure::Store(error.to_string()))?;
    let file = &args.store.file;
    let exists = std::fs::metadata(file).is_ok_and(|meta| meta.len() > 0);
    if exists && !args.add {
        return Err(Failure::Store(format!(
            "{} exists: name a new file, or say --add to load into it",
            file.display()
        )));
    }
    let db = if args.add {
        open::open(file, false, args.memory)?
    } else {
        open::create(file, args.page_size, args.compression, args.memory)?
    };
    let (progress, target) = (Progress::new(args.quiet), None);
    let mut into = Into { db: &db, target, renumbered: Vec::new(), progress, entries: 0 };
    let result = load(&mut reader, &mut into, |_| {});
    into.progress.finish();
    for name in &into.renumbered {
        complain(&format!("the records of heap '{name}' got other numbers than they had"));
    }
    drop(into);
    open::close(db)?;
    match result {
        Ok(loaded) => {
            complain(&format!("{} entries in {} trees loaded", loaded.entries, loaded.trees));
            Ok(())
        }
        Err(LoadError::Store { error: IntoError::Interrupted, .. }) => Err(Failure::Interrupted),
        Err(LoadError::Store { line, error }) => {
            Err(Failure::Store(format!("before line {line} of the dump: {error}")))
        }
        Err(error) => Err(Failure::Store(error.to_string())),
    }
}
