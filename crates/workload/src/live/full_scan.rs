//! A scan of a whole table, as in leanstore VI-C.

use super::store::{Scan, Session, TableId};

/// Totals of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ScanTotal {
    /// Rows.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// The sum of the first eight bytes of each value, so that the values are read.
    pub sum: u64,
}

/// Scans `table` from its first row to its end, or until `go_on` returns false. `go_on` is called
/// after every 4096 rows with the totals so far.
pub fn full_scan<S: Session>(
    session: &mut S,
    table: TableId,
    mut go_on: impl FnMut(&ScanTotal) -> bool,
) -> Result<ScanTotal, S::Error> {
    let mut total = ScanTotal::default();
    session.scan(table, Scan::whole(), |key, value| {
        total.rows += 1;
        total.bytes += (key.len() + value.len()) as u64;
        if let Some(head) = value.first_chunk::<8>() {
            total.sum = total.sum.wrapping_add(u64::from_le_bytes(*head));
        }
        !total.rows.is_multiple_of(4096) || go_on(&total)
    })?;
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{MemoryStore, Store};

    #[test]
    fn a_full_scan_sees_every_row_and_stops_when_told() {
        let store = MemoryStore::new();
        let table = store.create_table("t").unwrap();
        let mut session = store.session().unwrap();
        for i in 0..10_000u32 {
            session.insert(table, &i.to_be_bytes(), &u64::from(i).to_le_bytes()).unwrap();
        }
        let all = full_scan(&mut session, table, |_| true).unwrap();
        assert_eq!((all.rows, all.bytes), (10_000, 120_000));
        assert_eq!(all.sum, 9999 * 10_000 / 2);
        let part = full_scan(&mut session, table, |_| false).unwrap();
        assert_eq!(part.rows, 4096);
    }
}
