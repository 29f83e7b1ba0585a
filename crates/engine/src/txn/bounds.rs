//! The bounds of a range of keys.

use std::ops::Bound;

/// Lower and upper bound of a range of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds<'k> {
    /// Bound at the smallest key.
    pub lower: Bound<&'k [u8]>,
    /// Bound at the largest key.
    pub upper: Bound<&'k [u8]>,
}

impl Bounds<'_> {
    /// All keys.
    pub const ALL: Bounds<'static> = Bounds { lower: Bound::Unbounded, upper: Bound::Unbounded };
}
