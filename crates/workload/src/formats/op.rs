//! The words that traces use for reading and writing.

use millpond_base::AccessKind;

use super::number::shown;

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
        Err(format!("{} is no operation: expected R or W (or read, write, 0, 1)", shown(token)))
    }
}
