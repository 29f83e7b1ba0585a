//! `millpond get`, `put` and `del`: one entry.

use std::io::{self, Write};
use std::path::PathBuf;

use millpond::db::Db;
use millpond::db::key_range::KeyRange;
use millpond_lab::table::Table;
use serde_json::json;

use super::notation::Notation;
use super::open::{self, StoreArgs, TreeArgs, failed, size_of};
use crate::error::Failure;
use crate::output::{Form, Output, complain};

const GET_EXAMPLES: &str = "Examples:
  millpond get shop.db ada --tree users
  millpond get shop.db 42 --tree orders --key-type u64 --value-type hex
  millpond get shop.db photo --raw > photo.jpg
  millpond get shop.db ada --json";

#[derive(clap::Args, Debug)]
#[command(after_help = GET_EXAMPLES)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The key
    #[arg(allow_hyphen_values = true)]
    key: String,
    #[command(flatten)]
    tree: TreeArgs,
    #[command(flatten)]
    notation: Notation,
    /// Write the value's bytes as they are, and no end of line
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// The row of JSON results.
fn row(tree: &str, key: String, value: String) -> Table {
    let mut table = Table::new(["tree", "key", "value"]);
    table.rows.push(vec![tree.into(), key.into(), value.into()]);
    table
}

pub(crate) fn get(args: &GetArgs) -> Result<(), Failure> {
    let key = args.notation.key(&args.key)?;
    let db = open::open(&args.store.file, true, None)?;
    let tree = open::tree(&db, &args.tree)?;
    let mut out = io::stdout().lock();
    if args.raw {
        // Large values pass through piece by piece.
        let reader = tree.reader(&key).map_err(failed)?;
        let mut reader = reader.ok_or_else(|| missing(&args.key, tree.name()))?;
        io::copy(&mut reader, &mut out)?;
        out.flush()?;
        return Ok(());
    }
    let value = tree.get(&key).map_err(failed)?;
    let value = value.ok_or_else(|| missing(&args.key, tree.name()))?;
    let shown = args.notation.show_value(&value);
    if args.json {
        let table = row(tree.name(), args.notation.show_key(&key), shown);
        let file = args.store.file.display().to_string();
        let output = Output { format: Form::Json, out: None };
        drop(out);
        return output.write("get", &json!({ "file": file }), &table);
    }
    writeln!(out, "{shown}")?;
    Ok(out.flush()?)
}

fn missing(key: &str, tree: &str) -> Failure {
    Failure::Store(format!("'{key}' is not in tree '{tree}'"))
}

const PUT_EXAMPLES: &str = "Examples:
  millpond put shop.db ada Lovelace --tree users --create
  millpond put shop.db 42 0x00ff --tree orders --key-type u64
  millpond put shop.db photo --value-file photo.jpg";

#[derive(clap::Args, Debug)]
#[command(after_help = PUT_EXAMPLES)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The key
    #[arg(allow_hyphen_values = true)]
    key: String,
    /// The value
    #[arg(allow_hyphen_values = true, required_unless_present = "value_file")]
    value: Option<String>,
    /// Take the value from this file, as it is
    #[arg(long, value_name = "PATH", conflicts_with = "value")]
    value_file: Option<PathBuf>,
    #[command(flatten)]
    tree: TreeArgs,
    #[command(flatten)]
    notation: Notation,
    /// Write nothing if the key is there already, and fail
    #[arg(long, conflicts_with = "value_file")]
    if_absent: bool,
    /// Make the store, and the tree, if they are not there
    #[arg(long)]
    create: bool,
    /// Bytes of a page of a new store: 4KiB to 64KiB
    #[arg(long, value_name = "SIZE", value_parser = size_of, requires = "create")]
    page_size: Option<u64>,
}

pub(crate) fn put(args: &PutArgs) -> Result<(), Failure> {
    let key = args.notation.key(&args.key)?;
    let value = args.value.as_ref().map(|text| args.notation.value(text)).transpose()?;
    let db = if args.create {
        open::create(&args.store.file, args.page_size, None)?
    } else {
        open::open(&args.store.file, false, None)?
    };
    let result = put_into(&db, args, &key, value.as_deref());
    // Also after an error: the store stays as it was.
    open::close(db)?;
    result
}

fn put_into(db: &Db, args: &PutArgs, key: &[u8], value: Option<&[u8]>) -> Result<(), Failure> {
    let tree = if args.create && (args.tree.tree.is_some() || open::names(db)?.is_empty()) {
        db.raw_tree(args.tree.tree.as_deref().unwrap_or("main")).map_err(failed)?
    } else {
        open::tree(db, &args.tree)?
    };
    match (value, &args.value_file) {
        (Some(value), _) if args.if_absent => {
            if !tree.insert_if_absent(key, value).map_err(failed)? {
                let text = format!("'{}' is in tree '{}' already", args.key, tree.name());
                return Err(Failure::Store(text));
            }
        }
        (Some(value), _) => {
            tree.put(key, value).map_err(failed)?;
        }
        (None, Some(path)) => {
            let named = |error: io::Error| Failure::Store(format!("{}: {error}", path.display()));
            let file = std::fs::File::open(path).map_err(named)?;
            let length = file.metadata().map_err(named)?.len();
            tree.put_from(key, length, io::BufReader::new(file)).map_err(failed)?;
        }
        (None, None) => return Err(Failure::Usage("no value was given".to_string())),
    }
    Ok(())
}

const DEL_EXAMPLES: &str = "Examples:
  millpond del shop.db ada --tree users
  millpond del shop.db --prefix session/";

#[derive(clap::Args, Debug)]
#[command(after_help = DEL_EXAMPLES)]
pub(crate) struct DelArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The key
    #[arg(allow_hyphen_values = true, required_unless_present = "prefix")]
    key: Option<String>,
    /// Remove all entries whose keys begin so
    #[arg(long, conflicts_with = "key")]
    prefix: Option<String>,
    #[command(flatten)]
    tree: TreeArgs,
    #[command(flatten)]
    notation: Notation,
}

pub(crate) fn del(args: &DelArgs) -> Result<(), Failure> {
    let key = args.key.as_ref().map(|key| args.notation.key(key)).transpose()?;
    let prefix = args.prefix.as_ref().map(|text| args.notation.prefix(text)).transpose()?;
    let db = open::open(&args.store.file, false, None)?;
    let result = del_from(&db, args, key.as_deref(), prefix.as_deref());
    open::close(db)?;
    result
}

fn del_from(
    db: &Db,
    args: &DelArgs,
    key: Option<&[u8]>,
    prefix: Option<&[u8]>,
) -> Result<(), Failure> {
    let tree = open::tree(db, &args.tree)?;
    if let Some(prefix) = prefix {
        let range = KeyRange::of_prefix::<Vec<u8>>(prefix);
        let removed = tree.remove_range(&range).map_err(failed)?;
        complain(&format!("{removed} entries removed from tree '{}'", tree.name()));
    } else if let Some(key) = key
        && !tree.delete(key).map_err(failed)?
    {
        return Err(missing(args.key.as_deref().unwrap_or_default(), tree.name()));
    }
    Ok(())
}
