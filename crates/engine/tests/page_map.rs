//! Pages written out of place: a crash leaves what the durable page map means, whatever was written
//! since; what is not the version that the map means is found out; places are used again. All of it
//! with compressed pages, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use millpond::internals::io::{
    AllocateError, MapDamage, OpenError, PageStore, PageWrite, ReadError, WriteError,
};
use millpond::internals::page::page_map::per_node;
use millpond::internals::page::{PAGE_HEADER, PageHeader, PageSize, PageType};
use millpond::{Compression, Db, Options, Placement};
use millpond_base::rounds::rounds;
use millpond_base::{Lsn, PageId, Reason};
use millpond_device::{AlignedBuffer, Device, FaultyDevice, MemoryDevice};

const SIZE: PageSize = PageSize::TINY;

fn page_of(id: PageId, version: u64) -> AlignedBuffer {
    let mut bytes = AlignedBuffer::new(SIZE.bytes());
    let (lsn, kind) = (Lsn(version), PageType::HEAP_DATA);
    PageHeader { checksum: 0, lsn, page: id, owner: 3, kind, level: 0 }.write(&mut bytes);
    bytes[PAGE_HEADER..PAGE_HEADER + 8].copy_from_slice(&version.to_le_bytes());
    // Compressed, it is of another length each time, and now and then not shorter than a page.
    let mut random = Rng::with_seed(version ^ id.0 << 32);
    let noise = random.usize(..SIZE.bytes() - PAGE_HEADER - 8);
    let at = bytes.len() - noise;
    bytes[at..].fill_with(|| random.u8(..));
    bytes
}

const COMPRESSIONS: [Compression; 2] = [Compression::None, Compression::Lz4];

fn write(store: &PageStore, id: PageId, version: u64) -> Result<(), WriteError> {
    let mut bytes = page_of(id, version);
    store.write_batch(&mut [PageWrite::new(id, Reason::Replace, &mut bytes)])
}

fn read(store: &PageStore, id: PageId) -> Result<u64, ReadError> {
    let mut bytes = AlignedBuffer::new(SIZE.bytes());
    store.read(id, &mut bytes)?;
    let version = bytes[PAGE_HEADER..PAGE_HEADER + 8].try_into().unwrap();
    Ok(u64::from_le_bytes(version))
}

fn new_store(device: Arc<dyn Device>, compression: Compression) -> PageStore {
    let (size, placement) = (SIZE, Placement::OutOfPlace);
    PageStore::create_unmarked_on(device, size, placement, compression).unwrap()
}

/// Makes the page map durable, as a checkpoint at `position` does.
fn checkpoint(store: &PageStore, position: u64) {
    let map = store.write_map().unwrap();
    store.sync().unwrap();
    store.set_log_position(Lsn(position), None, map.as_ref()).unwrap();
    map.unwrap().release();
}

/// Moves pages at the end of the file to free places; returns the number of pages moved.
fn pack(store: &PageStore) -> u64 {
    let (mut packing, mut moved) = (store.begin_packing().unwrap(), 0);
    loop {
        let packed = store.pack_some(&mut packing).unwrap();
        moved += packed.moved;
        if packed.is_over {
            return moved;
        }
    }
}

/// Pages by their contents.
type Model = BTreeMap<PageId, u64>;

struct World {
    random: Rng,
    device: Arc<FaultyDevice>,
    store: PageStore,
    now: Model,
    /// Allocated, and not written yet.
    empty: Vec<PageId>,
    durable: Model,
    version: u64,
}

