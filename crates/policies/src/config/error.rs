//! Why a parameter or a policy cannot be read.

/// A parameter that cannot be.
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
        /// The names there are.
        known: String,
    },
    /// The value is not of the parameter's type.
    #[error("parameter '{name}' cannot be '{value}': it takes {expected}")]
    Unreadable {
        /// The parameter.
        name: String,
        /// The value given.
        value: String,
        /// Description of the values that are accepted.
        expected: String,
    },
    /// The value is of the right type, and impossible.
    #[error("parameter '{name}' cannot be {value}: {reason}")]
    Impossible {
        /// The parameter.
        name: String,
        /// The value given.
        value: String,
        /// Why not.
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
