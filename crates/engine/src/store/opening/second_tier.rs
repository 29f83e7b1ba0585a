//! The second tier of a store that is opened.

use std::path::Path;
use std::sync::Arc;

use crate::io::{Device, FileDevice, FileOptions, PageStore, real_path, superblock_of};
use crate::page::PageSize;
use crate::page::superblock::Compression;
use crate::store::error::Error;
use crate::store::options::memory_limit::SystemRoots;
use crate::store::options::{Options, TierPlan};
use crate::tier::{Identity, SecondTier, TierError, TierOptions};

/// A store's device, and the same as a second tier if it has one.
pub(super) struct Tiered {
    pub(super) device: Arc<dyn Device>,
    pub(super) tier: Option<Arc<SecondTier>>,
}

impl Tiered {
    fn without(device: Arc<dyn Device>) -> Tiered {
        Tiered { device, tier: None }
    }
}

/// Puts a second tier above `device`, if the options ask for one; its cache is on `fast`, or in the
/// file that they name. A store that is made there will have pages of `new_page_size`.
///
/// # Errors
/// The tier cannot be. What is wrong with the store is found out when it is opened.
pub(super) fn tiered(
    device: Arc<dyn Device>,
    fast: Option<Arc<dyn Device>>,
    options: &Options,
    new_page_size: PageSize,
) -> Result<Tiered, Error> {
    let Some(asked) = options.second_tier.as_ref().filter(|_| !options.read_only) else {
        return Ok(Tiered::without(device));
    };
    let (page_size, compression) = if PageStore::is_unmarked(&*device)? {
        (new_page_size, options.compression)
    } else {
        match superblock_of(&*device, None) {
            Ok(superblock) => (superblock.page_size, superblock.compression),
            Err(_) => return Ok(Tiered::without(device)),
        }
    };
    let plan = options.plan(&SystemRoots::default(), Some(page_size.bytes() as u32))?;
    let Some(TierPlan { policy, options: tier, .. }) = plan.tier else {
        return Ok(Tiered::without(device));
    };
    let unit = match compression {
        Compression::None => page_size.bytes(),
        Compression::Lz4 => page_size.unit(),
    };
    let tier = TierOptions { unit: unit as u32, ..tier };
    let fast = match fast {
        Some(fast) => fast,
        None => open_file(&asked.path, &tier, &options.file_options())?,
    };
    let host = |shape: &_| policy.tier_host(shape);
    let tier = Arc::new(SecondTier::open(device, fast, &tier, identity, host)?);
    Ok(Tiered { device: tier.clone(), tier: Some(tier) })
}

/// The cache's file, which is made if it is not there.
fn open_file(
    path: &Path,
    tier: &TierOptions,
    options: &FileOptions,
) -> Result<Arc<dyn Device>, TierError> {
    let path = &real_path(path);
    let length = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let open = |options: &FileOptions| {
        if length == 0 {
            FileDevice::create(path, options)
        } else {
            FileDevice::open(path, options)
        }
    };
    let mut device = open(options)?;
    if !u64::from(tier.unit).is_multiple_of(device.alignment().offset) {
        // Compressed pages are shorter than what the device takes at once.
        drop(device);
        device = open(&FileOptions { direct: false, ..options.clone() })?;
    }
    device.sync_directory()?;
    Ok(Arc::new(device))
}

/// What tells a store that is closed from what it is after anything was written to it.
fn identity(below: &dyn Device) -> Option<Identity> {
    let superblock = superblock_of(below, None).ok().filter(|block| block.clean)?;
    let mut identity = Identity::default();
    identity[..16].copy_from_slice(&superblock.uuid);
    identity[16..24].copy_from_slice(&superblock.generation.to_le_bytes());
    identity[24..].copy_from_slice(&below.length().to_le_bytes());
    Some(identity)
}
