//! `millpond dump`: a store as text.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use millpond::Db;
use millpond::internals::admin::check::CATALOG;
use millpond::internals::admin::dump::{DumpWriter, Form};
use millpond::internals::admin::salvage::{SalvageReport, salvage};
use millpond::internals::io::PageStore;
use millpond::internals::page::PageSize;
use millpond_device::FileOptions;

use super::check::page_size;
use super::notation::literals_of;
use super::open::{self, Opened, StoreArgs, TreeArgs, failed, size_of};
use crate::error::Failure;
use crate::interrupt::{UntilAsked, or_interrupted};
use crate::output::{apart, complain, write_whole};

const EXAMPLES: &str = "Examples:
  millpond dump shop.db > shop.dump
  millpond dump shop.db --tree users --format json
  millpond dump shop.db --salvage --out rescued.dump

Keys and values whose types the store knows, and that are not text, are shown as `scan` shows them: \
in a remark above the entry, in JSON as `key_shown` and `value_shown`. `load` reads the bytes.

With --salvage, whatever is intact in a store that is damaged, or was not closed, is written, and \
what was lost is reported on standard error; exit code 1 if anything was, or may have been.";

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DumpForm {
    /// Key, tab, value, with escapes
    Text,
    /// Key, tab, value, in hexadecimal
    Hex,
    /// One JSON object per line
    Json,
}

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Only this tree, hash index or heap
    #[arg(long, short, value_name = "NAME", conflicts_with = "salvage")]
    tree: Option<String>,
    /// Form of keys and values
    #[arg(long, value_enum, default_value = "text", value_name = "FORM")]
    format: DumpForm,
    /// Do not show entries as literals of their types: bytes only, and a smaller dump
    #[arg(long)]
    bytes: bool,
    /// Write to this file, which appears only once it is complete
    #[arg(long, short, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Save the intact parts of a store that cannot be opened
    #[arg(long)]
    salvage: bool,
    /// Bytes of a page, if the file is too damaged to tell
    #[arg(long, value_name = "SIZE", value_parser = page_size, requires = "salvage")]
    page_size: Option<PageSize>,
    /// Memory for pages
    #[arg(long, value_name = "SIZE", value_parser = size_of, conflicts_with = "salvage")]
    memory: Option<u64>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    apart(args.out.as_deref(), [&args.store.file])?;
    // A store that cannot be opened produces no dump, not even the start of one.
    let source = match args.salvage {
        true => Source::Damaged(Box::new(damaged(args)?)),
        false => Source::Sound(open::open(&args.store.file, true, args.memory)?),
    };
    let mut report = None;
    let mut fill = |out: &mut dyn Write| {
        let form = match args.format {
            DumpForm::Text => Form::Text,
            DumpForm::Hex => Form::Hex,
            DumpForm::Json => Form::Json,
        };
        let mut dump = DumpWriter::new(UntilAsked(out), form)?;
        if !args.bytes {
            dump.show_literals(literals_of);
        }
        dump.remark(&format!("{}", args.store.file.display()))?;
        match &source {
            Source::Damaged(store) => report = Some(save(store, &mut dump)?),
            Source::Sound(db) => write(args, db, &mut dump)?,
        }
        dump.finish()?;
        Ok(())
    };
    let written = match &args.out {
        Some(path) => write_whole(path, fill),
        None => fill(&mut BufWriter::new(io::stdout().lock())),
    };
    written.map_err(or_interrupted)?;
    report.as_ref().map_or(Ok(()), print_report)
}

/// Source of the dump.
enum Source {
    Sound(Db),
    Damaged(Box<PageStore>),
}

fn write<W: Write>(args: &Args, db: &Db, dump: &mut DumpWriter<W>) -> Result<(), Failure> {
    if args.tree.is_some() {
        let asked = TreeArgs { tree: args.tree.clone() };
        return write_all_of(db, &open::structure(db, &asked)?, dump);
    }
    for (name, kind) in open::names(db)? {
        write_all_of(db, &open::named(db, &name, kind)?, dump)?;
    }
    Ok(())
}

fn write_all_of<W: Write>(db: &Db, from: &Opened, dump: &mut DumpWriter<W>) -> Result<(), Failure> {
    dump.structure_of(from.kind(), from.name(), &db.types(from.name()).map_err(failed)?)?;
    let mut write = |key: &[u8], value: &[u8]| dump.entry(key, value).map_err(Failure::from);
    match from {
        Opened::Tree(tree) => {
            let mut range = tree.iter().as_scan();
            while let Some((key, value)) = range.next_entry().map_err(failed)? {
                write(key, value)?;
            }
        }
        Opened::Hash(index) => {
            for entry in index {
                let (key, value) = entry.map_err(failed)?;
                write(&key, &value)?;
            }
        }
        Opened::Heap(heap) => {
            for record in heap.records().map_err(failed)? {
                let (id, record) = record.map_err(failed)?;
                write(id.0.to_string().as_bytes(), &record)?;
            }
        }
    }
    Ok(())
}

fn damaged(args: &Args) -> Result<PageStore, Failure> {
    let options = FileOptions { read_only: true, ..FileOptions::default() };
    PageStore::open_for_salvage(&args.store.file, args.page_size, &options)
        .map_err(|error| Failure::Store(error.to_string()))
}

fn save<W: Write>(store: &PageStore, dump: &mut DumpWriter<W>) -> Result<SalvageReport, Failure> {
    match salvage(store, CATALOG, dump) {
        Ok(report) => Ok(report),
        Err(millpond::internals::admin::salvage::SalvageError::Write(error)) => Err(error.into()),
        Err(other) => Err(Failure::Store(other.to_string())),
    }
}

/// Prints the saved and the lost parts.
fn print_report(report: &SalvageReport) -> Result<(), Failure> {
    for loss in &report.losses {
        complain(&loss.to_string());
    }
    if report.losses_left_out > 0 {
        complain(&format!("… and {} further losses", report.losses_left_out));
    }
    for tree in &report.trees {
        let found = match tree.found {
            0 => String::new(),
            found => format!(
                ", and {found} in pages that nothing refers to: they fill gaps, and may be out \
                 of date"
            ),
        };
        let (kind, name) = (tree.kind, &tree.name);
        complain(&format!("{kind} '{name}': {} entries{found}", tree.entries));
    }
    if report.is_complete() {
        return Ok(());
    }
    let why = if let Some(cache) = &report.lost_cache {
        let cache = cache.display();
        format!(
            "what was written last was in the second tier {cache}: it may be missing, or be as it \
             was before"
        )
    } else if report.was_closed {
        "something was lost".to_string()
    } else {
        "the store was not closed: what was written last may be missing".to_string()
    };
    Err(Failure::Store(format!("{} entries saved, but {why}", report.entries())))
}
