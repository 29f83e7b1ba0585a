//! The index's handle, and the limits of each page size.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_base::{Mark, PageId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::hash_index::bucket::{SLOT, SLOTS, record_len};
use crate::hash_index::directory::{SEED, init};
use crate::hash_index::error::corrupt;
use crate::page::{Directory, PageHeader, PageType};
use crate::pool::{Anchor, NewPage, Pages, PoolError, Read};

/// Limits of entries at one page size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum length of a key and its value together: a bucket has room for at least four such
    /// entries. 1000 at a page size of 4096.
    pub entry_max: usize,
}

impl Limits {
    /// Returns the limits for a page size in bytes.
    pub const fn of(page_size: usize) -> Limits {
        Limits { entry_max: ((page_size - SLOTS) / 4 - SLOT - record_len(0, 0)) & !1 }
    }
}

/// An unordered map of byte strings, for any number of threads.
pub struct HashIndex<P: Pages> {
    pub(crate) pages: Arc<P>,
    pub(crate) anchor: Anchor,
    pub(crate) owner: u32,
    pub(crate) form: Directory,
    pub(crate) limits: Limits,
    pub(crate) seed: u64,
    /// Number of hash bits that directories may use.
    pub(crate) bits_max: u32,
    root: AtomicU64,
}

impl<P: Pages> HashIndex<P> {
    /// Creates an empty index whose pages belong to `owner`. `seed` is that of the hash function: a
    /// random one prevents an attacker from choosing keys that collide.
    ///
    /// # Errors
    /// There is no memory or no page for the root.
    pub fn create(pages: Arc<P>, owner: u32, seed: u64) -> Result<HashIndex<P>, PoolError> {
        let (anchor, root) =
            pages.anchor_new(NewPage { owner, kind: PageType::HASH_ROOT, level: LEVEL_ROOT })?;
        pages.run(|mtr| {
            let mut page = Read::root(mtr, anchor, Mark::WRITE)?.upgrade()?;
            init(page.page_mut(), 0, 0, seed);
            Ok(())
        })?;
        Ok(HashIndex::with(pages, owner, seed, anchor, root))
    }

    /// Opens the index whose root is the page `root`.
    ///
    /// # Errors
    /// There is no memory, or the root could not be read, or is no root of a hash index.
    pub fn open(pages: Arc<P>, owner: u32, root: PageId) -> Result<HashIndex<P>, PoolError> {
        let anchor = pages.anchor_of(owner, root)?;
        let seed = pages.run(|mtr| {
            let page = Read::root(mtr, anchor, Mark::READ)?;
            let (kind, seed) = (PageHeader::type_in(page.view()), page.view().u64(SEED));
            page.validate()?;
            if kind != PageType::HASH_ROOT {
                return Err(corrupt(root, "not the root of a hash index"));
            }
            Ok(seed)
        })?;
        Ok(HashIndex::with(pages, owner, seed, anchor, root))
    }

    fn with(pages: Arc<P>, owner: u32, seed: u64, anchor: Anchor, root: PageId) -> HashIndex<P> {
        let page_size = pages.page_size();
        let (form, limits) = (Directory::of(page_size), Limits::of(page_size));
        let (bits_max, root) = (64 / form.bits() * form.bits(), AtomicU64::new(root.0));
        HashIndex { pages, anchor, owner, form, limits, seed, bits_max, root }
    }

    /// Returns the page of the root.
    pub fn root(&self) -> PageId {
        PageId(self.root.load(Ordering::Acquire))
    }

    /// Records that the root moved to `page`.
    pub(crate) fn set_root(&self, page: PageId) {
        self.root.store(page.0, Ordering::Release);
    }

    /// Returns the owner id in the headers of the index's pages.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Returns the memory that holds the index's pages.
    pub fn pages(&self) -> &Arc<P> {
        &self.pages
    }

    /// Returns the anchor, which holds the root's swip.
    pub fn anchor(&self) -> Anchor {
        self.anchor
    }

    /// Returns the limits of entries.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    #[inline(always)]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed)
    }

    /// Writes the name of an entry into `name`: its key's hash, then the key. Locks, undo records
    /// and versions know an entry by its name. So they are in the order in which the index keeps
    /// its entries, and a scan finds those of a bucket side by side.
    #[inline]
    pub fn name_entry(&self, key: &[u8], name: &mut Vec<u8>) {
        name.clear();
        name.extend_from_slice(&self.hash(key).to_be_bytes());
        name.extend_from_slice(key);
    }

    pub(crate) fn new_directory(&self, depth: u8) -> NewPage {
        let level = LEVEL_ROOT.saturating_sub(depth);
        NewPage { owner: self.owner, kind: PageType::HASH_ROOT, level }
    }

    pub(crate) fn new_bucket(&self) -> NewPage {
        NewPage { owner: self.owner, kind: PageType::HASH_BUCKET, level: 0 }
    }
}

/// Level of the root; each directory below has one less. The height of the index above a bucket
/// varies, but a child's level is always below its parent's.
const LEVEL_ROOT: u8 = 15;

/// Returns the hash and the key of an entry's name.
#[inline(always)]
pub(crate) fn split_name(name: &[u8]) -> Option<(u64, &[u8])> {
    name.split_first_chunk().map(|(hash, key)| (u64::from_be_bytes(*hash), key))
}
