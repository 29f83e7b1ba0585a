//! The state of an entry that a writer finds before it changes the entry.

use std::sync::Arc;

use crate::io::SpillFile;
use crate::pool::PoolError;
use crate::txn::before_image::{BeforeImage, Found};
use crate::txn::trees::Look;
use crate::txn::versions::version::Image;

/// State of an entry before a change, found by its writer.
pub(super) enum Before {
    Absent,
    Value(Vec<u8>),
    Large(BeforeImage),
}

impl Before {
    /// Returns the state found by `look`, which is called again for the whole value if it cannot be
    /// spilled.
    pub(super) fn of(
        file: Option<&Arc<SpillFile>>,
        look: &mut Look<'_, '_>,
    ) -> Result<Before, PoolError> {
        let mut found = look(file.is_none())?;
        if let (Some(file), Some(Found::Large(len, source))) = (file, &mut found) {
            if let Some(before_image) = BeforeImage::spilled(file, *len, source) {
                return Ok(Before::Large(before_image));
            }
            found = look(true)?;
        }
        Ok(match found {
            Some(Found::Whole(value)) => Before::Value(value),
            _ => Before::Absent,
        })
    }

    /// Returns the before image to be put.
    pub(super) fn as_image(&self) -> Option<Image<'_>> {
        match self {
            Before::Absent => None,
            Before::Value(value) => Some(Image::Bytes(value)),
            Before::Large(image) => Some(Image::Apart(image)),
        }
    }
}
