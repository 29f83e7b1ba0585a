//! Undo of a transaction's write to one entry: its form in the log and in undo buffers.
//!
//! ```text
//! owner of the tree, then
//!  1  absent before     key
//!  2  inline before     key, bytes of the value
//!  3  large before      key, page of the root, length, stamp
//!  4  part before       key, offset, bytes: a part of an inline value
//! ```
//! Undo is logical: the key's entry may be in another leaf when it is applied. The transaction's
//! lock on the key guarantees that no other thread changed the entry meanwhile.

use crate::btree::value::large::LargeValue;
use crate::page::varint::{put_bytes, put_varint, take_bytes, take_varint};

const ABSENT: u8 = 1;
const INLINE: u8 = 2;
const LARGE: u8 = 3;
const PART: u8 = 4;

/// The before-image of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before<'a> {
    /// There was no entry.
    Absent,
    /// An inline value.
    Value(&'a [u8]),
    /// A value in overflow pages, which is an orphan now.
    Large(LargeValue),
    /// An inline value of the same length, of which these bytes differed.
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
    /// The before-image of its entry.
    pub before: Before<'a>,
}

impl<'a> Undo<'a> {
    /// Appends it to `out`.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.owner));
        out.push(match self.before {
            Before::Absent => ABSENT,
            Before::Value(_) => INLINE,
            Before::Large(_) => LARGE,
            Before::Part { .. } => PART,
        });
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

    /// Reads what [`Undo::put`] wrote; `None` if it is malformed.
    pub fn read(mut bytes: &'a [u8]) -> Option<Undo<'a>> {
        let rest = &mut bytes;
        let owner = u32::try_from(take_varint(rest)?).ok()?;
        let (&op, behind) = rest.split_first()?;
        *rest = behind;
        let key = take_bytes(rest)?;
        let before = match op {
            ABSENT => Before::Absent,
            INLINE => Before::Value(take_bytes(rest)?),
            LARGE => Before::Large(LargeValue::take(rest)?),
            PART => {
                let offset = usize::try_from(take_varint(rest)?).ok()?;
                Before::Part { offset, bytes: take_bytes(rest)? }
            }
            _ => return None,
        };
        Some(Undo { owner, key, before })
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
            let undo = Undo { owner: 700, key: b"key", before };
            let mut bytes = Vec::new();
            undo.put(&mut bytes);
            assert_eq!(Undo::read(&bytes), Some(undo));
            for cut in 0..bytes.len() {
                assert_eq!(Undo::read(&bytes[..cut]), None, "{cut}");
            }
        }
    }
}
