//! A closure of the user's that changes a value in place.

use crate::pool::borrowed::BorrowedPage;
use crate::store::error::Error;

/// Hands `f` to `update` as something that runs at most once; returns what `f` returned, if it
/// ran. The page counts as borrowed meanwhile: what needs it fails instead of waiting for itself.
pub(crate) fn update_once<R>(
    f: impl FnOnce(&mut [u8]) -> R,
    update: impl FnOnce(&mut dyn FnMut(&mut [u8])) -> Result<bool, Error>,
) -> Result<Option<R>, Error> {
    let (mut f, mut result) = (Some(f), None);
    update(&mut |value| {
        let _lent = BorrowedPage::begin();
        if let Some(f) = f.take() {
            result = Some(f(value));
        }
    })?;
    Ok(result)
}
