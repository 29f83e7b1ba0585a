//! Sections of a log record's body about the number of entries of a tree.

use super::record_body::{ROWS, ROWS_BEGIN};
use super::varint::{put_signed, put_varint};

/// Appends that `change` entries were added to the tree `owner`; a negative number were removed.
pub fn put_rows(out: &mut Vec<u8>, owner: u32, change: i64) {
    out.push(ROWS);
    put_varint(out, u64::from(owner));
    put_signed(out, change);
}

/// Appends that the tree `owner` is new, and has no entries.
pub fn put_rows_begin(out: &mut Vec<u8>, owner: u32) {
    out.push(ROWS_BEGIN);
    put_varint(out, u64::from(owner));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::record_body::{Section, sections};

    #[test]
    fn a_change_comes_back_as_it_was_written_and_a_cut_one_is_refused() {
        for change in [1, -1, 63, -64, 64, 1 << 40, i64::MAX, i64::MIN] {
            let mut body = Vec::new();
            put_rows_begin(&mut body, 70_000);
            let begun = body.len();
            put_rows(&mut body, u32::MAX, change);
            let found: Vec<_> = sections(&body).map(Result::unwrap).collect();
            let expected = [(70_000, None), (u32::MAX, Some(change))];
            assert_eq!(found, expected.map(|(owner, change)| Section::Rows { owner, change }));
            for cut in (1..begun).chain(begun + 1..body.len()) {
                assert!(sections(&body[..cut]).any(|section| section.is_err()), "{cut}");
            }
        }
        let mut short = Vec::new();
        put_rows(&mut short, 5, -1);
        assert_eq!(short, [ROWS, 5, 1]);
    }
}
