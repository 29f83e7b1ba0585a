//! `millpond scan`: prints a tree's entries in key order, a hash index's entries in no order, or a
//! heap's records in the order of their numbers.

use std::io::{self, BufWriter, Write};
use std::ops::Bound;

use millpond::KeyRange;
use millpond::internals::encoding::key::prefix_end;
use millpond::internals::heap::RecordId;
use millpond::{Entries, Range, Records, Structure};
use millpond_lab::results::machine;
use serde_json::json;

use super::notation::{Notation, TypedNotation};
use super::open::{self, Opened, StoreArgs, TreeArgs, failed, record_id, size_of};
use crate::error::Failure;
use crate::interrupt;

const EXAMPLES: &str = "Examples:
  millpond scan shop.db --tree users --limit 10
  millpond scan shop.db --tree users --prefix a --reverse
  millpond scan shop.db --tree orders --from 100 --to 200 --json
  millpond scan shop.db --tree parts --prefix '(\"bolts\",)'
  millpond scan shop.db --tree orders --count
  millpond scan shop.db --tree log --from 65536

The entries of a hash index come in no order, and have no --prefix, --from, --to or --reverse. The \
records of a heap come in the order of their numbers.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    tree: TreeArgs,
    /// Only keys with this prefix
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    prefix: Option<String>,
    /// Lower end of the scan, including this key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    from: Option<String>,
    /// Upper end of the scan, excluding this key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    to: Option<String>,
    /// Maximum number of entries
    #[arg(long, short = 'n', value_name = "COUNT")]
    limit: Option<u64>,
    /// Scan from the largest key down
    #[arg(long, short)]
    reverse: bool,
    /// Print the number of entries instead of the entries
    #[arg(long)]
    count: bool,
    /// Print keys only
    #[arg(long)]
    keys: bool,
    #[command(flatten)]
    notation: Notation,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
    /// Memory for pages
    #[arg(long, value_name = "SIZE", value_parser = size_of)]
    memory: Option<u64>,
}

fn range_of(args: &Args, notation: &TypedNotation) -> Result<KeyRange, Failure> {
    if let Some(prefix) = &args.prefix {
        let start = notation.prefix(prefix)?;
        let end = prefix_end(&start).map_or(Bound::Unbounded, Bound::Excluded);
        return Ok(KeyRange { start: Bound::Included(start), end });
    }
    let key = |text: &Option<String>| text.as_ref().map(|text| notation.key(text)).transpose();
    let start = key(&args.from)?.map_or(Bound::Unbounded, Bound::Included);
    let end = key(&args.to)?.map_or(Bound::Unbounded, Bound::Excluded);
    Ok(KeyRange { start, end })
}

/// Rows of the scan, by kind of structure.
enum Rows<'t> {
    Tree(Box<Range<'t, Vec<u8>, Vec<u8>>>),
    Hash(Entries<'t, Vec<u8>, Vec<u8>>),
    /// Records of a heap, and the exclusive end of the scan.
    Heap(Records<'t, Vec<u8>>, Option<RecordId>),
}

fn rows<'t>(args: &Args, notation: &TypedNotation, of: &'t Opened) -> Result<Rows<'t>, Failure> {
    let wrong = |what: &str| {
        Err(Failure::Usage(format!("{what} is not for a {}: {} is one", of.kind(), of.title())))
    };
    match of {
        Opened::Tree(tree) => {
            let range = tree.range(range_of(args, notation)?).as_scan();
            let range = if args.keys || args.count { range.keys_only().raw() } else { range };
            Ok(Rows::Tree(Box::new(range)))
        }
        Opened::Hash(_) if args.prefix.is_some() => wrong("--prefix"),
        Opened::Hash(_) if args.from.is_some() || args.to.is_some() => wrong("--from or --to"),
        Opened::Hash(_) if args.reverse => wrong("--reverse"),
        Opened::Hash(index) => Ok(Rows::Hash(index.iter())),
        Opened::Heap(_) if args.prefix.is_some() => wrong("--prefix"),
        Opened::Heap(heap) => {
            let id = |text: &Option<String>| text.as_deref().map(record_id).transpose();
            let from = id(&args.from)?.unwrap_or(RecordId(0));
            Ok(Rows::Heap(heap.records_from(from).map_err(failed)?, id(&args.to)?))
        }
    }
}

