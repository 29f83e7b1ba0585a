//! The kinds of the index's page types, through which the pool finds swips and verifies loads.

use crate::hash_index::bucket::{Bucket, PREFIX};
use crate::hash_index::directory::{DIRECTORY_FLAG, SEED, USED, run_of};
use crate::page::{Directory, PageHeader, PageType, View};
use crate::pool::kind::verify_header;
use crate::pool::{Kind, Swip};

/// Directory pages; buckets hold no swips.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectoryKind;

/// Page types that hold swips, and their kinds: to be registered with a pool before use.
pub const KINDS: [(PageType, &dyn Kind); 1] = [(PageType::HASH_ROOT, &DirectoryKind)];

/// Verifies the range of hashes of a page: the number of leading bits, and the bits.
fn verify_range(found: (u32, u64), expected: (u32, u64)) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let ((bits, prefix), (more, other)) = (found, expected);
    Err(format!(
        "it is for hashes that begin with {bits} bits of {prefix:#018x}, not {more} of \
         {other:#018x}"
    ))
}

impl Kind for DirectoryKind {
    fn swips(&self, page: View<'_>, visit: &mut dyn FnMut(usize) -> bool) {
        let form = Directory::of(page.len());
        let mut i = 0;
        while i < form.fan_out() {
            let at = form.swip_at(i);
            if page.u64(at) != Swip::NULL.0 && !visit(at) {
                return;
            }
            i += run_of(form, page.u8(form.byte_at(i)) & !DIRECTORY_FLAG);
        }
    }

    /// Returns whether the child is a directory: buckets hold no swips.
    fn leads_on(&self, page: View<'_>, at: usize) -> bool {
        let form = Directory::of(page.len());
        let i = at.saturating_sub(form.swip_at(0)) / 8;
        page.u8(form.byte_at(i.min(form.fan_out() - 1))) & DIRECTORY_FLAG != 0
    }

    /// Checks that the child is for the hashes that its slot leads to.
    fn verify_child(&self, page: View<'_>, at: usize, child: View<'_>) -> Result<(), String> {
        let form = Directory::of(page.len());
        let i = at.saturating_sub(form.swip_at(0)) / 8;
        let byte = page.u8(form.byte_at(i.min(form.fan_out() - 1)));
        let used = u32::from(page.u8(USED));
        let shift = 64u32.saturating_sub(used + form.bits()).min(63);
        let prefix = page.u64(PREFIX) | (i as u64) << shift;
        let (kind, level) = match byte & DIRECTORY_FLAG {
            0 => (PageType::HASH_BUCKET, 0),
            _ => (PageType::HASH_ROOT, PageHeader::level_in(page).saturating_sub(1)),
        };
        verify_header(child, kind, level, PageHeader::owner_in(page))?;
        let (found, bits) = if kind == PageType::HASH_BUCKET {
            (Bucket(child).bits(), used + u32::from(byte))
        } else if child.u64(SEED) != page.u64(SEED) {
            return Err("it has the seed of another hash function".to_string());
        } else {
            (u32::from(child.u8(USED)), used + form.bits())
        };
        verify_range((found, child.u64(PREFIX)), (bits, prefix))
    }

    fn verify_root(&self, page: View<'_>) -> Result<(), String> {
        verify_range((u32::from(page.u8(USED)), page.u64(PREFIX)), (0, 0))
    }

    /// Finds the swip of a page by the page's range of hashes, which every page of an index states.
    fn find(&self, page: View<'_>, word: u64, child: View<'_>) -> Option<usize> {
        let form = Directory::of(page.len());
        let used = u32::from(page.u8(USED)).min(63);
        let i = (child.u64(PREFIX) << used) >> (64 - form.bits());
        let at = form.swip_at(i as usize);
        if page.u64(at) == word {
            return Some(at);
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
