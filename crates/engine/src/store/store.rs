//! A store in one compiled combination: the pool and its threads over a page store, and the
//! catalog. [`Db`](crate::Db) wraps one of these, according to its options; measurements use them
//! directly.
//!
//! # Life
//!
//! Opening checks the options before it touches a file, and closes the file unchanged if a later
//! step fails. Everything that uses a store holds an [`Arc`] of it, so dropping the last one closes
//! it, and nothing can run during that. Closing stops the threads, writes every dirty page, gives
//! back page ids that were taken ahead, and marks the file as clean, in this order. Only after that
//! does the file open again without a log.
//!
//! [`Store::close`] with other handles left gives up the files, too. Four steps keep the calls of
//! these handles from the files:
//!
//! 1. Calls are refused, and single writes in progress are waited for: their results hold.
//! 2. A checkpoint is taken, and the log is sealed. Everything appended before is durable, and
//!    later appends fail.
//! 3. If the log ends with that checkpoint, and no page id was taken since, the file is marked as
//!    clean. Otherwise something was in progress, for instance a transaction. The files stay as a
//!    crash would leave them, and opening recovers them.
//! 4. The page store is closed, and then each file's gate is shut ([`FileDevice`]): writes and
//!    reads in progress are waited for, and later ones fail.
//!
//! [`FileDevice`]: millpond_device::FileDevice
//!
//! Each named structure is opened once and shared by all its handles: its root is below one anchor,
//! since otherwise there would be two swips to one page.

