//! `millpond destage`: a store gets what its second tier has of it.

use std::path::{Path, PathBuf};

use millpond::internals::io::{FileDevice, FileOptions};
use millpond::internals::tier::{BackTier, TierOptions};
use millpond::{Db, Options};

use super::open::{self, StoreArgs, unopened};
use crate::error::Failure;
use crate::output::complain;

const EXAMPLES: &str = "Examples:
  millpond destage shop.mp /nvme/shop.tier

A store whose second tier writes back (Options::write_back) is not whole without the tier's file, and \
is refused without it. After this it is whole; the tier's file is of no use any more and can be \
removed. Interrupted, it changes nothing: the two belong together still. The store may be one that \
was not closed: it is recovered.";

/// Memory beside what the tier's tables take.
const MEMORY: u64 = 32 << 20;
/// For each page of the tier, at most.
const TABLE_BYTES: u64 = 512;

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// The second tier's file
    #[arg(value_name = "CACHE")]
    cache: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (file, cache) = (&args.store.file, &args.cache);
    let Some(tier) = tier_of(file, cache)? else {
        complain(&format!("{} has nothing that {} has not", cache.display(), file.display()));
        return Ok(());
    };
    // Opened with writes that go through, it gets everything.
    let pages = tier.bytes / u64::from(tier.page_bytes.max(1));
    let options = Options::new()
        .create_if_missing(false)
        .memory(MEMORY + pages * TABLE_BYTES)
        .second_tier(cache, tier.bytes, "t2-lru");
    let db = Db::open(file, options).map_err(unopened)?;
    open::close(db)?;
    complain(&format!("{} is whole; {} can be removed", file.display(), cache.display()));
    Ok(())
}

fn tier_of(file: &Path, cache: &Path) -> Result<Option<TierOptions>, Failure> {
    let open = |path: &Path| {
        let options = FileOptions { read_only: true, ..FileOptions::default() };
        FileDevice::open(path, &options).map_err(|error| Failure::Store(error.to_string()))
    };
    let (store, cache) = (open(file)?, open(cache)?);
    BackTier::options_of(&store, &cache).map_err(|error| Failure::Store(error.to_string()))
}
