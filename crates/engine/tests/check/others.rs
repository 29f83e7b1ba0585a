//! Hash indexes and heaps in a check.

use millpond::db::check::Fault;
use millpond::io::ReadError;
use millpond::page::{PageSize, PageType};

use crate::image::Image;

#[test]
fn a_sound_hash_index_and_a_sound_heap_have_no_problem() {
    for size in [PageSize::TINY, PageSize::KIB_4] {
        let image = Image::build_others(size);
        let report = image.check();
        assert_eq!(report.problems, []);
        assert_eq!((report.counts.lost, report.counts.unreadable), (0, 0));
        let names: Vec<&str> = report.structures.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["catalog", "heap", "index"]);
        let (heap, index) = (&report.structures[1], &report.structures[2]);
        assert!(heap.other_pages > 20 && index.other_pages > 20, "{heap:?} {index:?}");
    }
}

#[test]
fn damage_in_a_hash_index_or_a_heap_is_found_in_its_page() {
    let sound = Image::build_others(PageSize::TINY);
    for page_type in
        [PageType::HASH_ROOT, PageType::HASH_BUCKET, PageType::HEAP_DIRECTORY, PageType::HEAP_DATA]
    {
        let pages = sound.of_type(page_type);
        let page = pages[pages.len() / 2];
        let mut image = sound.clone();
        image.page_mut(page)[200] ^= 4;
        image.finds(page, |f| matches!(f, Fault::Unreadable(ReadError::Checksum { .. })));
        let mut image = sound.clone();
        image.change(page, |page| page[24] ^= 64);
        image.finds(page, |f| matches!(f, Fault::Node(_)));
        let mut image = sound.clone();
        image.change(page, |page| page[28] = PageType::BTREE_LEAF.0);
        image.finds(page, |f| matches!(f, Fault::Type { found } if *found == 4));
        // Counts and places that cannot be, with the checksum repaired.
        let mut image = sound.clone();
        image.change(page, |page| page[32..60].fill(0xff));
        image.finds(page, |f| matches!(f, Fault::Hash(_) | Fault::Heap(_)));
    }
}

#[test]
fn whatever_is_in_such_pages_they_are_read_without_a_panic() {
    let sound = Image::build_others(PageSize::TINY);
    let mut random = fastrand::Rng::with_seed(31);
    let mut pages = sound.of_type(PageType::HASH_ROOT);
    pages.extend(sound.of_type(PageType::HEAP_DIRECTORY));
    pages.extend(sound.of_type(PageType::HASH_BUCKET));
    pages.extend(sound.of_type(PageType::HEAP_DATA));
    let mut unnoticed = 0;
    for _ in 0..400 {
        let mut image = sound.clone();
        let page = pages[random.usize(..pages.len())];
        for _ in 0..3 {
            let (at, to) = (random.usize(28..504), random.u64(..));
            image.change(page, |bytes| bytes[at..at + 8].copy_from_slice(&to.to_le_bytes()));
        }
        unnoticed += u32::from(image.check().is_sound());
    }
    assert!(unnoticed < 300, "{unnoticed} of 400");
}
