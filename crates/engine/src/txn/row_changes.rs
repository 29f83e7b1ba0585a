//! How many entries a transaction added to each tree, less those that it removed.

/// The changes of one transaction, by the owner ids of the trees; there are few.
#[derive(Default)]
pub(super) struct RowChanges(Vec<(u32, i64)>);

impl RowChanges {
    /// The tree `owner` has `rows` entries more.
    #[inline]
    pub(super) fn count(&mut self, owner: u32, rows: i8) {
        if rows != 0 {
            self.add(owner, rows.into());
        }
    }

    fn add(&mut self, owner: u32, rows: i64) {
        // The last one first: sequences of writes go to one tree.
        match self.0.iter_mut().rfind(|(tree, _)| *tree == owner) {
            Some((_, sum)) => *sum += rows,
            None => self.0.push((owner, rows)),
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> &[(u32, i64)] {
        &self.0
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
