//! Errors that hold other errors.
//!
//! The message of an error says all of it: what failed, where, why, and what to do. So an error
//! that says in its message what another one said does not name it as its source as well: who
//! prints the whole chain would print it twice. Whoever needs the other error finds it in the
//! variant.

/// `From` for errors that become a variant of another one, whose message repeats them; see the
/// [module](crate::errors).
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
