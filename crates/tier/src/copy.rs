//! The copy of a page.

/// A copy: where its page lies, and what it is.
#[derive(Clone, Copy, Default)]
pub(super) struct Copy {
    pub(super) offset: u64,
    pub(super) checksum: u64,
    pub(super) length: u32,
    pub(super) slot: u32,
}
