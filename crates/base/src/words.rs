//! Switches as words: each is read from a command line as it is printed.

/// A word that a switch does not take.
///
/// ```
/// use millpond_base::words::ChoiceError;
/// let error = ChoiceError::new("direct_io", "perhaps", "one of auto off".to_string());
/// assert_eq!(error.to_string(), "direct_io cannot be 'perhaps': it takes one of auto off");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{switch} cannot be '{text}': it takes {takes}")]
pub struct ChoiceError {
    /// Name of the switch.
    pub switch: &'static str,
    /// The word given.
    pub text: String,
    /// The words that the switch takes.
    pub takes: String,
}

impl ChoiceError {
    /// Returns the error of `switch`, which `takes` other words than `text`.
    pub fn new(switch: &'static str, text: &str, takes: String) -> ChoiceError {
        ChoiceError { switch, text: text.to_string(), takes }
    }
}
