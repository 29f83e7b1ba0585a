//! Locks for engines whose read and write of one row are two calls.
//!
//! The drivers rely on atomic updates, inserts and removes of single rows. An engine that has only
//! `get` and `put` gets them by a lock that the row's key chooses. Readers take none.

use std::sync::{Mutex, MutexGuard};

use millpond_base::PastPoison;
use millpond_workload::keys::mix;
use millpond_workload::live::TableId;

/// A lock alone in its cache line.
#[repr(align(64))]
#[derive(Default)]
struct Stripe(Mutex<()>);

/// Locks that rows share.
pub(crate) struct Stripes(Box<[Stripe]>);

/// A power of two, so large that two threads hardly ever meet by chance.
const STRIPES: usize = 1024;

impl Stripes {
    pub(crate) fn new() -> Stripes {
        Stripes((0..STRIPES).map(|_| Stripe::default()).collect())
    }

    /// Locks the row. The lock protects no memory, so one that a panic poisoned is as good.
    pub(crate) fn lock(&self, table: TableId, key: &[u8]) -> MutexGuard<'_, ()> {
        let mut hash = u64::from(table.0);
        for chunk in key.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = mix(hash ^ u64::from_le_bytes(word));
        }
        let at = hash as usize % STRIPES;
        self.0[at].0.lock().past_poison()
    }
}
