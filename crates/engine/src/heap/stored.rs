//! Pages of a heap as they are on storage, read one by one, without a pool: for checks of a store
//! and for salvage of a damaged one. The caller has found the pages sound by
//! [`check_page`](crate::heap::check_page).

use std::ops::RangeInclusive;

use crate::heap::data::{Data, Form, NUMBER, bytes_of};
use crate::heap::directory::{count_in, level_in, span};
use crate::heap::table::RecordId;
use crate::page::{Directory, View};
use crate::pool::Swip;

/// A child of a directory, as its parent describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredChild {
    /// Offset of the child's swip in the directory's page.
    pub at: usize,
    /// The child's swip; null if there is no page.
    pub swip: Swip,
    /// True for a directory, false for a data page.
    pub is_directory: bool,
    /// Numbers of the data pages below.
    pub numbers: RangeInclusive<u64>,
}

/// Returns the numbers of the data pages below a directory, or the number of a data page.
pub fn stored_numbers(page: View<'_>) -> RangeInclusive<u64> {
    let first = page.u64(NUMBER);
    if Data(page).is_data() {
        return first..=first;
    }
    let form = Directory::of(page.len());
    let all = span(form, level_in(page)).saturating_mul(form.fan_out() as u64);
    first..=first.saturating_add(all - 1)
}

/// Returns the children of a directory in the order of their numbers, including those that were
/// never allocated.
pub fn stored_children(page: View<'_>) -> Vec<StoredChild> {
    let form = Directory::of(page.len());
    let (first, level, count) = (page.u64(NUMBER), level_in(page), count_in(form, page));
    let each = span(form, level);
    let child = |i: usize| {
        let at = form.swip_at(i);
        let from = first.saturating_add(each.saturating_mul(i as u64));
        StoredChild {
            at,
            swip: if i < count { Swip(page.u64(at)) } else { Swip::NULL },
            is_directory: level > 1,
            numbers: from..=from.saturating_add(each - 1),
        }
    };
    (0..form.fan_out()).map(child).collect()
}

/// Iterates over the records of the data page in `bytes`, of which `page` is a view, with their
/// ids. Records that moved here from other pages are included; those that moved away are not.
pub fn stored_records<'b>(
    page: View<'b>,
    bytes: &'b [u8],
) -> impl Iterator<Item = (RecordId, &'b [u8])> {
    let data = Data(page);
    (0..data.slots()).filter_map(move |slot| {
        let item = data.item(slot)?;
        let id = match item.form {
            Form::Record => RecordId::new(data.number(), slot),
            Form::Guest => RecordId(data.id(item)),
            Form::Forward | Form::Removed => return None,
        };
        Some((id, bytes_of(bytes, item)))
    })
}
