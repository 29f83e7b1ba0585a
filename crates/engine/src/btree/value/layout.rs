//! The layout of overflow pages, and the arithmetic of their tree.
//!
//! ```text
//! offset size
//!      0   32  the common page header; its level is 0 for data
//!     32    8  stamp of the value
//!     40    4  level 0: bytes of the value in this page · above: swips in this page
//!     44    4  level 1: bytes of the front
//!     48    …  the bytes, or the swips
//!      …       level 1: the front, up to the page's end
//! ```
//! The pages of a value are a tree. The part of a value below a page of level 1 begins in that
//! page: its *front* is the remainder that does not fill data pages, if that fits behind the swips.
//! So a value of 10,000 bytes takes three pages of 4 KiB. Where the remainder does not fit, there
//! is no front, and the last data page is not full; all others are. So the place of a byte follows
//! from its offset and the front's length.

use crate::btree::node::layout::{KIND, LEVEL};
use crate::page::record_body::OrphanRoot;
use crate::page::{PageType, View};

pub(crate) const STAMP: usize = 32;
pub(crate) const USED: usize = 40;
pub(crate) const BODY: usize = 48;
/// Parts of the word at [`USED`]: the number of bytes or swips, and above it the length of the
/// front.
const USED_MASK: u64 = 0xffff_ffff;
const FRONT_SHIFT: u32 = 32;

/// Returns the maximum number of bytes of a value in a data page.
pub(crate) fn data_max(page_size: usize) -> usize {
    debug_assert!(page_size > BODY, "a page has a body");
    page_size - BODY
}

/// Returns the maximum number of swips in an index page.
pub(crate) fn fan_out(page_size: usize) -> usize {
    debug_assert!(page_size >= BODY + 16, "an index page has two children at least");
    (page_size - BODY) / 8
}

/// Returns the maximum number of bytes of a value below a page of `level`.
pub(crate) fn span(page_size: usize, level: u8) -> u64 {
    let fan = fan_out(page_size) as u64;
    (0..level).fold(data_max(page_size) as u64, |span, _| span.saturating_mul(fan))
}

/// Returns the level of the root of a value of `len` bytes.
pub(crate) fn level_for(page_size: usize, len: u64) -> u8 {
    (0..u8::MAX).find(|level| span(page_size, *level) >= len).unwrap_or(u8::MAX)
}

/// The part of a value that a page itself holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Held {
    /// Number of bytes of the value at level 0, of swips above.
    pub(crate) used: u64,
    /// Number of bytes of the front, at level 1.
    pub(crate) front: u64,
}

impl Held {
    /// Returns the word at [`USED`].
    pub(crate) fn word(self) -> u64 {
        debug_assert!(self.used <= USED_MASK && self.front <= USED_MASK);
        self.used | self.front << FRONT_SHIFT
    }
}

/// Returns the part that a page of `level` itself holds, if `len` bytes of a value are in and below
/// it.
pub(crate) fn held(page_size: usize, level: u8, len: u64) -> Held {
    let data = data_max(page_size) as u64;
    match level {
        0 => Held { used: len, front: 0 },
        1 => {
            // Each swip takes 8 bytes off the front, down to the last swip.
            let used = len.saturating_sub(data).div_ceil(data - 8).min(len.div_ceil(data));
            let front = len.saturating_sub(used * data);
            debug_assert!(front + 8 * used <= data, "the front fits behind the swips");
            Held { used, front }
        }
        level => Held { used: len.div_ceil(span(page_size, level - 1)), front: 0 },
    }
}

/// Returns the number of bytes of a value in and below child `i` of a page of `level`, if `len`
/// bytes are in and below that page.
pub(crate) fn len_below(page_size: usize, level: u8, len: u64, i: u64) -> u64 {
    let below = span(page_size, level.saturating_sub(1));
    let front = held(page_size, level, len).front;
    len.saturating_sub(front).saturating_sub(below.saturating_mul(i)).min(below)
}

/// Returns the part that the root of a value of `len` bytes itself holds.
pub(crate) fn held_in_root(page_size: usize, len: u64) -> Held {
    held(page_size, level_for(page_size, len), len)
}

/// Returns the number of pages of a value of `len` bytes.
pub(crate) fn pages_of(page_size: usize, len: u64) -> u64 {
    let level = level_for(page_size, len);
    if level == 0 {
        return 1;
    }
    let (full, rest) = (len / span(page_size, 1), len % span(page_size, 1));
    let data = full * fan_out(page_size) as u64 + held(page_size, 1, rest).used;
    data + (1..=level).map(|l| len.div_ceil(span(page_size, l))).sum::<u64>()
}

/// Place of a byte of a value, for a page above its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ByteLocation {
    /// In the front, at this offset.
    Front(usize),
    /// In or below a child: the child's index, and the offset with which to continue there.
    Child(usize, u64),
}

/// Returns the place of the byte at `offset` in a page of `level` with a front of `front` bytes.
/// Offsets are those in the value, except below a front.
pub(crate) fn locate(page_size: usize, level: u8, front: usize, offset: u64) -> ByteLocation {
    debug_assert!(level > 0, "data pages have no children");
    let inside = offset % span(page_size, level);
    match inside.checked_sub(front as u64) {
        None => ByteLocation::Front(inside as usize),
        Some(behind) => {
            let below = span(page_size, level.saturating_sub(1));
            ByteLocation::Child((behind / below) as usize, behind)
        }
    }
}

