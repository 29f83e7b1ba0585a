//! A store over devices that read wrongly, what must be in it, and who judges what it answers.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use millpond::internals::btree::StoredNode;
use millpond::internals::page::{PageHeader, PageType, View};
use millpond::{
    Compression, Db, Error, EvictionMode, HashIndex, Heap, Options, Placement, RawTree, Tree,
};
use millpond_base::cleaning::Cleaning;
use millpond_base::{PageId, Share};
use millpond_device::{Device, FaultyDevice, Misread, ReadFault, ReadFaultDevice};

use crate::model::{Model, Wrong};
use crate::plan::{Kind, Plan};

/// Offset of a value's stamp in a page of a large value.
const STAMP: usize = 32;
/// Bytes of the journal of a tier that writes back and is as small as these.
const JOURNAL: u64 = 65536;

/// Texts of errors about a device whose first page is not the right one.
const LOST: [&str; 7] = [
    "cannot be opened",
    "nothing can be salvaged",
    "the superblock of",
    "the page map of",
    "has writes of another store",
    "is not whole",
    // An older superblock names a position that the log has given up since.
    "it and the data file are of different times",
];

/// A structure by its handle.
pub enum Handle {
    Tree(RawTree),
    Typed(Tree<u64, String>),
    Hash(HashIndex<Vec<u8>, Vec<u8>>),
    Heap(Heap<Vec<u8>>),
}

/// A structure, and its expected contents.
pub struct Item {
    pub name: String,
    pub kind: Kind,
    pub owner: u32,
    /// Numbers of its keys are below.
    pub space: u64,
    /// The thread that may write it; all others leave it alone. `None`: all read it.
    pub writer: Option<usize>,
    pub model: RwLock<Model>,
}

/// Counts of a story, or of several.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub stories: u64,
    pub answers: u64,
    pub errors: u64,
    pub misreads: u64,
    pub changed: u64,
    pub opens_failed: u64,
    pub recoveries: u64,
    pub backups: u64,
    pub checks: u64,
    pub lost_pages: u64,
    pub stale_stories: u64,
    pub stale_answers: u64,
    pub entangled_stories: u64,
    /// Of stories whose tier writes back: copies that were misread, and errors that named one.
    pub copies_misread: u64,
    pub copy_errors: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.stories += other.stories;
        self.answers += other.answers;
        self.errors += other.errors;
        self.misreads += other.misreads;
        self.changed += other.changed;
        self.opens_failed += other.opens_failed;
        self.recoveries += other.recoveries;
        self.backups += other.backups;
        self.checks += other.checks;
        self.lost_pages += other.lost_pages;
        self.stale_stories += other.stale_stories;
        self.stale_answers += other.stale_answers;
        self.entangled_stories += other.entangled_stories;
        self.copies_misread += other.copies_misread;
        self.copy_errors += other.copy_errors;
    }
}

/// Store and log, each behind a device that reads wrongly.
pub struct Devices {
    pub store: Arc<ReadFaultDevice>,
    pub log: Arc<ReadFaultDevice>,
    /// For the cache of a second tier.
    pub fast: Arc<ReadFaultDevice>,
    /// The stored bytes, without faults.
    pub below: Arc<FaultyDevice>,
}

impl Devices {
    pub fn open(&self, options: Options) -> Result<Db, Error> {
        let (store, log, fast) = (self.store.clone(), self.log.clone(), self.fast.clone());
        Db::open_on_tiered_devices(store, log, fast, options)
    }
}

/// State that all threads share.
pub struct World {
    pub plan: Plan,
    pub devices: Devices,
    pub items: Vec<Item>,
    /// Present phase of the story.
    pub phase: &'static str,
    /// Owners of pages of which an older version was read that nothing tells from the newest.
    pub stale: Mutex<BTreeSet<u32>>,
    /// `true` if such a page led to another structure's; see [`World::is_entangled`].
    pub entangled: AtomicBool,
    pub answers: AtomicU64,
    pub errors: AtomicU64,
    pub stale_answers: AtomicU64,
    pub copy_errors: AtomicU64,
}

