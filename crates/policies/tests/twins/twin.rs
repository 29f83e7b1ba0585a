//! The trait of slow twins: one policy together with its pool.

use crate::model::Outcome;

/// A policy together with its pool, one page at a time.
pub trait Twin {
    /// References `page`; says what came of it.
    fn reference(&mut self, page: u64, is_write: bool) -> Outcome;
}

/// Returns the outcome of a miss.
pub fn missed(victim: Option<u64>) -> Outcome {
    victim.map_or(Outcome::Loaded, Outcome::Replaced)
}

/// Removes `page` from `list`; whether it was there.
pub fn remove(list: &mut Vec<u64>, page: u64) -> bool {
    let at = list.iter().position(|p| *p == page);
    at.map(|at| list.remove(at)).is_some()
}
