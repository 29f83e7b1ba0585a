//! Removal of the entries that a closure chooses.

use std::marker::PhantomData;

use crate::api::context::{Autocommit, Reads, WriteCalls, Writes};
use crate::api::strategy::*;
use crate::api::tree::byte_range::ByteRange;
use crate::api::tree::range::{decode_entry, decoded};
use crate::btree::Finger;
use crate::encoding::key::Key;
use crate::encoding::key_range::KeyRange;
use crate::encoding::value::Value;
use crate::store::error::Error;

/// Decides whether an entry is removed.
pub(crate) type Judge<'j> = dyn FnMut(&[u8], &[u8]) -> Result<bool, Error> + 'j;

/// The entries of a range, some of which are removed.
pub(crate) struct Extract<'t, At> {
    context: At,
    tree: &'t DbTree,
    range: ByteRange<'t>,
    /// The entry that was removed last, or is about to be.
    key: Vec<u8>,
    value: Vec<u8>,
    /// The leaf of the last removal.
    finger: Finger,
}

impl<'t, At: WriteCalls + 't> Extract<'t, At> {
    #[track_caller]
    pub(crate) fn new(context: At, tree: &'t DbTree, range: &KeyRange) -> Extract<'t, At> {
        let (range, finger) = (context.range(tree, range), Finger::default());
        Extract { context, tree, range, key: Vec::new(), value: Vec::new(), finger }
    }

    /// Removes all entries that `judge` chooses; returns their number.
    pub(crate) fn remove_all(
        context: At,
        tree: &'t DbTree,
        range: &KeyRange,
        judge: &mut Judge<'_>,
    ) -> Result<u64, Error> {
        // The closure looks at all of them, so they are locked at once.
        context.lock_range(tree, range)?;
        let (mut extract, mut removed) = (Extract::new(context, tree, range), 0);
        while extract.step(judge)? {
            removed += 1;
        }
        Ok(removed)
    }

    /// Removes the next entry that `judge` chooses; returns `true` if there was one.
    fn step(&mut self, judge: &mut Judge<'_>) -> Result<bool, Error> {
        let Extract { context, tree, range, key, value, finger } = self;
        while let Some((its_key, its_value)) = range.next_entry()? {
            if !judge(its_key, its_value)? {
                continue;
            }
            its_key.clone_into(key);
            // In a transaction the entry is locked, so it cannot change before it is removed.
            if At::SHARES {
                its_value.clone_into(value);
            }
            loop {
                if range.writing(|| context.remove_given(tree, key, value, finger))? {
                    return Ok(true);
                }
                // Another thread has changed the entry: look at its present value.
                match context.get(tree, key)? {
                    Some(now) if judge(key, &now)? => *value = now,
                    _ => break,
                }
            }
        }
        Ok(false)
    }
}

/// Iterator over the entries that [`Tree::extract_if`](crate::Tree::extract_if) removes, each as it
/// is removed.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let jobs = db.tree::<u32, String>("jobs")?;
/// jobs.put(&1, "sweep")?;
/// jobs.put(&2, "mow")?;
/// for done in jobs.extract_if(.., |_, job| job == "sweep") {
///     assert_eq!(done?, (1, "sweep".to_string()));
/// }
/// assert_eq!(jobs.len()?, 1);
/// # Ok(()) }
/// ```
pub struct ExtractIf<'t, K, V, F, At: Reads = Autocommit> {
    extract: Extract<'t, At>,
    judge: F,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K, V, F, At: Writes + 't> ExtractIf<'t, K, V, F, At> {
    #[track_caller]
    pub(crate) fn new(context: At, tree: &'t DbTree, range: &KeyRange, judge: F) -> Self {
        ExtractIf { extract: Extract::new(context, tree, range), judge, types: PhantomData }
    }
}

impl<'t, K, V, F, At> Iterator for ExtractIf<'t, K, V, F, At>
where
    K: Key,
    V: Value,
    F: FnMut(&K, &V) -> bool,
    At: Writes + 't,
{
    type Item = Result<(K, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (judge, name, mut removed) = (&mut self.judge, self.extract.tree.name(), None);
        let judge = &mut |key: &[u8], value: &[u8]| {
            let entry: (K, V) = decoded(name, decode_entry(key, value))?;
            let is_chosen = judge(&entry.0, &entry.1);
            removed = Some(entry);
            Ok(is_chosen)
        };
        match self.extract.step(judge) {
            Ok(true) => removed.map(Ok),
            Ok(false) => None,
            Err(error) => {
                self.extract.range.end();
                Some(Err(error))
            }
        }
    }
}
