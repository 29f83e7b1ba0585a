//! Transactions and recovery, as users see them.

mod commit;
mod faults;
mod isolation;
mod recovery;
