//! A check finds damage, names the page, and never panics.

mod dump;
mod image;
mod others;
mod salvage;

use std::sync::LazyLock;

use image::{CATALOG, Image, LARGE, WORDS};
use millpond::internals::admin::check::Fault;
use millpond::internals::btree::{StoredNode, Violation};
use millpond::internals::io::ReadError;
use millpond::internals::page::superblock::Superblock;
use millpond::internals::page::{PageSize, PageType};
use millpond::internals::pool::Swip;
use millpond_base::PageId;

static SOUND: LazyLock<Image> = LazyLock::new(|| Image::build(PageSize::TINY));

fn sound() -> Image {
    SOUND.clone()
}

fn is_node(fault: &Fault) -> bool {
    matches!(fault, Fault::Node(_))
}

#[test]
fn a_sound_store_has_no_problem_and_every_page_is_accounted_for() {
    for size in [PageSize::TINY, PageSize::KIB_4] {
        let image = Image::build(size);
        let report = image.check();
        assert_eq!(report.problems, []);
        assert!(report.is_sound());
        let counts = report.counts;
        assert_eq!(counts.own + counts.used + counts.free + counts.lost, image.pages());
        assert_eq!((counts.lost, counts.unreadable), (0, 0));
        let names: Vec<&str> = report.structures.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["catalog", "large", "words"]);
        let words = &report.structures[2];
        assert_eq!(words.entries, 4 * size.bytes() as u64);
        assert!(words.height >= 2 && words.inner_pages > 0 && words.fill() > 0.5, "{words:?}");
        let large = &report.structures[1];
        assert!(large.entries == 5 && large.overflow_pages > 50, "{large:?}");
        let pages: u64 = report.structures.iter().map(|s| s.pages()).sum();
        assert_eq!(pages, counts.used);
        let by_type: u64 = report.by_type.iter().map(|(_, pages)| pages).sum();
        assert_eq!(by_type, counts.used);
    }
}

#[test]
fn progress_is_told_up_to_the_end_and_can_stop_the_check() {
    use millpond::internals::admin::check::{CheckError, CheckOptions, check_store};
    let device = millpond_device::MemoryDevice::from_bytes(&SOUND.bytes);
    let store =
        millpond::internals::io::PageStore::salvage_on(std::sync::Arc::new(device), None).unwrap();
    let (mut last, mut calls) = (0, 0);
    let mut tell = |progress: millpond::internals::admin::check::Progress| {
        assert!(progress.done >= last && progress.done <= progress.pages);
        (last, calls) = (progress.done, calls + 1);
        true
    };
    let mut options = CheckOptions { progress: Some(&mut tell), ..CheckOptions::default() };
    check_store(&store, image::ROOTS, &mut options).unwrap();
    assert_eq!(last, SOUND.pages());
    assert!(calls > 10);
    let mut stop = |_| false;
    let mut options = CheckOptions { progress: Some(&mut stop), ..CheckOptions::default() };
    let stopped = check_store(&store, image::ROOTS, &mut options);
    assert!(matches!(stopped, Err(CheckError::Interrupted)));
}

#[test]
fn a_flipped_bit_in_any_page_in_use_is_found_in_that_page() {
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..150 {
        let mut image = sound();
        let page = loop {
            let page = PageId(random.u64(1..image.pages()));
            if image.is_taken(page) {
                break page;
            }
        };
        let (at, bit) = (random.usize(..512), random.u8(..8));
        image.page_mut(page)[at] ^= 1 << bit;
        image.finds(page, |fault| {
            matches!(
                fault,
                Fault::Unreadable(ReadError::Checksum { .. } | ReadError::Misplaced { .. })
            )
        });
    }
}

#[test]
fn swapped_pages_are_both_found() {
    let mut image = sound();
    let nodes = image.nodes(WORDS);
    let (a, b) = (nodes[nodes.len() - 1], nodes[nodes.len() - 9]);
    let (page_a, page_b) = (image.page(a).to_vec(), image.page(b).to_vec());
    image.page_mut(a).copy_from_slice(&page_b);
    image.page_mut(b).copy_from_slice(&page_a);
    let misplaced = |fault: &Fault| matches!(fault, Fault::Unreadable(ReadError::Misplaced { .. }));
    image.finds(a, misplaced);
    image.finds(b, misplaced);
}

#[test]
fn keys_out_of_order_are_found_although_the_checksum_is_right() {
    let mut image = sound();
    let leaf = image.leaf();
    // Two slots of ten bytes change places.
    image.change(leaf, |page| {
        let slots: Vec<u8> = page[64..84].to_vec();
        page[64..74].copy_from_slice(&slots[10..]);
        page[74..84].copy_from_slice(&slots[..10]);
    });
    let report =
        image.finds(leaf, |fault| matches!(fault, Fault::Node(Violation::Order { entry: 1 })));
    assert_eq!(report.problems.len(), 1);
    assert_eq!(report.problems[0].structure.as_deref(), Some("words"));
}