/// Bytes and policy of the second tier, if there is one.
pub fn tier(plan: &Plan) -> Option<(u64, &'static str)> {
    let page = u64::from(plan.page_size);
    let bytes = |pages| match plan.writes_back {
        true => 16384 + JOURNAL + pages * (page + 96),
        false => 16384 + pages * (page + 48),
    };
    plan.tier.map(|(pages, policy)| (bytes(pages), policy))
}

/// Returns the offset of the first slot on the cache's device, and the number of slots.
pub fn slots(plan: &Plan, bytes: u64) -> (u64, u64) {
    let page = u64::from(plan.page_size);
    if plan.writes_back {
        let slots = (bytes - 16384 - JOURNAL) / (page + 96);
        (8192 + 2 * (slots * 48).next_multiple_of(4096) + JOURNAL, slots)
    } else {
        let slots = (bytes - 8192) / (page + 48);
        (4096 + (slots * 48).next_multiple_of(4096), slots)
    }
}

pub fn options(plan: &Plan) -> Options {
    let eviction = if plan.evictors {
        EvictionMode::Threads(std::num::NonZeroU32::MIN)
    } else {
        EvictionMode::default()
    };
    let cleans = plan.evictors && plan.seed.is_multiple_of(2);
    let cleaning = Cleaning { dirty: Share(0.2), free: Share(0.1), neighbours: false };
    let options = match tier(plan) {
        None => Options::new(),
        Some((bytes, policy)) => {
            Options::new().second_tier("fast", bytes, policy).write_back(plan.writes_back)
        }
    };
    let options = options
        .lab(|lab| lab.cleaning = cleans.then_some(cleaning))
        .page_size(plan.page_size)
        .policy(plan.policy)
        .compression(if plan.is_compressed { Compression::Lz4 } else { Compression::None })
        .lab(|lab| lab.eviction = eviction);
    options.lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(plan.frames);
        lab.seed = plan.seed;
        lab.placement = placement(plan);
    })
}

/// Two stories of three write pages out of place, as the stores of users do.
pub fn placement(plan: &Plan) -> Placement {
    match plan.seed % 3 {
        0 => Placement::InPlace,
        _ => Placement::OutOfPlace,
    }
}

pub fn handle(db: &Db, item: &Item) -> Result<Handle, Error> {
    Ok(match item.kind {
        Kind::Raw | Kind::Large => Handle::Tree(db.raw_tree(&item.name)?),
        Kind::Typed => Handle::Typed(db.tree(&item.name)?),
        Kind::Hash => Handle::Hash(db.raw_hash_index(&item.name)?),
        Kind::Heap => Handle::Heap(db.raw_heap(&item.name)?),
    })
}

/// Numbers behind `word` in a text.
fn numbers_behind(text: &str, word: &str) -> Vec<u64> {
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    text.split(word).skip(1).filter_map(|rest| digits(rest).parse().ok()).collect()
}