impl World {
    fn new(seed: u64, compression: Compression) -> World {
        let device = Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), seed));
        let store = new_store(device.clone(), compression);
        checkpoint(&store, 8);
        let (now, durable, empty) = (Model::new(), Model::new(), Vec::new());
        World { random: Rng::with_seed(seed), device, store, now, empty, durable, version: 8 }
    }

    fn drawn(&mut self) -> Option<PageId> {
        let at = self.random.usize(..self.now.len().max(1));
        self.now.keys().nth(at).copied()
    }

    fn write_some(&mut self) {
        let mut pages: Vec<PageId> = self.empty.split_off(self.empty.len() / 2);
        for _ in 0..self.random.usize(..20) {
            pages.extend(self.drawn());
        }
        pages.sort_unstable();
        pages.dedup();
        self.version += 8;
        let version = self.version;
        let mut bytes: Vec<_> = pages.iter().map(|page| page_of(*page, version)).collect();
        let mut batch: Vec<_> = pages
            .iter()
            .zip(&mut bytes)
            .map(|(page, bytes)| PageWrite::new(*page, Reason::Replace, bytes))
            .collect();
        self.store.write_batch(&mut batch).unwrap();
        self.now.extend(pages.into_iter().map(|page| (page, version)));
    }

    fn step(&mut self) {
        match self.random.u32(..20) {
            0..4 => self.empty.extend(self.store.allocate_up_to(self.random.usize(1..60)).unwrap()),
            4..14 => self.write_some(),
            14..18 => {
                for _ in 0..self.random.usize(..8) {
                    let Some(page) = self.drawn() else { return };
                    self.now.remove(&page);
                    self.store.free(page).unwrap();
                    assert!(matches!(read(&self.store, page), Err(ReadError::Nowhere { .. })));
                }
            }
            18 => {
                self.version += 8;
                checkpoint(&self.store, self.version);
                self.durable = self.now.clone();
            }
            _ => {
                pack(&self.store);
            }
        }
    }

    fn crash(&mut self) {
        let seed = self.random.u64(..);
        let left = self.device.crash(seed).unwrap();
        self.device = Arc::new(FaultyDevice::with_crashes(left, seed));
        self.store = PageStore::open_to_recover(self.device.clone(), None).unwrap();
        self.store.restore_map(&words(self.durable.keys().copied()));
        self.now = self.durable.clone();
        self.empty.clear();
    }

    fn verify(&self, what: &str) {
        for (page, version) in &self.now {
            assert_eq!(read(&self.store, *page).as_ref(), Ok(version), "{what}: page {page}");
        }
    }
}

fn words(pages: impl Iterator<Item = PageId>) -> Vec<u64> {
    let mut words = Vec::new();
    for page in pages {
        let at = (page.0 / 64) as usize;
        words.resize(words.len().max(at + 1), 0);
        words[at] |= 1u64 << (page.0 % 64);
    }
    words
}

#[test]
fn a_crash_leaves_what_the_last_durable_map_means() {
    for seed in 0..rounds(60, 600) {
        let compression = COMPRESSIONS[seed as usize % 2];
        let mut world = World::new(seed, compression);
        let most = 40 * world.random.u32(1..12);
        for step in 0..most {
            world.step();
            if world.random.u32(..60) == 0 {
                world.crash();
                world.verify(&format!("seed {seed}, crash at step {step}"));
            }
        }
        world.verify(&format!("seed {seed}, at the end"));
        assert!(world.now.len() < 40 || world.store.pages() > per_node(SIZE), "several nodes");
        let World { store, now, device, .. } = world;
        store.close(None).unwrap();
        let store = PageStore::open_on(device, None, true).unwrap();
        assert_eq!(store.allocated_pages(), now.len() as u64 + 1, "seed {seed}");
        let all = store.pages() * SIZE.bytes_u64();
        assert!(store.compression() == compression && store.stored_bytes() <= all);
        for (page, version) in &now {
            assert_eq!(read(&store, *page).as_ref(), Ok(version), "seed {seed}: closed");
        }
    }
}

#[test]
fn what_is_written_lies_elsewhere_and_places_are_used_again() {
    COMPRESSIONS.into_iter().for_each(lies_elsewhere);
}

