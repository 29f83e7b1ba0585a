//! A store with two trees, in memory, and means to damage it.

use std::collections::BTreeMap;
use std::sync::Arc;

use millpond::Structure;
use millpond::TypeNames;
use millpond::internals::admin::check::{CheckOptions, Fault, Named, Report, Roots, check_store};
use millpond::internals::btree::{self, BTree, StoredNode};
use millpond::internals::hash_index::{self, HashIndex};
use millpond::internals::heap::{self, Heap};
use millpond::internals::io::PageStore;
use millpond::internals::page::superblock::Superblock;
use millpond::internals::page::{PageBuffer, PageHeader, PageSize, PageType, free_map};
use millpond::internals::pool::{HostedPolicy, Optimistic};
use millpond::internals::pool::{Pool, PoolOptions};
use millpond::internals::store::combinations::Compiled;
use millpond_base::{PageId, Reason};
use millpond_device::MemoryDevice;
use millpond_policies::config::Spec;
use millpond_policies::contract::{PolicySpec, Shape};
use millpond_policies::policy::LeanEvict;

type Swizzled = Compiled<Optimistic, <LeanEvict as PolicySpec>::Hook, true>;

/// The id of the catalog, and those of the trees.
pub const CATALOG: u32 = 1;
pub const WORDS: u32 = 2;
pub const LARGE: u32 = 3;
pub const INDEX: u32 = 4;
pub const HEAP: u32 = 5;

fn decode(key: &[u8], value: &[u8]) -> Result<Option<Named>, String> {
    let name = String::from_utf8_lossy(key).into_owned();
    let (Some(owner), Some(root)) = (value.first_chunk::<4>(), value.last_chunk::<8>()) else {
        return Err("too short".to_string());
    };
    let (owner, root) = (u32::from_le_bytes(*owner), PageId(u64::from_le_bytes(*root)));
    let kind = match owner {
        INDEX => Structure::Hash,
        HEAP => Structure::Heap,
        _ => Structure::Tree,
    };
    Ok(Some(Named { name, owner, kind, root, types: TypeNames::default() }))
}

pub const ROOTS: Roots = Roots { owner: CATALOG, decode };

/// The bytes of a store.
#[derive(Clone)]
pub struct Image {
    pub bytes: Vec<u8>,
    pub size: PageSize,
    pub roots: BTreeMap<u32, PageId>,
}

/// A new store in memory, and a pool over it.
fn make(size: PageSize) -> (Arc<MemoryDevice>, Arc<PageStore>, Arc<Pool<Swizzled>>) {
    let device = Arc::new(MemoryDevice::new());
    let store = Arc::new(PageStore::create_on(device.clone(), size).unwrap());
    let shape = Shape { frames: 64, pages_dense: None, seed: 1 };
    let spec = Spec::parse("lean-evict").unwrap();
    let hosted = HostedPolicy::exact::<LeanEvict>(&spec, &shape).unwrap();
    let options = PoolOptions { background_writer: false, ..PoolOptions::new(64) };
    let pool = Arc::new(Pool::<Swizzled>::open(options, store.clone(), hosted).unwrap());
    let kinds = btree::KINDS.into_iter().chain(hash_index::KINDS).chain(heap::KINDS);
    for (page_type, kind) in kinds {
        pool.register(page_type, kind);
    }
    (device, store, pool)
}

impl Image {
    /// A store with a tree of words, several levels high, and one of a few values in overflow
    /// pages; some pages were freed again.
    pub fn build(size: PageSize) -> Image {
        let (device, store, pool) = make(size);
        let catalog = BTree::create(pool.clone(), CATALOG).unwrap();
        let words = BTree::create(pool.clone(), WORDS).unwrap();
        let large = BTree::create(pool.clone(), LARGE).unwrap();
        for i in 0..4 * size.bytes() as u32 {
            let value = [i as u8; 12];
            words.insert(format!("word {:06}", i * 7919 % 100_003).as_bytes(), &value).unwrap();
        }
        for i in 0u8..6 {
            let len = size.bytes() * (usize::from(i) * 30 + 1) / 2;
            large.insert(&[i; 3], &vec![i; len]).unwrap();
        }
        large.remove(&[4; 3]).unwrap();
        let mut roots = BTreeMap::from([(CATALOG, catalog.root())]);
        for (name, tree) in [("words", &words), ("large", &large)] {
            let mut value = tree.owner().to_le_bytes().to_vec();
            value.extend(tree.root().0.to_le_bytes());
            catalog.insert(name.as_bytes(), &value).unwrap();
            roots.insert(tree.owner(), tree.root());
        }
        pool.flush(Reason::Recov).unwrap();
        pool.evict_all().unwrap();
        pool.ids().return_all().unwrap();
        store.close(Some(catalog.root())).unwrap();
        Image { bytes: device.to_bytes(), size, roots }
    }

