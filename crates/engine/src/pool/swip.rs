//! The swip: eight bytes in a parent page that refer to a child page (leanstore III-A, IV-B).
//!
//! ```text
//! hot       …pointer to the frame…  00
//! cooling   …pointer to the frame…  10     still in memory, in the cooling stage
//! evicted   …page id (63 bits)…      1
//! ```
//! Every page has exactly one swip. A store that translates by hash table keeps all of them in the
//! evicted form. On storage there is no other form.

use std::ptr::NonNull;

use millpond_base::PageId;

use crate::pool::frame::FrameHeader;

/// The word of a swip, as read from a page. Its meaning counts only after validation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Swip(pub u64);

const EVICTED: u64 = 1;
const COOLING: u64 = 2;

impl Swip {
    /// The word that refers to no page; zero-filled memory holds it.
    pub const NULL: Swip = Swip(0);

    /// Returns the swip of a page that is not, or need not be, in memory.
    #[inline(always)]
    pub fn evicted(page: PageId) -> Swip {
        debug_assert_eq!(page.0 >> 63, 0, "a page id has 63 bits");
        Swip((page.0 << 1) | EVICTED)
    }

    /// Returns the swip of a page in `frame`.
    #[inline(always)]
    pub fn hot(frame: NonNull<FrameHeader>) -> Swip {
        let word = Swip(frame.as_ptr().expose_provenance() as u64);
        debug_assert!(word.is_hot(), "a frame's address has no tag bits: {word:?}");
        word
    }

    /// Returns the swip of a page in `frame` that is in the cooling stage.
    #[inline(always)]
    pub fn cooling(frame: NonNull<FrameHeader>) -> Swip {
        Swip(Swip::hot(frame).0 | COOLING)
    }

    /// Returns whether the swip points to a frame, hot or cooling.
    #[inline(always)]
    pub fn is_swizzled(self) -> bool {
        self.0 & EVICTED == 0 && self != Swip::NULL
    }

    /// Returns whether the swip is hot; [`Swip::NULL`] is not.
    #[inline(always)]
    pub fn is_hot(self) -> bool {
        self.0 & (EVICTED | COOLING) == 0 && self != Swip::NULL
    }

    /// Returns whether the swip is cooling.
    #[inline(always)]
    pub fn is_cooling(self) -> bool {
        self.0 & (EVICTED | COOLING) == COOLING
    }

    /// Returns whether the swip holds a page id.
    #[inline(always)]
    pub fn is_evicted(self) -> bool {
        self.0 & EVICTED != 0
    }

    /// Returns the page id of an evicted swip; meaningless for others.
    #[inline(always)]
    pub fn page(self) -> PageId {
        PageId(self.0 >> 1)
    }

    /// Returns the frame's address of a swizzled swip, unless the bits are zero. The guards know
    /// when following it is sound.
    #[inline(always)]
    pub fn frame(self) -> Option<NonNull<FrameHeader>> {
        NonNull::new(std::ptr::with_exposed_provenance_mut((self.0 & !COOLING) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_distinguished() {
        let frame = FrameHeader::default();
        let at = NonNull::from(&frame);
        let (hot, cooling) = (Swip::hot(at), Swip::cooling(at));
        let evicted = Swip::evicted(PageId(5));
        assert!(hot.is_hot() && hot.is_swizzled() && !hot.is_cooling() && !hot.is_evicted());
        assert!(cooling.is_cooling() && cooling.is_swizzled() && !cooling.is_hot());
        assert!(evicted.is_evicted() && !evicted.is_swizzled() && !evicted.is_hot());
        assert_eq!(evicted.page(), PageId(5));
        assert_eq!(hot.frame(), cooling.frame());
        assert!(!Swip::NULL.is_hot() && !Swip::NULL.is_swizzled() && !Swip::NULL.is_evicted());
        assert_eq!(Swip::evicted(PageId(u64::MAX >> 1)).page(), PageId(u64::MAX >> 1));
    }
}
