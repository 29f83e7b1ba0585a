//! The layout of overflow pages, and the arithmetic of their tree.
//!
//! ```text
//! offset size
//!      0   32  the common page header; its level is 0 for data
//!     32    8  stamp of the value
//!     40    8  level 0: bytes of the value in this page · above: swips in this page
//!     48    …  the bytes, or the swips
//! ```
//! The pages of a value are a tree whose data pages are all full but the last; so a byte's page
//! follows from its offset.

use crate::btree::node::layout::{KIND, LEVEL};
use crate::page::record_body::OrphanRoot;
use crate::page::{PageType, View};

pub(crate) const STAMP: usize = 32;
pub(crate) const USED: usize = 40;
pub(crate) const BODY: usize = 48;

/// Bytes of a value in a data page.
pub(crate) fn data_max(page_size: usize) -> usize {
    debug_assert!(page_size > BODY, "a page has a body");
    page_size - BODY
}

/// Swips in an index page.
pub(crate) fn fan_out(page_size: usize) -> usize {
    debug_assert!(page_size >= BODY + 16, "an index page has two children at least");
    (page_size - BODY) / 8
}

/// Bytes of a value below a page of `level`.
pub(crate) fn span(page_size: usize, level: u8) -> u64 {
    let fan = fan_out(page_size) as u64;
    (0..level).fold(data_max(page_size) as u64, |span, _| span.saturating_mul(fan))
}

/// Level of the root of a value of `len` bytes.
pub(crate) fn level_for(page_size: usize, len: u64) -> u8 {
    (0..u8::MAX).find(|level| span(page_size, *level) >= len).unwrap_or(u8::MAX)
}

/// Bytes, or swips, that the root of a value of `len` bytes holds.
pub(crate) fn held_in_root(page_size: usize, len: u64) -> u64 {
    match level_for(page_size, len) {
        0 => len,
        level => len.div_ceil(span(page_size, level - 1)),
    }
}

/// Pages of a value of `len` bytes.
pub(crate) fn pages_of(page_size: usize, len: u64) -> u64 {
    (0..=level_for(page_size, len)).map(|l| len.div_ceil(span(page_size, l)).max(1)).sum()
}

/// Which child of a page of `level` holds the byte at `offset` of the value.
pub(crate) fn child_index(page_size: usize, level: u8, offset: u64) -> usize {
    debug_assert!(level > 0, "data pages have no children");
    let below = span(page_size, level.saturating_sub(1));
    let index = (offset / below) % fan_out(page_size) as u64;
    index as usize
}

/// The orphan root of a value with that stamp.
pub(crate) fn orphan_value(stamp: u64) -> OrphanRoot {
    OrphanRoot { kind: PageType::OVERFLOW.0, stamp }
}

/// Whether the page is an overflow page of this level, of the value with this stamp.
pub(crate) fn is_page(view: View<'_>, level: u8, stamp: u64) -> bool {
    view.u8(KIND) == PageType::OVERFLOW.0 && view.u8(LEVEL) == level && view.u64(STAMP) == stamp
}

/// Bytes, or swips, that the page holds: at most those it has room for, whatever it states.
pub(crate) fn used(view: View<'_>) -> usize {
    let max = if view.u8(LEVEL) == 0 { data_max(view.len()) } else { fan_out(view.len()) };
    usize::try_from(view.u64(USED)).unwrap_or(usize::MAX).min(max)
}

/// Writes a word into a page that is latched exclusively.
pub(crate) fn set_word(page: &mut [u8], at: usize, word: u64) {
    debug_assert!(at.is_multiple_of(8), "swips are aligned");
    if let Some(place) = page.get_mut(at..at + 8) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}
