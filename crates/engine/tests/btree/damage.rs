//! Damaged pages.

use millpond::internals::btree::{self, BTree, InnerKind, LeafKind, check_page};
use millpond::internals::page::{PageBuffer, PageType};
use millpond::internals::pool::{Kind, Pages, Read};

use crate::btree::harness::optimistic;

/// Returns copies of all nodes' pages of a tree with all kinds of entries.
fn pages() -> Vec<PageBuffer> {
    let tree = BTree::create(optimistic(1024), 1).unwrap();
    for i in 0..400u32 {
        let len = if i % 50 == 0 { 2000 } else { i as usize % 60 };
        tree.insert(format!("key/{}", i * 7919 % 1000).as_bytes(), &vec![i as u8; len]).unwrap();
    }
    let root = tree
        .pages()
        .run(|mtr| {
            let root = Read::root(mtr, tree.anchor(), Default::default())?;
            let mut found = vec![PageBuffer::of_view(root.view())];
            let mut at = Vec::new();
            InnerKind.swips(root.view(), &mut |swip| {
                at.push(swip);
                true
            });
            for at in at {
                let child = root.child(at, Default::default())?;
                found.push(PageBuffer::of_view(child.view()));
            }
            root.validate()?;
            Ok(found)
        })
        .unwrap();
    assert!(root.len() > 5);
    root
}

#[test]
fn sound_pages_have_no_violations_and_no_bytes_cause_a_panic() {
    let mut random = fastrand::Rng::with_seed(4);
    for page in pages() {
        assert_eq!(check_page(page.view()), []);
        for _ in 0..300 {
            let mut damaged = PageBuffer::copy_of(page.bytes());
            let from = if random.bool() { 28 } else { 128 };
            for _ in 0..random.usize(1..8) {
                let at = random.usize(from..page.bytes().len());
                damaged.bytes_mut()[at] = random.u8(..);
            }
            check_page(damaged.view());
            for (_, kind) in btree::KINDS {
                let mut visited = 0;
                kind.swips(damaged.view(), &mut |at| {
                    assert!(at + 8 <= 1024 && at % 8 == 0);
                    visited += 1;
                    visited < 10_000
                });
                kind.find(damaged.view(), random.u64(..), page.view());
            }
        }
    }
    for _ in 0..2000 {
        let mut noise = PageBuffer::new(512);
        noise.bytes_mut().fill_with(|| random.u8(..));
        noise.bytes_mut()[28] = PageType::BTREE_LEAF.0;
        noise.bytes_mut()[29] = random.u8(..2);
        check_page(noise.view());
    }
}

#[test]
fn a_change_of_any_count_length_or_key_is_found() {
    for page in pages() {
        for at in [32, 34, 36, 38, 44, 48, 56, 128, 132, 134] {
            let mut damaged = PageBuffer::copy_of(page.bytes());
            let leaf = damaged.bytes()[29] == 0;
            if at == 56 && !leaf {
                continue;
            }
            let at = if leaf && at >= 128 { at - 64 } else { at };
            damaged.bytes_mut()[at] ^= 0x41;
            assert_ne!(check_page(damaged.view()), [], "byte {at}");
        }
    }
}

#[test]
fn operations_on_damaged_pages_fail_or_return_but_never_panic() {
    let mut random = fastrand::Rng::with_seed(6);
    let (mut refused, mut reported) = (0, 0);
    for _ in 0..150 {
        let tree = BTree::create(optimistic(512), 1).unwrap();
        for i in 0..150u32 {
            let len = if i % 40 == 0 { 600 } else { 20 };
            tree.insert(&(i * 7).to_be_bytes(), &vec![1; len]).unwrap();
        }
        // Damage in the header, slots or heap of a random leaf, never in a swip.
        let key = random.u32(..1050).to_be_bytes();
        let place = random.usize(32..512);
        let byte = random.u8(..);
        tree.pages()
            .run(|mtr| {
                let root = Read::root(mtr, tree.anchor(), Default::default())?;
                let mut at = Vec::new();
                InnerKind.swips(root.view(), &mut |swip| {
                    at.push(swip);
                    true
                });
                let at = at[key[3] as usize % at.len()];
                let mut page = root.child_exclusive(at, Default::default())?;
                let mut swips = Vec::new();
                LeafKind.swips(page.view(), &mut |swip| {
                    swips.push(swip);
                    true
                });
                if swips.is_empty() && page.page()[29] == 0 {
                    page.page_mut()[place] = byte;
                    // No value may seem to be in overflow pages: the twin follows any pointer.
                    page.page_mut()[56] = 0;
                    for slot in (64..504).step_by(10) {
                        page.page_mut()[slot + 9] &= 0x7f;
                    }
                }
                Ok(())
            })
            .unwrap();
        reported += usize::from(!tree.check().unwrap().violations.is_empty());
        for _ in 0..100 {
            let key = random.u32(..1050).to_be_bytes();
            refused += usize::from(tree.get_owned(&key).is_err());
            refused += usize::from(tree.upsert(&key, &[2; 30]).is_err());
            refused += usize::from(tree.remove(&key).is_err());
        }
        let _ = tree.scan(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded, |_, _| true);
    }
    assert!(refused > 0 && reported > 20, "{refused} {reported}");
}
