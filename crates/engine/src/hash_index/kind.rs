//! What the pool is told of the index's page types: where their swips are.

use crate::hash_index::bucket::PREFIX;
use crate::hash_index::descend::{DIRECTORY_FLAG, USED, run_of};
use crate::page::{Directory, PageType, View};
use crate::pool::{Kind, Swip};

/// Directory pages; buckets hold no swips.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectoryKind;

/// Page types that hold swips, and their kinds: to be registered with a pool before use.
pub const KINDS: [(PageType, &dyn Kind); 1] = [(PageType::HASH_ROOT, &DirectoryKind)];

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

    /// Buckets hold no swips.
    fn leads_on(&self, page: View<'_>, at: usize) -> bool {
        let form = Directory::of(page.len());
        let i = at.saturating_sub(form.swip_at(0)) / 8;
        page.u8(form.byte_at(i.min(form.fan_out() - 1))) & DIRECTORY_FLAG != 0
    }

    /// Every page of an index says which hashes it holds, and so where its swip is.
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