/// Returns `true` if nothing in the older version of a page reveals that it is not the newest.
///
/// Nodes of a tree name the keys that they cover, and pages of large values carry a stamp; others
/// name only their owner and kind. Out of place the page map knows the newest version of each.
pub fn is_silent(misread: &Misread, placement: Placement) -> bool {
    let Some(versions) = &misread.versions else { return false };
    let (old, new) = (&versions.0, &versions.1);
    let (was, is) = (PageHeader::read(old), PageHeader::read(new));
    if placement == Placement::OutOfPlace {
        // The log knows which superblock is durable.
        return false;
    }
    if is.page != misread.page || is.kind == PageType::NONE {
        // Nothing is stored there yet, or it is no page of anything.
        return true;
    }
    let is_node = |kind| [PageType::BTREE_INNER, PageType::BTREE_LEAF].contains(&kind);
    if was.owner == is.owner && is_node(was.kind) && is_node(is.kind) {
        let fences = |page: &[u8]| StoredNode::of(View::of(page)).ok().map(|n| n.fences());
        // A root's level is in no other page: it covers all keys on each.
        let is_root = fences(new).is_some_and(|f| f.lower.is_empty() && f.upper.is_none());
        return (was.level == is.level || is_root) && fences(old) == fences(new);
    }
    if (was.owner, was.kind) != (is.owner, is.kind) {
        // The superblock and the maps have no owner that would know better.
        return [PageType::SUPER, PageType::FREE_MAP].contains(&is.kind);
    }
    match is.kind {
        PageType::OVERFLOW => was.level == is.level && old[32..40] == new[32..40],
        // A heap's root grows in its page: its level is in no other one.
        PageType::HEAP_DIRECTORY => was.level <= is.level,
        _ => was.level == is.level,
    }
}

impl World {
    /// Owners whose pages were read in an older version that nothing tells from the newest; `None`
    /// among them: the catalog's, or the store's own.
    fn silent_owners(&self) -> BTreeSet<u32> {
        let placement = placement(&self.plan);
        let silent = self.devices.store.ledger().into_iter().filter(|m| is_silent(m, placement));
        silent.filter_map(|m| Some(PageHeader::read(&m.versions.as_ref()?.1).owner)).collect()
    }

    /// Returns `true` if lost writes fitted each other. An undetectable older version of a node
    /// led to a page that belongs to another structure by now. That page was read as it was
    /// when it was the node's. So the one structure wrote into the other, or freed its pages.
    pub fn is_entangled(&self) -> bool {
        if placement(&self.plan) == Placement::OutOfPlace {
            return false;
        }
        self.may_be_stale(None);
        let stale = self.stale.lock().unwrap();
        let owners = |m: Misread| {
            m.versions.map(|v| (PageHeader::read(&v.0).owner, PageHeader::read(&v.1).owner))
        };
        let led_to_another = |(was, is): (u32, u32)| was != is && stale.contains(&was);
        let ledger = self.devices.store.ledger();
        if ledger.into_iter().filter_map(owners).any(led_to_another) {
            self.entangled.store(true, Ordering::Relaxed);
        }
        self.entangled.load(Ordering::Relaxed)
    }

    /// Returns `true` if an undetectable older version may explain wrong answers about an item.
    pub fn may_be_stale(&self, item: Option<&Item>) -> bool {
        let mut stale = self.stale.lock().unwrap();
        stale.extend(self.silent_owners());
        match item {
            Some(item) => stale.contains(&item.owner) || stale.contains(&0),
            None => !stale.is_empty(),
        }
    }

    /// Returns `true` if recovery, or opening, may have freed a value whose root it read in an
    /// older version of the same value. While the value was written, fewer pages were below its
    /// root; the others are lost. The log and the checkpoint tell the value from all others by
    /// its stamp.
    pub fn may_have_lost_a_value(&self) -> bool {
        let stamp = |page: &[u8]| match PageHeader::read(page).kind {
            PageType::OVERFLOW => page.get(STAMP..STAMP + 8).map(<[u8]>::to_vec),
            _ => None,
        };
        let is_older_root = |misread: Misread| {
            misread.versions.is_some_and(|versions| {
                let newest = stamp(&versions.1);
                newest.is_some() && newest == stamp(&versions.0)
            })
        };
        (self.plan.crashes || self.plan.opens_under_faults)
            && placement(&self.plan) == Placement::InPlace
            && self.devices.store.ledger().into_iter().any(is_older_root)
    }

