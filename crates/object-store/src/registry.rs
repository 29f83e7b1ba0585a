//! Registry of the known objects, and of the writes in progress.
//!
//! - While an object is being written through this store, reads of it go to the object store, and
//!   nothing is learnt of it.
//! - The result of a read counts only if no write of the path began or ended in the meantime. An
//!   epoch by path, in 1024 groups, detects this.
//! - After a write with an unknown outcome, or one that may still take effect, the path is not
//!   cached until the store is opened again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use millpond_base::PastPoison;
use object_store::path::Path;

use crate::object::{Head, Identity, Object};

const GROUPS: usize = 1024;
/// Bytes for which an upload reserves numbers, since its size is not known: at most, and at least.
const UPLOAD_BYTES: (u64, u64) = (1 << 40, 1 << 36);
/// Maximum number of ranges that uploads reserved and did not need.
const SPARE_MAX: usize = 256;

#[derive(Default)]
struct Writing {
    writers: u32,
    /// Set if writes overlapped: then it is unknown whose bytes remain.
    overlapped: bool,
}

struct Tables {
    objects: HashMap<Path, Arc<Object>>,
    /// Paths by the number of the first part, oldest first.
    by_base: BTreeMap<u64, Path>,
    writing: HashMap<Path, Writing>,
    uncertain: HashSet<Path>,
    epochs: Vec<u64>,
    /// Numbers from here on were never used.
    next: u64,
    /// Lower numbers that were never used.
    spare: Vec<Range<u64>>,
}

impl Tables {
    /// Returns numbers that were never used, or `None` if none are left below the largest offset.
    fn fresh(&mut self, count: u64, part: u64) -> Option<u64> {
        let end = self.next.checked_add(count).filter(|end| *end < u64::MAX / part)?;
        Some(std::mem::replace(&mut self.next, end))
    }

    fn reserve(&mut self, count: u64, part: u64) -> Option<u64> {
        let room = self.spare.iter().position(|range| range.end - range.start >= count);
        match room.and_then(|at| self.spare.get_mut(at)) {
            Some(range) => {
                range.start += count;
                Some(range.start - count)
            }
            None => self.fresh(count, part),
        }
    }
}

/// The known objects.
pub(crate) struct Registry {
    tables: Mutex<Tables>,
    groups: RandomState,
    part: u64,
    objects_max: usize,
}

/// State of a path that nobody is writing.
pub(crate) struct Known {
    pub object: Option<Arc<Object>>,
    pub epoch: u64,
}

impl Registry {
    pub fn new(part: u64, objects_max: usize) -> Registry {
        let tables = Tables {
            objects: HashMap::new(),
            by_base: BTreeMap::new(),
            writing: HashMap::new(),
            uncertain: HashSet::new(),
            epochs: vec![0; GROUPS],
            next: 0,
            spare: Vec::new(),
        };
        Registry { tables: Mutex::new(tables), groups: RandomState::new(), part, objects_max }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Each step leaves the tables whole.
        self.tables.lock().past_poison()
    }

    fn group(&self, path: &Path) -> usize {
        (self.groups.hash_one(path) % GROUPS as u64) as usize
    }

    /// Returns the path's state; `None` while it is written, or after a write of unknown outcome.
    pub fn known(&self, path: &Path) -> Option<Known> {
        let tables = self.tables();
        if tables.writing.contains_key(path) || tables.uncertain.contains(path) {
            return None;
        }
        let epoch = tables.epochs.get(self.group(path)).copied().unwrap_or(0);
        Some(Known { object: tables.objects.get(path).cloned(), epoch })
    }

    /// Reserves numbers for `count` parts, never used before. `None` if none are left: then the
    /// object is not cached.
    pub fn reserve(&self, count: u64) -> Option<u64> {
        self.tables().reserve(count, self.part)
    }

    /// Reserves numbers for an object of unknown size; the caller gives back the unused ones.
    pub fn reserve_many(&self) -> Option<Range<u64>> {
        let (most, least) = (UPLOAD_BYTES.0 / self.part, UPLOAD_BYTES.1 / self.part);
        let mut tables = self.tables();
        let room = tables.spare.iter().position(|range| range.end - range.start >= least);
        match room {
            Some(at) => Some(tables.spare.swap_remove(at)),
            None => tables.fresh(most, self.part).map(|base| base..base + most),
        }
    }

    /// Frees reserved numbers that were not used.
    pub fn give_back(&self, unused: Range<u64>) {
        let mut tables = self.tables();
        tables.spare.retain(|range| !range.is_empty());
        if !unused.is_empty() && tables.spare.len() < SPARE_MAX {
            tables.spare.push(unused);
        }
    }

