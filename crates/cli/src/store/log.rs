//! `millpond log`: the records of a store's log.

use millpond::internals::admin::log_view::read_log;
use millpond_base::Lsn;
use millpond_lab::table::Table;
use serde_json::json;

use super::open::{StoreArgs, failed};
use crate::error::Failure;
use crate::interrupt;
use crate::output::Output;

const EXAMPLES: &str = "Examples:
  millpond log shop.db                      from where a recovery would begin
  millpond log shop.db --tx 4711            what a transaction did
  millpond log shop.db --from 81920 --limit 20 --format json

The store must not be in use. Nothing is changed. Positions (LSNs) are bytes of the stream of records.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Begin at this position, which must be the beginning of a record
    #[arg(long, value_name = "LSN")]
    from: Option<u64>,
    /// Only the records of this transaction
    #[arg(long, value_name = "ID")]
    tx: Option<u64>,
    /// Maximum number of records
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    limit: usize,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.output.check([&args.store.file])?;
    let mut table = Table::new(["lsn", "bytes", "kind", "tx", "prev", "what"]);
    read_log(&args.store.file, args.from.map(Lsn), |record| {
        if args.tx.is_none_or(|tx| tx == record.tx) {
            table.rows.push(vec![
                record.start.0.into(),
                (record.end.0 - record.start.0).into(),
                record.kind.into(),
                record.tx.into(),
                record.prev.0.into(),
                record.what.into(),
            ]);
        }
        table.rows.len() < args.limit && !interrupt::asked()
    })
    .map_err(failed)?;
    let params = json!({ "file": args.store.file.display().to_string() });
    args.output.write("log", &params, &table)
}
