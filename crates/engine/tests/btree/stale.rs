//! An outdated leaf that is resident, where no load verifies it: a walk over leaves neither runs
//! for ever nor moves backwards.

use std::collections::BTreeMap;
use std::ops::Bound;

use millpond::internals::btree::{BTree, Fences, InnerKind, StoredNode};
use millpond::internals::page::PageBuffer;
use millpond::internals::pool::{Kind, Latching, Pages, PoolError, Read, Twin};
use millpond_base::Mark;

use crate::btree::harness::{latched, optimistic};

const PAGE: usize = 1024;
const ROWS: u32 = 800;

type Leaves = BTreeMap<u64, (usize, PageBuffer)>;

/// Returns the leaves below the root, by page, with the offsets of their swips.
fn leaves<L: Latching>(tree: &BTree<Twin<L>>) -> Leaves {
    let look = |mtr: &millpond::internals::pool::MiniTransaction<'_, Twin<L>>| {
        let root = Read::root(mtr, tree.anchor(), Mark::READ)?;
        let mut places = Vec::new();
        InnerKind.swips(root.view(), &mut |at| {
            places.push(at);
            true
        });
        let mut found = Leaves::new();
        for at in places {
            let leaf = root.child(at, Mark::READ)?;
            let page = leaf.header().page().unwrap().0;
            found.insert(page, (at, PageBuffer::of_view(leaf.view())));
        }
        Ok(found)
    };
    tree.pages().run(look).unwrap()
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// Creates a tree in which one leaf, the `which`th of those, is as it was before it split.
fn outdated<L: Latching>(
    pages: std::sync::Arc<Twin<L>>,
    which: usize,
) -> Option<(BTree<Twin<L>>, u64)> {
    let tree = BTree::create(pages, 1).unwrap();
    let insert = |n: u32| {
        tree.insert(&key(n), &[n as u8; 16]).unwrap();
    };
    (0..ROWS).filter(|n| n % 4 == 0).for_each(insert);
    let before = leaves(&tree);
    (0..ROWS).filter(|n| n % 4 != 0).for_each(insert);
    let fences = |page: &PageBuffer| -> Fences { StoredNode::of(page.view()).unwrap().fences() };
    let now = leaves(&tree);
    let moved = |(page, (_, old)): &(&u64, &(usize, PageBuffer))| {
        now.get(page).is_some_and(|(_, new)| fences(new) != fences(old))
    };
    let (&page, (_, old)) = before.iter().filter(moved).nth(which)?;
    let at = now[&page].0;
    let replace = |mtr: &millpond::internals::pool::MiniTransaction<'_, Twin<L>>| {
        let root = Read::root(mtr, tree.anchor(), Mark::READ)?;
        let mut leaf = root.child_exclusive(at, Mark::WRITE)?;
        leaf.page_mut()[32..].copy_from_slice(&old.bytes()[32..]);
        Ok(())
    };
    tree.pages().run(replace).unwrap();
    Some((tree, page))
}

#[track_caller]
fn assert_names(error: &PoolError, page: u64) {
    let PoolError::Corrupt { page: named, what } = error else { panic!("{error}") };
    // Forwards, the leaf with the wrong fences, or the next one, which they do not lead to.
    assert!(what.contains("fences") || what.contains("header"), "{named} for {page}: {what}");
}

/// Returns the keys that a cursor shows before the error; never more than there are.
fn walk<P: Pages>(tree: &BTree<P>, forward: bool) -> (Vec<Vec<u8>>, Option<PoolError>) {
    let mut cursor = tree.cursor();
    let mut shown = Vec::new();
    let mut more = if forward { cursor.first() } else { cursor.last() };
    loop {
        match more {
            Ok(true) => shown.push(cursor.key().to_vec()),
            Ok(false) => return (shown, None),
            Err(error) => return (shown, Some(error)),
        }
        assert!(shown.len() <= ROWS as usize, "it goes on for ever");
        more = if forward { cursor.next() } else { cursor.prev() };
    }
}

fn assert_found_out<L: Latching>(make: impl Fn() -> std::sync::Arc<Twin<L>>) {
    let (mut tried, mut found_out) = (0, 0);
    while let Some((tree, page)) = outdated(make(), tried) {
        tried += 1;
        for forward in [true, false] {
            let (shown, error) = walk(&tree, forward);
            let goes_on = |pair: &[Vec<u8>]| (pair[0] < pair[1]) == forward && pair[0] != pair[1];
            assert!(shown.windows(2).all(goes_on), "page {page}, forward {forward}");
            if let Some(error) = error {
                assert_names(&error, page);
                found_out += 1;
            }
        }
        // They end; the leaf may be sound for them.
        if let Err(error) = tree.count() {
            assert_names(&error, page);
        }
        if let Err(error) = tree.stats() {
            assert_names(&error, page);
        }
        for leaves in [1, 1000] {
            let _ = tree.compact(leaves);
        }
        let _ = tree.delete_range(Bound::Included(&key(7)), Bound::Excluded(&key(ROWS - 7)));
    }
    assert!(tried > 3 && found_out > 3, "{found_out} walks over {tried} leaves");
}

#[test]
fn a_walk_over_an_outdated_resident_leaf_ends_and_does_not_move_backwards() {
    assert_found_out(|| optimistic(PAGE));
    assert_found_out(|| latched(PAGE));
}