impl Rows<'_> {
    /// Passes the next row, with its printed key, to `each`. Returns `false` at the end.
    fn step(
        &mut self,
        args: &Args,
        notation: &TypedNotation,
        each: impl FnOnce(String, &[u8]) -> io::Result<()>,
    ) -> Result<bool, Failure> {
        match self {
            Rows::Tree(range) => {
                let next = if args.reverse { range.next_entry_back() } else { range.next_entry() };
                let Some((key, value)) = next.map_err(failed)? else { return Ok(false) };
                each(notation.show_key(key), value)?;
            }
            Rows::Hash(entries) => {
                let next = entries.next().transpose().map_err(failed)?;
                let Some((key, value)) = next else { return Ok(false) };
                each(notation.show_key(&key), &value)?;
            }
            Rows::Heap(records, to) => {
                let is_wanted = |id: &RecordId| to.is_none_or(|to| *id < to);
                loop {
                    let next = if args.reverse { records.next_back() } else { records.next() };
                    let Some((id, record)) = next.transpose().map_err(failed)? else {
                        return Ok(false);
                    };
                    if is_wanted(&id) {
                        each(id.0.to_string(), &record)?;
                        break;
                    }
                    if !args.reverse {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

/// Calls `each` for the requested rows; returns their number.
fn walk(
    args: &Args,
    notation: &TypedNotation,
    mut rows: Rows<'_>,
    mut each: impl FnMut(u64, String, &[u8]) -> io::Result<()>,
) -> Result<u64, Failure> {
    let limit = args.limit.unwrap_or(u64::MAX);
    let mut done = 0;
    while done < limit && rows.step(args, notation, |key, value| each(done, key, value))? {
        done += 1;
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
    }
    Ok(done)
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let db = open::open(&args.store.file, true, args.memory)?;
    let of = open::structure(&db, &args.tree)?;
    let types = open::types(&db, &of)?;
    let notation = &match &[&args.prefix, &args.from, &args.to] {
        [None, None, None] => args.notation.of(&types),
        _ => args.notation.to_find(&types, of.name())?,
    };
    let rows = rows(args, notation, &of)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        let params = json!({
            "file": args.store.file.display().to_string(),
            "tree": of.name(),
            "kind": of.kind().to_string(),
            "ordered": of.kind() != Structure::Hash,
        });
        let head = json!({ "command": "scan", "version": env!("CARGO_PKG_VERSION"),
                           "params": params, "machine": machine() });
        let head = head.to_string();
        // Rows are written one at a time, since there may be more than fit into memory.
        write!(out, "{},\"rows\":[", head.strip_suffix('}').unwrap_or(&head))?;
        let rows = if args.count {
            let count = walk(args, notation, rows, |_, _, _| Ok(()))?;
            write!(out, "\n{}", json!({ "count": count }))?;
            1
        } else {
            walk(args, notation, rows, |at, key, value| {
                let mut row = json!({ "key": key });
                if !args.keys {
                    row["value"] = notation.show_value(value).into();
                }
                write!(out, "{}\n{row}", if at > 0 { "," } else { "" })
            })?
        };
        writeln!(out, "{}]}}", if rows > 0 { "\n" } else { "" })?;
    } else if args.count {
        let count = walk(args, notation, rows, |_, _, _| Ok(()))?;
        writeln!(out, "{count}")?;
    } else if args.keys {
        walk(args, notation, rows, |_, key, _| writeln!(out, "{key}"))?;
    } else {
        walk(args, notation, rows, |_, key, value| {
            writeln!(out, "{key}\t{}", notation.show_value(value))
        })?;
    }
    Ok(out.flush()?)
}