fn lies_elsewhere(compression: Compression) {
    let device = Arc::new(MemoryDevice::new());
    let store = new_store(device.clone(), compression);
    let pages = store.allocate_many(200).unwrap();
    let mut longest = 0;
    for round in 1..60 {
        let mut offsets = Vec::new();
        for page in &pages {
            let before = store.offset_of_page(*page);
            write(&store, *page, round * 8).unwrap();
            assert_ne!(store.offset_of_page(*page), before, "a version is never overwritten");
            offsets.push(before);
        }
        checkpoint(&store, round * 8);
        longest = longest.max(device.length());
        if round == 10 {
            longest = device.length();
        }
    }
    assert_eq!(device.length(), longest, "the file does not grow for what is written again");
    assert_eq!(store.superseded_bytes(), 0);
}

#[test]
fn a_write_that_was_lost_is_an_error() {
    COMPRESSIONS.into_iter().for_each(is_found_lost);
}

fn is_found_lost(compression: Compression) {
    let device = Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), 1));
    let store = new_store(device.clone(), compression);
    let page = store.allocate().unwrap();
    // Back and forth between two places, so that each has an older version of the page.
    for version in 1..4 {
        write(&store, page, version * 8).unwrap();
        checkpoint(&store, version * 8);
    }
    let place = |store: &PageStore| store.offset_of_page(page).unwrap();
    let mut was_stale = false;
    for version in 4..12 {
        let copy = PageStore::salvage_on(device.clone(), None).unwrap();
        drop(copy);
        let before = device.length();
        // The next place is the lowest that is free.
        let step = if compression == Compression::None { SIZE.bytes() } else { SIZE.unit() };
        let free = (SIZE.bytes_u64()..before).step_by(step);
        for offset in free.filter(|offset| *offset != place(&store)) {
            device.lose_next_write_at(offset);
        }
        write(&store, page, version * 8).unwrap();
        device.heal();
        match read(&store, page) {
            Err(ReadError::Stale { page: of, .. }) => {
                assert_eq!(of, page);
                was_stale = true;
            }
            Err(ReadError::Checksum { .. } | ReadError::Misplaced { .. }) => {}
            other => panic!("version {version}: {other:?}"),
        }
        write(&store, page, version * 8).unwrap();
        assert_eq!(read(&store, page), Ok(version * 8));
        checkpoint(&store, version * 8);
    }
    assert!(was_stale, "an older version was in the place");
}

/// The superblock that a process wrote and failed to sync is what the next one reads, and not what
/// a power failure leaves.
#[test]
fn a_superblock_whose_sync_failed_is_made_durable_before_places_are_used() {
    for seed in 0..rounds(10, 40) {
        let device = Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), seed));
        let compression = COMPRESSIONS[seed as usize % 2];
        let store = new_store(device.clone(), compression);
        let pages = store.allocate_many(40).unwrap();
        for version in 1..4 {
            pages.iter().for_each(|page| write(&store, *page, version * 8).unwrap());
            let mut map = store.write_map().unwrap();
            store.sync().unwrap();
            if version == 3 {
                device.fail_next_sync();
            }
            let named = store.set_log_position(Lsn(version * 8), None, map.as_ref());
            assert_eq!(named.is_ok(), version < 3);
            named.into_iter().for_each(|_| map.take().unwrap().release());
        }
        drop(store);
        // The next process finds what that one wrote, and writes where that map has nothing.
        let store = PageStore::open_to_recover(device.clone(), None).unwrap();
        assert_eq!(store.log_position(), Lsn(24));
        store.confirm().unwrap();
        pages.iter().for_each(|page| write(&store, *page, 32).unwrap());
        drop(store);
        let left = Arc::new(device.crash(seed).unwrap());
        let store = PageStore::open_to_recover(left, None).unwrap();
        assert!(pages.iter().all(|page| read(&store, *page) == Ok(24)), "seed {seed}");
    }
}

#[test]
fn a_full_disk_refuses_new_pages_and_lets_the_old_ones_be_written_for_ever() {
    COMPRESSIONS.into_iter().for_each(is_full);
}

