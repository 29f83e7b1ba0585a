//! The table of key locks, in parts that each have a mutex.
//!
//! A part is one cache line: its mutex, one lock, and where more locks are if more than one fall
//! into it. So a lock that is taken and given back costs one line that another processor may have
//! had last, not one each for mutex, table and lock.

use std::sync::Arc;

use hashbrown::HashTable;
use millpond_policies::parts::prefetch;

use super::entry::Answer;
use super::entry::Entry;
use super::mode::LockMode;
use super::name::Name;
use super::spinlock::Guard;
use super::spinlock::Spinlock;
use super::waiter::Waiter;

#[repr(align(64))]
struct Shard(Spinlock<Locks>);

#[cfg(not(feature = "model"))]
const _: () = assert!(size_of::<Shard>() == 64);

/// The locks of a part.
#[derive(Default)]
struct Locks {
    first: Option<Entry>,
    /// All but one, or all.
    more: Option<Box<HashTable<Entry>>>,
}

impl Locks {
    /// The locks that lie elsewhere, if there are any.
    #[inline]
    fn more(&mut self) -> Option<&mut HashTable<Entry>> {
        self.more.as_deref_mut().filter(|more| !more.is_empty())
    }

    #[inline]
    fn find(&mut self, name: Name) -> Option<&mut Entry> {
        match &mut self.first {
            Some(first) if first.name == name => Some(first),
            _ => {
                let more = self.more.as_deref_mut().filter(|more| !more.is_empty())?;
                more.find_mut(name.0, |entry| entry.name == name)
            }
        }
    }

    /// A lock that is not there yet.
    #[inline]
    fn insert(&mut self, entry: Entry) {
        debug_assert!(self.find(entry.name).is_none(), "a lock is in the table once");
        match &mut self.first {
            none @ None => *none = Some(entry),
            Some(_) => {
                let more = self.more.get_or_insert_default();
                more.insert_unique(entry.name.0, entry, |entry| entry.name.0);
            }
        }
    }

    /// Does `change` to the lock, and removes it if that returns true.
    #[inline]
    fn change(&mut self, name: Name, change: impl FnOnce(&mut Entry) -> bool) {
        match &mut self.first {
            Some(first) if first.name == name => {
                if change(first) {
                    self.first = None;
                }
            }
            _ => {
                let Some(more) = self.more() else { return };
                if let Ok(mut found) = more.find_entry(name.0, |entry| entry.name == name)
                    && change(found.get_mut())
                {
                    found.remove();
                    self.release_memory();
                }
            }
        }
    }

    /// What one large transaction needed is not kept for all the small ones that follow.
    fn release_memory(&mut self) {
        let Some(more) = &mut self.more else { return };
        if more.capacity() > KEPT && more.len() < more.capacity() / 8 {
            more.shrink_to(KEPT, |entry| entry.name.0);
        }
    }
}

/// All key locks of a manager.
pub(super) struct Table {
    shards: Box<[Shard]>,
}

/// Locks beside the first for which a part keeps room once it had them.
const KEPT: usize = 28;

impl Table {
    /// `shards` is a power of two.
    pub fn new(shards: usize) -> Table {
        debug_assert!(shards.is_power_of_two(), "{shards} shards: names are masked");
        let shard = |_| Shard(Spinlock::new(Locks::default()));
        Table { shards: (0..shards).map(shard).collect() }
    }

    #[inline]
    fn shard(&self, name: Name) -> Guard<'_, Locks> {
        let shard = &self.shards[name.shard(self.shards.len())];
        shard.0.lock()
    }

    /// The lock is about to be asked for: its part, which another processor may have had last, or
    /// nobody for a while, is on its way until then.
    #[inline]
    pub fn fetch(&self, name: Name) {
        prefetch(&self.shards, name.shard(self.shards.len()));
    }

    /// Grants the lock, or puts the request into its queue. `write`: which of its owner's writes
    /// the key would be.
    pub fn lock(
        &self,
        name: Name,
        id: u64,
        mode: LockMode,
        write: u32,
        waiter: &Arc<Waiter>,
    ) -> Answer {
        let mut shard = self.shard(name);
        match shard.find(name) {
            Some(entry) => entry.request(id, mode, write, waiter),
            None => {
                shard.insert(Entry::new(name, id, mode, write));
                Answer::New
            }
        }
    }

    /// Whether somebody holds the lock or waits for it.
    pub fn is_locked(&self, name: Name) -> bool {
        self.shard(name).find(name).is_some()
    }

    /// Does `change` to the lock, and removes it if that returns true.
    fn change(&self, name: Name, change: impl FnOnce(&mut Entry) -> bool) {
        self.shard(name).change(name, change);
    }

    /// `id` holds the lock no longer.
    pub fn unlock(&self, name: Name, id: u64) {
        self.change(name, |entry| entry.release(id));
    }

    /// `id` holds the lock no longer if it held it in `S`. Returns whether it did.
    pub fn unlock_shared(&self, name: Name, id: u64) -> bool {
        let mut shared = false;
        self.change(name, |entry| {
            shared = entry.held_by(id) == Some(LockMode::S);
            shared && entry.release(id)
        });
        shared
    }

    /// `id` holds the lock in `S` instead of `X`.
    pub fn downgrade(&self, name: Name, id: u64) {
        self.change(name, |entry| {
            entry.downgrade(id);
            false
        });
    }

    /// `id` waits for the lock no longer.
    pub fn leave_queue(&self, name: Name, id: u64) {
        self.change(name, |entry| entry.leave_queue(id));
    }

    /// Who stands in the way of the request of `id` that waits.
    pub fn blockers(&self, name: Name, id: u64) -> Vec<u64> {
        let mut shard = self.shard(name);
        shard.find(name).map_or_else(Vec::new, |entry| entry.blockers(id))
    }

    /// Locks in the table.
    pub fn len(&self) -> usize {
        let of = |shard: &Shard| {
            let mut locks = shard.0.lock();
            let more = locks.more().map_or(0, |more| more.len());
            usize::from(locks.first.is_some()) + more
        };
        self.shards.iter().map(of).sum()
    }
}
