//! Switches as words: each is read from a command line as it is printed.

/// A word that is none of those there are.
///
/// ```
/// use millpond::DirectIo;
/// let error = "perhaps".parse::<DirectIo>().unwrap_err();
/// assert_eq!(error.text, "perhaps");
/// println!("{error}");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{switch} cannot be '{text}': it takes {takes}")]
pub struct ChoiceError {
    /// The switch to be set.
    pub switch: &'static str,
    /// The word given.
    pub text: String,
    /// The words there are.
    pub takes: String,
}

impl ChoiceError {
    pub(crate) fn new(switch: &'static str, text: &str, takes: String) -> ChoiceError {
        ChoiceError { switch, text: text.to_string(), takes }
    }
}

macro_rules! by_word {
    ($($ty:ident $switch:literal;)*) => {$(
        impl std::str::FromStr for $ty {
            type Err = $crate::words::ChoiceError;
            fn from_str(text: &str) -> Result<Self, $crate::words::ChoiceError> {
                let wrong = || $crate::words::ChoiceError::new($switch, text, Self::takes());
                Self::read(text).ok_or_else(wrong)
            }
        }

        impl std::fmt::Display for $ty {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.write())
            }
        }
    )*};
}
pub(crate) use by_word;
