//! `millpond get`, `put` and `del`: one entry of a tree or hash index, one record of a heap.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use millpond::KeyRange;
use millpond::{Db, Heap, RawTree, Structure};
use millpond_lab::table::Table;
use serde_json::json;

use super::notation::{KnownTypes, Notation, TypedNotation};
use super::open::{self, Opened, StoreArgs, TreeArgs, failed, record_id, size_of};
use crate::error::Failure;
use crate::interrupt::{UntilAsked, or_interrupted};
use crate::output::{Form, Output, complain, print};

const GET_EXAMPLES: &str = "Examples:
  millpond get shop.db ada --tree users
  millpond get shop.db 42 --tree orders --value-type hex
  millpond get shop.db '(\"bolts\", 8)' --tree parts
  millpond get shop.db photo --raw > photo.jpg
  millpond get shop.db ada --json";

#[derive(clap::Args, Debug)]
#[command(after_help = GET_EXAMPLES)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The key, or the number of a heap's record
    #[arg(allow_hyphen_values = true)]
    key: String,
    #[command(flatten)]
    tree: TreeArgs,
    #[command(flatten)]
    notation: Notation,
    /// Write the value's bytes unchanged, without an end of line
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// Returns the key that `text` denotes. Records of heaps have numbers instead.
fn key_in(of: &Opened, notation: &TypedNotation, text: &str) -> Result<Vec<u8>, Failure> {
    match of {
        Opened::Heap(_) => Ok(Vec::new()),
        _ => notation.key(text),
    }
}

/// Returns the row of JSON results.
fn row(tree: &str, key: String, value: String) -> Table {
    let mut table = Table::new(["tree", "key", "value"]);
    table.rows.push(vec![tree.into(), key.into(), value.into()]);
    table
}

pub(crate) fn get(args: &GetArgs) -> Result<(), Failure> {
    let db = open::open(&args.store.file, true, None)?;
    let from = open::structure(&db, &args.tree)?;
    let notation = args.notation.to_find(&open::types(&db, &from)?, from.name())?;
    let key = key_in(&from, &notation, &args.key)?;
    let missing = || missing(&args.key, &from);
    let mut out = io::stdout().lock();
    if let (true, Opened::Tree(tree)) = (args.raw, &from) {
        // Large values are copied piece by piece.
        let mut reader = tree.reader(&key).map_err(failed)?.ok_or_else(missing)?;
        let copied = io::copy(&mut reader, &mut UntilAsked(&mut out));
        copied.map_err(|error| or_interrupted(error.into()))?;
        return Ok(out.flush()?);
    }
    let value = match &from {
        Opened::Tree(tree) => tree.get(&key),
        Opened::Hash(index) => index.get(&key),
        Opened::Heap(heap) => heap.get(record_id(&args.key)?),
    };
    let value = value.map_err(failed)?.ok_or_else(missing)?;
    if args.raw {
        out.write_all(&value)?;
        return Ok(out.flush()?);
    }
    let shown = notation.show_value(&value);
    if args.json {
        let key = match &from {
            Opened::Heap(_) => args.key.clone(),
            _ => notation.show_key(&key),
        };
        let table = row(from.name(), key, shown);
        let file = args.store.file.display().to_string();
        let output = Output { format: Form::Json, out: None, wide: true };
        drop(out);
        return output.write("get", &json!({ "file": file }), &table);
    }
    writeln!(out, "{shown}")?;
    Ok(out.flush()?)
}

fn missing(key: &str, from: &Opened) -> Failure {
    Failure::Store(format!("'{key}' is not in {}", from.title()))
}

const PUT_EXAMPLES: &str = "Examples:
  millpond put shop.db ada Lovelace --tree users --create
  millpond put shop.db 42 0x00ff --tree orders --key-type u64
  millpond put shop.db photo --value-file photo.jpg
  millpond put shop.db 4f1c 17 --tree sessions --create --kind hash
  millpond put shop.db new 'first line' --tree log --create --kind heap

Of a heap, `new` appends a record and prints its number.";

