//! Damaged pages of a heap: reported by the check, without a panic.

use millpond::internals::heap::{DirectoryKind, Heap, RecordId, Violation, check_page};
use millpond::internals::page::{PAGE_HEADER, PageBuffer};
use millpond::internals::pool::{Kind, Optimistic, Pages, Read, Twin};
use millpond_base::Mark;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::structure_damage::{PAGE, memory};

type Records = Heap<Twin<Optimistic>>;

/// Records on a few pages, among them one that moved.
fn heap() -> Records {
    let heap = Heap::create(memory(), 5).unwrap();
    for n in 0..60u8 {
        heap.append(&[n; 20]).unwrap();
    }
    heap.update(RecordId(2), &[2; 200]).unwrap();
    heap
}

/// Changes the root, or the first data page below it.
fn damage(heap: &Records, root: bool, change: impl Fn(&mut [u8])) {
    heap.pages()
        .run(|mtr| {
            let page = Read::root(mtr, heap.anchor(), Mark::WRITE)?;
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

#[test]
fn planted_damage_is_found() {
    let says = |root, change: &dyn Fn(&mut [u8]), matches: fn(&Violation) -> bool| {
        let heap = heap();
        assert_eq!(heap.check().unwrap().violations, []);
        damage(&heap, root, change);
        let found = heap.check().unwrap().violations;
        assert!(found.iter().any(|(_, violation)| matches(violation)), "{found:?}");
    };
    says(false, &|p| p[28] = 3, |v| matches!(v, Violation::Type { found: 3, expected: 9 }));
    says(false, &|p| p[29] = 2, |v| matches!(v, Violation::Level { found: 2, expected: 0 }));
    says(false, &|p| p[24] = 9, |v| matches!(v, Violation::Owner { found: 9, expected: 5 }));
    says(false, &|p| p[17] ^= 4, |v| matches!(v, Violation::Id { .. }));
    says(false, &|p| p[48] = 7, |v| matches!(v, Violation::Number { found: 7, expected: 0 }));
    says(false, &|p| p[33] = 1, |v| matches!(v, Violation::Header { .. }));
    says(false, &|p| p[34] -= 1, |v| matches!(v, Violation::InUse { .. }));
    says(false, &|p| p[40] ^= 4, |v| matches!(v, Violation::Heap { .. }));
    says(false, &|p| p[56..58].fill(0xfc), |v| matches!(v, Violation::Outside { slot: 0, .. }));
    says(false, &|p| p.copy_within(56..58, 60), |v| matches!(v, Violation::Heap { .. }));
    // Slot 2 is the forward.
    says(false, &|p| p[64] &= !3, |v| matches!(v, Violation::Guest { .. }));
    says(false, &|p| p[56] |= 2, |v| matches!(v, Violation::Guest { .. }));
    says(
        false,
        &|p| {
            let at = usize::from(u16::from_le_bytes([p[64], p[65]]) & !3);
            p[at] ^= 1;
        },
        |v| matches!(v, Violation::Forward { id: RecordId(2), .. }),
    );
    says(true, &|p| p[33] = 1, |v| matches!(v, Violation::Children { .. }));
    says(true, &|p| p[32] -= 1, |v| matches!(v, Violation::Swip { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None,
        rng_seed: RngSeed::Fixed(2), ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_checked_without_a_panic(
        mut page in prop::collection::vec(any::<u8>(), PAGE),
        kind in 7u8..11,
        slots in 0u8..100,
    ) {
        page[28] = kind;
        page[32] = slots;
        page[33] = 0;
        check_page(&page);
        check_page(&page[..100]);
        let copy = PageBuffer::copy_of(&page);
        DirectoryKind.swips(copy.view(), &mut |at| {
            assert!(at % 8 == 0 && at + 8 <= PAGE);
            true
        });
    }

    #[test]
    fn operations_on_damaged_pages_do_not_panic(
        bytes in prop::collection::vec((PAGE_HEADER - 4..PAGE, any::<u8>()), 1..12),
        root in any::<bool>(),
    ) {
        let heap = heap();
        // Swips are verified by checksums; the twin follows them as they are.
        let hurt = |page: &mut [u8]| for &(at, byte) in &bytes {
            if !root || at < 64 + 32 {
                page[at] = byte;
            }
        };
        damage(&heap, root, hurt);
        for n in 0..40u64 {
            let id = RecordId(n % 20 + ((n % 3) << 16));
            let _ = heap.get_owned(id);
            let _ = heap.update(id, &[1; 30]);
            let _ = heap.update_in_place(id, |v| v.fill(1));
            let _ = heap.append(&[2; 25]);
            if n % 2 == 0 {
                let _ = heap.remove(id);
            }
        }
        let _ = heap.records().map(|records| records.take(1000).count());
        let _ = (heap.stats(), heap.check(), heap.clear());
    }
}
