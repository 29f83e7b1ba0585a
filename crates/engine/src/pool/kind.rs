//! What the pool must know of a page type: where its swips are (leanstore IV-E).
//!
//! The pool never knows a node layout. Each structure registers one [`Kind`] per page type that
//! holds swips; page types without one have no children. That is all a structure has to give, and
//! it may live in any crate.

use crate::page::View;

/// The swips of one page type.
pub trait Kind: Send + Sync {
    /// Calls `visit` with the byte offset of each swip in `page`, until it answers `false`. Every
    /// offset is a multiple of 8 and lies inside the page. The page is latched, or a private copy.
    fn swips(&self, page: View<'_>, visit: &mut dyn FnMut(usize) -> bool);

    /// Whether the page that the swip at `at` refers to may hold swips itself; `true` if that is
    /// not known. As for [`Kind::swips`].
    fn leads_on(&self, _page: View<'_>, _at: usize) -> bool {
        true
    }

    /// The offset of the swip that holds `word`, which refers to the page `child`. Structures
    /// that can search give a better one.
    fn find(&self, page: View<'_>, word: u64, _child: View<'_>) -> Option<usize> {
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

/// Pages without swips.
pub struct NoSwips;

impl Kind for NoSwips {
    fn swips(&self, _: View<'_>, _: &mut dyn FnMut(usize) -> bool) {}
}

/// Byte offset of the one swip of an anchor's page.
pub const ANCHOR_SWIP: usize = crate::page::PAGE_HEADER;

/// The page of an anchor: one swip, that of a structure's root.
pub struct AnchorKind;

impl Kind for AnchorKind {
    fn swips(&self, _: View<'_>, visit: &mut dyn FnMut(usize) -> bool) {
        visit(ANCHOR_SWIP);
    }
}
