//! The words that traces use for reading and writing.

use std::str::FromStr;

use millpond_base::AccessKind;

use crate::trace::TraceError;

use super::number::shown;
use super::parameters::OPS;

/// The operation that `token` names.
///
/// Reads: R, read, get, load, 0, 28 (SCSI READ(10)). Writes: W, write, set, put, store, 1,
/// 2a (SCSI WRITE(10)). Case does not matter.
pub(crate) fn parse_op(token: &[u8]) -> Result<AccessKind, String> {
    let is = |words: &[&str]| words.iter().any(|w| token.eq_ignore_ascii_case(w.as_bytes()));
    if is(&["r", "read", "rd", "get", "load", "l", "0", "28", "0x28"]) {
        Ok(AccessKind::Read)
    } else if is(&["w", "write", "wr", "set", "put", "store", "s", "1", "2a", "0x2a"]) {
        Ok(AccessKind::Write)
    } else {
        Err(format!(
            "{} is no operation: expected R or W (or read, write, 0, 1); {OPS} maps other words, \
             as {}",
            shown(token),
            OPS.set_to("gets=R,cas=W,D=skip")
        ))
    }
}

/// Words of a trace for its operations, beside the usual ones: `gets=R,cas=W,D=skip`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ops {
    /// Each word with its operation; `None` skips the reference.
    words: Vec<(String, Option<AccessKind>)>,
}

impl Ops {
    /// Returns `true` if no word has a meaning of its own.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The operation that `token` names; `None` if its reference is to be skipped.
    pub(crate) fn find(&self, token: &[u8]) -> Result<Option<AccessKind>, String> {
        let own = self.words.iter().find(|(word, _)| token.eq_ignore_ascii_case(word.as_bytes()));
        own.map_or_else(|| parse_op(token).map(Some), |(_, op)| Ok(*op))
    }
}

impl FromStr for Ops {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Ops, TraceError> {
        let wrong = |what: String| TraceError::Options(format!("{}: {what}", OPS.set_to(text)));
        let mut words: Vec<(String, Option<AccessKind>)> = Vec::new();
        for part in text.split(',') {
            let Some((word, op)) = part.split_once('=') else {
                return Err(wrong(format!("'{part}' is not like gets=R or D=skip")));
            };
            let (word, op) = (word.trim(), op.trim());
            let op = match op.eq_ignore_ascii_case("skip") {
                true => None,
                false => Some(
                    parse_op(op.as_bytes())
                        .map_err(|_| wrong(format!("'{op}' is no operation: R, W or skip")))?,
                ),
            };
            if words.iter().any(|(known, _)| known.eq_ignore_ascii_case(word)) {
                return Err(wrong(format!("'{word}' is named twice")));
            }
            words.push((word.to_string(), op));
        }
        Ok(Ops { words })
    }
}

/// The note on references that [`OPS`] skipped.
pub(crate) fn note_skipped(skipped: u64, notes: &mut Vec<String>) {
    if skipped > 0 {
        notes.push(format!("{skipped} references were skipped, as {OPS} says"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_trace_are_mapped_or_skipped_or_explained() {
        let ops: Ops = "gets=R, CAS=w,D=skip".parse().unwrap();
        assert_eq!(ops.find(b"GETS"), Ok(Some(AccessKind::Read)));
        assert_eq!(ops.find(b"cas"), Ok(Some(AccessKind::Write)));
        assert_eq!(ops.find(b"d"), Ok(None));
        assert_eq!(ops.find(b"put"), Ok(Some(AccessKind::Write)));
        assert!(ops.find(b"incr").unwrap_err().contains("ops=gets=R"));
        for (text, says) in [("gets", "not like"), ("a=b", "R, W or skip"), ("a=R,A=W", "twice")] {
            let error = text.parse::<Ops>().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