use std::panic::Location;
use std::sync::{Arc, MutexGuard, TryLockError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;
use millpond_base::{FrameId, Lsn, PageId, Reason};
use millpond_tier::{AnyTier, TierCounts};

use crate::io::PageStore;
use crate::log::Log;
use crate::pool::{Latching, Pool, PoolError, PoolStrategy, Workers, borrowed};
use crate::recovery::{Checkpointer, Recovery};
use crate::stats::counters::{Counter, Timing};
use crate::store::catalog::Catalog;
use crate::store::counted::Meters;
use crate::store::dropping::Dropped;
use crate::store::error::Error;
use crate::store::error::lab::LabError;
use crate::store::housekeeping::{Housekeeping, Unfinished};
use crate::store::merging::{Merging, references_of_others};
use crate::store::named::Named;
use crate::store::options::Plan;
use crate::store::snapshot_trees::TreesOf;
use crate::store::stats::Stats;
use crate::store::stats::census::Census;
use crate::store::stats::stat_file::Publisher;
use crate::txn::{Durability, ManagerShare, Snapshot, TransactionManager};

/// Time between two rounds of the housekeeping.
const PERIOD: Duration = Duration::from_secs(1);

/// Maximum number of checkpoints at closing, until nothing is in progress.
const LAST_CHECKPOINTS: u32 = 50;
const MOMENT: Duration = Duration::from_millis(1);

/// Maximum number of passes over the frames in [`Store::flush`].
const FLUSH_PASSES: u32 = 4;

/// A store in the combination `M`. Aligned away from the reference count before it, which every
/// transaction writes. It takes two lines, since processors fetch them in pairs.
#[repr(align(128))]
pub struct Store<M: PoolStrategy> {
    pub(in crate::store) pool: Arc<Pool<M>>,
    pub(in crate::store) pages: Arc<PageStore>,
    /// The device of `pages`, if it has a cache.
    pub(in crate::store) tier: Option<AnyTier>,
    pub(in crate::store) named: Arc<Mutex<Named<M>>>,
    pub(in crate::store) dropped: Dropped,
    /// Held by the thread that moves pages: there is one at a time.
    pub(crate) shrinking: Mutex<()>,
    /// Held by a thread that drops a structure, and by the housekeeping while it works on a tree.
    pub(in crate::store) gate: Arc<Mutex<()>>,
    /// Held by a thread that closes the store.
    pub(in crate::store) running: Mutex<Running<M>>,
    pub(in crate::store) checkpointer: Option<Arc<Checkpointer<M>>>,
    pub(in crate::store) txns: Arc<TransactionManager>,
    pub(in crate::store) unfinished: Arc<Unfinished>,
    /// The transaction manager's share of each thread slot.
    pub(in crate::store) shares: Box<[Arc<ManagerShare>]>,
    pub(in crate::store) recovery: Option<Recovery>,
    pub(in crate::store) publisher: Option<Arc<Publisher>>,
    pub(in crate::store) durability: Durability,
    pub(in crate::store) plan: Plan,
    pub(in crate::store) opened: Instant,
    /// The only thread that may use it, in a store without latches.
    pub(in crate::store) alone: Option<ThreadId>,
}

/// The threads of an open store.
pub(in crate::store) struct Running<M: PoolStrategy> {
    pub(in crate::store) house: Option<Housekeeping>,
    pub(in crate::store) checkpointing: Option<Housekeeping>,
    /// The pool's threads, which stop with the last handle: calls in progress may wait for them.
    pub(in crate::store) workers: Option<Workers<M>>,
    /// Set while the store has its files.
    pub(in crate::store) is_open: bool,
}

impl<M: PoolStrategy> Store<M> {
    pub(in crate::store) fn keep_house(&self, merge: bool) -> Result<Housekeeping, Error> {
        let (pool, pages) = (self.pool.clone(), self.pages.clone());
        let (publisher, census) = (self.publisher.clone(), self.census());
        let mut merging = (merge && M::Latching::THREADS).then(|| self.merging());
        let (mut seen, mut is_published) = (0, false);
        let house = Housekeeping::start("millpond-house", PERIOD, move |is_over| {
            // An idle store rests, and its statistics stay right.
            let references = references_of_others(pool.counters());
            let since = references.saturating_sub(std::mem::replace(&mut seen, references));
            let has_work = merging.as_ref().is_some_and(Merging::has_work);
            if since == 0 && is_published && !has_work {
                return;
            }
            if !pool.ids().has_ceiling()
                && let Err(error) = pages.grow_ahead()
            {
                tracing::debug!(%error, "the store could not grow ahead of need");
            }
            if let Some(merging) = &mut merging {
                merging.round(since, is_over);
            }
            is_published = publisher
                .as_ref()
                .is_none_or(|publisher| publisher.maybe_publish(|| census.take()));
        })?;
        Ok(house)
    }

    /// Creates the background merge of leaves, in its initial state.
    pub fn merging(&self) -> Merging<M> {
        Merging::new(self.pool.clone(), self.named.clone(), self.gate.clone())
    }

    /// Keeps the background merge from changing anything until the guard is dropped.
    ///
    /// # Errors
    /// [`PoolError::Held`]: it may be waiting for a page that a closure of this thread looks at.
    pub(crate) fn keep_from_merging(&self) -> Result<MutexGuard<'_, ()>, PoolError> {
        if borrowed::pages_borrowed() == 0 {
            return Ok(self.gate.lock().past_poison());
        }
        borrowed::until(|| match self.gate.try_lock() {
            Ok(gate) => Some(gate),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    }

    /// Returns the buffer pool.
    pub fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }

    /// Returns the page store below the pool.
    pub fn pages(&self) -> &Arc<PageStore> {
        &self.pages
    }

    /// Returns the checkpointer, if there is a log.
    pub(crate) fn checkpointer(&self) -> Option<&Checkpointer<M>> {
        self.checkpointer.as_deref()
    }

    /// Returns the resolved options: page size, policy, memory.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns `true` if the store is read-only.
    pub fn is_read_only(&self) -> bool {
        self.pages.is_read_only()
    }

    /// Fails on a thread that must not use the store, after the store was closed, and in a child of
    /// its process.
    #[inline(always)]
    pub(crate) fn may_read(&self) -> Result<(), Error> {
        self.txns.may_call()?;
        if !M::Latching::THREADS && self.alone != Some(std::thread::current().id()) {
            return Err(LabError::WrongThread.into());
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn may_write(&self) -> Result<(), Error> {
        if self.pages.is_read_only() {
            return Err(Error::ReadOnly);
        }
        self.may_read()
    }

    pub(crate) fn named(&self) -> MutexGuard<'_, Named<M>> {
        self.named.lock().past_poison()
    }

    /// Writes all dirty pages and makes them durable; operations may run in the meantime. See
    /// [`Db::flush`](crate::Db::flush) for the guarantees.
    ///
    /// # Errors
    /// A page could not be written, or the device did not confirm the sync.
    pub fn flush(&self) -> Result<(), Error> {
        self.may_read()?;
        if self.is_read_only() {
            return Ok(());
        }
        if let Some(log) = self.txns.log() {
            log.wait_durable(log.tail())?;
            return self.confirm_place();
        }
        self.write_pages()
    }

    /// Writes all dirty pages, in a store without a log.
    fn write_pages(&self) -> Result<(), Error> {
        let frames: Vec<FrameId> = (0..self.pool.frames()).map(FrameId).collect();
        for _ in 0..FLUSH_PASSES {
            self.pool.write_frames(&frames, Reason::Recov)?;
            if self.pool.frames_dirty() == 0 {
                break;
            }
        }
        let started = self.pool.latencies().start(Timing::SyncTime);
        self.pool.storage_recorder().note_dsync(Lsn(0));
        let synced = self.pages.sync();
        self.pool.latencies().stop(Timing::SyncTime, started);
        synced?;
        self.confirm_place()
    }

    /// Fails if a file of the store is no longer at its place.
    fn confirm_place(&self) -> Result<(), Error> {
        match &self.checkpointer {
            Some(checkpointer) => Ok(checkpointer.confirm_place()?),
            None => self.pages.displaced().map_or(Ok(()), |path| Err(Error::Displaced { path })),
        }
    }

    /// Takes a checkpoint: a recovery would begin about here.
    ///
    /// # Errors
    /// Log or data could not be made durable. Without a log it is a [`Store::flush`].
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.may_write()?;
        match &self.checkpointer {
            Some(checkpointer) => {
                checkpointer.confirm_place()?;
                Ok(checkpointer.take_here().map(drop)?)
            }
            None => self.flush(),
        }
    }

    /// Returns the durability of commits of transactions whose options set none.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Returns the recovery that ran when the store was opened; `None` if it had been closed.
    pub fn recovery(&self) -> Option<Recovery> {
        self.recovery
    }

    /// Returns the state that all transactions share.
    pub fn transactions(&self) -> &Arc<TransactionManager> {
        &self.txns
    }

    /// Begins a snapshot of the committed state, on behalf of `caller`.
    ///
    /// # Errors
    /// The store has no locks, or the changes of active transactions cannot be kept.
    pub fn begin_snapshot(
        &self,
        caller: &'static Location<'static>,
    ) -> Result<Arc<Snapshot>, Error> {
        if M::TREES_ONLY {
            return Err(LabError::NoTransactions.into());
        }
        self.may_read()?;
        let mut trees = TreesOf { named: &self.named, pool: &self.pool };
        let snapshot = Snapshot::begin(&self.txns, caller, &mut trees)?;
        self.pool.counters().count(Counter::Snapshots);
        Ok(snapshot)
    }

    /// Returns counters since the store was opened, and its present state.
    pub fn stats(&self) -> Stats {
        self.census().take()
    }

    /// Returns the counters of the second tier, if there is one.
    pub fn second_tier(&self) -> Option<TierCounts> {
        self.tier.as_ref().map(|tier| tier.counts())
    }

    fn census(&self) -> Census<M> {
        Census {
            pool: self.pool.clone(),
            pages: self.pages.clone(),
            txns: self.txns.clone(),
            named: self.named.clone(),
            tier: self.tier.clone(),
            opened: self.opened,
        }
    }

    /// Runs work that is counted and occasionally timed.
    #[inline(always)]
    pub(crate) fn counted<R>(&self, meters: Meters, work: impl FnOnce() -> R) -> R {
        let Meters { counter, timing } = meters;
        self.pool.counters().count(counter);
        let started = self.pool.latencies().start(timing);
        let result = work();
        self.pool.latencies().stop(timing, started);
        result
    }

    /// Closes the store, whatever other handles are left. Their calls fail from now on, and the
    /// store's files can be opened again.
    ///
    /// # Errors
    /// [`Error::InUse`]: a call of this thread looks at a page, so the store stays open. Or
    /// something could not be written: the file stays marked as open, and this store keeps it until
    /// the last handle is dropped.
    pub fn close(self: Arc<Self>) -> Result<(), Error> {
        if !self.txns.is_here() {
            return Err(Error::Forked);
        }
        match Arc::try_unwrap(self) {
            Ok(mut store) => store.shut(),
            Err(other) if borrowed::pages_borrowed() > 0 => {
                Err(Error::InUse { handles: Arc::strong_count(&other) - 1 })
            }
            Err(other) => other.end(),
        }
    }

    /// Closes the store while other handles exist.
    fn end(&self) -> Result<(), Error> {
        let mut running = self.running.lock().past_poison();
        if !running.is_open {
            return Ok(());
        }
        self.txns.refuse_calls()?;
        (running.house, running.checkpointing) = (None, None);
        // No checkpoints come any more for the threads that wait for one.
        self.txns.room().failed();
        match self.checkpointer.as_deref().zip(self.txns.log()) {
            Some((checkpointer, log)) => {
                self.finish_aborts();
                self.end_logged(checkpointer, log)?;
            }
            None if self.end_unlogged()? => {}
            None => return Ok(()),
        }
        running.is_open = false;
        if let Some(publisher) = &self.publisher {
            publisher.close(self.stats());
        }
        self.pages.device().release();
        Ok(())
    }

    fn end_logged(&self, checkpointer: &Checkpointer<M>, log: &Log) -> Result<(), Error> {
        log.wait_durable(log.tail())?;
        checkpointer.confirm_place()?;
        let mut last = checkpointer.take_last()?;
        for _ in 0..LAST_CHECKPOINTS {
            if checkpointer.is_last(&last) || !self.txns.active().is_empty() {
                break;
            }
            // A call is in progress, and ends soon.
            std::thread::sleep(MOMENT);
            last = checkpointer.take_last()?;
        }
        log.seal()?;
        self.txns.end();
        let is_last = checkpointer.is_last(&last);
        if let Err(error) = log.cut_back() {
            tracing::debug!(%error, "the log keeps its length");
        }
        // This comes first, because an opening of the store locks the data file first.
        log.give_up();
        let is_at_rest = || is_last && self.pages.has_taken(&last.checkpoint.taken);
        self.pages.end(self.catalog_root(), is_at_rest)?;
        Ok(())
    }

    /// Returns `true` if it was closed. Without a log, calls and transactions in progress must
    /// finish or undo their changes themselves, and the last handle closes the store.
    fn end_unlogged(&self) -> Result<bool, Error> {
        if !self.is_read_only() {
            return self.write_pages().map(|()| false);
        }
        self.pages.end(self.catalog_root(), || true)?;
        self.txns.end();
        Ok(true)
    }

    fn catalog_root(&self) -> Option<PageId> {
        self.named().catalog.as_ref().map(Catalog::root)
    }

    /// Keeps everything as it is until the process ends, which is a child of the one that opened
    /// the store. The threads do not exist here, and the files are the parent's.
    fn leave_to_parent(&mut self) {
        let running = self.running.get_mut().past_poison();
        let Running { house, checkpointing, workers, .. } = running;
        std::mem::forget((house.take(), checkpointing.take(), workers.take()));
        std::mem::forget((self.pool.clone(), self.pages.clone(), self.tier.clone()));
        std::mem::forget((self.named.clone(), self.checkpointer.clone(), self.txns.clone()));
    }

    fn shut(&mut self) -> Result<(), Error> {
        let running = self.running.get_mut().past_poison();
        // Dropping them waits for their threads.
        (running.house, running.checkpointing, running.workers) = (None, None, None);
        if !std::mem::replace(&mut running.is_open, false) {
            return Ok(());
        }
        let written = self.write_all();
        if written.is_ok()
            && let Some(publisher) = &self.publisher
        {
            publisher.close(self.stats());
        }
        written
    }

    /// Finishes the aborts that found no room, as far as there is room now.
    fn finish_aborts(&self) {
        if !self.unfinished.retry() {
            return;
        }
        if let Some(Err(error)) = self.checkpointer().map(Checkpointer::take_here) {
            tracing::debug!(%error, "no checkpoint makes room for undo");
        }
        self.unfinished.retry();
        self.unfinished.strand();
    }

    fn write_all(&self) -> Result<(), Error> {
        if !self.is_read_only() {
            self.finish_aborts();
            let transactions = self.txns.active().len();
            if transactions > 0 {
                self.txns.log().map_or(Ok(()), |log| log.wait_durable(log.tail()))?;
                return Err(Error::Unfinished { transactions });
            }
            match &self.checkpointer {
                Some(checkpointer) => checkpointer.flush()?,
                None => self.pool.flush(Reason::Recov).map(drop)?,
            }
            self.pool.ids().return_all()?;
            if let (Some(checkpointer), Some(log)) = (&self.checkpointer, self.txns.log()) {
                checkpointer.take()?;
                log.close()?;
                if let Err(error) = log.cut_back() {
                    tracing::debug!(%error, "the log keeps its length");
                }
            }
        }
        // A file that was renamed is complete now. A closed store needs no log.
        let displaced = self.pages.displaced().filter(|_| !self.is_read_only());
        self.pages.close(self.catalog_root())?;
        displaced.map_or(Ok(()), |path| Err(Error::Displaced { path }))
    }
}

impl<M: PoolStrategy> Drop for Store<M> {
    fn drop(&mut self) {
        if !self.txns.is_here() {
            return self.leave_to_parent();
        }
        if let Err(error) = self.shut() {
            let path = self.pages.path().display();
            tracing::error!(%error, "{path} was not closed cleanly");
        }
    }
}
