//! `millpond trees`: lists the named structures of a store: trees, hash indexes, heaps.

use millpond_lab::table::Table;
use serde_json::json;

use super::open::{self, StoreArgs, failed};
use crate::error::Failure;
use crate::output::Output;

const EXAMPLES: &str = "Examples:
  millpond trees shop.db
  millpond trees shop.db --format json";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.output.check([&args.store.file])?;
    let db = open::open(&args.store.file, true, None)?;
    let mut table = Table::new(["name", "kind", "id", "root", "created_ms", "keys", "values"]);
    for (name, entry) in db.trees().map_err(failed)? {
        let types = db.types(&name).map_err(failed)?;
        table.rows.push(vec![
            name.into(),
            entry.structure.to_string().into(),
            u64::from(entry.owner).into(),
            entry.root.0.into(),
            entry.created_ms.into(),
            types.key.unwrap_or_default().into(),
            types.value.unwrap_or_default().into(),
        ]);
    }
    let params = json!({ "file": args.store.file.display().to_string() });
    args.output.write("trees", &params, &table)
}
