//! The undo of a transaction's write to one entry: its form in the log and in undo buffers.
//!
//! ```text
//! owner of the tree, then
//!  1  absent before     key
//!  2  inline before     key, bytes of the value
//!  3  large before      key, page of the root, length, stamp
//!  4  part before       key, offset, bytes: a part of an inline value
//! ```
//! 8 is added if the entry was removed, not replaced. So an undo record shows how many entries the
//! tree gained or lost.
//!
//! Undo is logical: the key's entry may be in another leaf when it is applied. The transaction's
//! lock on the key guarantees that no other thread has changed the entry in the meantime.

use crate::btree::value::large::LargeValue;
use crate::page::varint::{put_bytes, put_varint, take_bytes, take_varint};

const ABSENT: u8 = 1;
const INLINE: u8 = 2;
const LARGE: u8 = 3;
const PART: u8 = 4;
const REMOVES: u8 = 8;

/// The before-image of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before<'a> {
    /// There was no entry.
    Absent,
    /// An inline value.
    Value(&'a [u8]),
    /// A value in overflow pages, which is now an orphan.
    Large(LargeValue),
    /// An inline value of the same length that differed in these bytes.
    Part {
        /// Offset in the value.
        offset: usize,
        /// The bytes before.
        bytes: &'a [u8],
    },
}

/// The undo of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Undo<'a> {
    /// Owner id of the tree.
    pub owner: u32,
    /// The key.
    pub key: &'a [u8],
    /// The before-image of the key's entry.
    pub before: Before<'a>,
    /// True if the write removes an entry of a tree.
    pub removes: bool,
}

impl<'a> Undo<'a> {
    /// Appends the undo to `out`.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.owner));
        let op = match self.before {
            Before::Absent => ABSENT,
            Before::Value(_) => INLINE,
            Before::Large(_) => LARGE,
            Before::Part { .. } => PART,
        };
        out.push(op | if self.removes { REMOVES } else { 0 });
        put_bytes(out, self.key);
        match self.before {
            Before::Absent => {}
            Before::Value(value) => put_bytes(out, value),
            Before::Large(large) => large.put(out),
            Before::Part { offset, bytes } => {
                put_varint(out, offset as u64);
                put_bytes(out, bytes);
            }
        }
    }

    /// Reads an undo that [`Undo::put`] wrote; returns `None` if it is malformed.
    pub fn read(mut bytes: &'a [u8]) -> Option<Undo<'a>> {
        let rest = &mut bytes;
        let owner = u32::try_from(take_varint(rest)?).ok()?;
        let (&op, behind) = rest.split_first()?;
        *rest = behind;
        let key = take_bytes(rest)?;
        let removes = op & REMOVES != 0;
        let before = match op & !REMOVES {
            ABSENT => Before::Absent,
            INLINE => Before::Value(take_bytes(rest)?),
            LARGE => Before::Large(LargeValue::take(rest)?),
            PART => {
                let offset = usize::try_from(take_varint(rest)?).ok()?;
                Before::Part { offset, bytes: take_bytes(rest)? }
            }
            _ => return None,
        };
        Some(Undo { owner, key, before, removes })
    }

    /// Returns the number of entries that a tree gains by a change whose undo record consists of
    /// these two parts, and its owner id. Returns `None` if the record is malformed. For other
    /// structures the number has no meaning.
    pub(crate) fn rows_of(head: &[u8], tail: &[u8]) -> Option<(u32, i64)> {
        // Bytes before the key.
        const FRONT: usize = 6;
        let mut front = [0; FRONT];
        for (place, byte) in front.iter_mut().zip(head.iter().chain(tail)) {
            *place = *byte;
        }
        let rest = &mut &front[..];
        let owner = u32::try_from(take_varint(rest)?).ok()?;
        let rows = match *rest.first()? {
            ABSENT => 1,
            op if op & REMOVES != 0 => -1,
            _ => 0,
        };
        Some((owner, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_base::PageId;

    #[test]
    fn an_undo_is_read_as_it_was_written_and_a_cut_one_is_refused() {
        let large = LargeValue { root: PageId(1 << 40), len: 1 << 29, stamp: u64::MAX };
        for before in [
            Before::Absent,
            Before::Value(&[7; 300]),
            Before::Large(large),
            Before::Part { offset: 200, bytes: b"xyz" },
        ] {
            let removes = matches!(before, Before::Value(_) | Before::Large(_));
            let undo = Undo { owner: 700, key: b"key", before, removes };
            let mut bytes = Vec::new();
            undo.put(&mut bytes);
            assert_eq!(Undo::read(&bytes), Some(undo));
            let rows = match before {
                Before::Absent => 1,
                Before::Part { .. } => 0,
                _ => -1,
            };
            for at in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(at);
                assert_eq!(Undo::rows_of(head, tail), Some((700, rows)));
            }
            for cut in 0..bytes.len() {
                assert_eq!(Undo::read(&bytes[..cut]), None, "{cut}");
            }
        }
    }
}
