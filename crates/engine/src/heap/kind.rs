//! The kinds of the heap's page types, through which the pool finds swips and verifies loads.

use crate::heap::data::NUMBER;
use crate::heap::directory::{count_in, index_in, level_in, span};
use crate::page::{Directory, PageHeader, PageType, View};
use crate::pool::kind::verify_header;
use crate::pool::{Kind, Swip};

/// Directory pages; data pages hold no swips.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectoryKind;

/// Page types that hold swips, and their kinds: to be registered with a pool before use.
pub const KINDS: [(PageType, &dyn Kind); 1] = [(PageType::HEAP_DIRECTORY, &DirectoryKind)];

impl Kind for DirectoryKind {
    fn swips(&self, page: View<'_>, visit: &mut dyn FnMut(usize) -> bool) {
        let form = Directory::of(page.len());
        for at in (0..count_in(form, page)).map(|i| form.swip_at(i)) {
            if page.u64(at) != Swip::NULL.0 && !visit(at) {
                return;
            }
        }
    }

    /// Returns whether the children are directories: data pages hold no swips.
    fn leads_on(&self, page: View<'_>, _: usize) -> bool {
        level_in(page) > 1
    }

    /// Checks that the child is for the data pages that its place leads to. Directories before the
    /// last one are full.
    fn verify_child(&self, page: View<'_>, at: usize, child: View<'_>) -> Result<(), String> {
        let form = Directory::of(page.len());
        let i = at.saturating_sub(form.swip_at(0)) / 8;
        let level = level_in(page);
        let kind = if level > 1 { PageType::HEAP_DIRECTORY } else { PageType::HEAP_DATA };
        verify_header(child, kind, level - 1, PageHeader::owner_in(page))?;
        let expected = page.u64(NUMBER).wrapping_add(span(form, level).wrapping_mul(i as u64));
        let number = child.u64(NUMBER);
        if number != expected {
            return Err(format!("it is for page {number} of the heap on, not {expected}"));
        }
        let (count, full) = (count_in(form, child), form.fan_out());
        if level > 1 && i + 1 < count_in(form, page) && count != full {
            return Err(format!("it has {count} children, and its place demands {full}"));
        }
        Ok(())
    }

    fn verify_root(&self, page: View<'_>) -> Result<(), String> {
        match page.u64(NUMBER) {
            0 => Ok(()),
            number => Err(format!("it is for page {number} of the heap on, and not for all")),
        }
    }

    /// Finds the swip of a page by the page's number, which every page of a heap states.
    fn find(&self, page: View<'_>, word: u64, child: View<'_>) -> Option<usize> {
        let form = Directory::of(page.len());
        let i = index_in(form, level_in(page), child.u64(NUMBER));
        if i < count_in(form, page) && page.u64(form.swip_at(i)) == word {
            return Some(form.swip_at(i));
        }
        let mut found = None;
        self.swips(page, &mut |at| {
            if page.u64(at) == word {
                found = Some(at);
            }
            found.is_none()
        });
        found
    }
}