/// Structures that `put --create` can create.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    /// A tree: keys in order
    Tree,
    /// A hash index: keys without order
    Hash,
    /// A heap: records with numbers
    Heap,
}

#[derive(clap::Args, Debug)]
#[command(after_help = PUT_EXAMPLES)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The key, or for a heap the number of a record to replace, or `new`
    #[arg(allow_hyphen_values = true)]
    key: String,
    /// The value
    #[arg(allow_hyphen_values = true, required_unless_present = "value_file")]
    value: Option<String>,
    /// Take the value unchanged from this file
    #[arg(long, value_name = "PATH", conflicts_with = "value")]
    value_file: Option<PathBuf>,
    #[command(flatten)]
    tree: TreeArgs,
    #[command(flatten)]
    notation: Notation,
    /// Fail without a write if the key exists
    #[arg(long, conflicts_with = "value_file")]
    if_absent: bool,
    /// Create the store and the tree if they are missing
    #[arg(long)]
    create: bool,
    /// Kind of structure to create
    #[arg(long, value_enum, default_value = "tree", requires = "create")]
    kind: Kind,
    /// Bytes of a page of a new store: 4KiB to 64KiB
    #[arg(long, value_name = "SIZE", value_parser = size_of, requires = "create")]
    page_size: Option<u64>,
}

pub(crate) fn put(args: &PutArgs) -> Result<(), Failure> {
    if args.create && !args.store.file.exists() {
        check_new(args)?;
    }
    let db = if args.create {
        open::create(&args.store.file, args.page_size, None, None)?
    } else {
        open::open(&args.store.file, false, None)?
    };
    let result = put_into(&db, args);
    // Close also after an error: the store stays as it was.
    open::close(db)?;
    result
}

/// Fails if a new structure would be created for a key or value that cannot be written to it.
fn check_new(args: &PutArgs) -> Result<(), Failure> {
    let notation = args.notation.of(&args.notation.types());
    if args.kind != Kind::Heap {
        notation.key(&args.key)?;
    }
    args.value.as_ref().map(|text| notation.value(text)).transpose().map(drop)
}

fn found_or_new(db: &Db, args: &PutArgs) -> Result<Opened, Failure> {
    let names = open::names(db)?;
    let asked = args.tree.tree.as_deref();
    let exists = match asked {
        Some(name) => names.iter().any(|(found, _)| found == name),
        None => !names.is_empty(),
    };
    if !args.create || exists {
        return open::structure(db, &args.tree);
    }
    let name = asked.unwrap_or("main");
    let kind = match args.kind {
        Kind::Tree => Structure::Tree,
        Kind::Hash => Structure::Hash,
        Kind::Heap => Structure::Heap,
    };
    check_new(args)?;
    db.make(kind, name, &args.notation.types()).map_err(failed)?;
    open::named(db, name, kind)
}

fn put_into(db: &Db, args: &PutArgs) -> Result<(), Failure> {
    let to = found_or_new(db, args)?;
    let types = open::types(db, &to)?;
    let (known, notation) =
        (KnownTypes::of(&types, to.name()), args.notation.to_write(&types, to.name())?);
    let key = &key_in(&to, &notation, &args.key)?;
    if !matches!(to, Opened::Heap(_)) {
        known.check_key(key)?;
    }
    let value = args.value.as_ref().map(|text| notation.value(text)).transpose()?;
    if let (None, Some(path), Opened::Tree(tree)) = (&value, &args.value_file, &to)
        && known.takes_any_value()
    {
        return put_file(tree, key, path);
    }
    let value = match (value, &args.value_file) {
        (Some(value), _) => value,
        (None, Some(path)) => {
            std::fs::File::open(path).and_then(whole).map_err(|error| named(path, &error))?
        }
        (None, None) => return Err(Failure::Usage("no value was given".to_string())),
    };
    known.check_value(&value)?;
    let is_new = match &to {
        Opened::Heap(heap) => return put_record(heap, args, &value),
        Opened::Tree(tree) if args.if_absent => tree.insert_if_absent(key, &value),
        Opened::Hash(index) if args.if_absent => index.insert_if_absent(key, &value),
        Opened::Tree(tree) => tree.put(key, &value).map(|_| true),
        Opened::Hash(index) => index.put(key, &value).map(|_| true),
    };
    if is_new.map_err(failed)? {
        return Ok(());
    }
    Err(Failure::Store(format!("'{}' is in {} already", args.key, to.title())))
}

