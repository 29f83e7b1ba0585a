//! `millpond scan`: entries in the order of their keys.

use std::io::{self, BufWriter, Write};
use std::ops::Bound;

use millpond::db::RawRange;
use millpond::db::key::prefix_end;
use millpond::db::key_range::KeyRange;
use millpond_lab::results::machine;
use serde_json::json;

use super::notation::Notation;
use super::open::{self, StoreArgs, TreeArgs, failed, size_of};
use crate::error::Failure;
use crate::interrupt;

const EXAMPLES: &str = "Examples:
  millpond scan shop.db --tree users --limit 10
  millpond scan shop.db --tree users --prefix a --reverse
  millpond scan shop.db --tree orders --key-type u64 --from 100 --to 200 --json
  millpond scan shop.db --tree orders --count";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    tree: TreeArgs,
    /// Only keys that begin so
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    prefix: Option<String>,
    /// From this key on
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    from: Option<String>,
    /// Up to, and without, this key
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    to: Option<String>,
    /// So many entries at most
    #[arg(long, short = 'n', value_name = "COUNT")]
    limit: Option<u64>,
    /// From the largest key down
    #[arg(long, short)]
    reverse: bool,
    /// Print how many entries there are, not the entries
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

fn range_of(args: &Args) -> Result<KeyRange, Failure> {
    if let Some(prefix) = &args.prefix {
        let start = args.notation.prefix(prefix)?;
        let end = prefix_end(&start).map_or(Bound::Unbounded, Bound::Excluded);
        return Ok(KeyRange { start: Bound::Included(start), end });
    }
    let key = |text: &Option<String>| text.as_ref().map(|text| args.notation.key(text)).transpose();
    let start = key(&args.from)?.map_or(Bound::Unbounded, Bound::Included);
    let end = key(&args.to)?.map_or(Bound::Unbounded, Bound::Excluded);
    Ok(KeyRange { start, end })
}

/// Calls `each` for the entries that were asked for; answers how many.
fn walk(
    args: &Args,
    mut range: RawRange<'_>,
    mut each: impl FnMut(u64, &[u8], &[u8]) -> io::Result<()>,
) -> Result<u64, Failure> {
    let limit = args.limit.unwrap_or(u64::MAX);
    let mut done = 0;
    while done < limit {
        let next = if args.reverse { range.next_entry_back() } else { range.next_entry() };
        let Some((key, value)) = next.map_err(failed)? else { break };
        each(done, key, value)?;
        done += 1;
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
    }
    Ok(done)
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let bounds = range_of(args)?;
    let db = open::open(&args.store.file, true, args.memory)?;
    let tree = open::tree(&db, &args.tree)?;
    let mut range = tree.key_range(&bounds).as_scan();
    if args.keys || args.count {
        range = range.keys_only();
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let notation = &args.notation;
    if args.json {
        let params = json!({ "file": args.store.file.display().to_string(), "tree": tree.name() });
        let head = json!({ "command": "scan", "version": env!("CARGO_PKG_VERSION"),
                           "params": params, "machine": machine() });
        let head = head.to_string();
        // Rows are written as they come: there may be more than fit into memory.
        write!(out, "{},\"rows\":[", head.strip_suffix('}').unwrap_or(&head))?;
        let rows = if args.count {
            let count = walk(args, range, |_, _, _| Ok(()))?;
            write!(out, "\n{}", json!({ "count": count }))?;
            1
        } else {
            walk(args, range, |at, key, value| {
                let mut row = json!({ "key": notation.show_key(key) });
                if !args.keys {
                    row["value"] = notation.show_value(value).into();
                }
                write!(out, "{}\n{row}", if at > 0 { "," } else { "" })
            })?
        };
        writeln!(out, "{}]}}", if rows > 0 { "\n" } else { "" })?;
    } else if args.count {
        let count = walk(args, range, |_, _, _| Ok(()))?;
        writeln!(out, "{count}")?;
    } else if args.keys {
        walk(args, range, |_, key, _| writeln!(out, "{}", notation.show_key(key)))?;
    } else {
        walk(args, range, |_, key, value| {
            writeln!(out, "{}\t{}", notation.show_key(key), notation.show_value(value))
        })?;
    }
    Ok(out.flush()?)
}