/// Returns the part of a value of `len` bytes that is written to one page at `offset`. The part
/// that begins there is the front of a page of level 1, or a data page. The result has that front's
/// length, and the part's. Parts are written in order.
pub(crate) fn part_at(page_size: usize, len: u64, offset: u64) -> Part {
    let data = data_max(page_size);
    if level_for(page_size, len) == 0 {
        return Part { front: 0, len: len as usize };
    }
    let inside = offset % span(page_size, 1);
    let below = (len - (offset - inside)).min(span(page_size, 1));
    let front = held(page_size, 1, below).front;
    let part = if inside < front { front - inside } else { (below - inside).min(data as u64) };
    Part { front: front as usize, len: part as usize }
}

/// A part of a value that is written to one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Number of bytes of the front of the level-1 page that the part is in or below.
    pub(crate) front: usize,
    /// Number of bytes of the part.
    pub(crate) len: usize,
}

/// Returns the orphan root of a value with the given stamp.
pub(crate) fn orphan_value(stamp: u64) -> OrphanRoot {
    OrphanRoot { kind: PageType::OVERFLOW.0, stamp }
}

/// Returns whether the page is an overflow page of the given level, of the value with the given
/// stamp.
pub(crate) fn is_page(view: View<'_>, level: u8, stamp: u64) -> bool {
    view.u8(KIND) == PageType::OVERFLOW.0 && view.u8(LEVEL) == level && view.u64(STAMP) == stamp
}

/// Returns the number of bytes or swips in the page, limited to the room of the page, whatever the
/// page states.
pub(crate) fn used(view: View<'_>) -> usize {
    let max = if view.u8(LEVEL) == 0 { data_max(view.len()) } else { fan_out(view.len()) };
    usize::try_from(view.u64(USED) & USED_MASK).unwrap_or(usize::MAX).min(max)
}

/// Returns the number of bytes of the page's front, limited to the room of the page, whatever the
/// page states.
pub(crate) fn front(view: View<'_>) -> usize {
    if view.u8(LEVEL) != 1 {
        return 0;
    }
    let front = usize::try_from(view.u64(USED) >> FRONT_SHIFT).unwrap_or(usize::MAX);
    front.min(data_max(view.len()))
}

/// Returns the part that the page itself holds, as far as it has room for it.
pub(crate) fn held_by(view: View<'_>) -> Held {
    Held { used: used(view) as u64, front: front(view) as u64 }
}

/// Writes a word into an exclusively latched page.
pub(crate) fn set_word(page: &mut [u8], at: usize, word: u64) {
    debug_assert!(at.is_multiple_of(8), "swips are aligned");
    if let Some(place) = page.get_mut(at..at + 8) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the places of a value's bytes, part by part, in a writer's order.
    fn walk(size: usize, len: u64) -> (u64, Vec<Held>) {
        let (mut offset, mut data, mut fronts) = (0, 0, Vec::new());
        while offset < len {
            let Part { front, len: part } = part_at(size, len, offset);
            assert!(part > 0 && part <= data_max(size), "{size} {len} {offset}");
            let location = locate(size, 1, front, offset);
            if level_for(size, len) == 0 {
                data += 1;
            } else if let ByteLocation::Front(at) = location {
                assert_eq!((at, part), (0, front), "a front is one part");
                fronts.push(Held { used: 0, front: front as u64 });
            } else if let ByteLocation::Child(i, below) = location {
                let span = data_max(size) as u64;
                assert_eq!(below % span, 0, "{size} {len} {offset}");
                if i == 0 && front == 0 {
                    fronts.push(Held::default());
                }
                let page = fronts.last_mut().unwrap();
                assert_eq!(page.used, i as u64);
                page.used += 1;
                data += 1;
            }
            offset += part as u64;
        }
        assert_eq!(offset, len);
        (data, fronts)
    }

    #[test]
    fn parts_fill_the_pages_that_are_counted() {
        for size in [512, 1024, 4096, 65536] {
            let (data, span) = (data_max(size) as u64, span(size, 1));
            let near = [1, data, 2 * data, 3 * data, span, span + data, 2 * span, 3 * span + 7];
            let near = near.into_iter().flat_map(|len| len.saturating_sub(20)..len + 20);
            let spread = (0..400).map(|i| 1 + i * i * i * size as u64 / 9000);
            for len in near.chain(spread).filter(|len| (1..8 << 20).contains(len)) {
                let (pages, fronts) = walk(size, len);
                let level = level_for(size, len);
                let above: u64 = (2..=level).map(|l| len.div_ceil(super::span(size, l))).sum();
                assert_eq!(
                    pages_of(size, len),
                    pages + fronts.len() as u64 + above,
                    "{size} {len}"
                );
                for (i, page) in fronts.iter().enumerate() {
                    let below = (len - i as u64 * span).min(span);
                    assert_eq!(*page, held(size, 1, below), "{size} {len} {i}");
                    let children = (0..page.used).map(|child| len_below(size, 1, below, child));
                    assert_eq!(children.sum::<u64>() + page.front, below, "{size} {len} {i}");
                }
            }
        }
    }

    #[test]
    fn a_value_takes_no_page_more_than_its_bytes_need() {
        for (len, pages) in [(4048, 1), (4049, 2), (8088, 2), (8089, 3), (10_000, 3), (12_128, 3)] {
            assert_eq!(pages_of(4096, len), pages, "{len}");
        }
        // Lengths at which swips take the room that the front would need.
        assert_eq!(pages_of(4096, 506 * 4048), 507);
        assert_eq!(held_in_root(4096, 506 * 4048), Held { used: 506, front: 0 });
    }
}