    /// A wrong answer: excused only if it may come from such a version.
    pub fn wrong(&self, item: Option<&Item>, what: &str, wrong: &Wrong) -> Result<(), String> {
        if self.may_be_stale(item) {
            self.stale_answers.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let name = item.map_or("the store", |item| &item.name);
        self.keep();
        Err(format!("WRONG ANSWER of {what} in {name}, {}: {}", self.phase, wrong.0))
    }

    /// Lists the stale pages that were read, for the report of a failed story.
    pub fn older_versions(&self) -> String {
        let head = |page: &[u8]| {
            let header = PageHeader::read(page);
            format!("{} of {}, level {}", header.kind.0, header.owner, header.level)
        };
        let ledger = self.devices.store.ledger();
        let older = ledger.iter().filter_map(|m| Some((m.page, m.versions.as_ref()?)));
        let older = older.map(|(page, v)| format!("{page}: {} for {}", head(&v.0), head(&v.1)));
        let older: BTreeSet<String> = older.collect();
        older.iter().fold("\n  older versions:".to_string(), |all, one| all + "\n    " + one)
    }

    /// Keeps the stored bytes in the folder that `READS_KEEP` names, for later inspection.
    fn keep(&self) {
        let Some(folder) = std::env::var_os("READS_KEEP") else { return };
        let devices: [(&str, &dyn Device); 2] =
            [("", &*self.devices.below), ("-log", &*self.devices.log)];
        for (name, device) in devices {
            let mut bytes = vec![0; device.length() as usize];
            let read = device.read(0, &mut bytes);
            let path = std::path::Path::new(&folder).join(format!("{}{name}", self.plan.seed));
            let kept = read.is_ok() && std::fs::write(&path, bytes).is_ok();
            println!("{} {}", path.display(), if kept { "kept" } else { "not kept" });
        }
    }

    /// An answer, right or not.
    pub fn answer(&self, item: &Item, what: &str, judged: Result<(), Wrong>) -> Result<(), String> {
        self.answers.fetch_add(1, Ordering::Relaxed);
        judged.or_else(|wrong| self.wrong(Some(item), what, &wrong))
    }

    /// An error: it must name a page that was misread, and one of the structure in question.
    pub fn error(&self, item: Option<&Item>, what: &str, error: &Error) -> Result<(), String> {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.judge_error(item, what, &error.to_string())
    }

    /// Returns `true` if `text` names a misread place of the cache whose page is the item's.
    /// The page that storage has there is no excuse, nor are others.
    fn is_about_a_copy(&self, item: Option<&Item>, text: &str) -> bool {
        let fast = self.devices.fast.ledger();
        let effective =
            |m: &&Misread| m.changed || matches!(m.fault, ReadFault::Error | ReadFault::Short);
        if text.contains("could not be rolled back, and keeps the lock") {
            return fast.iter().any(|m| effective(&m));
        }
        if !text.contains("of fast") && !text.contains("fast ends") {
            return false;
        }
        // A slot may begin within a page of the device; and of a compressed page there is no owner.
        let begin = tier(&self.plan).map_or(0, |(bytes, _)| slots(&self.plan, bytes).0);
        let is_whole = begin.is_multiple_of(u64::from(self.plan.page_size));
        let is_known = is_whole && !self.plan.is_compressed;
        let is_own =
            |m: &&Misread| item.is_none_or(|item| !is_known || [0, item.owner].contains(&owner(m)));
        let places = places_named(text, u64::from(self.plan.page_size));
        let is_there = |m: &&Misread| places.iter().any(|places| places.contains(&m.page.0));
        fast.iter().filter(is_there).filter(effective).any(|m| is_own(&m))
    }

    pub fn judge_error(&self, item: Option<&Item>, what: &str, text: &str) -> Result<(), String> {
        // A store without a file has no spill file: a snapshot that outgrows its memory is lost
        // there, and no row of it is wrong.
        if text.contains("is lost: the versions since then") {
            return Ok(());
        }
        if self.plan.writes_back && self.is_about_a_copy(item, text) {
            self.copy_errors.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let is_in_place = placement(&self.plan) == Placement::InPlace;
        let ids = numbers_behind(text, "page ");
        let places = places_named(text, u64::from(self.plan.page_size));
        let store = self.devices.store.ledger();
        // In place, a page's id is its place, whatever is there.
        let is_about_id = |m: &&Misread| {
            ids.contains(&PageHeader::read(&m.head).page.0)
                || (is_in_place || m.page.0 == 0) && ids.contains(&m.page.0)
        };
        let about =
            |m: &&Misread| is_about_id(m) || places.iter().any(|places| places.contains(&m.page.0));
        let effective =
            |m: &&Misread| m.changed || matches!(m.fault, ReadFault::Error | ReadFault::Short);
        if self.plan.is_compressed && !is_in_place {
            // Whose page it is cannot be read there, but where it lies is named.
            let pages = pages_touched(text, u64::from(self.plan.page_size));
            let is_there = |m: &&Misread| pages.iter().any(|pages| pages.contains(&m.page.0));
            if store.iter().filter(is_there).any(|m| effective(&m)) {
                return Ok(());
            }
        }
        let owners: BTreeSet<u32> =
            store.iter().filter(about).filter(effective).map(owner).collect();
        let is_own = |owner: &u32| item.is_none_or(|item| *owner == item.owner || *owner == 0);
        if owners.iter().any(is_own) {
            return Ok(());
        }
        let was_misread = |page| store.iter().any(|m| m.page == PageId(page));
        // What page 0 says it is not is no page of a store.
        let is_lost = LOST.iter().any(|words| text.contains(words));
        if item.is_none() && is_lost && was_misread(0) {
            return Ok(());
        }
        if text.contains("log") && self.devices.log.struck() > 0 {
            return Ok(());
        }
        // A transaction that could not be undone, since pages that it changed cannot be read, keeps
        // its locks until the store is opened again; nobody waits for them.
        let keeps_locks = text.contains("could not be rolled back, and keeps the lock");
        if keeps_locks && store.iter().filter(effective).any(|m| is_own(&owner(m))) {
            return Ok(());
        }
        // An older version of a node: what its child is not, or its parent, is named then.
        let is_old = |m: &&Misread| m.versions.is_some();
        if !ids.is_empty() && is_in_place && store.iter().filter(is_old).any(|m| is_own(&owner(m)))
        {
            return Ok(());
        }
        if self.may_be_stale(item) {
            return Ok(());
        }
        let (name, own) = item.map_or(("the store", 0), |item| (&item.name, item.owner));
        self.keep();
        Err(format!(
            "ERROR of {what} in {name}, {}, that names no page of its own ({own}) misread, but of \
             {owners:?}: {text}",
            self.phase
        ))
    }
}

/// Returns the owner of the misread page.
fn owner(misread: &Misread) -> u32 {
    PageHeader::read(&misread.head).owner
}

/// Pages of the device in which there may be something of the page that begins at an offset that a
/// text names.
fn pages_touched(text: &str, page_size: u64) -> Vec<Range<u64>> {
    let offsets = numbers_behind(text, "offset ").into_iter();
    offsets.map(|at| at / page_size..(at + page_size).div_ceil(page_size)).collect()
}

/// Places that a text names: as bytes at an offset, or where a node of the page map is.
fn places_named(text: &str, page_size: u64) -> Vec<Range<u64>> {
    let nodes = numbers_behind(text, ", offset ").into_iter().map(|offset| offset / page_size);
    let mut named: Vec<Range<u64>> = nodes.map(|place| place..place + 1).collect();
    for (before, after) in text
        .match_indices(" bytes at offset ")
        .map(|(at, word)| (&text[..at], &text[at + word.len()..]))
    {
        let length = before.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
        let offset = numbers_behind(&format!("#{after}"), "#").first().copied();
        if let (Some(length), Some(offset)) = (length, offset) {
            named.push(offset / page_size..(offset + length).div_ceil(page_size));
        }
    }
    named
}
