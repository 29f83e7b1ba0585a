//! Support of the page store for recovery.

use std::sync::Arc;

use millpond::internals::io::{CloseError, OpenError, PageStore, SyncError};
use millpond::internals::page::PageSize;
use millpond_base::{Lsn, PageId};
use millpond_device::{Device, FaultyDevice, MemoryDevice};

use super::world::SIZE;

fn abandoned(position: Lsn) -> Arc<MemoryDevice> {
    let device = Arc::new(MemoryDevice::new());
    let store = PageStore::create_on(device.clone(), SIZE).unwrap();
    let root = store.allocate().unwrap();
    store.set_log_position(position, Some(root), None).unwrap();
    device
}

#[test]
fn a_store_that_was_not_closed_is_opened_by_way_of_its_log_or_not_at_all() {
    let without = abandoned(Lsn(0));
    for store in [
        PageStore::open_on(without.clone(), None, false),
        PageStore::open_to_recover(without, None),
    ] {
        assert!(matches!(store, Err(OpenError::NotClean { .. })), "{store:?}");
    }
    let with = abandoned(Lsn(4096));
    let store = PageStore::open_on(with.clone(), None, false);
    assert!(matches!(store, Err(OpenError::NeedsRecovery { .. })), "{store:?}");
    let store = PageStore::open_to_recover(with.clone(), Some(PageSize::KIB_4));
    assert!(matches!(store, Err(OpenError::PageSizeDiffers { .. })), "{store:?}");
    let store = PageStore::open_to_recover(with.clone(), Some(SIZE)).unwrap();
    assert_eq!((store.log_position(), store.catalog_root()), (Lsn(4096), Some(PageId(2))));
    assert_eq!((store.pages(), store.free_pages()), (1024, 0));
    drop(store);
    // Nothing says that it was ever opened so.
    PageStore::open_to_recover(with, Some(SIZE)).unwrap();
}

#[test]
fn a_clean_close_keeps_the_log_position_and_leaves_nothing_to_recover() {
    let device = abandoned(Lsn(4096));
    let store = PageStore::open_to_recover(device.clone(), None).unwrap();
    let mut taken = vec![0; 16];
    taken[0] = 0b1_0111;
    taken[15] = 1 << 63;
    store.restore_map(&taken);
    let in_use = [0, 1, 2, 4, 1023].map(PageId);
    assert_eq!(store.allocated_pages(), 5);
    store.set_log_position(Lsn(8192), Some(PageId(4)), None).unwrap();
    store.close(Some(PageId(4))).unwrap();
    let again = PageStore::open_to_recover(device.clone(), None);
    assert!(matches!(again, Err(OpenError::NothingToRecover { .. })), "{again:?}");

    let store = PageStore::open_on(device, None, true).unwrap();
    assert_eq!((store.log_position(), store.catalog_root()), (Lsn(8192), Some(PageId(4))));
    assert!(in_use.iter().all(|&page| store.is_allocated(page)));
    assert_eq!(store.taken_words(), taken);
}

#[test]
fn a_store_whose_log_position_is_0_has_no_log() {
    let device = abandoned(Lsn(4096));
    let store = PageStore::open_to_recover(device.clone(), None).unwrap();
    store.set_log_position(Lsn(0), None, None).unwrap();
    drop(store);
    let store = PageStore::open_to_recover(device, None);
    assert!(matches!(store, Err(OpenError::NotClean { .. })), "{store:?}");
}

#[test]
fn a_map_may_be_shorter_or_longer_than_the_store() {
    let device = abandoned(Lsn(4096));
    let store = PageStore::open_to_recover(device, None).unwrap();
    store.restore_map(&[u64::MAX]);
    assert_eq!(store.allocated_pages(), 64);
    assert_eq!(store.allocate().unwrap(), PageId(64));
    store.restore_map(&[u64::MAX; 100]);
    assert_eq!(store.free_pages(), 0);
    store.restore_map(&[]);
    assert_eq!(store.allocated_pages(), 2, "the store's own");
    assert!(store.is_reserved(PageId(3840)));
    store.grow_to(4000).unwrap();
    store.grow_to(3000).unwrap();
    assert_eq!((store.pages(), store.allocated_pages()), (4000, 3));
    assert!(store.grow_to(u64::MAX).is_err());
    assert_eq!(store.pages(), 4000);
}

#[test]
fn a_store_whose_length_was_lost_is_made_as_long_as_its_superblock_says() {
    let device = Arc::new(MemoryDevice::new());
    let store = PageStore::create_on(device.clone(), SIZE).unwrap();
    store.grow_to(5000).unwrap();
    store.set_log_position(Lsn(4096), None, None).unwrap();
    let bytes = device.to_bytes();
    let cut = Arc::new(MemoryDevice::from_bytes(&bytes[..1 << 20]));
    let store = PageStore::open_to_recover(cut.clone(), None).unwrap();
    assert_eq!((store.pages(), cut.length()), (5000, 5000 * 512));
}

#[test]
fn a_log_position_outlives_any_crash_once_it_is_set() {
    for seed in 0..50 {
        let device = Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), seed));
        let store = PageStore::create_on(device.clone(), SIZE).unwrap();
        store.grow_to(4000).unwrap();
        store.set_log_position(Lsn(4096), Some(PageId(9)), None).unwrap();
        device.fail_next_sync();
        let failed = store.set_log_position(Lsn(9000), Some(PageId(10)), None);
        assert!(matches!(failed, Err(SyncError::Device(_))), "{failed:?}");
        assert_eq!(store.log_position(), Lsn(4096));
        assert!(matches!(store.close(None), Err(CloseError::Sync(_))));
        let left = Arc::new(device.crash(seed).unwrap());
        let store = PageStore::open_to_recover(left, None).unwrap();
        let found = (store.log_position(), store.catalog_root());
        let allowed = [(Lsn(4096), Some(PageId(9))), (Lsn(9000), Some(PageId(10)))];
        assert!(allowed.contains(&found) && store.pages() >= 4000, "{found:?}");
    }
}

#[test]
fn a_store_open_for_reading_has_its_log_position_left_alone() {
    let device = abandoned(Lsn(4096));
    let store = PageStore::open_to_recover(device.clone(), None).unwrap();
    store.close(None).unwrap();
    let closed = store.set_log_position(Lsn(1), None, None);
    assert!(matches!(closed, Err(SyncError::Closed)), "{closed:?}");
    let store = PageStore::open_on(device, None, true).unwrap();
    let refused = store.set_log_position(Lsn(1), None, None);
    assert!(matches!(refused, Err(SyncError::ReadOnly)), "{refused:?}");
    assert_eq!(store.log_position(), Lsn(4096));
}
