//! Enums as words: each value is parsed from a command line in the form in which it is printed.

pub use millpond_base::words::ChoiceError;

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