#[test]
fn a_fence_that_is_not_the_parents_is_found_in_the_child() {
    let mut image = sound();
    let leaf = image.leaf();
    let copy = image.copy(leaf);
    let upper = StoredNode::of(copy.view()).unwrap().fences().upper.unwrap();
    let at = usize::from(u16::from_le_bytes([copy.bytes()[40], copy.bytes()[41]]));
    assert_eq!(copy.bytes()[at..at + upper.len()], upper);
    image.change(leaf, |page| page[at + upper.len() - 1] += 1);
    image.finds(leaf, is_node);
    // And in the parent: a separator that no child knows.
    let parent = sound().parent();
    let copy = sound().copy(parent);
    let node = StoredNode::of(copy.view()).unwrap();
    let children = node.children();
    // One more, or one less, in the last byte of some separator: one that the node can have.
    let changed = |i: usize| {
        let slot = 128 + 16 * i;
        let word =
            |at: usize| usize::from(u16::from_le_bytes([copy.bytes()[at], copy.bytes()[at + 1]]));
        let (offset, len) = (word(slot + 4), word(slot + 6));
        let last = if len > 4 { offset + len - 5 } else { slot + 4 - len };
        [1, 255].into_iter().find_map(|step| {
            let mut image = sound();
            image.change(parent, |page| page[last] = page[last].wrapping_add(step));
            StoredNode::of(image.copy(parent).view()).is_ok().then_some((i, image))
        })
    };
    let (i, image) = (0..node.count()).find_map(changed).unwrap();
    let wrong = |fault: &Fault| matches!(fault, Fault::Node(Violation::ChildFences { .. }));
    image.finds(children[i].swip.page(), wrong);
    image.finds(children[i + 1].swip.page(), wrong);
}

#[test]
fn a_child_of_two_parents_is_found_and_so_is_the_child_of_none() {
    let mut image = sound();
    let parent = image.parent();
    let copy = image.copy(parent);
    let children = StoredNode::of(copy.view()).unwrap().children();
    let (twice, none) = (children[0].swip, children[1].swip.page());
    let at = children[1].at;
    image.change(parent, |page| page[at..at + 8].copy_from_slice(&twice.0.to_le_bytes()));
    let report = image.finds(
        twice.page(),
        |fault| matches!(fault, Fault::Twice { parent: Some(by) } if *by == parent),
    );
    image.finds(none, |fault| matches!(fault, Fault::CutOff { pages: 1 }));
    assert_eq!(report.counts.lost, 1);
    // A tree as the child of a node of another.
    let mut image = sound();
    let root = image.roots[&LARGE];
    image.change(parent, |page| {
        page[at..at + 8].copy_from_slice(&Swip::evicted(root).0.to_le_bytes());
    });
    let report = image.check();
    assert!(report.problems.iter().any(|p| p.page == root), "{:?}", report.problems);
}

#[test]
fn a_page_that_nobody_refers_to_and_one_that_is_free_though_used_are_found() {
    let mut image = sound();
    let leaked = image.free_page();
    image.turn_map_bit(leaked);
    let report = image.finds(leaked, |fault| matches!(fault, Fault::Leaked));
    assert_eq!((report.problems.len(), report.counts.lost), (1, 1));
    let mut image = sound();
    let used = image.leaf();
    image.turn_map_bit(used);
    let report = image.finds(used, |fault| matches!(fault, Fault::Free));
    assert_eq!(report.problems.len(), 1);
    // The maps and the superblock are never free, and nothing is used beyond the end.
    let mut image = sound();
    image.turn_map_bit(PageId(0));
    image.finds(PageId(0), |fault| matches!(fault, Fault::FreeMap { .. }));
    let mut image = sound();
    let beyond = PageId(image.pages());
    image.turn_map_bit(beyond);
    image.finds(beyond, |fault| matches!(fault, Fault::FreeMap { .. }));
}

#[test]
fn a_wrong_level_a_wrong_type_and_a_wrong_owner_are_found() {
    let (leaf, parent) = (sound().leaf(), sound().parent());
    for (page, at, to) in [
        (leaf, 29, 1),
        (leaf, 28, PageType::BTREE_INNER.0),
        (leaf, 28, PageType::OVERFLOW.0),
        (leaf, 28, 77),
        (leaf, 24, 9),
        (parent, 29, 0),
        (parent, 29, 2),
        (parent, 28, PageType::BTREE_LEAF.0),
        (sound().roots[&CATALOG], 28, PageType::FREE_MAP.0),
    ] {
        let mut image = sound();
        image.change(page, |page| page[at] = to);
        image.finds(page, is_node);
    }
}

#[test]
fn references_that_cannot_be_are_found_in_the_parent() {
    let parent = sound().parent();
    let at = StoredNode::of(sound().copy(parent).view()).unwrap().children()[2].at;
    let set = |word: u64| {
        let mut image = sound();
        image.change(parent, |page| page[at..at + 8].copy_from_slice(&word.to_le_bytes()));
        image
    };
    let beyond = PageId(sound().pages());
    set(0x7fff_1234_5678).finds(parent, |f| matches!(f, Fault::Swip { at: a, .. } if *a == at));
    set(0).finds(parent, |f| matches!(f, Fault::Node(Violation::Missing { child: 2 })));
    set(Swip::evicted(beyond).0)
        .finds(parent, |f| matches!(f, Fault::Beyond { child, .. } if *child == beyond));
    set(Swip::evicted(PageId(1)).0).finds(parent, |f| matches!(f, Fault::Reserved { .. }));
    let free = sound().free_page();
    let image = set(Swip::evicted(free).0);
    image.finds(free, |f| matches!(f, Fault::Unreadable(_) | Fault::Node(_)));
    image.finds(free, |f| matches!(f, Fault::Free));
}

