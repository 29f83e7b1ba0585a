//! Layout of the file of a write-back tier; `write_back::format` shows it.

use crate::directory::{ENTRY_BYTES, Layout};

/// Alignment of headers, snapshots and batches of the journal, in bytes.
pub(super) const BLOCK: u64 = 4096;
/// Bytes of a journal: 16 for each slot, clamped to this range.
const JOURNAL: std::ops::RangeInclusive<u64> = 64 << 10..=64 << 20;

/// Offsets of the parts of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BackLayout {
    pub slots: Layout,
    pub journal_bytes: u64,
    /// The requested size.
    pub bytes: u64,
}

impl BackLayout {
    /// Returns the layout with the most slots that fit into `bytes`.
    pub fn within(bytes: u64, slot_bytes: u32, unit: u32) -> BackLayout {
        let journal_for = |slots: u64| {
            let bytes = (slots * 16).clamp(*JOURNAL.start(), *JOURNAL.end());
            bytes.next_multiple_of(BLOCK)
        };
        let each = u64::from(slot_bytes) + 2 * ENTRY_BYTES;
        let most = bytes / each;
        let room = bytes.saturating_sub(4 * BLOCK + journal_for(most));
        let slots = u32::try_from(room / each).unwrap_or(u32::MAX >> 1);
        let slots = Layout { slot_bytes, unit, slots };
        BackLayout { slots, journal_bytes: journal_for(most), bytes }
    }

    /// Returns the fewest bytes that have room for `slots` slots.
    pub fn least_bytes(slots: u64, slot_bytes: u32) -> u64 {
        4 * BLOCK + *JOURNAL.start() + slots * (u64::from(slot_bytes) + 2 * ENTRY_BYTES)
    }

    fn snapshot_bytes(&self) -> u64 {
        (u64::from(self.slots.slots) * ENTRY_BYTES).next_multiple_of(BLOCK)
    }

    pub fn snapshot(&self, which: u64) -> u64 {
        2 * BLOCK + which * self.snapshot_bytes()
    }

    pub fn journal(&self) -> u64 {
        self.snapshot(2)
    }

    pub fn slots_begin(&self) -> u64 {
        self.journal() + self.journal_bytes
    }

    pub fn slot_offset(&self, slot: u32) -> u64 {
        self.slots_begin() + u64::from(slot) * u64::from(self.slots.slot_bytes)
    }

    pub fn end(&self) -> u64 {
        self.slot_offset(self.slots.slots)
    }
}
