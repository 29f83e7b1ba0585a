//! The undo section of a log record's body.

use super::record_body::{UNDO, UNDO_SHARED};
use super::varint::{put_bytes, put_varint};

/// Minimum number of bytes at the end of an undo record that are worth sharing.
const SHARED_LEAST: usize = 6;

/// Appends the undo record of the change. `last` is the physiological record that was appended
/// last, if there is one. An insert's undo needs the key, which its redo has, too: the key is
/// logged once.
#[inline]
pub fn put_undo(out: &mut Vec<u8>, undo: &[u8], last: Option<&[u8]>) {
    let Some((head, at)) = last.and_then(|last| shared_end(undo, last)) else {
        out.push(UNDO);
        return put_bytes(out, undo);
    };
    out.push(UNDO_SHARED);
    put_bytes(out, undo.get(..head).unwrap_or(undo));
    put_varint(out, at as u64);
    put_varint(out, (undo.len() - head) as u64);
}

/// Returns the offset in `undo` of the part at its end that also occurs near the beginning of
/// `redo`, and its offset in `redo`. In both, only a few numbers precede a key.
#[inline]
fn shared_end(undo: &[u8], redo: &[u8]) -> Option<(usize, usize)> {
    const BEFORE_LEAST: usize = 2;
    const BEFORE_MOST: usize = 6;
    if redo.len() + BEFORE_MOST <= undo.len() + BEFORE_LEAST {
        // The redo record is too short, as that of an update mostly is.
        return None;
    }
    for head in BEFORE_LEAST..BEFORE_MOST.min(undo.len().saturating_sub(SHARED_LEAST)) {
        let end = undo.get(head..)?;
        let word = end.first_chunk::<4>()?;
        let at = (BEFORE_LEAST..BEFORE_MOST).find(|at| {
            let redo = redo.get(*at..).unwrap_or(&[]);
            redo.first_chunk() == Some(word) && redo.starts_with(end)
        });
        if let Some(at) = at {
            return Some((head, at));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use millpond_base::PageId;

    use super::*;
    use crate::page::record_body::{Section, put_physiological, sections};

    #[test]
    fn an_undo_that_ends_as_the_redo_before_begins_is_logged_once() {
        let mut random = fastrand::Rng::with_seed(8);
        let mut shared = 0;
        for _ in 0..2000 {
            let key: Vec<u8> = (0..random.usize(0..40)).map(|_| random.u8(..)).collect();
            let before = |random: &mut fastrand::Rng| -> Vec<u8> {
                (0..random.usize(1..6)).map(|_| random.u8(..)).collect()
            };
            let redo = [before(&mut random), key.clone(), vec![7; random.usize(0..9)]].concat();
            let undo = [before(&mut random), key].concat();
            let (mut body, mut plain) = (Vec::new(), Vec::new());
            put_physiological(&mut body, PageId(9), &redo);
            put_undo(&mut body, &undo, Some(&redo));
            put_physiological(&mut plain, PageId(9), &redo);
            put_undo(&mut plain, &undo, None);
            assert!(body.len() <= plain.len());
            shared += u32::from(body.len() < plain.len());
            for body in [&body, &plain] {
                match sections(body).last() {
                    Some(Ok(Section::Undo { head, tail })) => {
                        assert_eq!([head, tail].concat(), undo);
                    }
                    other => panic!("{other:?}"),
                }
            }
            for cut in 1..body.len() {
                let _ = sections(&body[..cut]).count();
            }
        }
        assert!(shared > 300, "{shared}");
    }
}
