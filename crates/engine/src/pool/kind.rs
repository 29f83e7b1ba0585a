//! The pool's view of a page type: its swips (leanstore IV-E).
//!
//! The pool never knows a node layout. Each structure registers one [`Kind`] per page type that
//! holds swips; page types without one have no children. That is all a structure has to provide,
//! and it may be in any crate.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::page::{PageHeader, PageType, View};
use crate::pool::error::PoolError;
use crate::pool::swip::Swip;

/// The swips of one page type.
pub trait Kind: Send + Sync {
    /// Calls `visit` with the byte offset of each swip in `page`, until it returns `false`. Every
    /// offset is a multiple of 8 and lies inside the page. The page is latched, or a private copy.
    fn swips(&self, page: View<'_>, visit: &mut dyn FnMut(usize) -> bool);

    /// Returns whether the page that the swip at `at` refers to may hold swips itself; `true` if
    /// that is not known. The page is latched, or a private copy.
    fn leads_on(&self, _page: View<'_>, _at: usize) -> bool {
        true
    }

    /// Returns the offset of the swip that holds `word`, which refers to the page `child`. A
    /// structure that can search its pages overrides this with a faster search.
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

    /// Returns the free part of the page, which is zeroed in the written copy where pages are
    /// compressed.
    ///
    /// The log does not record the zeroing, so redo finds other bytes there than the page in memory
    /// had. Physiological redo must not depend on these bytes, and a logged difference includes
    /// every byte that is no longer free. All other bytes are the same after redo, even those
    /// without a meaning.
    fn gap(&self, _page: View<'_>) -> Range<usize> {
        0..0
    }

    /// Checks that `child`, which was just read from storage, fits `page`, whose swip at `at`
    /// refers to it: type, level, structure and keys must match. Called once per load, before the
    /// child can be reached. Neither page changes during the call.
    ///
    /// # Errors
    /// A description of the mismatch.
    fn verify_child(&self, _page: View<'_>, _at: usize, _child: View<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Checks a page without a parent: it must cover all keys.
    ///
    /// # Errors
    /// A description of the mismatch.
    fn verify_root(&self, _page: View<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Checks a page without a parent whose anchor holds a stamp: the page must carry the same one.
    ///
    /// # Errors
    /// A description of the mismatch.
    fn verify_stamp(&self, _page: View<'_>, _stamp: u64) -> Result<(), String> {
        Err("pages of its type carry no stamp".to_string())
    }
}

/// Checks that `page` is of type `kind` and on level `level`, and belongs to the structure `owner`.
///
/// # Errors
/// A description of the mismatch.
pub(crate) fn verify_header(
    page: View<'_>,
    kind: PageType,
    level: u8,
    owner: u32,
) -> Result<(), String> {
    let (found, at, of) =
        (PageHeader::type_in(page), PageHeader::level_in(page), PageHeader::owner_in(page));
    if of != owner {
        return Err(format!("it belongs to structure {of}, not {owner}"));
    }
    if found != kind {
        return Err(format!("it is of type {}, not {}", found.0, kind.0));
    }
    if at != level {
        return Err(format!("it is on level {at}, not {level}"));
    }
    Ok(())
}

/// Pages without swips.
pub struct NoSwips;

impl Kind for NoSwips {
    fn swips(&self, _: View<'_>, _: &mut dyn FnMut(usize) -> bool) {}
}

/// Byte offset of the first swip of an anchor's page.
pub const ANCHOR_SWIP: usize = crate::page::PAGE_HEADER;

/// Byte offset of the root's stamp in an anchor's page. A stamp of 0 means that the root has none,
/// or that it is not known.
pub const ANCHOR_STAMP: usize = ANCHOR_SWIP + 8;

/// Owner in an anchor's page if the structure of the root is not known.
pub(crate) const OWNER_UNKNOWN: u32 = u32::MAX;

/// Bytes of an anchor: a swip and a stamp.
pub(crate) const ANCHOR_BYTES: usize = 16;

/// Level of a page that many anchors share.
pub(crate) const LEVEL_SHARED: u8 = 0;

/// The page of an anchor: the swip of a structure's root, its owner and its stamp. A shared page
/// holds many anchors, one behind the other.
pub struct AnchorKind;

impl Kind for AnchorKind {
    fn swips(&self, page: View<'_>, visit: &mut dyn FnMut(usize) -> bool) {
        if PageHeader::level_in(page) != LEVEL_SHARED {
            visit(ANCHOR_SWIP);
            return;
        }
        let mut at = ANCHOR_SWIP;
        while at + ANCHOR_BYTES <= page.len() {
            if Swip(page.u64(at)) != Swip::NULL && !visit(at) {
                return;
            }
            at += ANCHOR_BYTES;
        }
    }

    /// Checks that the root belongs to the structure of the anchor, if that is known.
    fn verify_child(&self, page: View<'_>, _: usize, child: View<'_>) -> Result<(), String> {
        match (PageHeader::owner_in(page), PageHeader::owner_in(child)) {
            (OWNER_UNKNOWN, _) => Ok(()),
            (owner, found) if owner == found => Ok(()),
            (owner, found) => Err(format!("it belongs to structure {found}, not {owner}")),
        }
    }
}

/// The kinds that structures registered with a pool.
pub(crate) struct Kinds {
    /// The kind of each page type; once set, it stays.
    by_type: Box<[OnceLock<&'static dyn Kind>; 256]>,
    /// The type of a page that was found to hold swips and has no kind; 0 if none was found.
    unregistered: AtomicU8,
}

impl Kinds {
    /// Returns a registry in which only anchors have a kind.
    pub(crate) fn new() -> Kinds {
        let by_type = Box::new([const { OnceLock::new() }; 256]);
        let kinds = Kinds { by_type, unregistered: AtomicU8::new(0) };
        kinds.register(PageType::ANCHOR, &AnchorKind);
        kinds
    }

    /// Sets the kind of pages of type `page_type`; the first one stays.
    pub(crate) fn register(&self, page_type: PageType, kind: &'static dyn Kind) {
        let _ = self.by_type[usize::from(page_type.0)].set(kind);
    }

    /// Returns the kind of `page`, or `None` if pages of its type have no swips.
    #[inline]
    pub(crate) fn of(&self, page: View<'_>) -> Option<&'static dyn Kind> {
        self.by_type[usize::from(PageHeader::type_in(page).0)].get().copied()
    }

    /// Returns whether the swips of `page`, which has some, can be found. After a result of
    /// `false`, [`Kinds::all_registered`] fails.
    pub(crate) fn finds_swips_of(&self, page: View<'_>) -> bool {
        let is_known = self.of(page).is_some();
        if !is_known {
            self.unregistered.store(PageHeader::type_in(page).0, Ordering::Relaxed);
        }
        is_known
    }

    /// Checks that every page found to hold swips has a registered kind. The pointers of a page
    /// without one would reach storage, so nothing is written once this fails.
    ///
    /// # Errors
    /// [`PoolError::Unregistered`].
    pub(crate) fn all_registered(&self) -> Result<(), PoolError> {
        match self.unregistered.load(Ordering::Relaxed) {
            0 => Ok(()),
            page_type => Err(PoolError::Unregistered { page_type }),
        }
    }
}
