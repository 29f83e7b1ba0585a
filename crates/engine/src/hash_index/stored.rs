//! Pages of an index as they are on storage, read one by one, without a pool: for checks of a store
//! and for salvage of a damaged one. The caller has found the pages sound by
//! [`check_page`](crate::hash_index::check_page).

use std::ops::RangeInclusive;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::hash_index::bucket::{Bucket, PREFIX, parts};
use crate::hash_index::directory::{DIRECTORY_FLAG, USED, prefix_of, run_of};
use crate::page::{Directory, PageHeader, PageType, View};
use crate::pool::Swip;

/// A child of a directory, as its parent describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredChild {
    /// Offset of the child's swip in the directory's page.
    pub at: usize,
    /// The child's swip; null if there is no bucket.
    pub swip: Swip,
    /// True for a directory, false for a bucket.
    pub is_directory: bool,
    /// Hashes of all keys below.
    pub hashes: RangeInclusive<u64>,
}

fn range_of(prefix: u64, bits: u32) -> RangeInclusive<u64> {
    let low = prefix_of(prefix, bits);
    low..=low | u64::MAX.checked_shr(bits).unwrap_or(0)
}

/// Returns the range of hashes of a directory or a bucket.
pub fn stored_hashes(page: View<'_>) -> RangeInclusive<u64> {
    let is_directory = PageHeader::type_in(page) == PageType::HASH_ROOT;
    let bits = if is_directory { u32::from(page.u8(USED)) } else { Bucket(page).bits() };
    range_of(page.u64(PREFIX), bits)
}

/// Returns the children of a directory, in the order of their hashes.
pub fn stored_children(page: View<'_>) -> Vec<StoredChild> {
    let form = Directory::of(page.len());
    let (used, prefix) = (u32::from(page.u8(USED)), page.u64(PREFIX));
    let shift = 64u32.saturating_sub(used + form.bits());
    let mut children = Vec::new();
    let mut i = 0;
    while i < form.fan_out() {
        let byte = page.u8(form.byte_at(i));
        let (depth, at) = (byte & !DIRECTORY_FLAG, form.swip_at(i));
        let path = prefix | (i as u64).checked_shl(shift).unwrap_or(0);
        children.push(StoredChild {
            at,
            swip: Swip(page.u64(at)),
            is_directory: byte & DIRECTORY_FLAG != 0,
            hashes: range_of(path, used + u32::from(depth)),
        });
        i += run_of(form, depth);
    }
    children
}

/// Returns the number of entries of a bucket.
pub fn stored_count(page: View<'_>) -> usize {
    Bucket(page).count()
}

/// Returns key and value of entry `i` of the bucket in `bytes`, of which `page` is a view.
pub fn stored_entry<'b>(page: View<'_>, bytes: &'b [u8], i: usize) -> (&'b [u8], &'b [u8]) {
    parts(bytes, Bucket(page).entry(i))
}

/// Returns the hash of a key in an index with the given seed, see
/// [`seed_in`](crate::hash_index::seed_in).
pub fn hash_of(key: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(key, seed)
}
