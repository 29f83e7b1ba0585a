//! The text of errors.

use std::error::Error;

/// The message, and those of the causes that it does not mention itself.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Returns a count with its noun: "1 handle", "2 handles".
pub(super) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A key in a message: its front, as far as it is text.
pub(super) fn shown(key: &[u8]) -> String {
    const SHOWN_MAX: usize = 64;
    let more = if key.len() > SHOWN_MAX { "…" } else { "" };
    format!(", key b\"{}\"{more}", key[..key.len().min(SHOWN_MAX)].escape_ascii())
}
