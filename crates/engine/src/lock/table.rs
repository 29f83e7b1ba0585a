//! The table of key locks, in parts that each have a mutex.
//!
//! A part is one cache line: its mutex, one lock, and a pointer to more locks if more than one is
//! in it. So acquiring and releasing a lock costs one line that another processor may have had
//! last, not one line each for mutex, table and lock. A word shows readers that take no lock
//! whether any lock of the part is held in `X` (rule 8).

use std::sync::Arc;

use hashbrown::HashTable;
use millpond_base::sync::atomic::{AtomicU64, Ordering};
use millpond_policies::parts::prefetch;

use super::entry::Answer;
use super::entry::Entry;
use super::mode::LockMode;
use super::name::Name;
use super::spinlock::Guard;
use super::spinlock::Spinlock;
use super::waiter::Waiter;

#[repr(align(64))]
struct Shard {
    locks: Spinlock<Locks>,
    /// Number of locks held in `X`, and above that the number that ever were. Written under the
    /// mutex.
    written: AtomicU64,
}

/// Increment for one more lock that was ever held in `X`; the lower bits count the present ones.
const EVER: u64 = 1 << 32;

impl Shard {
    fn begin_writing(&self) {
        let before = self.written.load(Ordering::Relaxed);
        debug_assert!(before % EVER < EVER - 1, "too many X locks in one part for their bits");
        // A reader that sees a write made under the lock also sees this, through the page's latch.
        self.written.store(before.wrapping_add(EVER + 1), Ordering::Relaxed);
    }

    fn end_writing(&self) {
        let before = self.written.load(Ordering::Relaxed);
        debug_assert!(!before.is_multiple_of(EVER), "a lock that was X ends once");
        // Release: a reader that sees the end of the lock also sees all writes made under it.
        self.written.store(before.wrapping_sub(1), Ordering::Release);
    }
}

#[cfg(not(feature = "model"))]
const _: () = assert!(size_of::<Shard>() == 64);

/// The locks of a part.
#[derive(Default)]
struct Locks {
    first: Option<Entry>,
    /// All locks except `first`.
    more: Option<Box<HashTable<Entry>>>,
}

impl Locks {
    /// Returns the locks besides the first, if there are any.
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

    /// Inserts a lock that is not in the table yet.
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

    /// Applies `change` to the lock, and removes the lock if that returns true.
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

    /// Releases memory that one large transaction needed, and the small ones that follow do not.
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

/// Number of locks besides the first for which a part keeps memory.
const KEPT: usize = 28;

impl Table {
    /// Returns an empty table; `shards` is a power of two.
    pub fn new(shards: usize) -> Table {
        debug_assert!(shards.is_power_of_two(), "{shards} shards: names are masked");
        let shard =
            |_| Shard { locks: Spinlock::new(Locks::default()), written: AtomicU64::new(0) };
        Table { shards: (0..shards).map(shard).collect() }
    }

    #[inline]
    fn shard(&self, name: Name) -> &Shard {
        &self.shards[name.shard(self.shards.len())]
    }

    #[inline]
    fn locks(&self, name: Name) -> Guard<'_, Locks> {
        self.shard(name).locks.lock()
    }

    /// Returns a token if no lock of the part of `name` is held in `X`.
    #[inline]
    pub fn quiet(&self, name: Name) -> Option<u64> {
        let written = self.shard(name).written.load(Ordering::Acquire);
        written.is_multiple_of(EVER).then_some(written)
    }

    /// Returns whether no lock of the part of `name` has been held in `X` since `token` was issued.
    /// Called behind an acquire fence.
    #[inline]
    pub fn still_quiet(&self, name: Name, token: u64) -> bool {
        self.shard(name).written.load(Ordering::Relaxed) == token
    }

    /// Prefetches the part of a lock that is about to be requested: another processor may have had
    /// it last, or nobody for a while.
    #[inline]
    pub fn fetch(&self, name: Name) {
        prefetch(&self.shards, name.shard(self.shards.len()));
    }

    /// Grants the lock, or queues the request. `write` is the index that the key would have among
    /// its owner's writes.
    pub fn lock(
        &self,
        name: Name,
        id: u64,
        mode: LockMode,
        write: u32,
        waiter: &Arc<Waiter>,
    ) -> Answer {
        let shard = self.shard(name);
        let mut locks = shard.locks.lock();
        let answer = match locks.find(name) {
            Some(entry) => entry.request(id, mode, write, waiter),
            None => {
                locks.insert(Entry::new(name, id, mode, write));
                Answer::New
            }
        };
        if mode == LockMode::X && matches!(answer, Answer::New | Answer::Upgraded) {
            shard.begin_writing();
        }
        answer
    }

    /// Returns whether an owner holds the lock or waits for it.
    pub fn is_locked(&self, name: Name) -> bool {
        self.locks(name).find(name).is_some()
    }

    /// Applies `change` to the lock, and removes the lock if that returns true.
    fn change(&self, name: Name, change: impl FnOnce(&mut Entry) -> bool) {
        self.locks(name).change(name, change);
    }

    /// Releases the lock of `id`.
    pub fn unlock(&self, name: Name, id: u64) {
        let shard = self.shard(name);
        shard.locks.lock().change(name, |entry| {
            if entry.held_by(id) == Some(LockMode::X) {
                shard.end_writing();
            }
            entry.release(id)
        });
    }

    /// Releases the lock of `id` if it is held in `S`. Returns whether it was.
    pub fn unlock_shared(&self, name: Name, id: u64) -> bool {
        let mut shared = false;
        self.change(name, |entry| {
            shared = entry.held_by(id) == Some(LockMode::S);
            shared && entry.release(id)
        });
        shared
    }

    /// Downgrades the lock of `id` from `X` to `S`.
    pub fn downgrade(&self, name: Name, id: u64) {
        let shard = self.shard(name);
        shard.locks.lock().change(name, |entry| {
            shard.end_writing();
            entry.downgrade(id);
            false
        });
    }

    /// Removes the request of `id` from the lock's queue.
    pub fn leave_queue(&self, name: Name, id: u64) {
        self.change(name, |entry| entry.leave_queue(id));
    }

    /// Returns the owners that block the waiting request of `id`.
    pub fn blockers(&self, name: Name, id: u64) -> Vec<u64> {
        let mut locks = self.locks(name);
        locks.find(name).map_or_else(Vec::new, |entry| entry.blockers(id))
    }

    /// Returns the number of locks in the table.
    pub fn len(&self) -> usize {
        let of = |shard: &Shard| {
            let mut locks = shard.locks.lock();
            let more = locks.more().map_or(0, |more| more.len());
            usize::from(locks.first.is_some()) + more
        };
        self.shards.iter().map(of).sum()
    }
}