fn named(path: &std::path::Path, error: &io::Error) -> Failure {
    Failure::Store(format!("{}: {error}", path.display()))
}

fn put_file(tree: &RawTree, key: &[u8], path: &std::path::Path) -> Result<(), Failure> {
    let file = std::fs::File::open(path).map_err(|error| named(path, &error))?;
    let found = file.metadata().map_err(|error| named(path, &error))?;
    if found.is_file() && found.len() > 0 {
        tree.put_from(key, found.len(), io::BufReader::new(file)).map_err(failed)?;
        return Ok(());
    }
    // A pipe, a device and a file of /proc have no length before they are read.
    let value = whole(file).map_err(|error| named(path, &error))?;
    tree.put(key, &value).map_err(failed)?;
    Ok(())
}

/// Maximum bytes of a value.
const VALUE_MAX: u64 = 1 << 30;

/// Reads a whole file, but at most one byte more than a value may have.
fn whole(file: std::fs::File) -> io::Result<Vec<u8>> {
    let mut value = Vec::new();
    file.take(VALUE_MAX + 1).read_to_end(&mut value)?;
    Ok(value)
}

fn put_record(heap: &Heap<Vec<u8>>, args: &PutArgs, value: &[u8]) -> Result<(), Failure> {
    if args.key == "new" {
        let id = heap.append(value).map_err(failed)?;
        return print(&format!("{}\n", id.0));
    }
    if args.if_absent {
        return Err(Failure::Usage("--if-absent is for keys: a heap gives numbers".to_string()));
    }
    if heap.update(record_id(&args.key)?, value).map_err(failed)? {
        return Ok(());
    }
    let text = format!("heap '{}' has no record {}: `new` makes one", heap.name(), args.key);
    Err(Failure::Store(text))
}

const DEL_EXAMPLES: &str = "Examples:
  millpond del shop.db ada --tree users
  millpond del shop.db --prefix session/";

#[derive(clap::Args, Debug)]
#[command(after_help = DEL_EXAMPLES)]
pub(crate) struct DelArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The key, or the number of a heap's record
    #[arg(allow_hyphen_values = true, required_unless_present = "prefix")]
    key: Option<String>,
    /// Remove all entries with keys that begin with this prefix
    #[arg(long, conflicts_with = "key")]
    prefix: Option<String>,
    #[command(flatten)]
    tree: TreeArgs,
    #[command(flatten)]
    notation: Notation,
}

pub(crate) fn del(args: &DelArgs) -> Result<(), Failure> {
    let db = open::open(&args.store.file, false, None)?;
    let result = del_from(&db, args);
    open::close(db)?;
    result
}

fn del_from(db: &Db, args: &DelArgs) -> Result<(), Failure> {
    let from = open::structure(db, &args.tree)?;
    let notation = args.notation.to_write(&open::types(db, &from)?, from.name())?;
    if let Some(prefix) = &args.prefix {
        let Opened::Tree(tree) = &from else {
            let text = format!("--prefix is for trees, and this is {}", from.title());
            return Err(Failure::Usage(text));
        };
        let range = KeyRange::of_prefix::<Vec<u8>>(&notation.prefix(prefix)?[..]);
        let removed = tree.remove_range(&range).map_err(failed)?;
        complain(&format!("{removed} entries removed from {}", from.title()));
        return Ok(());
    }
    let Some(text) = &args.key else { return Ok(()) };
    let key = &key_in(&from, &notation, text)?;
    let removed = match &from {
        Opened::Tree(tree) => tree.delete(key),
        Opened::Hash(index) => index.delete(key),
        Opened::Heap(heap) => heap.delete(record_id(text)?),
    };
    if removed.map_err(failed)? { Ok(()) } else { Err(missing(text, &from)) }
}
