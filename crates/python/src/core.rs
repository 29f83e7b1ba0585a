//! Closes a store while its handles live.
//!
//! A variable of a program may outlive the block in which a store was open. So each handle keeps
//! what it refers to in a slot, which the store knows: closing it ends waits for locks, waits for
//! the calls under way, empties all slots, and then has the last reference to the store. A call of
//! an empty slot fails.
//! In the child of a fork, calls fail, and nothing is closed or dropped: see [`fork`](crate::fork).

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, TryLockError, Weak};
use std::time::Duration;

use millpond::Db;
use millpond_base::PastPoison;

use crate::error::Failure;
use crate::fork::Process;
use crate::signals::{Signals, watch_waits};

/// Set in [`Core::calls`] when the store is being closed, or is.
const CLOSED: u64 = 1 << 63;
/// Interval at which a waiting thread looks at the calls under way.
const WAIT: Duration = Duration::from_micros(200);

thread_local! {
    /// Calls of stores that this thread is in.
    static IN_CALLS: Cell<u32> = const { Cell::new(0) };
}

/// A store, as it is shared by its handles.
pub(crate) struct Core {
    /// Calls under way, and [`CLOSED`].
    calls: AtomicU64,
    db: RwLock<Option<Db>>,
    handles: Mutex<Registry>,
    /// True once the store is closed; held by the thread that closes it.
    is_down: Mutex<bool>,
    /// The process that opened the store.
    process: Process,
}

impl Drop for Core {
    fn drop(&mut self) {
        if !self.process.is_this() {
            std::mem::forget(self.db.get_mut().past_poison().take());
        }
    }
}

/// The slots of a store's handles.
#[derive(Default)]
struct Registry {
    slots: Vec<Weak<dyn Empty>>,
    /// The number of slots that makes it look for those that are gone.
    prune_at: usize,
}

/// A slot that can be emptied.
trait Empty: Send + Sync {
    fn empty(&self);
}

/// The object that a handle refers to, until it is closed.
struct Slot<T> {
    value: RwLock<Option<T>>,
    /// The process that created the slot.
    process: Process,
}

impl<T: Send + Sync> Empty for Slot<T> {
    fn empty(&self) {
        if self.process.is_this() {
            let taken = self.value.write().past_poison().take();
            drop(taken);
        }
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        if !self.process.is_this() {
            std::mem::forget(self.value.get_mut().past_poison().take());
        }
    }
}

/// A call under way.
struct Call<'c>(&'c Core);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        IN_CALLS.with(|calls| calls.set(calls.get() - 1));
        self.0.calls.fetch_sub(1, Ordering::Release);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing here is half done by a panic.
    mutex.lock().past_poison()
}

impl Core {
    pub(crate) fn new(db: Db) -> Arc<Core> {
        Arc::new(Core {
            calls: AtomicU64::new(0),
            db: RwLock::new(Some(db)),
            handles: Mutex::default(),
            is_down: Mutex::new(false),
            process: Process::this(),
        })
    }

    fn enter(&self) -> Result<Call<'_>, Failure> {
        self.process.check()?;
        if self.calls.fetch_add(1, Ordering::Acquire) & CLOSED != 0 {
            self.calls.fetch_sub(1, Ordering::Release);
            return Err(Failure::Closed("store"));
        }
        IN_CALLS.with(|calls| calls.set(calls.get() + 1));
        watch_waits();
        Ok(Call(self))
    }

    /// Makes a call of the store.
    pub(crate) fn with<R>(
        &self,
        call: impl FnOnce(&Db) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let _call = self.enter()?;
        let db = self.db.read().past_poison();
        call(db.as_ref().ok_or(Failure::Closed("store"))?)
    }

    /// Fails if the store's handles do not work in this process.
    pub(crate) fn check_process(&self) -> Result<(), Failure> {
        self.process.check()
    }

    /// Returns `true` if the store was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.calls.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Closes the store and all of its handles; again, it does nothing, nor in the child of a fork.
    /// A signal may interrupt it; no call is made any more then, and another `close` goes on.
    pub(crate) fn close(&self) -> Result<(), Failure> {
        if !self.process.is_this() {
            return Ok(());
        }
        if IN_CALLS.with(Cell::get) > 0 {
            return Err(Failure::InCall);
        }
        self.calls.fetch_or(CLOSED, Ordering::AcqRel);
        // What calls under way wait for may be held by a transaction that only this ends.
        if let Some(db) = &*self.db.read().past_poison() {
            db.end_waits();
        }
        let mut is_down = poll(|| match self.is_down.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })?;
        if *is_down {
            return Ok(());
        }
        poll(|| (self.calls.load(Ordering::Acquire) == CLOSED).then_some(()))?;
        *is_down = true;
        let slots = std::mem::take(&mut lock(&self.handles).slots);
        slots.iter().filter_map(Weak::upgrade).for_each(|slot| slot.empty());
        let db = self.db.write().past_poison().take();
        match db {
            Some(db) => Ok(db.close()?),
            None => Ok(()),
        }
    }
}

/// Waits for what `look` finds, or for a signal whose handler raises.
fn poll<R>(mut look: impl FnMut() -> Option<R>) -> Result<R, Failure> {
    let mut signals = Signals::new();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        signals.stop();
        if let Some(raised) = signals.raised.take() {
            return Err(Failure::Python(raised));
        }
        std::thread::sleep(WAIT);
    }
}

/// A handle: a reference to something of a store, until either is closed.
pub(crate) struct Handle<T> {
    core: Arc<Core>,
    slot: Arc<Slot<T>>,
    what: &'static str,
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        Handle { core: self.core.clone(), slot: self.slot.clone(), what: self.what }
    }
}

impl<T: Send + Sync + 'static> Handle<T> {
    /// Makes a handle, of `what` for messages, from what `make` gets of the store. That and its
    /// registration are one call, so that no store is closed in between.
    pub(crate) fn make(
        core: &Arc<Core>,
        what: &'static str,
        make: impl FnOnce(&Db) -> Result<T, Failure>,
    ) -> Result<Handle<T>, Failure> {
        core.with(|db| {
            let value = RwLock::new(Some(make(db)?));
            let slot = Arc::new(Slot { value, process: Process::this() });
            let known: Arc<dyn Empty> = slot.clone();
            let mut handles = lock(&core.handles);
            if handles.slots.len() >= handles.prune_at {
                handles.slots.retain(|slot| slot.strong_count() > 0);
                handles.prune_at = 2 * handles.slots.len() + 64;
            }
            handles.slots.push(Arc::downgrade(&known));
            Ok(Handle { core: core.clone(), slot, what })
        })
    }

    /// Makes a call of what it refers to.
    pub(crate) fn with<R>(
        &self,
        call: impl FnOnce(&T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let _call = self.core.enter()?;
        let value = self.slot.value.read().past_poison();
        call(value.as_ref().ok_or(Failure::Closed(self.what))?)
    }

    /// Drops what it refers to.
    pub(crate) fn close(&self) {
        self.slot.empty();
    }

    /// The store.
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Returns `true` if both belong to one store.
    pub(crate) fn is_of(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.core, core)
    }
}
