//! Handles of a store that own everything they use, for languages without lifetimes.
//!
//! In Rust a range borrows its transaction, and the compiler ensures that the transaction outlives
//! it. C and Python have no such check: there a [`Cursor`] may outlive its transaction, be used by
//! two threads, and be dropped in any order. With these handles that is an error, not undefined
//! behaviour:
//!
//! - a [`Transaction`] runs its calls one after the other, and owns its cursors: when it ends, or
//!   rolls back to a savepoint, they end;
//! - a [`Cursor`] keeps its source alive: a tree, a snapshot, the rest of a transaction;
//! - [`KeyType`] and [`ValueType`] encode [`Datum`]s like typed trees, by the names of the types,
//!   which trees keep.
//!
//! ```
//! use millpond::{Db, Options, TransactOptions};
//! use millpond_handles::{Cursor, Fault, Transaction};
//!
//! # fn main() -> Result<(), Fault> {
//! let db = Db::in_memory(Options::new().memory(16 << 20))?;
//! let ponds = db.raw_tree("ponds")?;
//! ponds.put(b"mill", b"deep")?;
//!
//! let tx = Transaction::begin(&db, None)?;
//! let mut cursor = tx.cursor(&ponds, millpond::KeyRange::ALL)?;
//! assert!(cursor.first()?);
//! assert_eq!(cursor.entry(), Some((&b"mill"[..], &b"deep"[..])));
//! tx.commit()?;
//! assert!(matches!(cursor.next(), Err(Fault::TransactionOver)));
//! # Ok(()) }
//! ```
//!
//! `crates/capi` and the Python package are built on these handles.
#![deny(missing_docs)]

mod cursor;
mod datum;
mod fault;
mod key_type;
mod range_cell;
mod shared;
mod transaction;
mod type_name;
mod value_type;

pub use cursor::Cursor;
pub use datum::{Datum, DatumError};
pub use fault::Fault;
pub use key_type::KeyType;
pub use transaction::{Transaction, transact};
pub use type_name::{DEPTH_MAX, TypeNameError};
pub use value_type::ValueType;
