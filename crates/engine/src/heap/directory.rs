//! Directory pages: their layout, and the child that leads to a data page.
//!
//! ```text
//! offset size
//!      0   32  the common page header, type HEAP_DIRECTORY, level 1 above data pages
//!     32    2  children that were ever allocated, n: slots from there on are empty
//!     34   14  reserved, 0
//!     48    8  number of the first data page below
//!     56    8  reserved, 0
//!     64       one byte per child: a hint: free space below, in 255ths of a page
//!      …       swips, see `page::directory`; null where a data page was freed
//! ```

use crate::heap::data::NUMBER;
use crate::page::edit::{put_u16, put_u64};
use crate::page::{Directory, PageHeader, PageType, View};

pub(crate) const COUNT: usize = 32;
pub(crate) const LEVEL: usize = 29;
/// Maximum number of directory levels: ids have no bits for more.
const LEVELS_MAX: u8 = 12;

/// Returns the level of a directory, as its header states it.
#[inline(always)]
pub(crate) fn level_in(view: View<'_>) -> u8 {
    view.u8(LEVEL).clamp(1, LEVELS_MAX)
}

/// Returns the number of children that were ever allocated.
#[inline(always)]
pub(crate) fn count_in(form: Directory, view: View<'_>) -> usize {
    usize::from(view.u16(COUNT)).min(form.fan_out())
}

/// Returns the index of the child of a directory of level `level` that leads to data page `number`.
#[inline(always)]
pub(crate) fn index_in(form: Directory, level: u8, number: u64) -> usize {
    let shift = form.bits() * u32::from(level.saturating_sub(1));
    (number.checked_shr(shift).unwrap_or(0) as usize) & (form.fan_out() - 1)
}

/// Returns the number of data pages below a child of a directory of level `level`.
pub(crate) fn span(form: Directory, level: u8) -> u64 {
    1u64.checked_shl(form.bits() * u32::from(level.saturating_sub(1))).unwrap_or(u64::MAX)
}

/// Sets the number of children.
pub(crate) fn set_count(page: &mut [u8], count: usize) {
    put_u16(page, COUNT, count as u16);
}

/// Sets the level.
pub(crate) fn set_level(page: &mut [u8], level: u8) {
    if let Some(place) = page.get_mut(LEVEL) {
        *place = level;
    }
}

/// Initialises a directory without children in a page that is zero-filled behind its header.
pub(crate) fn init(page: &mut [u8], first: u64) {
    set_count(page, 0);
    put_u64(page, NUMBER, first);
}

/// Returns whether the page is a directory of level `level`.
#[inline(always)]
pub(crate) fn is_directory(view: View<'_>, level: u8) -> bool {
    PageHeader::type_in(view) == PageType::HEAP_DIRECTORY
        && view.u8(LEVEL) == level
        && (1..=LEVELS_MAX).contains(&level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{PAGES_MAX, PageBuffer, PageSize};

    #[test]
    fn a_directory_of_level_twelve_is_one_and_of_level_thirteen_is_none() {
        let mut page = PageBuffer::new(512);
        let kind = PageType::HEAP_DIRECTORY;
        let (lsn, page_id) = (millpond_base::Lsn(0), millpond_base::PageId(5));
        PageHeader { checksum: 0, lsn, page: page_id, owner: 1, kind, level: 0 }
            .write(page.bytes_mut());
        for level in 0..=u8::MAX {
            set_level(page.bytes_mut(), level);
            let is_one = (1..=LEVELS_MAX).contains(&level);
            assert_eq!(is_directory(page.view(), level), is_one, "{level}");
        }
    }

    #[test]
    fn twelve_levels_lead_to_more_pages_than_any_store_has() {
        for size in PageSize::ALL.into_iter().chain([PageSize::TINY]) {
            let form = Directory::of(size.bytes());
            let pages = span(form, LEVELS_MAX).saturating_mul(form.fan_out() as u64);
            assert!(pages > PAGES_MAX, "{size:?}: {pages}");
        }
    }
}