    /// Records the version that a read found. Returns the object, unless the path was written in
    /// the meantime, and the numbers of parts that are no longer needed.
    pub fn learn(
        &self,
        path: &Path,
        head: Head,
        epoch: u64,
    ) -> (Option<Arc<Object>>, Vec<Range<u64>>) {
        let identity = Identity::of(&head.meta);
        let group = self.group(path);
        let mut tables = self.tables();
        let is_current = tables.epochs.get(group) == Some(&epoch)
            && !tables.writing.contains_key(path)
            && !tables.uncertain.contains(path);
        if !is_current {
            return (None, Vec::new());
        }
        if let Some(object) = tables.objects.get(path).filter(|found| found.identity.is(&identity))
        {
            let _ = object.head.set(head);
            return (Some(object.clone()), Vec::new());
        }
        let count = Object::parts_of(identity.size, self.part);
        let Some(base) = tables.reserve(count, self.part) else { return (None, Vec::new()) };
        let object = Object { path: path.clone(), identity, base, head: OnceLock::from(head) };
        let (object, gone) = self.insert(&mut tables, object);
        (Some(object), gone)
    }

    fn insert(&self, tables: &mut Tables, object: Object) -> (Arc<Object>, Vec<Range<u64>>) {
        let object = Arc::new(object);
        let mut gone = Vec::new();
        if let Some(old) = tables.objects.insert(object.path.clone(), object.clone()) {
            tables.by_base.remove(&old.base);
            gone.push(old.numbers(self.part));
        }
        tables.by_base.insert(object.base, object.path.clone());
        while tables.objects.len() > self.objects_max.max(1) {
            let Some((_, path)) = tables.by_base.pop_first() else { break };
            let old = tables.objects.remove(&path);
            gone.extend(old.map(|old| old.numbers(self.part)));
        }
        (object, gone)
    }

    /// Removes an outdated object. Returns the numbers of its parts.
    pub fn drop_object(&self, object: &Object) -> Range<u64> {
        let mut tables = self.tables();
        if tables.objects.get(&object.path).is_some_and(|found| found.base == object.base) {
            tables.objects.remove(&object.path);
            tables.by_base.remove(&object.base);
        }
        object.numbers(self.part)
    }

    /// Begins a write. Returns the numbers of the parts that it overwrites.
    pub fn begin_write(&self, path: &Path) -> Option<Range<u64>> {
        let group = self.group(path);
        let mut tables = self.tables();
        if let Some(epoch) = tables.epochs.get_mut(group) {
            *epoch += 1;
        }
        let writing = tables.writing.entry(path.clone()).or_default();
        writing.writers += 1;
        writing.overlapped |= writing.writers > 1;
        let old = tables.objects.remove(path)?;
        tables.by_base.remove(&old.base);
        Some(old.numbers(self.part))
    }

    /// Ends a write. `is_settled` is set if the write was done, or had no effect and never will.
    /// The object becomes known if no other write overlapped. Returns the numbers that are no
    /// longer needed.
    pub fn end_write(
        &self,
        path: &Path,
        is_settled: bool,
        object: Option<Object>,
    ) -> Vec<Range<u64>> {
        let group = self.group(path);
        let mut tables = self.tables();
        if let Some(epoch) = tables.epochs.get_mut(group) {
            *epoch += 1;
        }
        let mut overlapped = true;
        if let Some(writing) = tables.writing.get_mut(path) {
            writing.writers -= 1;
            overlapped = writing.overlapped;
            if writing.writers == 0 {
                tables.writing.remove(path);
            }
        }
        if !is_settled {
            tables.uncertain.insert(path.clone());
        }
        match object {
            Some(object) if !overlapped && !tables.uncertain.contains(path) => {
                self.insert(&mut tables, object).1
            }
            Some(object) => vec![object.numbers(self.part)],
            None => Vec::new(),
        }
    }

    /// Restores the objects of an earlier session. Returns the numbers whose copies the cache has
    /// to forget before they are assigned again: an unfinished write of that session may have left
    /// copies that belong to no saved object.
    pub fn restore(&self, objects: Vec<Object>) -> Vec<Range<u64>> {
        let mut tables = self.tables();
        let mut gone = Vec::new();
        for object in objects {
            tables.next = tables.next.max(object.numbers(self.part).end);
            gone.append(&mut self.insert(&mut tables, object).1);
        }
        gone.push(tables.next..u64::MAX);
        gone
    }

    pub fn all(&self) -> Vec<Arc<Object>> {
        self.tables().objects.values().cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.tables().objects.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_never_given_twice_and_uploads_share_what_they_reserve() {
        let part = 64 << 10;
        let registry = Registry::new(part, 10);
        let mut random = fastrand::Rng::with_seed(8);
        let mut given: Vec<Range<u64>> = Vec::new();
        for _ in 0..300 {
            if random.bool() {
                let count = random.u64(1..200);
                let base = registry.reserve(count).unwrap();
                given.push(base..base + count);
            } else {
                let many = registry.reserve_many().unwrap();
                let used = random.u64(0..100);
                given.push(many.start..many.start + used);
                registry.give_back(many.start + used..many.end);
            }
        }
        given.retain(|range| !range.is_empty());
        given.sort_by_key(|range| range.start);
        assert!(given.windows(2).all(|two| two[0].end <= two[1].start));
        assert!(registry.tables().next <= 2 * UPLOAD_BYTES.0 / part, "one upload at a time");
        // At the end no numbers are left, and nothing overflows.
        registry.tables().next = u64::MAX / part - 5;
        registry.tables().spare.clear();
        assert!(registry.reserve(4).is_some() && registry.reserve(4).is_none());
        assert!(registry.reserve_many().is_none());
    }
}
