//! Errors of reading a parameter or a policy.

/// Reason that a parameter is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// No parameter has that name.
    #[error("'{policy}' has no parameter '{name}'{hint}; it has: {known}")]
    Unknown {
        /// The policy.
        policy: String,
        /// The name given.
        name: String,
        /// "; did you mean …", or nothing.
        hint: String,
        /// The known names.
        known: String,
    },
    /// The value is not of the parameter's type.
    #[error("parameter '{name}' cannot be '{value}': it takes {expected}")]
    Unreadable {
        /// The parameter.
        name: String,
        /// The value given.
        value: String,
        /// Description of the accepted values.
        expected: String,
    },
    /// The value has the right type, but is impossible.
    #[error("parameter '{name}' cannot be {value}: {reason}")]
    Impossible {
        /// The parameter.
        name: String,
        /// The value given.
        value: String,
        /// Reason that the value is impossible.
        reason: String,
    },
    /// A policy was not written as `id` or `id(name=value,…)`.
    #[error("cannot read policy '{text}': {reason}")]
    Syntax {
        /// The text given.
        text: String,
        /// The fault in the text.
        reason: String,
    },
}
