//! Transactions and recovery, as users see them.

mod commit;
mod isolation;
mod recovery;
