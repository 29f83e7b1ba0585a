//! Salvage of damaged stores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use millpond::internals::admin::dump::{DumpReader, DumpWriter, Form, Item};
use millpond::internals::admin::salvage::{Lost, SalvageReport, salvage};
use millpond::internals::btree::StoredNode;
use millpond::internals::io::PageStore;
use millpond::internals::page::PageSize;
use millpond::internals::page::superblock::Superblock;
use millpond_base::PageId;
use millpond_device::MemoryDevice;

use crate::check::image::{CATALOG, Image, LARGE, ROOTS, WORDS};

pub type Trees = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

pub fn salvaged(image: &Image) -> (Trees, SalvageReport) {
    let device = Arc::new(MemoryDevice::from_bytes(&image.bytes));
    let store = PageStore::salvage_on(device, Some(image.size)).unwrap();
    let mut out = DumpWriter::new(Vec::new(), Form::Text).unwrap();
    let report = salvage(&store, ROOTS, &mut out).unwrap();
    let bytes = out.finish().unwrap();
    let mut reader = DumpReader::new(&bytes[..]).unwrap();
    let (mut trees, mut tree) = (Trees::new(), String::new());
    let (mut key, mut value) = (Vec::new(), Vec::new());
    loop {
        match reader.read(&mut key, &mut value).unwrap() {
            Item::Structure(_, name, _) => {
                trees.entry(name.clone()).or_default();
                tree = name;
            }
            Item::Entry => {
                trees.get_mut(&tree).unwrap().insert(key.clone(), value.clone());
            }
            Item::End => break,
        }
    }
    (trees, report)
}

fn sound() -> (Image, Trees) {
    let image = Image::build(PageSize::TINY);
    let (trees, report) = salvaged(&image);
    assert!(report.is_complete(), "{report:?}");
    (image, trees)
}

/// All entries of `found` are in `all`, with the same values; returns the number of missing ones.
pub fn missing(found: &Trees, all: &Trees, tree: &str) -> usize {
    let (found, all) = (&found[tree], &all[tree]);
    assert!(found.iter().all(|(key, value)| all.get(key) == Some(value)));
    all.len() - found.len()
}

#[test]
fn a_sound_store_is_saved_as_it_is() {
    let (_, trees) = sound();
    assert_eq!(trees["words"].len(), 2048);
    assert_eq!(trees["words"][&b"word 007919"[..]], [1; 12]);
    let lens: Vec<usize> = trees["large"].values().map(Vec::len).collect();
    assert_eq!(lens, [256, 256 * 31, 256 * 61, 256 * 91, 256 * 151]);
    assert!(trees["large"].iter().all(|(key, value)| value.iter().all(|byte| *byte == key[0])));
}

#[test]
fn a_damaged_leaf_costs_its_entries_and_no_other() {
    let (mut image, trees) = sound();
    let leaf = image.leaf();
    let copy = image.copy(leaf);
    let node = StoredNode::of(copy.view()).unwrap();
    image.page_mut(leaf)[99] ^= 1;
    let (found, report) = salvaged(&image);
    assert_eq!(missing(&found, &trees, "words"), node.count());
    assert_eq!(missing(&found, &trees, "large"), 0);
    assert!(!report.is_complete());
    let [loss] = &report.losses[..] else { panic!("{:?}", report.losses) };
    assert_eq!((loss.problem.page, &loss.lost), (leaf, &Lost::Keys(node.fences())));
    let text = loss.to_string();
    assert!(text.contains("words") && text.contains("keys from") && text.contains("checksum"));
}

#[test]
fn a_damaged_inner_node_costs_nothing_since_its_leaves_are_found() {
    let (image, trees) = sound();
    for page in [image.parent(), image.roots[&WORDS]] {
        let mut image = image.clone();
        image.page_mut(page)[99] ^= 1;
        let (found, report) = salvaged(&image);
        assert_eq!(missing(&found, &trees, "words"), 0);
        let words = report.trees.iter().find(|tree| tree.name == "words").unwrap();
        assert!(words.found > 0 && words.losses == 1 && !report.is_complete());
        assert_eq!(words.entries + words.found, 2048, "nothing is written twice");
    }
}

#[test]
fn a_damaged_overflow_page_costs_one_value() {
    let (mut image, trees) = sound();
    let page = image.overflow_page(0);
    image.page_mut(page)[99] ^= 1;
    let (found, report) = salvaged(&image);
    assert_eq!((missing(&found, &trees, "large"), missing(&found, &trees, "words")), (1, 0));
    assert!(matches!(&report.losses[..], [loss] if matches!(loss.lost, Lost::Value(_))));
}

#[test]
fn without_a_superblock_or_a_catalog_all_leaves_are_found() {
    let (image, trees) = sound();
    let mut no_superblock = image.clone();
    no_superblock.page_mut(PageId(0)).fill(0);
    let (found, report) = salvaged(&no_superblock);
    assert_eq!((missing(&found, &trees, "large"), missing(&found, &trees, "words")), (0, 0));
    assert!(!report.is_complete() && !report.was_closed);
    let mut no_catalog = image.clone();
    no_catalog.page_mut(image.roots[&CATALOG])[40] ^= 1;
    let (found, report) = salvaged(&no_catalog);
    let names: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, BTreeSet::from(["unnamed-2", "unnamed-3"]));
    assert_eq!((WORDS, LARGE), (2, 3));
    assert_eq!(found["unnamed-2"], trees["words"]);
    assert_eq!(found["unnamed-3"], trees["large"]);
    assert!(!report.is_complete());
}

#[test]
fn a_store_that_was_not_closed_is_saved_and_never_called_complete() {
    let (mut image, trees) = sound();
    let open = Superblock { clean: false, catalog_root: None, pid: 7, ..image.superblock() };
    image.set_superblock(open);
    let (found, report) = salvaged(&image);
    assert_eq!((missing(&found, &trees, "large"), missing(&found, &trees, "words")), (0, 0));
    assert!(!report.is_complete() && !report.was_closed);
}

#[test]
fn whatever_is_in_the_file_it_is_read_without_a_panic_and_nothing_is_invented() {
    let (image, trees) = sound();
    let mut random = fastrand::Rng::with_seed(13);
    for _ in 0..60 {
        let mut image = image.clone();
        for _ in 0..20 {
            let (at, bit) = (random.usize(..image.bytes.len()), random.u8(..8));
            image.bytes[at] ^= 1 << bit;
        }
        let (found, _) = salvaged(&image);
        for tree in ["words", "large"] {
            if found.contains_key(tree) {
                missing(&found, &trees, tree);
            }
        }
    }
    for _ in 0..100 {
        let mut image = image.clone();
        for _ in 0..10 {
            let page = PageId(random.u64(1..200));
            let (at, to) = (random.usize(24..504), random.u64(..));
            image.change(page, |bytes| bytes[at..at + 8].copy_from_slice(&to.to_le_bytes()));
        }
        salvaged(&image);
    }
}
