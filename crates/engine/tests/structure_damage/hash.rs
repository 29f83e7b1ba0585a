//! Damaged pages of a hash index: reported by the check, without a panic.

use millpond::internals::hash_index::{DirectoryKind, HashIndex, Violation, check_page};
use millpond::internals::page::{PAGE_HEADER, PageType};
use millpond::internals::pool::{Kind, Optimistic, Pages, Read, Twin};
use millpond_base::Mark;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::structure_damage::{PAGE, memory};

type Index = HashIndex<Twin<Optimistic>>;

fn index(entries: u32) -> Index {
    let index = HashIndex::create(memory(), 5, 77).unwrap();
    for n in 0..entries {
        index.insert(&n.to_be_bytes(), &[n as u8; 12]).unwrap();
    }
    index
}

/// Changes the root, or the first bucket below it.
fn damage(index: &Index, root: bool, change: impl Fn(&mut [u8])) {
    index
        .pages()
        .run(|mtr| {
            let page = Read::root(mtr, index.anchor(), Mark::WRITE)?;
            if root {
                change(page.upgrade()?.page_mut());
                return Ok(());
            }
            let mut first = None;
            DirectoryKind.swips(page.view(), &mut |at| {
                first = Some(at);
                false
            });
            change(page.child_exclusive(first.unwrap(), Mark::WRITE)?.page_mut());
            Ok(())
        })
        .unwrap();
}

fn found(root: bool, change: impl Fn(&mut [u8])) -> Vec<Violation> {
    let index = index(60);
    assert_eq!(index.check().unwrap().violations, []);
    damage(&index, root, change);
    index.check().unwrap().violations.into_iter().map(|(_, violation)| violation).collect()
}

#[test]
fn planted_damage_is_found() {
    let says = |root, change: &dyn Fn(&mut [u8]), matches: fn(&Violation) -> bool| {
        let found = found(root, change);
        assert!(found.iter().any(matches), "{found:?}");
    };
    says(false, &|p| p[28] = 3, |v| matches!(v, Violation::Type { found: 3, expected: 7 }));
    says(false, &|p| p[24] = 9, |v| matches!(v, Violation::Owner { found: 9, expected: 5 }));
    says(false, &|p| p[17] ^= 4, |v| matches!(v, Violation::Id { .. }));
    says(false, &|p| p[33] = 1, |v| matches!(v, Violation::Header { .. }));
    says(false, &|p| p[32] -= 1, |v| matches!(v, Violation::Heap { .. }));
    says(false, &|p| p[40] += 2, |v| matches!(v, Violation::Heap { .. }));
    says(false, &|p| p[34] += 1, |v| matches!(v, Violation::Range { .. }));
    says(false, &|p| p[55] ^= 0x80, |v| matches!(v, Violation::Range { .. }));
    says(false, &|p| p[59] = 0xff, |v| matches!(v, Violation::Order { entry: 1 }));
    says(false, &|p| p[60..62].fill(0xff), |v| matches!(v, Violation::Outside { entry: 0, .. }));
    says(false, &|p| p.copy_within(60..62, 68), |v| matches!(v, Violation::Heap { .. }));
    says(false, &|p| p.copy_within(56..64, 64), |v| matches!(v, Violation::Duplicate { .. }));
    let last = PAGE - 13;
    says(false, &|p| p[last] ^= 1, |v| matches!(v, Violation::Hash { .. }));
    says(true, &|p| p[64] += 1, |v| matches!(v, Violation::Depth { .. }));
    says(true, &|p| p[40] ^= 1, |v| matches!(v, Violation::Seed { .. }));
    says(true, &|p| p[32] = 5, |v| matches!(v, Violation::Range { bits: 5, .. }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None,
        rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_checked_without_a_panic(
        mut page in prop::collection::vec(any::<u8>(), PAGE),
        kind in 5u8..9,
        count in 0u8..60,
    ) {
        page[28] = kind;
        page[32] = count;
        page[33] = 0;
        check_page(&page, 1);
        check_page(&page[..100], 1);
        let mut swips = 0;
        let view = millpond::internals::page::PageBuffer::copy_of(&page);
        DirectoryKind.swips(view.view(), &mut |at| {
            assert!(at % 8 == 0 && at + 8 <= PAGE);
            swips += 1;
            true
        });
        prop_assert!(swips <= 32);
    }

    #[test]
    fn operations_on_damaged_pages_do_not_panic(
        bytes in prop::collection::vec((PAGE_HEADER - 4..PAGE, any::<u8>()), 1..12),
        root in any::<bool>(),
    ) {
        let index = index(60);
        // Swips are verified by checksums; the twin follows them as they are.
        let hurt = |page: &mut [u8]| for &(at, byte) in &bytes {
            if !root || at < 64 + 32 {
                page[at] = byte;
            }
        };
        damage(&index, root, hurt);
        for n in 0..200u32 {
            let key = n.to_be_bytes();
            let _ = index.get_owned(&key);
            let _ = index.upsert(&key, &[1; 30]);
            let _ = index.update_in_place(&key, |v| v.fill(1));
            if n % 2 == 0 {
                let _ = index.remove(&key);
            }
        }
        let _ = index.entries().take(1000).count();
        let _ = (index.stats(), index.check(), index.clear());
    }
}

#[test]
fn a_page_of_another_structure_is_reported_as_such() {
    let index = index(0);
    let change = |page: &mut [u8]| page[28] = PageType::BTREE_LEAF.0;
    damage(&index, true, change);
    let error = index.get_owned(b"key").unwrap_err().to_string();
    assert!(error.contains("not the page of a hash index"), "{error}");
}
