//! The mark that a reference carries beside its page: operation, reason, page kind, depth, scan.

use std::fmt;
use std::str::FromStr;

/// The effect of a reference on its page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AccessKind {
    /// The page is read.
    #[default]
    Read,
    /// The page is changed in place: its frame becomes dirty.
    Write,
}

/// Reason for a page write to storage, which a first tier passes on to the second (li 2.2, 3.2).
///
/// First-tier traces carry [`Reason::None`] everywhere. [`Reason::Dsync`] marks the records that
/// ask for earlier deferred writes to be made durable (li 4.3); they are no page references.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Reason {
    /// A plain reference, or a read.
    #[default]
    None,
    /// A worker wrote the page itself, because it needed the frame now. Not durability.
    Synch,
    /// A page cleaner wrote it, to make room soon.
    Replace,
    /// A page cleaner wrote it, to bound recovery time (the LSN gap).
    Recov,
    /// A request to make earlier writes durable; not a page reference.
    Dsync,
}

impl Reason {
    /// Returns the reason's name in traces and tables.
    pub fn name(self) -> &'static str {
        match self {
            Reason::None => "none",
            Reason::Synch => "synch",
            Reason::Replace => "replace",
            Reason::Recov => "recov",
            Reason::Dsync => "dsync",
        }
    }
}

impl FromStr for Reason {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [Reason::None, Reason::Synch, Reason::Replace, Reason::Recov, Reason::Dsync];
        all.into_iter().find(|r| r.name().eq_ignore_ascii_case(text)).ok_or(())
    }
}

/// Kind of a page's content, as far as a trace or a pool knows it. DGCLOCK weighs pages by it.
///
/// `0` is unknown. The engine and the generators use the constants below; traces may carry
/// other values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PageKind(pub u8);

impl PageKind {
    /// Nothing is known of the page.
    pub const UNKNOWN: PageKind = PageKind(0);
    /// A page that is not part of a B-tree (metadata, heap, free space).
    pub const OTHER: PageKind = PageKind(1);
    /// An inner node of a B-tree; its depth tells the level (the root has depth 0).
    pub const BTREE_INNER: PageKind = PageKind(2);
    /// A leaf of a B-tree.
    pub const BTREE_LEAF: PageKind = PageKind(3);

    /// Returns `true` if the page belongs to a B-tree, so that its depth below the root is
    /// meaningful.
    pub fn is_btree(self) -> bool {
        self == PageKind::BTREE_INNER || self == PageKind::BTREE_LEAF
    }
}

/// Everything that a reference carries beside its page, in four bytes.
///
/// `Mark::default()` is a plain read of a page of which nothing is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Mark(u32);

const WRITE: u32 = 1;
const SCAN: u32 = 1 << 1;
const REASON_SHIFT: u32 = 2;
const KIND_SHIFT: u32 = 8;
const DEPTH_SHIFT: u32 = 16;

impl Mark {
    /// A plain read.
    pub const READ: Mark = Mark(0);
    /// A plain write.
    pub const WRITE: Mark = Mark(WRITE);

    /// Returns the mark of a plain reference that does `op`.
    #[inline]
    pub fn of(op: AccessKind) -> Mark {
        Mark(op as u32)
    }

    /// Returns the mark as 24 bits, to be packed.
    #[inline]
    pub fn to_bits(self) -> u32 {
        self.0
    }

    /// Returns the mark that [`Mark::to_bits`] packed; other bits are dropped.
    #[inline]
    pub fn from_bits(bits: u32) -> Mark {
        Mark(bits & ((1 << 24) - 1))
    }

    /// Returns this mark with a write reason.
    pub fn with_reason(self, reason: Reason) -> Mark {
        Mark((self.0 & !(7 << REASON_SHIFT)) | ((reason as u32) << REASON_SHIFT))
    }

    /// Returns this mark with a page kind and a depth below the root (the root is 0).
    pub fn with_kind(self, kind: PageKind, depth: u8) -> Mark {
        let low = self.0 & 0xff;
        Mark(low | (kind.0 as u32) << KIND_SHIFT | (depth as u32) << DEPTH_SHIFT)
    }

    /// Returns this mark as part of a marked scan, or not (pollution counts the pages of scans).
    pub fn with_scan(self, scan: bool) -> Mark {
        Mark((self.0 & !SCAN) | if scan { SCAN } else { 0 })
    }

    /// Returns the reference's operation.
    #[inline(always)]
    pub fn op(self) -> AccessKind {
        if self.0 & WRITE != 0 { AccessKind::Write } else { AccessKind::Read }
    }

    /// Returns `true` if the reference writes.
    #[inline(always)]
    pub fn is_write(self) -> bool {
        self.0 & WRITE != 0
    }

    /// Returns `true` if the reference belongs to a marked scan.
    #[inline(always)]
    pub fn is_scan(self) -> bool {
        self.0 & SCAN != 0
    }

    /// Returns the reason for which the page was written.
    #[inline(always)]
    pub fn reason(self) -> Reason {
        match (self.0 >> REASON_SHIFT) & 7 {
            1 => Reason::Synch,
            2 => Reason::Replace,
            3 => Reason::Recov,
            4 => Reason::Dsync,
            _ => Reason::None,
        }
    }

    /// Returns `true` for a request for durability, which is no page reference.
    #[inline(always)]
    pub fn is_dsync(self) -> bool {
        self.0 & (7 << REASON_SHIFT) == (Reason::Dsync as u32) << REASON_SHIFT
    }

    /// Returns the kind of the page.
    #[inline(always)]
    pub fn kind(self) -> PageKind {
        PageKind((self.0 >> KIND_SHIFT) as u8)
    }

    /// Returns the depth below the root of the page's tree; 0 for the root and if unknown.
    #[inline(always)]
    pub fn depth(self) -> u8 {
        (self.0 >> DEPTH_SHIFT) as u8
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scan = if self.is_scan() { " scan" } else { "" };
        let (kind, depth) = (self.kind().0, self.depth());
        write!(f, "{:?} {}{scan} kind {kind} depth {depth}", self.op(), self.reason().name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_gives_back_what_was_put_in() {
        for op in [AccessKind::Read, AccessKind::Write] {
            for reason in
                [Reason::None, Reason::Synch, Reason::Replace, Reason::Recov, Reason::Dsync]
            {
                let m = Mark::of(op)
                    .with_reason(reason)
                    .with_kind(PageKind(200), 17)
                    .with_scan(op == AccessKind::Write);
                assert_eq!(m.op(), op);
                assert_eq!(m.reason(), reason);
                assert_eq!(m.is_dsync(), reason == Reason::Dsync);
                assert_eq!(m.kind(), PageKind(200));
                assert_eq!(m.depth(), 17);
                assert_eq!(m.is_scan(), op == AccessKind::Write);
                assert_eq!(m.with_kind(PageKind::UNKNOWN, 0).reason(), reason);
            }
        }
    }

    #[test]
    fn reasons_are_read_back_by_name() {
        assert_eq!("RECOV".parse(), Ok(Reason::Recov));
        assert_eq!("later".parse::<Reason>(), Err(()));
    }
}