#[test]
fn damaged_large_values_are_found() {
    for level in [0, 1] {
        let page = sound().overflow_page(level);
        for at in [29, 32, 40] {
            let mut image = sound();
            image.change(page, |page| page[at] ^= 2);
            image.finds(page, is_node);
        }
    }
}

#[test]
fn a_file_that_was_cut_off_and_one_that_was_not_closed_are_found() {
    let mut image = sound();
    let end = image.leaf();
    image.bytes.truncate(end.0 as usize * 512);
    image.finds(end, |f| matches!(f, Fault::Truncated { .. }));
    let report = image.check();
    assert!(report.problems.iter().any(|p| matches!(p.fault, Fault::Beyond { .. })));
    let mut image = sound();
    let open = Superblock { clean: false, pid: 4711, ..image.superblock() };
    image.set_superblock(open);
    let report = image.finds(PageId(0), |f| matches!(f, Fault::NotClosed { pid: 4711 }));
    assert_eq!(report.problems.len(), 1, "its trees are whole");
}

#[test]
fn a_superblock_that_is_damaged_or_wrong_is_found() {
    let start = PageId(0);
    let mut image = sound();
    image.page_mut(start)[72] ^= 1;
    let report = image.finds(start, |f| matches!(f, Fault::Superblock(_)));
    assert!(report.structures.is_empty() && report.counts.lost > 100);
    for magic in [32, 40, 44] {
        let mut image = sound();
        image.page_mut(start)[magic] ^= 1;
        image.finds(start, |f| matches!(f, Fault::Superblock(_)));
    }
    let block = sound().superblock();
    let mut image = sound();
    image.set_superblock(Superblock { catalog_root: None, ..block });
    image.finds(start, |f| matches!(f, Fault::NoCatalog));
    let leaf = image.leaf();
    image.set_superblock(Superblock { catalog_root: Some(leaf), ..block });
    image.finds(leaf, is_node);
    image.set_superblock(Superblock { catalog_root: Some(PageId(1 << 50)), ..block });
    image.finds(start, |f| matches!(f, Fault::Beyond { .. }));
    image.set_superblock(Superblock { pages: 20, ..block });
    let report = image.check();
    assert!(report.problems.iter().any(|p| matches!(p.fault, Fault::Beyond { pages: 20, .. })));
}

#[test]
fn a_catalog_that_names_wrong_roots_is_found() {
    let catalog = sound().roots[&CATALOG];
    let root = sound().roots[&WORDS];
    let at = {
        let image = sound();
        let needle = root.0.to_le_bytes();
        image.page(catalog).windows(8).position(|w| w == needle).unwrap()
    };
    let set = |to: PageId| {
        let mut image = sound();
        image.change(catalog, |page| page[at..at + 8].copy_from_slice(&to.0.to_le_bytes()));
        image
    };
    let other = sound().roots[&LARGE];
    set(other).finds(other, |f| matches!(f, Fault::Twice { parent: None }));
    let free = sound().free_page();
    set(free).finds(free, |f| matches!(f, Fault::Unreadable(_) | Fault::Node(_)));
    let leaf = sound().leaf();
    let report = set(leaf).finds(leaf, is_node);
    assert!(
        report.problems.iter().any(|p| matches!(p.fault, Fault::CutOff { pages } if pages > 9))
    );
}

#[test]
fn whatever_is_in_the_file_the_check_reads_it_without_a_panic() {
    let mut random = fastrand::Rng::with_seed(12);
    let used: Vec<u64> = (0..SOUND.pages()).filter(|p| SOUND.is_taken(PageId(*p))).collect();
    let mut unnoticed = 0;
    for _ in 0..600 {
        let mut image = sound();
        for _ in 0..random.usize(1..4) {
            let page = PageId(used[random.usize(..used.len())]);
            let (at, to) = (random.usize(16..512), random.u8(..));
            image.change(page, |bytes| bytes[at] = to);
            let (from, to) = (random.usize(30..100), random.u64(..));
            image.change(page, |bytes| bytes[from..from + 8].copy_from_slice(&to.to_le_bytes()));
        }
        unnoticed += u32::from(image.check().is_sound());
    }
    // Eight random bytes in a page's header or slots are seldom right; in a value they may be.
    assert!(unnoticed < 200, "{unnoticed} of 600");
    for _ in 0..50 {
        let mut image = sound();
        let from = random.usize(..image.bytes.len());
        random.fill(&mut image.bytes[from..]);
        image.check();
        image.bytes.truncate(random.usize(1024..image.bytes.len()));
        image.check();
    }
}
