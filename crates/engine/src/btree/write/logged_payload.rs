//! The payload of a leaf's entry in a redo record: `0, bytes`, or `1, page of the root, length,
//! stamp` for a value in overflow pages.

use millpond_base::PageId;

use crate::btree::node::edit::{Payload, Reference};
use crate::btree::value::large::LargeValue;
use crate::page::varint::{put_bytes, take_bytes};
use crate::pool::Swip;

const INLINE: u8 = 0;
const LARGE: u8 = 1;

/// Writes the payload of a leaf's entry; `root` is the page of the root of a value in overflow
/// pages.
pub(super) fn put_payload(out: &mut Vec<u8>, payload: &Payload<'_>, root: PageId) {
    match payload {
        Payload::Overflow(reference) => {
            out.push(LARGE);
            LargeValue { root, len: reference.len, stamp: reference.stamp }.put(out);
        }
        Payload::Inline(value) => {
            out.push(INLINE);
            put_bytes(out, value);
        }
        Payload::Child(_) => debug_assert!(false, "leaves have no children"),
    }
}

/// Reads a payload; returns `None` if it is malformed.
pub(super) fn take_payload<'a>(note: &mut &'a [u8]) -> Option<Payload<'a>> {
    let (&form, rest) = note.split_first()?;
    *note = rest;
    match form {
        INLINE => Some(Payload::Inline(take_bytes(note)?)),
        LARGE => {
            let LargeValue { root, len, stamp } = LargeValue::take(note)?;
            let swip = Swip::evicted(root);
            Some(Payload::Overflow(Reference { swip, len, stamp }))
        }
        _ => None,
    }
}
