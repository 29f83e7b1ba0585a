//! Drops that are under way: who opens a structure meanwhile waits for that, instead of standing in
//! the way.
//!
//! A drop needs the whole structure locked in X and no handle of it. It waits for the transactions
//! that have read it, and a transaction that comes meanwhile waits behind the drop: with its
//! handle, if it has one, so that the drop would fail, and again each time that it is tried. So
//! handles are not given while a drop waits, except to a thread that the drop may be waiting for:
//! one that is in a transaction's closure, or lends a page. Any other transaction is tied to no
//! thread, so nobody waits for long.

use std::sync::{Condvar, MutexGuard};
use std::time::Duration;

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;

use crate::pool::PoolStrategy;
use crate::store::named::Named;

/// The longest that a handle waits for a drop.
const PATIENCE: Duration = Duration::from_secs(1);

/// Signalled when a drop is over.
#[derive(Default)]
pub(crate) struct Dropped(Condvar);

impl Dropped {
    /// Returns `named` once no drop of `name` is under way, or after a while; at once if `hurries`.
    pub(in crate::store) fn wait<'s, M: PoolStrategy>(
        &self,
        named: MutexGuard<'s, Named<M>>,
        name: &str,
        hurries: impl FnOnce() -> bool,
    ) -> MutexGuard<'s, Named<M>> {
        let is_dropping = |named: &mut Named<M>| named.dropping.iter().any(|other| other == name);
        if named.dropping.is_empty() || hurries() {
            return named;
        }
        let waited = self.0.wait_timeout_while(named, PATIENCE, is_dropping);
        waited.past_poison().0
    }
}

/// A drop under way, until this goes.
pub(in crate::store) struct Dropping<'s, M: PoolStrategy> {
    named: &'s Mutex<Named<M>>,
    dropped: &'s Dropped,
    name: &'s str,
}

impl<'s, M: PoolStrategy> Dropping<'s, M> {
    /// Announces the drop of `name`; `held` is what the mutex `named` guards.
    pub(in crate::store) fn begin(
        held: &mut Named<M>,
        named: &'s Mutex<Named<M>>,
        dropped: &'s Dropped,
        name: &'s str,
    ) -> Dropping<'s, M> {
        held.dropping.push(name.to_string());
        Dropping { named, dropped, name }
    }
}

impl<M: PoolStrategy> Drop for Dropping<'_, M> {
    fn drop(&mut self) {
        let mut named = self.named.lock().past_poison();
        if let Some(at) = named.dropping.iter().position(|name| name == self.name) {
            named.dropping.swap_remove(at);
        }
        drop(named);
        self.dropped.0.notify_all();
    }
}
