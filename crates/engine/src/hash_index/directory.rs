//! Directory pages: their layout, and the slot of a hash.
//!
//! ```text
//! offset size
//!      0   32  the common page header, type HASH_ROOT, level = 15 − directories above
//!     32    1  hash bits used by the directories above
//!     33    7  reserved, 0
//!     40    8  seed of the hash function
//!     48    8  the leading hash bits that all keys below share, in their place
//!     56    8  reserved, 0
//!     64       one byte per slot: bits 0–5 local depth, bit 7: a directory, not a bucket
//!      …       swips, see `page::directory`
//! ```

use crate::hash_index::bucket::PREFIX;
use crate::page::edit::{put_u16, put_u64};
use crate::page::{Directory, View};

/// Offset of the number of hash bits that the directories above use.
pub(crate) const USED: usize = 32;
/// Offset of the seed.
pub(crate) const SEED: usize = 40;
/// Set in a slot's byte if its child is a directory.
pub(crate) const DIRECTORY_FLAG: u8 = 0x80;

/// Returns the number of slots that share a child of local depth `depth`.
#[inline(always)]
pub(crate) fn run_of(form: Directory, depth: u8) -> usize {
    1 << form.bits().saturating_sub(u32::from(depth))
}

/// The slot of a hash in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The canonical slot: the first of those that share the child.
    pub(crate) index: usize,
    /// Local depth: the number of this directory's bits that all keys below share.
    pub(crate) depth: u8,
    /// Offset of the slot's swip.
    pub(crate) at: usize,
    /// True if the child is a directory.
    pub(crate) is_directory: bool,
    /// Number of hash bits used above this directory.
    pub(crate) used: u32,
}

impl Slot {
    /// Returns the number of leading hash bits that all keys of the child share.
    pub(crate) fn bits(self) -> u32 {
        self.used + u32::from(self.depth)
    }
}

/// Returns the leading `bits` bits of a hash, in their place.
pub(crate) fn prefix_of(hash: u64, bits: u32) -> u64 {
    if bits == 0 { 0 } else { hash & (u64::MAX << (64 - bits.min(64))) }
}

/// Returns the first hash above `hash` that does not begin with its leading `bits` bits.
pub(crate) fn next_of(hash: u64, bits: u32) -> Option<u64> {
    if bits == 0 { None } else { prefix_of(hash, bits).checked_add(1 << (64 - bits.min(64))) }
}

/// Returns the slot of `hash` in the directory `view`, above which `used` bits are used.
#[inline(always)]
pub(crate) fn slot_in(form: Directory, view: View<'_>, hash: u64, used: u32) -> Slot {
    let i = ((hash << used) >> (64 - form.bits())) as usize;
    let byte = view.u8(form.byte_at(i));
    // A depth above the number of bits is damage; it must not make a scan proceed in tiny steps.
    let depth = (byte & !DIRECTORY_FLAG).min(form.bits() as u8);
    let index = i & !(run_of(form, depth) - 1);
    let at = form.swip_at(index);
    debug_assert!(index <= i);
    debug_assert!(index < form.fan_out());
    Slot { index, depth, at, is_directory: byte & DIRECTORY_FLAG != 0, used }
}

/// Initialises a directory without children in a page that is zero-filled behind its header.
pub(crate) fn init(page: &mut [u8], used: u32, prefix: u64, seed: u64) {
    debug_assert!(used < 64);
    debug_assert_eq!(prefix_of(prefix, used), prefix, "no bit below those used above is set");
    put_u16(page, USED, used as u16);
    put_u64(page, SEED, seed);
    put_u64(page, PREFIX, prefix);
}
