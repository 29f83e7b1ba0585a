//! Pages by their value at their age: life tables with the savings of a page by class and age,
//! lists of frames by class and age, and the order of these lists.

mod aged_lists;
mod list_order;
mod tables;

pub use aged_lists::{AgedLists, BUCKETS, FIRST_EPOCH, bucket};
pub use list_order::{ListOrder, Rated};
pub use tables::{End, LifeTables};
