//! Rows by key, with the driver's own errors for rows that must exist and do not.

use super::layout::Layout;
use crate::live::{DriveError, Session, TableId};

/// Reads a row that must exist.
#[inline]
pub(super) fn read<L: Layout, S: Session, R>(
    session: &mut S,
    table: TableId,
    key: &[u8],
    mut look: impl FnMut(&[u8]) -> R,
) -> Result<R, DriveError<S::Error>> {
    let found = session.get(table, key, |bytes| L::view(bytes).map(&mut look))?;
    existing::<L, S, R>(found, key)
}

/// Reads a row that need not exist.
#[inline]
pub(super) fn find<L: Layout, S: Session, R>(
    session: &mut S,
    table: TableId,
    key: &[u8],
    mut look: impl FnMut(&[u8]) -> R,
) -> Result<Option<R>, DriveError<S::Error>> {
    match session.get(table, key, |bytes| L::view(bytes).map(&mut look))? {
        None => Ok(None),
        found => existing::<L, S, R>(found, key).map(Some),
    }
}

/// Changes a row, which must exist, in place.
#[inline]
pub(super) fn change<L: Layout, S: Session, R>(
    session: &mut S,
    table: TableId,
    key: &[u8],
    mut alter: impl FnMut(&mut [u8]) -> R,
) -> Result<R, DriveError<S::Error>> {
    let found = session.update(table, key, |bytes| L::view_mut(bytes).map(&mut alter))?;
    existing::<L, S, R>(found, key)
}

/// Adds a row, which must be new.
#[inline]
pub(super) fn add<L: Layout, S: Session>(
    session: &mut S,
    table: TableId,
    key: &[u8],
    row: &[u8],
) -> Result<(), DriveError<S::Error>> {
    debug_assert_eq!(row.len(), L::LEN);
    if session.insert(table, key, row)? {
        Ok(())
    } else {
        Err(DriveError::Duplicate { table: L::TABLE, key: key.into() })
    }
}

/// Returns the error for a row that must exist and does not.
#[cold]
pub(super) fn missing<L: Layout, S: Session>(key: &[u8]) -> DriveError<S::Error> {
    DriveError::Missing { table: L::TABLE, key: key.into() }
}

#[inline]
fn existing<L: Layout, S: Session, R>(
    found: Option<Result<R, usize>>,
    key: &[u8],
) -> Result<R, DriveError<S::Error>> {
    match found {
        Some(Ok(row)) => Ok(row),
        Some(Err(found)) => Err(DriveError::Length { table: L::TABLE, found, expected: L::LEN }),
        None => Err(missing::<L, S>(key)),
    }
}
