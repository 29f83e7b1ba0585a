//! The keys of one tree that one owner has locked in `X` (rule 5); a request for a range looks
//! through them.

use super::range::Range;

/// A list of keys.
#[derive(Default)]
pub(super) struct Writes {
    bytes: Vec<u8>,
    /// End of each key in `bytes`.
    ends: Vec<usize>,
}

impl Writes {
    pub fn push(&mut self, key: &[u8]) {
        debug_assert_eq!(
            self.bytes.len(),
            self.ends.last().copied().unwrap_or(0),
            "the last key ends where the bytes do"
        );
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Removes the last key.
    pub fn pop(&mut self) {
        debug_assert!(!self.ends.is_empty(), "a write that is withdrawn was recorded");
        self.ends.pop();
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        // Releases memory that one large transaction needed, and the small ones that follow do not.
        if self.ends.capacity() > 1 << 12 || self.bytes.capacity() > 1 << 16 {
            self.bytes.shrink_to(1 << 16);
            self.ends.shrink_to(1 << 12);
        }
    }

    /// Returns whether one of the first `count` keys is in `range`.
    pub fn any_in(&self, range: &Range, count: usize) -> bool {
        let mut start = 0;
        self.ends.iter().take(count).any(|end| {
            let key = self.bytes.get(start..*end).unwrap_or(&[]);
            start = *end;
            range.has(key)
        })
    }

    /// Returns the key at index `at`.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.bytes.get(start.unwrap_or(0)..end)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }
}
