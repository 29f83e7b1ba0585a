//! Nodes by themselves, against sorted vectors.

use crate::btree::check::check_page;
use crate::btree::node::edit::{Edit, Payload, payload_of};
use crate::btree::node::layout::{Node, common};
use crate::btree::node::split::{cut_leaf, separator};
use crate::page::{PageBuffer, PageHeader, PageType, View};
use crate::pool::Swip;

fn page(size: usize, level: u8) -> PageBuffer {
    let mut page = PageBuffer::new(size);
    let kind = if level == 0 { PageType::BTREE_LEAF } else { PageType::BTREE_INNER };
    PageHeader { kind, level, ..PageHeader::read(&[]) }.write(page.bytes_mut());
    page
}

fn key(random: &mut fastrand::Rng, prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    for _ in 0..random.usize(..7) {
        key.push([0, 0, 1, b'k', 255][random.usize(..5)]);
    }
    key
}

fn fences(random: &mut fastrand::Rng) -> (Vec<u8>, Option<Vec<u8>>) {
    match random.u32(..4) {
        0 => (Vec::new(), None),
        1 => (b"middle".to_vec(), None),
        2 => (Vec::new(), Some(b"middle".to_vec())),
        _ => (b"middle".to_vec(), Some(b"middlf".to_vec())),
    }
}

#[test]
fn a_node_orders_its_entries_as_a_sorted_vector_does() {
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..120 {
        let (size, level) = ([512, 4096, 16384][round % 3], (round / 3 % 2) as u8);
        let (lower, upper) = fences(&mut random);
        let mut page = page(size, level);
        let mut edit = Edit::of(page.bytes_mut());
        edit.init(&lower, upper.as_deref());
        let mut model: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for step in 0..600u64 {
            let key = key(&mut random, if lower.is_empty() { b"" } else { b"middle!" });
            let inside = key > lower && upper.as_ref().is_none_or(|upper| key < *upper);
            if !inside {
                continue;
            }
            let place = model.binary_search_by(|(k, _)| k.as_slice().cmp(&key));
            let (at, equal) = edit.node().lower_bound(&key);
            assert_eq!((at, equal), (place.unwrap_or_else(|at| at), place.is_ok()), "{key:?}");
            if level > 0 {
                assert_eq!(edit.node().child_for(&key), at + usize::from(equal));
            }
            let value = vec![step as u8; random.usize(..20)];
            match place {
                Ok(at) if random.bool() => {
                    edit.remove(at);
                    model.remove(at);
                }
                Ok(_) => {}
                Err(at) => {
                    let payload = if level == 0 {
                        Payload::Inline(&value)
                    } else {
                        Payload::Child(Swip(step))
                    };
                    let need = edit.entry_len(key.len(), &payload);
                    let fits = edit.node().free() >= need;
                    assert_eq!(edit.insert(at, &key, &payload), fits);
                    if fits {
                        model.insert(at, (key, value));
                    }
                }
            }
        }
        let found = check_page(edit.node().view);
        assert!(found.is_empty(), "{found:?} {lower:?} {upper:?}");
        assert_eq!(edit.node().count(), model.len());
        let mut found = Vec::new();
        for (i, (key, value)) in model.iter().enumerate() {
            edit.node().key_to(i, &mut found);
            assert_eq!(found, *key);
            if let Some(Payload::Inline(bytes)) = payload_of(edit.bytes(), edit.node(), i) {
                assert_eq!(bytes, value);
            }
        }
    }
}

#[test]
fn a_separator_is_the_shortest_between_its_keys() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..5000 {
        let (a, b) = (key(&mut random, b"p"), key(&mut random, b"p"));
        if a == b {
            continue;
        }
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        let found = separator(&low, &high);
        assert!(low.as_slice() < found && found <= high.as_slice());
        assert_eq!(found.len(), common(&low, &high) + 1);
    }
}

#[test]
fn a_cut_in_the_middle_halves_the_bytes_and_one_at_an_edge_follows_the_inserts() {
    let mut full = page(4096, 0);
    let mut edit = Edit::leaf(full.bytes_mut());
    edit.init(b"a", Some(b"z"));
    let mut n = 0u32;
    while edit.insert(n as usize, format!("k{n:05}").as_bytes(), &Payload::Inline(&[1; 90])) {
        edit.count_insert(n as usize);
        n += 1;
    }
    let node = Node::leaf(View::of(edit.bytes()));
    let middle = cut_leaf(node, None);
    assert!(middle.left.abs_diff(n as usize / 2) <= 2, "{middle:?}");
    let next = format!("k{n:05}");
    let up = cut_leaf(node, Some((next.as_bytes(), n as usize)));
    assert_eq!(up.left, n as usize, "ascending inserts leave the left part full");
    let other = cut_leaf(node, Some((b"k00003x", 4)));
    assert_eq!(other, middle, "an insert elsewhere is no trend");
}
