//! `millpond destage`: copies a store's pages from its second tier back to its file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_device::{Device, FileDevice, FileOptions};
use millpond_policies::chosen::ChosenPolicy;
use millpond_policies::info::Tier;
use millpond_tier::BackTier;

use super::open::StoreArgs;
use crate::error::Failure;
use crate::output::complain;

const EXAMPLES: &str = "Examples:
  millpond destage shop.mp /nvme/shop.tier

A store whose second tier writes back (Options::write_back), or the backing file of `millpond serve \
--write-back`, is not whole without the tier's file, and is refused without it. After this it is \
whole; the tier's file is of no use any more and can be removed. Interrupted, the two belong together \
still. A store that was not closed is recovered as any other, afterwards.";

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
    let (store, fast) = (open(file)?, open(cache)?);
    let (whole, of_use) = (file.display(), cache.display());
    let Some(options) = BackTier::options_of(&*store, &*fast).map_err(failed)? else {
        complain(&format!("{of_use} has nothing that {whole} has not"));
        return Ok(());
    };
    // No page is requested, so any policy will do.
    let policy = ChosenPolicy::parse("t2-lru", Tier::Second).map_err(failed)?;
    let host = |shape: &_| policy.erased_host(shape);
    let tier = BackTier::open(store, fast, &options, host).map_err(failed)?;
    let held = tier.counts().dirty.saturating_sub(1);
    tier.give_up().map_err(failed)?;
    tier.release();
    complain(&format!("{whole} is whole, {held} pages were written; {of_use} can be removed"));
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Store(error.to_string())
}

fn open(path: &Path) -> Result<Arc<dyn Device>, Failure> {
    Ok(Arc::new(FileDevice::open(path, &FileOptions::default()).map_err(failed)?))
}
