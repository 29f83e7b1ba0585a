//! Opening a volume over a file, and closing it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_device::{Device, Errno, FileDevice, FileOptions, OpenFileError, real_path};
use millpond_policies::chosen::ChosenPolicy;
use millpond_policies::info::Tier;
use millpond_tier::BackMark;
use millpond_tier::{AnyTier, BackTier, SecondTier, TierError, TierOptions};

use super::backing::BackingFile;
use super::error::{OpenVolumeError, VolumeError};
use super::requests::{BLOCK_BYTES, Volume};

/// The number of "No such file or directory".
const MISSING: Errno = Errno(2);
/// Error numbers of "Operation not permitted", "Permission denied" and "Read-only file system".
const NOT_ALLOWED: [Errno; 3] = [Errno(1), Errno(13), Errno(30)];

/// A cache in front of a backing file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheSpec {
    /// Path of its file, which is created if it does not exist.
    pub path: PathBuf,
    /// Bytes of the file at most.
    pub bytes: u64,
    /// The policy, with parameters as on a command line.
    pub policy: String,
    /// Seed of the policy's random choices.
    pub seed: u64,
    /// Set if written data stays in the cache. Then the two files together are the volume, and the
    /// backing file alone is refused.
    pub write_back: bool,
}

/// Parts of a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeSpec {
    /// The file with all bytes, or the block device. It must exist; the volume has its length,
    /// rounded down to whole blocks.
    pub backing: PathBuf,
    /// The cache, if there is one.
    pub cache: Option<CacheSpec>,
    /// Bytes of a block, the unit of the cache: a power of two within [`BLOCK_BYTES`].
    pub block: u32,
    /// Refuses writes; several servers may share the backing file then.
    pub read_only: bool,
    /// Bypass the operating system's page cache where the file system allows it.
    pub direct: bool,
}

impl VolumeSpec {
    /// Returns a volume over the file `backing`, in blocks of 4 KiB, without a cache.
    pub fn new(backing: &Path) -> VolumeSpec {
        VolumeSpec {
            backing: backing.into(),
            cache: None,
            block: 4096,
            read_only: false,
            direct: true,
        }
    }
}

impl Volume {
    /// Opens a volume. Its backing file and its cache are locked until it is closed or dropped.
    ///
    /// # Errors
    /// An option is invalid, or a file is missing, in use or of another kind.
    pub fn open(spec: &VolumeSpec) -> Result<Volume, OpenVolumeError> {
        let block = spec.block;
        if !BLOCK_BYTES.contains(&block) || !block.is_power_of_two() {
            return Err(OpenVolumeError::Block { block });
        }
        if let Some(cache) = &spec.cache
            && is_same_file(&spec.backing, &cache.path)
        {
            return Err(OpenVolumeError::SameFile { path: cache.path.clone() });
        }
        let backing = Arc::new(open_backing(spec)?);
        let length = backing.length();
        if length < u64::from(block) {
            let path = spec.backing.clone();
            return Err(OpenVolumeError::TooShort { path, length, block });
        }
        let mut files: Vec<Arc<dyn Device>> = vec![backing.clone()];
        let tier = match &spec.cache {
            Some(cache) => {
                let (tier, fast) = open_tier(&backing, cache, spec)?;
                // A write-through cache has no data of its own.
                if matches!(tier, AnyTier::Back(_)) {
                    files.push(fast);
                }
                Some(tier)
            }
            None => match BackMark::of(&*backing).map_err(TierError::Device)? {
                None => None,
                Some(mark) => {
                    let (path, cache) = (spec.backing.clone(), mark.cache);
                    return Err(TierError::CacheMissing { path, cache }.into());
                }
            },
        };
        let device: Arc<dyn Device> = match &tier {
            Some(tier) => tier.device(),
            None => backing.clone(),
        };
        if let Some(tier) = &tier {
            tier.let_copies_wait();
        }
        let volume = Volume::over(device, block, spec.read_only);
        // The backing file is asked for holes only if it has all written data.
        let backing = Some(backing).filter(|_| !matches!(tier, Some(AnyTier::Back(_))));
        Ok(Volume { tier, backing, files, ..volume })
    }

    /// Writes waiting copies of blocks that were read into the cache, if there are many; any number
    /// if `even_few`, which suits a thread that no client waits for. It does so on a closed volume,
    /// too.
    pub fn write_waiting(&self, even_few: bool) {
        if let Some(tier) = &self.tier {
            tier.write_waiting(even_few);
        }
    }