    /// A store with a hash index and a heap.
    pub fn build_others(size: PageSize) -> Image {
        let (device, store, pool) = make(size);
        let catalog = BTree::create(pool.clone(), CATALOG).unwrap();
        let index = HashIndex::create(pool.clone(), INDEX, 77).unwrap();
        let heap = Heap::create(pool.clone(), HEAP).unwrap();
        for i in 0u32..3000 {
            index.insert(&i.to_le_bytes(), &[i as u8; 12]).unwrap();
            heap.append(&vec![i as u8; 10 + i as usize % 30]).unwrap();
        }
        let roots = [(CATALOG, catalog.root()), (INDEX, index.root()), (HEAP, heap.root())];
        for (name, (owner, root)) in [("index", roots[1]), ("heap", roots[2])] {
            let mut value = owner.to_le_bytes().to_vec();
            value.extend(root.0.to_le_bytes());
            catalog.insert(name.as_bytes(), &value).unwrap();
        }
        pool.flush(Reason::Recov).unwrap();
        pool.ids().return_all().unwrap();
        store.close(Some(catalog.root())).unwrap();
        Image { bytes: device.to_bytes(), size, roots: BTreeMap::from(roots) }
    }

    /// The pages in use of some type.
    pub fn of_type(&self, page_type: PageType) -> Vec<PageId> {
        let pages = (2..self.pages()).map(PageId);
        pages.filter(|p| self.header(*p).kind == page_type && self.is_taken(*p)).collect()
    }

    pub fn pages(&self) -> u64 {
        (self.bytes.len() / self.size.bytes()) as u64
    }

    pub fn page(&self, page: PageId) -> &[u8] {
        let at = page.0 as usize * self.size.bytes();
        &self.bytes[at..at + self.size.bytes()]
    }

    pub fn page_mut(&mut self, page: PageId) -> &mut [u8] {
        let at = page.0 as usize * self.size.bytes();
        &mut self.bytes[at..at + self.size.bytes()]
    }

    /// Changes a page and repairs its checksum.
    pub fn change(&mut self, page: PageId, change: impl FnOnce(&mut [u8])) {
        change(self.page_mut(page));
        PageHeader::seal(page, self.page_mut(page));
    }

    pub fn header(&self, page: PageId) -> PageHeader {
        PageHeader::read(self.page(page))
    }

    pub fn copy(&self, page: PageId) -> PageBuffer {
        PageBuffer::copy_of(self.page(page))
    }

    /// All pages from the root of a tree down, overflow pages left out, parents first.
    pub fn nodes(&self, owner: u32) -> Vec<PageId> {
        let mut nodes = vec![self.roots[&owner]];
        let mut next = 0;
        while next < nodes.len() {
            let page = self.copy(nodes[next]);
            let children = StoredNode::of(page.view()).unwrap().children();
            nodes.extend(children.iter().map(|child| child.swip.page()));
            next += 1;
        }
        nodes
    }

    /// Some leaf of the words, neither the first nor the last.
    pub fn leaf(&self) -> PageId {
        let nodes = self.nodes(WORDS);
        nodes[nodes.len() - 5]
    }

    /// A node with leaves below it, and not the root.
    pub fn parent(&self) -> PageId {
        let nodes = self.nodes(WORDS);
        let low = |page: &&PageId| self.header(**page).level == 1;
        let found = *nodes.iter().rev().find(low).unwrap();
        assert_ne!(found, self.roots[&WORDS], "the tree is too low for this test");
        found
    }

    pub fn overflow_page(&self, level: u8) -> PageId {
        let wanted = |page: &u64| {
            let header = self.header(PageId(*page));
            header.kind == PageType::OVERFLOW
                && header.level == level
                && self.is_taken(PageId(*page))
        };
        PageId((2..self.pages()).find(wanted).unwrap())
    }

    fn map_bit(&self, page: PageId) -> (PageId, usize, u8) {
        let per_map = free_map::pages_per_map(self.size);
        let bit = (page.0 % per_map) as usize;
        (free_map::map_page(self.size, page.0 / per_map), 32 + bit / 8, 1 << (bit % 8))
    }

    pub fn is_taken(&self, page: PageId) -> bool {
        let (map, byte, bit) = self.map_bit(page);
        self.page(map)[byte] & bit != 0
    }

    /// Turns the page's bit in the map of free pages.
    pub fn turn_map_bit(&mut self, page: PageId) {
        let (map, byte, bit) = self.map_bit(page);
        self.change(map, |bytes| bytes[byte] ^= bit);
    }

    pub fn free_page(&self) -> PageId {
        let free = |page: &u64| !self.is_taken(PageId(*page));
        PageId((2..self.pages()).find(free).unwrap())
    }

    pub fn superblock(&self) -> Superblock {
        Superblock::read(self.page(PageId(0))).unwrap()
    }

    pub fn set_superblock(&mut self, block: Superblock) {
        block.write(self.page_mut(PageId(0)));
    }

    pub fn check(&self) -> Report {
        let device = Arc::new(MemoryDevice::from_bytes(&self.bytes));
        let store = PageStore::salvage_on(device, Some(self.size)).unwrap();
        check_store(&store, ROOTS, &mut CheckOptions::default()).unwrap()
    }

    /// Asserts that the check finds such a fault, in that page, at the right place.
    #[track_caller]
    pub fn finds(&self, page: PageId, wanted: impl Fn(&Fault) -> bool) -> Report {
        let report = self.check();
        let found = report.problems.iter().find(|p| p.page == page && wanted(&p.fault));
        let found = found.unwrap_or_else(|| panic!("page {page}: {:#?}", report.problems));
        assert_eq!(found.offset, page.0 * self.size.bytes_u64());
        report
    }
}
