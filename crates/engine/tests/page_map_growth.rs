//! Pages that are allocated while the page map is written.
//!
//! The map is copied node by node, and nobody waits for that. The superblock named the page ids as
//! they were when the map was begun, and the last leaf, copied later, had pages beyond them. A
//! recovery, and a backup, refused such a map as damaged.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use millpond::internals::io::{PageStore, PageWrite};
use millpond::internals::page::page_map::per_node;
use millpond::internals::page::{PageHeader, PageSize, PageType};
use millpond::{Compression, Placement};
use millpond_base::{Lsn, PageId, Reason};
use millpond_device::{AlignedBuffer, Alignment, Device, DeviceError, MemoryDevice, WriteRequest};

const SIZE: PageSize = PageSize::TINY;
/// Nodes of a map that are written together.
const BATCH: u64 = 32;

/// A device on which a page is allocated and written when nodes of the map are.
#[derive(Default)]
struct Growing {
    below: MemoryDevice,
    store: OnceLock<Weak<PageStore>>,
    is_armed: Mutex<bool>,
    allocated: Mutex<Option<PageId>>,
}

fn write(store: &PageStore, page: PageId) {
    let mut bytes = AlignedBuffer::new(SIZE.bytes());
    let kind = PageType::HEAP_DATA;
    PageHeader { checksum: 0, lsn: Lsn(8), page, owner: 3, kind, level: 0 }.write(&mut bytes);
    store.write_batch(&mut [PageWrite::new(page, Reason::Replace, &mut bytes)]).unwrap();
}

impl Device for Growing {
    fn path(&self) -> &Path {
        Path::new("growing")
    }
    fn length(&self) -> u64 {
        self.below.length()
    }
    fn alignment(&self) -> Alignment {
        self.below.alignment()
    }
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.below.read(offset, bytes)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.below.write(offset, bytes)
    }
    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        self.below.write_batch(requests);
        let is_due = std::mem::take(&mut *self.is_armed.lock().unwrap());
        let store = self.store.get().and_then(Weak::upgrade);
        let Some(store) = store.filter(|_| is_due) else { return };
        let before = store.pages();
        let page = std::iter::repeat_with(|| store.allocate().unwrap());
        let page = page.into_iter().find(|page| page.0 >= before).unwrap();
        write(&store, page);
        *self.allocated.lock().unwrap() = Some(page);
    }
    fn sync(&self) -> Result<(), DeviceError> {
        self.below.sync()
    }
    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.below.grow(length)
    }
}

#[test]
fn a_page_that_is_allocated_while_the_map_is_written_damages_no_map() {
    for compression in [Compression::None, Compression::Lz4] {
        let device = Arc::new(Growing::default());
        let placement = Placement::OutOfPlace;
        let store = PageStore::create_unmarked_on(device.clone(), SIZE, placement, compression);
        let store = Arc::new(store.unwrap());
        assert!(device.store.set(Arc::downgrade(&store)).is_ok());
        let n = per_node(SIZE);
        while store.pages() <= BATCH * n || store.pages().is_multiple_of(n) {
            write(&store, store.allocate().unwrap());
        }
        // Every id is in use, so that the next page comes from behind them.
        let (ids, taken) = (store.pages(), store.allocated_pages());
        store.allocate_many((ids - taken) as usize).unwrap().into_iter().for_each(|page| {
            write(&store, page);
        });
        *device.is_armed.lock().unwrap() = true;
        let map = store.write_map().unwrap();
        let late = device.allocated.lock().unwrap().take().expect("a page was allocated");
        assert!(late.0 >= ids && late.0 < ids.next_multiple_of(n), "{late:?} of {ids} ids");
        store.sync().unwrap();
        store.set_log_position(Lsn(16), None, map.as_ref()).unwrap();
        map.unwrap().release();
        store.copy_places(store.map_root()).expect("a backup reads the map");
        let again = PageStore::open_to_recover(device.clone(), None).expect("the map is sound");
        let mut bytes = AlignedBuffer::new(SIZE.bytes());
        again.read(late, &mut bytes).unwrap();
    }
}
