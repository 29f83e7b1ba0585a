//! Errors that hold other errors.
//!
//! The message of an error is complete: the failure, its place, the reason, and the remedy. So an
//! error whose message contains another error's message does not also name that error as its
//! source: a printed chain would contain it twice. A caller that needs the other error finds it in
//! the variant.

/// Implements `From` for errors that become a variant of another error, whose message repeats
/// theirs; see the [module](crate::errors).
///
/// ```
/// # use std::num::ParseIntError;
/// #[derive(Debug)]
/// enum Unreadable {
///     Number(ParseIntError),
/// }
///
/// millpond_base::from_variants! { Unreadable {
///     Number(ParseIntError),
/// } }
///
/// fn number(text: &str) -> Result<u64, Unreadable> {
///     Ok(text.parse()?)
/// }
/// assert!(matches!(number("ten"), Err(Unreadable::Number(_))));
/// ```
#[macro_export]
macro_rules! from_variants {
    ($of:ident { $($variant:ident($what:ty),)* }) => {
        $(
            impl From<$what> for $of {
                fn from(error: $what) -> $of {
                    $of::$variant(error)
                }
            }
        )*
    };
}
