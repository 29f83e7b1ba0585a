//! Pages by what they are worth at their age: life tables, which say what a page of some class and
//! age saves for its time in the cache, lists of frames by class and age, and the order of those
//! lists.

mod aged_lists;
mod list_order;
mod tables;

pub use aged_lists::{AgedLists, BUCKETS, FIRST_EPOCH, bucket};
pub use list_order::{ListOrder, Rated};
pub use tables::{End, LifeTables};