fn is_full(compression: Compression) {
    let device = Arc::new(MemoryDevice::with_capacity(600 << 10));
    let store = new_store(device.clone(), compression);
    let mut pages = Vec::new();
    let error = loop {
        match store.allocate() {
            Ok(page) => {
                write(&store, page, 8).unwrap();
                pages.push(page);
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, AllocateError::Grow(error) if error.is_disk_full()), "{error}");
    assert!(pages.len() > 1000, "{}", pages.len());
    let mut maps = 0;
    for round in 2..6 {
        for page in &pages {
            if let Err(error) = write(&store, *page, round * 8) {
                assert!(matches!(error, WriteError::NoPlace(_)), "{error}");
                assert!(store.wants_map(u64::MAX), "the next checkpoint makes room");
                checkpoint(&store, round * 8);
                maps += 1;
                write(&store, *page, round * 8).unwrap();
            }
        }
    }
    assert!(maps > 3, "{maps}");
    for page in &pages {
        assert_eq!(read(&store, *page), Ok(40));
    }
    // As recovery does, which takes no checkpoint.
    let (position, mut saved) = (store.log_position(), 0);
    for page in &pages {
        if write(&store, *page, 48).is_err() {
            store.save_map(Lsn(0), |_| Ok::<_, WriteError>(())).unwrap();
            saved += 1;
            write(&store, *page, 48).unwrap();
        }
    }
    assert!(saved > 0 && store.log_position() == position, "{saved}");
    let again = PageStore::open_to_recover(device.clone(), None).unwrap();
    assert!(pages.iter().all(|page| matches!(read(&again, *page), Ok(40 | 48))));
    drop(again);
    // Half of it goes: there is room again, but in gaps between compressed pages.
    pages.iter().step_by(2).for_each(|page| store.free(*page).unwrap());
    checkpoint(&store, 80);
    if compression != Compression::None {
        assert!(pack(&store) > 0);
        checkpoint(&store, 88);
    }
    store.allocate_many(pages.len() / 8).unwrap();
}

/// A closed store of a few hundred pages, and where its map's nodes are.
fn closed(compression: Compression) -> (Vec<u8>, Vec<(u64, u8)>, Vec<PageId>) {
    let device = Arc::new(MemoryDevice::new());
    let store = new_store(device.clone(), compression);
    let pages = store.allocate_many(300).unwrap();
    pages.iter().for_each(|page| write(&store, *page, 8).unwrap());
    checkpoint(&store, 8);
    pages.iter().for_each(|page| write(&store, *page, 16).unwrap());
    store.close(None).unwrap();
    let bytes = device.to_bytes();
    let (size, mut nodes) = (SIZE.bytes(), Vec::new());
    for offset in (0..=bytes.len() - size).step_by(SIZE.unit()) {
        let page = &bytes[offset..offset + size];
        let header = PageHeader::read(page);
        if header.kind == PageType::PAGE_MAP && PageHeader::is_sound(header.page, page) {
            nodes.push((offset as u64, header.level));
        }
    }
    (bytes, nodes, pages)
}

#[test]
fn a_damaged_map_is_named_and_pages_are_found_without_it() {
    COMPRESSIONS.into_iter().for_each(is_damaged);
}

fn is_damaged(compression: Compression) {
    let (bytes, nodes, pages) = closed(compression);
    assert!(nodes.iter().any(|(_, level)| *level == 1), "there are two levels");
    let mut refused = 0;
    for (offset, _) in &nodes {
        let mut bytes = bytes.clone();
        bytes[*offset as usize + 40] ^= 1;
        let device = Arc::new(MemoryDevice::from_bytes(&bytes));
        match PageStore::open_on(device.clone(), None, true) {
            Ok(_) => continue,
            Err(OpenError::PageMap(error)) => {
                assert_eq!((error.offset, &error.damage), (*offset, &MapDamage::Unsound));
                let text = error.to_string();
                assert!(text.contains("page map") && text.contains("salvage"), "{text}");
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
        let store = PageStore::salvage_on(device, None).unwrap();
        assert!(store.map_damage().is_some());
        assert!(pages.iter().all(|page| read(&store, *page) == Ok(16)), "the newest version");
    }
    assert!(refused > 3, "{refused} of {} nodes are of the last map", nodes.len());
    // Without a superblock neither placement nor page size is known.
    let mut lost = bytes;
    lost[..SIZE.bytes()].fill(0);
    let store = PageStore::salvage_on(Arc::new(MemoryDevice::from_bytes(&lost)), None).unwrap();
    assert_eq!((store.page_size(), store.placement()), (SIZE, Placement::OutOfPlace));
    assert!(pages.iter().all(|page| read(&store, *page) == Ok(16)));
}

#[test]
fn two_pages_with_one_place_and_a_file_that_is_cut_off_are_damage() {
    COMPRESSIONS.into_iter().for_each(is_doubled);
}

fn is_doubled(compression: Compression) {
    let (bytes, nodes, pages) = closed(compression);
    let mut found = 0;
    for (offset, level) in nodes.iter().filter(|(_, level)| *level == 0) {
        let node = *offset as usize..*offset as usize + SIZE.bytes();
        let mut changed = bytes.clone();
        let page = &mut changed[node];
        let id = PageHeader::read(page).page;
        let second: [u8; 8] = page[PAGE_HEADER + 8..PAGE_HEADER + 16].try_into().unwrap();
        page[PAGE_HEADER + 16..PAGE_HEADER + 24].copy_from_slice(&second);
        PageHeader::seal(id, page);
        match PageStore::open_on(Arc::new(MemoryDevice::from_bytes(&changed)), None, true) {
            // Its parent means another version.
            Err(OpenError::PageMap(error)) => {
                let is_old = error.damage == MapDamage::Stale;
                assert!(is_old || matches!(error.damage, MapDamage::Place { .. }), "{error}");
                assert_eq!(error.level, *level);
                found += 1;
            }
            Ok(_) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(found > 2, "{found}");
    let part = if compression == Compression::None { 2 } else { 4 };
    let cut = Arc::new(MemoryDevice::from_bytes(&bytes[..bytes.len() / part]));
    let error = PageStore::open_on(cut.clone(), None, true).unwrap_err();
    assert!(matches!(error, OpenError::PageMap(_)), "{error}");
    let store = PageStore::salvage_on(cut, None).unwrap();
    let there = pages.iter().filter(|page| read(&store, **page).is_ok()).count();
    assert!(there > 50, "{there} pages of the front half are read");
}

#[test]
fn a_store_without_a_log_uses_places_at_once_and_a_new_log_begins_behind_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp");
    let options = || Options::new().memory(16 << 20);
    let fill = |db: &Db, from: u32| {
        let tree = db.raw_tree("rows").unwrap();
        for row in from..from + 3000 {
            tree.put(&row.to_be_bytes(), &[7; 100]).unwrap();
        }
    };
    let db = Db::open(&path, options()).unwrap();
    fill(&db, 0);
    db.close().unwrap();
    let last = PageStore::open_on(image(&path), None, true).unwrap().log_position();
    // Without its log, for some time.
    let db = Db::open(&path, options().lab(|lab| lab.log = false)).unwrap();
    fill(&db, 1000);
    db.close().unwrap();
    let store = PageStore::open_on(image(&path), None, true).unwrap();
    assert_eq!(store.placement(), Placement::OutOfPlace);
    assert_eq!((store.log_position(), store.superseded_bytes()), (Lsn(0), 0));
    assert!(store.lsn_floor() >= last, "{:?} {last:?}", store.lsn_floor());
    drop(store);
    let db = Db::open(&path, options()).unwrap();
    fill(&db, 2000);
    let tree = db.raw_tree("rows").unwrap();
    assert_eq!(tree.len().unwrap(), 5000);
    drop(tree);
    db.close().unwrap();
    let again = PageStore::open_on(image(&path), None, true).unwrap();
    assert!(again.log_position() > last, "LSNs of pages stay below those of the new log");
}

fn image(path: &std::path::Path) -> Arc<dyn Device> {
    Arc::new(MemoryDevice::from_bytes(&std::fs::read(path).unwrap()))
}
