//! The types of parameters, and the reading, checking and scaling of values.

use std::fmt;
use std::ops::RangeInclusive;

use millpond_base::Share;

use super::error::ParamError;

/// A type of a parameter.
pub trait Param: Sized + Clone + 'static {
    /// Parses a value.
    fn read(text: &str) -> Option<Self>;
    /// Writes the value so that `read` returns it.
    fn write(&self) -> String;
    /// Returns a description of the values accepted, for messages: "a whole number".
    fn takes() -> String;
    /// Returns the value for a sample with this share of the pages. It is the same, except for
    /// a type whose values may be numbers of frames.
    #[must_use]
    fn scaled(&self, share: f64) -> Self {
        let _ = share;
        self.clone()
    }
}

/// A number that can be an amount of frames or references (`counts …` in
/// [`config!`](crate::config!)), or a rate per reference (`per …`).
pub trait Amount: Param + PartialOrd {
    /// Multiplies the amount by `factor`.
    #[must_use]
    fn times(&self, factor: f64) -> Self;
}

impl Amount for u32 {
    fn times(&self, factor: f64) -> u32 {
        (f64::from(*self) * factor).round() as u32
    }
}

impl Amount for u64 {
    fn times(&self, factor: f64) -> u64 {
        (*self as f64 * factor).round() as u64
    }
}

impl Amount for f64 {
    fn times(&self, factor: f64) -> f64 {
        self * factor
    }
}

/// Returns the nearest value in `range`; used by [`config!`](crate::config!).
pub fn within<T: Param + PartialOrd>(value: T, range: &RangeInclusive<T>) -> T {
    if value < *range.start() {
        range.start().clone()
    } else if value > *range.end() {
        range.end().clone()
    } else {
        value
    }
}

macro_rules! param_by_from_str {
    ($($ty:ty, $takes:literal;)*) => {$(
        impl Param for $ty {
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn write(&self) -> String {
                self.to_string()
            }
            fn takes() -> String {
                $takes.to_string()
            }
        }
    )*};
}

param_by_from_str! {
    u8, "a whole number";
    u32, "a whole number";
    u64, "a whole number";
    bool, "true or false";
    Share, "a share: 10% or 0.1";
}

impl Param for f64 {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|v: &f64| v.is_finite())
    }
    fn write(&self) -> String {
        self.to_string()
    }
    fn takes() -> String {
        "a number".to_string()
    }
}

/// Fails with [`ParamError::Impossible`] unless `range` holds `value`; used by
/// [`config!`](crate::config!).
///
/// # Errors
/// [`ParamError::Impossible`], as described.
pub fn in_range<T: Param + PartialOrd + fmt::Debug>(
    name: &str,
    value: &T,
    range: &RangeInclusive<T>,
) -> Result<(), ParamError> {
    if range.contains(value) {
        return Ok(());
    }
    let (low, high) = (range.start().write(), range.end().write());
    Err(ParamError::Impossible {
        name: name.to_string(),
        value: value.write(),
        reason: format!("it must be between {low} and {high}"),
    })
}

/// Parses a value, or returns an error that states the accepted values; used by
/// [`config!`](crate::config!).
///
/// # Errors
/// [`ParamError::Unreadable`].
pub fn read_param<T: Param>(name: &str, value: &str) -> Result<T, ParamError> {
    T::read(value).ok_or_else(|| ParamError::Unreadable {
        name: name.to_string(),
        value: value.to_string(),
        expected: T::takes(),
    })
}
