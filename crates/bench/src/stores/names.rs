//! Tables by name and number, for engines that have handles for them.

use std::sync::{Arc, RwLock};

use millpond_base::PastPoison;
use millpond_workload::live::TableId;

/// Handles in the order of their numbers.
pub struct Names<T>(RwLock<Vec<(Arc<str>, T)>>);

impl<T> Default for Names<T> {
    fn default() -> Names<T> {
        Names(RwLock::default())
    }
}

impl<T: Clone> Names<T> {
    /// Returns an empty list.
    pub fn new() -> Names<T> {
        Names::default()
    }

    /// Returns the table called `name`, if it is known.
    pub fn find(&self, name: &str) -> Option<TableId> {
        let tables = self.0.read().past_poison();
        tables.iter().position(|table| &*table.0 == name).map(|at| TableId(at as u32))
    }

    /// Returns the table called `name`. If it is not known, `make` opens it, with its number.
    ///
    /// # Errors
    /// As `make`.
    pub fn find_or<E>(
        &self,
        name: &str,
        make: impl FnOnce(usize) -> Result<T, E>,
    ) -> Result<TableId, E> {
        let mut tables = self.0.write().past_poison();
        let at = match tables.iter().position(|table| &*table.0 == name) {
            Some(at) => at,
            None => {
                let made = make(tables.len())?;
                tables.push((name.into(), made));
                tables.len() - 1
            }
        };
        Ok(TableId(at as u32))
    }

    /// Returns all handles, for a session.
    pub fn handles(&self) -> Vec<T> {
        let tables = self.0.read().past_poison();
        tables.iter().map(|table| table.1.clone()).collect()
    }

    /// Returns all names.
    pub fn names(&self) -> Vec<Arc<str>> {
        let tables = self.0.read().past_poison();
        tables.iter().map(|table| table.0.clone()).collect()
    }
}
