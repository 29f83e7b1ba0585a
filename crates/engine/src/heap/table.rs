//! The heap's handle, the ids of records, and the limits of each page size.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use millpond_base::PageId;

use crate::heap::data::{ID, SLOT, SLOTS};
use crate::heap::error::corrupt;
use crate::page::{Directory, PageHeader, PageType};
use crate::pool::{Anchor, NewPage, Pages, PoolError, Read};

/// The id of a record while the record exists. Ids ascend as records are appended. After a record
/// was removed, a new one may get its id.
///
/// The low 16 bits are a slot of a data page, the others the page's number in the heap: the path to
/// a record is computed, not searched.
///
/// ```
/// # use millpond::{Db, Error, Options, RecordId};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let notes = db.heap::<String>("notes")?;
/// let (first, second) = (notes.append("quiet")?, notes.append("windy")?);
/// assert!(first < second);
/// assert_eq!(notes.get(RecordId(second.0))?.as_deref(), Some("windy"));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RecordId(pub u64);

impl RecordId {
    pub(crate) fn new(page: u64, slot: usize) -> RecordId {
        debug_assert!(slot < 1 << 16);
        RecordId(page << 16 | slot as u64)
    }

    /// Returns the id as the key of locks, undo records and versions. Keys have the order of ids.
    pub(crate) fn to_key(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Returns the id that this key encodes, or `None` if it encodes none.
    pub(crate) fn of_key(key: &[u8]) -> Option<RecordId> {
        key.try_into().ok().map(|key| RecordId(u64::from_be_bytes(key)))
    }

    /// Returns the number of the record's data page.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let (first, second) = (notes.append("quiet")?, notes.append("windy")?);
    /// assert_eq!(first.page(), second.page());
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn page(self) -> u64 {
        self.0 >> 16
    }

    /// Returns the record's slot in its data page.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let (first, second) = (notes.append("quiet")?, notes.append("windy")?);
    /// assert_ne!(first.slot(), second.slot());
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn slot(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// Limits of records at one page size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum length of a record in bytes: a page less 68. 4028 at a page size of 4096.
    pub record_max: usize,
}

impl Limits {
    /// Returns the limits for a page size in bytes.
    pub const fn of(page_size: usize) -> Limits {
        Limits { record_max: (page_size - SLOTS - SLOT - ID) & !3 }
    }
}

/// A sequence of records that keep their ids, for any number of threads.
pub struct Heap<P: Pages> {
    pub(crate) pages: Arc<P>,
    pub(crate) anchor: Anchor,
    pub(crate) owner: u32,
    pub(crate) form: Directory,
    pub(crate) limits: Limits,
    /// Number of the last data page that records were appended to: a hint.
    pub(crate) tail: AtomicU64,
    /// The largest free space that is recorded below the root: a hint.
    pub(crate) holes: AtomicU8,
    root: AtomicU64,
}

impl<P: Pages> Heap<P> {
    /// Creates an empty heap whose pages belong to `owner`.
    ///
    /// # Errors
    /// There is no memory or no page for the root.
    pub fn create(pages: Arc<P>, owner: u32) -> Result<Heap<P>, PoolError> {
        // A zero-filled page is a directory without children.
        let new = NewPage { owner, kind: PageType::HEAP_DIRECTORY, level: 1 };
        let (anchor, root) = pages.anchor_new(new)?;
        Ok(Heap::with(pages, owner, anchor, root, 0))
    }

    /// Opens the heap whose root is the page `root`.
    ///
    /// # Errors
    /// There is no memory, or the root could not be read, or is no root of a heap.
    pub fn open(pages: Arc<P>, owner: u32, root: PageId) -> Result<Heap<P>, PoolError> {
        let anchor = pages.anchor_of(owner, root)?;
        pages.run(|mtr| {
            let page = Read::root(mtr, anchor, millpond_base::Mark::READ)?;
            let kind = PageHeader::type_in(page.view());
            page.validate()?;
            if kind == PageType::HEAP_DIRECTORY {
                return Ok(());
            }
            Err(corrupt(root, "not the root of a heap"))
        })?;
        Ok(Heap::with(pages, owner, anchor, root, u8::MAX))
    }

    fn with(pages: Arc<P>, owner: u32, anchor: Anchor, root: PageId, holes: u8) -> Heap<P> {
        let page_size = pages.page_size();
        let (form, limits) = (Directory::of(page_size), Limits::of(page_size));
        let (tail, holes) = (AtomicU64::new(u64::MAX), AtomicU8::new(holes));
        let root = AtomicU64::new(root.0);
        Heap { pages, anchor, owner, form, limits, tail, holes, root }
    }

    /// Returns the page of the root.
    pub fn root(&self) -> PageId {
        PageId(self.root.load(Ordering::Acquire))
    }

    /// Records that the root moved to `page`.
    pub(crate) fn set_root(&self, page: PageId) {
        self.root.store(page.0, Ordering::Release);
    }

    /// Returns the owner id in the headers of the heap's pages.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Returns the memory that holds the heap's pages.
    pub fn pages(&self) -> &Arc<P> {
        &self.pages
    }

    /// Returns the anchor, which holds the root's swip.
    pub fn anchor(&self) -> Anchor {
        self.anchor
    }

    /// Returns the limits of records.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn new_directory(&self, level: u8) -> NewPage {
        NewPage { owner: self.owner, kind: PageType::HEAP_DIRECTORY, level }
    }

    pub(crate) fn new_data(&self) -> NewPage {
        NewPage { owner: self.owner, kind: PageType::HEAP_DATA, level: 0 }
    }
}
