//! The table of key locks, in parts that each have a mutex.

use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table;

use super::brief::{Brief, Guard};
use super::entry::{Answer, Entry};
use super::mode::Mode;
use super::name::Name;
use super::waiter::Waiter;

/// Two parts never share a cache line, nor the pair of lines that is fetched at once.
#[repr(align(128))]
struct Shard(Brief<HashTable<Entry>>);

/// All key locks of a manager.
pub(super) struct Table {
    shards: Box<[Shard]>,
}

/// Entries for which a part keeps room once it had so many: 64 KiB each.
const KEPT: usize = 1 << 11;

impl Table {
    /// `shards` is a power of two.
    pub fn new(shards: usize) -> Table {
        let shard = |_| Shard(Brief::new(HashTable::new()));
        Table { shards: (0..shards).map(shard).collect() }
    }

    #[inline]
    fn shard(&self, name: Name) -> Guard<'_, HashTable<Entry>> {
        let shard = &self.shards[name.shard(self.shards.len())];
        shard.0.lock()
    }

    /// Grants the lock, or puts the request into its queue. `write`: which of its owner's writes
    /// the key would be.
    pub fn lock(
        &self,
        name: Name,
        id: u64,
        mode: Mode,
        write: u32,
        waiter: &Arc<Waiter>,
    ) -> Answer {
        let mut shard = self.shard(name);
        match shard.entry(name.0, |entry| entry.name == name, |entry| entry.name.0) {
            hash_table::Entry::Vacant(vacant) => {
                vacant.insert(Entry::new(name, id, mode, write));
                Answer::New
            }
            hash_table::Entry::Occupied(mut found) => {
                found.get_mut().request(id, mode, write, waiter)
            }
        }
    }

    /// Does `change` to the lock, and removes it if that returns true.
    fn change(&self, name: Name, change: impl FnOnce(&mut Entry) -> bool) {
        let mut shard = self.shard(name);
        if let Ok(mut found) = shard.find_entry(name.0, |entry| entry.name == name)
            && change(found.get_mut())
        {
            found.remove();
            if shard.capacity() > KEPT && shard.len() < shard.capacity() / 8 {
                shard.shrink_to(KEPT, |entry| entry.name.0);
            }
        }
    }

    /// `id` holds the lock no longer.
    pub fn unlock(&self, name: Name, id: u64) {
        self.change(name, |entry| entry.release(id));
    }

    /// `id` holds the lock no longer if it held it in `S`. Returns whether it did.
    pub fn unlock_shared(&self, name: Name, id: u64) -> bool {
        let mut shared = false;
        self.change(name, |entry| {
            shared = entry.held_by(id) == Some(Mode::S);
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
        let shard = self.shard(name);
        let entry = shard.find(name.0, |entry| entry.name == name);
        entry.map_or_else(Vec::new, |entry| entry.blockers(id))
    }

    /// Locks in the table.
    pub fn len(&self) -> usize {
        let of = |shard: &Shard| shard.0.lock().len();
        self.shards.iter().map(of).sum()
    }
}
