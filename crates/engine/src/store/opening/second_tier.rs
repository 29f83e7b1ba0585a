//! The second tier of a store during its opening.

use std::path::Path;
use std::sync::Arc;

use millpond_device::{Device, FileDevice, FileOptions, file::new_file::create_like, real_path};
use millpond_policies::chosen::ChosenPolicy;
use millpond_tier::BackMark;
use millpond_tier::{AnyTier, BackTier, Identity, SecondTier, TierError, TierOptions};

use crate::io::{PageStore, superblock_of};
use crate::page::PageSize;
use crate::page::superblock::Compression;
use crate::store::error::Error;
use crate::store::opening::remains::Created;
use crate::store::options::memory_limit::SystemRoots;
use crate::store::options::{Options, TierPlan};

/// A store's device, and the second tier in it, if it has one.
pub(super) struct Tiered {
    pub(super) device: Arc<dyn Device>,
    pub(super) tier: Option<AnyTier>,
}

impl Tiered {
    fn without(device: Arc<dyn Device>) -> Tiered {
        Tiered { device, tier: None }
    }
}

/// Puts a second tier above `device`, if the options ask for one; its cache is on `fast`, or in the
/// file in the options. A store that is created there will have pages of `new_page_size`.
///
/// # Errors
/// The tier cannot be opened. Faults of the store are found when it is opened.
pub(super) fn tiered(
    device: Arc<dyn Device>,
    created: Option<&Created>,
    fast: Option<Arc<dyn Device>>,
    options: &Options,
    new_page_size: PageSize,
) -> Result<Tiered, Error> {
    let Some(asked) = options.second_tier.as_ref().filter(|_| !options.read_only) else {
        return Ok(Tiered::without(device));
    };
    let mark = BackMark::of(&*device)?;
    let (page_size, unit) = if let Some(mark) = &mark {
        let size = PageSize::new(u64::from(mark.page_bytes)).unwrap_or(new_page_size);
        (size, mark.unit as usize)
    } else if PageStore::is_unmarked(&*device)? {
        (new_page_size, unit_of(new_page_size, options.compression))
    } else {
        match superblock_of(&*device, None) {
            Ok(block) => (block.page_size, unit_of(block.page_size, block.compression)),
            Err(_) => {
                // The mark may be the unreadable part. Then the cache shows whose it is, and an
                // incomplete device is not opened, or formatted, on its own.
                if let Some(fast) = cache_there(fast, &asked.path, &options.file_options())? {
                    BackTier::is_pair(&*device, &*fast)?;
                }
                return Ok(Tiered::without(device));
            }
        }
    };
    let plan = options.plan(&SystemRoots::default(), Some(page_size.bytes() as u32))?;
    let Some(TierPlan { policy, options: tier, .. }) = plan.tier else {
        return Ok(Tiered::without(device));
    };
    let tier = TierOptions { unit: unit as u32, ..tier };
    let fast = match fast {
        Some(fast) => fast,
        None => open_file(&asked.path, device.path(), created, &tier, &options.file_options())?,
    };
    let host = |shape: &_| policy.erased_host(shape);
    let tier = if tier.writes_back {
        AnyTier::Back(Arc::new(BackTier::open(device, fast, &tier, host)?.destaging_ahead()))
    } else {
        if mark.is_some() && BackTier::is_pair(&*device, &*fast)? {
            make_whole(&device, &fast, &tier, &policy)?;
        }
        AnyTier::Through(Arc::new(SecondTier::open(device, fast, &tier, identity, host)?))
    };
    Ok(Tiered { device: tier.device(), tier: Some(tier) })
}

/// Writes the cached data of a store whose tier wrote back at its last use to the store's device.
fn make_whole(
    device: &Arc<dyn Device>,
    fast: &Arc<dyn Device>,
    options: &TierOptions,
    policy: &ChosenPolicy,
) -> Result<(), TierError> {
    let host = |shape: &_| policy.erased_host(shape);
    let tier = BackTier::open(device.clone(), fast.clone(), options, host)?;
    Ok(tier.give_up()?)
}

/// Returns the cache's device, if it is given, or its file exists.
fn cache_there(
    fast: Option<Arc<dyn Device>>,
    path: &Path,
    options: &FileOptions,
) -> Result<Option<Arc<dyn Device>>, TierError> {
    let path = &real_path(path);
    let is_there = std::fs::metadata(path).is_ok_and(|meta| meta.len() > 0);
    if fast.is_some() || !is_there {
        return Ok(fast);
    }
    let options = FileOptions { direct: false, ..options.clone() };
    Ok(Some(Arc::new(FileDevice::open(path, &options)?)))
}

/// Returns the unit of the offsets and lengths of pages.
fn unit_of(page_size: PageSize, compression: Compression) -> usize {
    match compression {
        Compression::None => page_size.bytes(),
        Compression::Lz4 => page_size.unit(),
    }
}

/// Opens the cache's file; creates it, with the mode of the file at `store`, if it does not exist.
fn open_file(
    path: &Path,
    store: &Path,
    created: Option<&Created>,
    tier: &TierOptions,
    options: &FileOptions,
) -> Result<Arc<dyn Device>, TierError> {
    let path = &real_path(path);
    let length = std::fs::metadata(path).map_or(0, |meta| meta.len());
    if length == 0 && create_like(path, store).is_ok() {
        created.inspect(|created| created.add(path));
    }
    let open = |options: &FileOptions| {
        if length == 0 {
            FileDevice::create(path, options)
        } else {
            FileDevice::open(path, options)
        }
    };
    let mut device = open(options)?;
    if !u64::from(tier.unit).is_multiple_of(device.alignment().offset) {
        // Compressed pages are shorter than the device's unit of I/O.
        drop(device);
        device = open(&FileOptions { direct: false, ..options.clone() })?;
    }
    device.sync_directory()?;
    Ok(Arc::new(device))
}

/// Returns an identity of a closed store, which any write to the store changes.
fn identity(below: &dyn Device) -> Option<Identity> {
    let superblock = superblock_of(below, None).ok().filter(|block| block.clean)?;
    let mut identity = Identity::default();
    identity[..16].copy_from_slice(&superblock.uuid);
    identity[16..24].copy_from_slice(&superblock.generation.to_le_bytes());
    identity[24..].copy_from_slice(&below.length().to_le_bytes());
    Some(identity)
}
