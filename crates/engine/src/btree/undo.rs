//! How a transaction's change of one entry is taken back.
//!
//! ```text
//! owner of the tree, then
//!  1  was not there     key
//!  2  was               key, bytes of the value
//!  3  was large         key, page of the root, length, stamp
//!  4  was otherwise     key, offset, bytes: a part of an inline value
//! ```
//! It is logical: the key's entry may be in another leaf by then. The transaction's lock on the
//! key makes sure that nobody else changed the entry meanwhile.

use crate::btree::note::LargeValue;
use crate::page::varint::{put_bytes, put_varint, take_bytes, take_varint};

const ABSENT: u8 = 1;
const WAS: u8 = 2;
const LARGE: u8 = 3;
const PART: u8 = 4;

/// What an entry was before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before<'a> {
    /// There was none.
    Absent,
    /// An inline value.
    Value(&'a [u8]),
    /// A value in pages of its own, which hang now.
    Large(LargeValue),
    /// An inline value of the same length, which held these bytes there.
    Part {
        /// Where in the value.
        offset: usize,
        /// What was there.
        bytes: &'a [u8],
    },
}

/// How a change is taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Undo<'a> {
    /// The tree.
    pub owner: u32,
    /// The key.
    pub key: &'a [u8],
    /// What its entry was.
    pub before: Before<'a>,
}

impl<'a> Undo<'a> {
    /// Appends it to `out`.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.owner));
        out.push(match self.before {
            Before::Absent => ABSENT,
            Before::Value(_) => WAS,
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

    /// Reads what [`Undo::put`] wrote; `None` if it makes no sense.
    pub fn read(mut bytes: &'a [u8]) -> Option<Undo<'a>> {
        let rest = &mut bytes;
        let owner = u32::try_from(take_varint(rest)?).ok()?;
        let (&op, behind) = rest.split_first()?;
        *rest = behind;
        let key = take_bytes(rest)?;
        let before = match op {
            ABSENT => Before::Absent,
            WAS => Before::Value(take_bytes(rest)?),
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
    fn an_undo_comes_back_as_it_was_and_anything_else_is_refused() {
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
