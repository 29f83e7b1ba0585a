//! `millpond load`: a store from a dump.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use millpond::btree::{BulkError, BulkOptions};
use millpond::db::dump::{DumpReader, LoadError, Loader, load};
use millpond::db::{Db, Error};

use super::open::{self, StoreArgs, size_of};
use crate::error::Failure;
use crate::output::complain;
use crate::progress::Progress;

const EXAMPLES: &str = "Examples:
  millpond load new.db shop.dump
  millpond dump old.db | millpond load new.db --page-size 16KiB
  millpond load shop.db more.dump --add";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// The dump, in any form; - is standard input
    #[arg(value_name = "DUMP", default_value = "-")]
    dump: PathBuf,
    /// Load into a store that exists; entries of the same key are replaced
    #[arg(long)]
    add: bool,
    /// Bytes of a page of the new store: 4KiB to 64KiB
    #[arg(long, value_name = "SIZE", value_parser = size_of, conflicts_with = "add")]
    page_size: Option<u64>,
    /// Memory for pages
    #[arg(long, value_name = "SIZE", value_parser = size_of)]
    memory: Option<u64>,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// A store that entries go to.
struct Into<'d> {
    db: &'d Db,
    progress: Progress,
    entries: u64,
}

impl Loader for Into<'_> {
    type Error = Error;

    fn sorted(
        &mut self,
        name: &str,
        rows: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<u64, Error> {
        let tree = self.db.raw_tree(name)?;
        let before = self.entries;
        let (progress, entries) = (&self.progress, &mut self.entries);
        let mut counted = rows.inspect(|_| {
            *entries += 1;
            if entries.is_multiple_of(4096) {
                progress.show("loading", None, *entries, "entries");
            }
        });
        if tree.is_empty()? {
            match tree.bulk_load(&mut counted, BulkOptions::default()) {
                // Somebody else cannot have written: the store is ours.
                Err(Error::Bulk(BulkError::NotEmpty)) => {}
                other => return other,
            }
        }
        for (key, value) in counted {
            tree.put(&key, &value)?;
        }
        Ok(self.entries - before)
    }

    fn put(&mut self, name: &str, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.entries += 1;
        self.db.raw_tree(name)?.put(key, value)?;
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
    // First, so that no store is made of what is no dump.
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
        open::create(file, args.page_size, args.memory)?
    };
    let mut into = Into { db: &db, progress: Progress::new(args.quiet), entries: 0 };
    let result = load(&mut reader, &mut into, |_| {});
    into.progress.finish();
    open::close(db)?;
    match result {
        Ok(loaded) => {
            complain(&format!("{} entries in {} trees loaded", loaded.entries, loaded.trees));
            Ok(())
        }
        Err(LoadError::Store { line, error }) => {
            Err(Failure::Store(format!("before line {line} of the dump: {error}")))
        }
        Err(error) => Err(Failure::Store(error.to_string())),
    }
}