    /// Makes everything durable. The cache stays valid for the next open if nobody else changes the
    /// backing file in the meantime. No reads or writes may follow.
    ///
    /// # Errors
    /// The last sync fails, or an earlier one did; the cache will start empty.
    pub fn close(&self) -> Result<(), VolumeError> {
        self.flush()?;
        if self.is_sound() {
            if let Some(backing) = &self.backing {
                backing.settle();
            }
            self.device.release();
        }
        Ok(())
    }
}

/// Returns `true` if both paths lead to one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    one == other || place(one).is_some_and(|found| place(other) == Some(found))
}

fn file_options(spec: &VolumeSpec) -> FileOptions {
    FileOptions { direct: spec.direct, ..FileOptions::default() }
}

fn open_backing(spec: &VolumeSpec) -> Result<BackingFile, OpenVolumeError> {
    let path = &real_path(&spec.backing);
    let open = |options: &FileOptions| match BackingFile::open(path, options) {
        Err(OpenFileError::Io { errno: MISSING, .. }) => {
            Err(OpenVolumeError::NoBacking { path: spec.backing.clone() })
        }
        Err(OpenFileError::NotAFile { path, what }) => {
            Err(OpenVolumeError::NotBacking { path, what })
        }
        Err(error @ OpenFileError::Io { errno, .. })
            if !spec.read_only && NOT_ALLOWED.contains(&errno) =>
        {
            Err(OpenVolumeError::NotWritable(error))
        }
        opened => opened.map_err(OpenVolumeError::Backing),
    };
    let options =
        FileOptions { read_only: spec.read_only, block_devices: true, ..file_options(spec) };
    let device = open(&options)?;
    if u64::from(spec.block).is_multiple_of(device.alignment().offset) {
        return Ok(device);
    }
    // Blocks are smaller than the drive's unit of I/O.
    drop(device);
    open(&FileOptions { direct: false, ..options })
}

fn open_tier(
    backing: &Arc<BackingFile>,
    cache: &CacheSpec,
    spec: &VolumeSpec,
) -> Result<(AnyTier, Arc<FileDevice>), OpenVolumeError> {
    let policy = ChosenPolicy::parse(&cache.policy, Tier::Second)
        .map_err(|error| OpenVolumeError::Policy(error.to_string()))?;
    let options = TierOptions {
        bytes: cache.bytes,
        page_bytes: spec.block,
        unit: spec.block,
        seed: cache.seed,
        writes_back: cache.write_back && !spec.read_only,
    };
    options.frames()?;
    // A write-through cache is synced only when it is opened and closed.
    let file_options = FileOptions { zeros: options.writes_back, ..file_options(spec) };
    let fast = Arc::new(open_cache_file(&cache.path, backing, &file_options, spec.block)?);
    let (below, told) = (backing.clone(), backing.clone());
    let identity = move |_: &dyn Device| told.identity();
    let host = |shape: &_| policy.erased_host(shape);
    if options.writes_back {
        let tier = BackTier::open(below, fast.clone(), &options, host)?.destaging_ahead();
        return Ok((AnyTier::Back(Arc::new(tier)), fast));
    }
    if !spec.read_only && BackTier::is_pair(&*below, &*fast)? {
        // Writes the cached data to the backing file.
        let back = TierOptions { writes_back: true, ..options };
        let host = |shape: &_| policy.erased_host(shape);
        let tier = BackTier::open(below.clone(), fast.clone(), &back, host)?;
        tier.give_up().map_err(TierError::Device)?;
    }
    let tier = SecondTier::open(below, fast.clone(), &options, identity, host)?;
    Ok((AnyTier::Through(Arc::new(tier)), fast))
}

/// Opens the cache's file, and creates it if it does not exist.
fn open_cache_file(
    path: &Path,
    backing: &BackingFile,
    options: &FileOptions,
    block: u32,
) -> Result<FileDevice, OpenVolumeError> {
    let path = &real_path(path);
    backing.create_like(path).map_err(|error| {
        OpenVolumeError::CacheFile(OpenFileError::Io {
            path: path.clone(),
            errno: Errno::of(&error),
        })
    })?;
    let open = |options: &FileOptions| {
        let length = std::fs::metadata(path).map_or(0, |found| found.len());
        let opened = match length {
            0 => FileDevice::create(path, options),
            _ => FileDevice::open(path, options),
        };
        opened.map_err(OpenVolumeError::CacheFile)
    };
    let mut device = open(options)?;
    if !u64::from(block).is_multiple_of(device.alignment().offset) {
        drop(device);
        device = open(&FileOptions { direct: false, ..options.clone() })?;
    }
    device.sync_directory().map_err(TierError::Device)?;
    Ok(device)
}
