//! Storage in memory that checks its input.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use millpond::internals::page::{PageHeader, PageType};
use millpond::internals::pool::PoolOptions;
use millpond::internals::pool::{PageOut, PoolError, Storage};
use millpond_base::PageId;

/// Pages by id; a sealed page must be sound when it is read.
pub struct MemoryStorage {
    page_size: usize,
    pages: Mutex<HashMap<u64, Vec<u8>>>,
    free: Mutex<BTreeSet<u64>>,
    next: AtomicU64,
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    pub reads_fail: AtomicU64,
    pub writes_fail: AtomicU64,
    /// While it is not 0 no write returns.
    pub writes_held: AtomicU64,
    /// Writes that were held so far.
    pub writes_waiting: AtomicU64,
    /// Action to run while the next write is under way.
    pub meanwhile: Mutex<Option<Meanwhile>>,
}

/// Something that happens once.
pub type Meanwhile = Box<dyn FnOnce() + Send>;

/// Failure that a test ordered.
fn failed(what: &str) -> PoolError {
    let error: Box<dyn std::error::Error + Send + Sync> = what.into();
    PoolError::Storage(millpond::internals::pool::error::StorageError(error.into()))
}

fn take_one(counter: &AtomicU64) -> bool {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
}

impl MemoryStorage {
    pub fn new(page_size: usize) -> MemoryStorage {
        MemoryStorage {
            page_size,
            pages: Mutex::default(),
            free: Mutex::default(),
            next: AtomicU64::new(1),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            reads_fail: AtomicU64::new(0),
            writes_fail: AtomicU64::new(0),
            writes_held: AtomicU64::new(0),
            writes_waiting: AtomicU64::new(0),
            meanwhile: Mutex::default(),
        }
    }

    /// Pages that are taken.
    pub fn taken(&self) -> u64 {
        self.next.load(Ordering::SeqCst) - 1 - self.free.lock().unwrap().len() as u64
    }
}

impl Storage for MemoryStorage {
    fn page_size(&self) -> usize {
        self.page_size
    }

    fn pages(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    fn read(&self, page: PageId, bytes: &mut [u8]) -> Result<(), PoolError> {
        if take_one(&self.reads_fail) {
            return Err(failed("a read failed"));
        }
        self.reads.fetch_add(1, Ordering::SeqCst);
        // Other threads go on meanwhile.
        millpond_base::sync::thread::yield_now();
        let pages = self.pages.lock().unwrap();
        let stored = pages.get(&page.0).unwrap_or_else(|| panic!("page {page} was never written"));
        assert!(PageHeader::is_sound(page, stored), "page {page} is damaged");
        bytes.copy_from_slice(stored);
        Ok(())
    }

    fn write(&self, out: &mut [PageOut<'_>]) -> Result<(), PoolError> {
        self.writes_waiting.fetch_add(1, Ordering::SeqCst);
        while self.writes_held.load(Ordering::SeqCst) != 0 {
            thread::yield_now();
        }
        millpond_base::sync::thread::yield_now();
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(happens) = meanwhile {
            happens();
        }
        if take_one(&self.writes_fail) {
            return Err(failed("a write failed"));
        }
        for page in out {
            assert_ne!(PageHeader::read(page.bytes).kind, PageType::ANCHOR);
            assert_eq!(PageHeader::read(page.bytes).page, page.page, "a page in another's place");
            assert!(!self.free.lock().unwrap().contains(&page.page.0), "a free page is written");
            PageHeader::seal(page.page, page.bytes);
            self.pages.lock().unwrap().insert(page.page.0, page.bytes.to_vec());
            self.writes.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    fn allocate(&self, count: u32, ids: &mut Vec<PageId>) -> Result<(), PoolError> {
        let mut free = self.free.lock().unwrap();
        for _ in 0..count {
            let id = free.pop_first().unwrap_or_else(|| self.next.fetch_add(1, Ordering::SeqCst));
            ids.push(PageId(id));
        }
        Ok(())
    }

    fn free(&self, page: PageId) -> Result<(), PoolError> {
        assert!(self.free.lock().unwrap().insert(page.0), "page {page} was free already");
        self.pages.lock().unwrap().remove(&page.0);
        Ok(())
    }
}

/// Options for so few frames that everything is evicted all the time.
pub fn tiny(frames: u32) -> PoolOptions {
    PoolOptions { batch: 2, ..PoolOptions::new(frames) }
}
