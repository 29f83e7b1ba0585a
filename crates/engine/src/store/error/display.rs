//! Text of error messages.

use std::error::Error;

/// Returns the message, with those of the causes that it does not mention itself.
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

/// Returns a key for a message: its beginning, as far as it is text.
pub(super) fn shown(key: &[u8]) -> String {
    const SHOWN_MAX: usize = 64;
    let more = if key.len() > SHOWN_MAX { "…" } else { "" };
    format!(", key b\"{}\"{more}", key[..key.len().min(SHOWN_MAX)].escape_ascii())
}

/// Returns a hint if two recorded type names differ only behind their fronts, where neither is
/// shown because it was too long.
pub(super) fn only_fronts(found: &str, wanted: &str) -> &'static str {
    const CUT: &str = "…#";
    let (found, wanted) = (found.as_bytes(), wanted.as_bytes());
    let same = found.iter().zip(wanted).take_while(|(one, other)| one == other).count();
    let is_cut = |name: &[u8]| name.windows(CUT.len()).any(|part| part == CUT.as_bytes());
    let is_behind = |name: &[u8]| {
        let mut cuts = name.windows(CUT.len()).take(same + 1);
        let cut = cuts.rposition(|part| part == CUT.as_bytes());
        cut.is_some_and(|at| !name[at..same.max(at)].contains(&b'>'))
    };
    if is_cut(found) && is_cut(wanted) && (is_behind(found) || is_behind(wanted)) {
        " (only their fronts are shown, and they differ behind)"
    } else {
        ""
    }
}
