//! The copy of a page.

/// A copy of a page: the page's place, and the copy's length, checksum and slot.
#[derive(Clone, Copy, Default)]
pub(super) struct Copy {
    pub(super) offset: u64,
    pub(super) checksum: u64,
    pub(super) length: u32,
    pub(super) slot: u32,
}
