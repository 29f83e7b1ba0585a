//! Hash indexes and heaps in a check, and in a salvage.

use std::collections::BTreeSet;

use millpond::internals::admin::check::Fault;
use millpond::internals::admin::salvage::Lost;
use millpond::internals::io::ReadError;
use millpond::internals::page::superblock::Superblock;
use millpond::internals::page::{PageSize, PageType};
use millpond::internals::{hash_index, heap};

use crate::check::image::{CATALOG, HEAP, INDEX, Image};
use crate::check::salvage::{Trees, missing, salvaged};

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
        assert_eq!((heap.entries, index.entries), (3000, 3000));
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

fn sound() -> (Image, Trees) {
    let image = Image::build_others(PageSize::TINY);
    let (all, report) = salvaged(&image);
    assert!(report.is_complete(), "{report:?}");
    (image, all)
}

#[test]
fn a_sound_index_and_a_sound_heap_are_saved_as_they_are() {
    let (_, all) = sound();
    assert_eq!((all["index"].len(), all["heap"].len()), (3000, 3000));
    assert_eq!(all["index"][&2999u32.to_le_bytes()[..]], [2999u32 as u8; 12]);
    assert_eq!(all["heap"][&b"0"[..]], [0; 10]);
}

#[test]
fn a_damaged_bucket_or_data_page_costs_its_entries_and_no_other() {
    let (image, all) = sound();
    let bucket = image.of_type(PageType::HASH_BUCKET)[7];
    let entries = hash_index::stored_count(image.copy(bucket).view());
    let mut broken = image.clone();
    broken.page_mut(bucket)[99] ^= 1;
    let (found, report) = salvaged(&broken);
    assert_eq!((missing(&found, &all, "index"), missing(&found, &all, "heap")), (entries, 0));
    let [loss] = &report.losses[..] else { panic!("{:?}", report.losses) };
    assert!(loss.problem.page == bucket && matches!(loss.lost, Lost::Hashes(_)));
    assert!(loss.to_string().contains("about one entry in "), "{loss}");
    let data = image.of_type(PageType::HEAP_DATA)[7];
    let copy = image.copy(data);
    let records: Vec<_> = heap::stored_records(copy.view(), copy.bytes()).collect();
    let mut broken = image.clone();
    broken.page_mut(data)[99] ^= 1;
    let (found, report) = salvaged(&broken);
    assert_eq!(missing(&found, &all, "heap"), records.len());
    assert_eq!(missing(&found, &all, "index"), 0);
    let [loss] = &report.losses[..] else { panic!("{:?}", report.losses) };
    let first = records[0].0.0;
    assert!(loss.to_string().contains(&format!("records {first} to ")), "{loss}");
}

#[test]
fn a_damaged_directory_costs_nothing_since_its_pages_are_found() {
    let (image, all) = sound();
    for (name, owner, page_type) in
        [("index", INDEX, PageType::HASH_ROOT), ("heap", HEAP, PageType::HEAP_DIRECTORY)]
    {
        let inner = *image.of_type(page_type).iter().find(|p| **p != image.roots[&owner]).unwrap();
        for page in [inner, image.roots[&owner]] {
            let mut image = image.clone();
            image.page_mut(page)[99] ^= 1;
            let (found, report) = salvaged(&image);
            for name in ["index", "heap"] {
                assert_eq!(missing(&found, &all, name), 0, "{name}, page {page}");
            }
            let saved = report.trees.iter().find(|tree| tree.name == name).unwrap();
            assert!(saved.found > 0 && saved.losses == 1 && !report.is_complete());
            assert_eq!(saved.entries + saved.found, 3000, "nothing is written twice");
        }
    }
}

#[test]
fn without_a_catalog_or_a_clean_end_indexes_and_heaps_are_found() {
    let (image, all) = sound();
    let mut no_catalog = image.clone();
    no_catalog.page_mut(image.roots[&CATALOG])[40] ^= 1;
    let (found, _) = salvaged(&no_catalog);
    let names: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    assert_eq!((INDEX, HEAP, names), (4, 5, BTreeSet::from(["unnamed-4", "unnamed-5"])));
    assert_eq!((&found["unnamed-4"], &found["unnamed-5"]), (&all["index"], &all["heap"]));
    let mut open = image.clone();
    open.set_superblock(Superblock { clean: false, pid: 7, ..image.superblock() });
    // A page that was never written is one that nothing refers to.
    for page_type in [PageType::HASH_ROOT, PageType::HEAP_DIRECTORY] {
        let page = *image.of_type(page_type).last().unwrap();
        open.page_mut(page).fill(0);
    }
    let (found, report) = salvaged(&open);
    assert_eq!((missing(&found, &all, "index"), missing(&found, &all, "heap")), (0, 0));
    assert!(!report.was_closed && !report.is_complete());
}

#[test]
fn whatever_is_in_such_pages_a_salvage_does_not_panic_and_invents_nothing() {
    let (image, all) = sound();
    let mut random = fastrand::Rng::with_seed(37);
    for _ in 0..40 {
        let mut image = image.clone();
        for _ in 0..20 {
            let (at, bit) = (random.usize(..image.bytes.len()), random.u8(..8));
            image.bytes[at] ^= 1 << bit;
        }
        let (found, _) = salvaged(&image);
        for name in ["index", "heap"].into_iter().filter(|name| found.contains_key(*name)) {
            missing(&found, &all, name);
        }
    }
    for _ in 0..100 {
        let mut image = image.clone();
        for _ in 0..10 {
            let page = millpond_base::PageId(random.u64(1..image.pages()));
            let (at, to) = (random.usize(24..504), random.u64(..));
            image.change(page, |bytes| bytes[at..at + 8].copy_from_slice(&to.to_le_bytes()));
        }
        salvaged(&image);
    }
}
