//! Assembly of a store over opened files: the pool, the undo left by recovery, the first
//! checkpoint, threads.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

use millpond_base::PageId;
use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;

use crate::io::{PageStore, SpillFile};
use crate::lock::{LockManager, LockOptions};
use crate::log::Log;
use crate::pool::mini_transaction::PageSpace;
use crate::pool::{Latching, PageMemory, Pages, Pool, PoolError, PoolStrategy, SyncMode, Workers};
use crate::recovery::log_salvage::undo_damage;
use crate::recovery::{Checkpointer, OpenedLog, undo};
use crate::store::catalog::Catalog;
use crate::store::checkpoint_thread;
use crate::store::dropping::Dropped;
use crate::store::error::Error;
use crate::store::named::{Named, name_trees};
use crate::store::opening::builder::{Builder, Prepared, leave_as_found};
use crate::store::options::Options;
use crate::store::options::budget::Budget;
use crate::store::options::choices::TranslationMode;
use crate::store::stats::census::rooms;
use crate::store::store::{Running, Store};
use crate::txn::{HistoryMemory, ManagerShare, TransactionManager};

/// Longest wait of a commit with `Durability::Group` for others.
const GROUP_DELAY: Duration = Duration::from_micros(200);

impl<M: PoolStrategy> Store<M> {
    /// Adapts the options: their budget has a page table exactly if the combination has one.
    pub(in crate::store) fn adapted(options: &Options) -> Options {
        let translation = match (M::SWIZZLES, M::HAS_TABLE) {
            (true, false) => TranslationMode::Swizzled,
            (true, true) => TranslationMode::SwizzledTable,
            (false, _) => TranslationMode::Hashed,
        };
        options.clone().with_lab(|lab| lab.translation = translation)
    }

    pub(crate) fn start(prepared: Prepared, options: &Options) -> Result<Arc<Store<M>>, Error> {
        let pages = prepared.pages.clone();
        let is_logged = prepared.logged.is_some();
        let started = Self::assemble(prepared, options);
        if started.is_err() && !is_logged {
            leave_as_found(&pages);
        }
        started.map(Arc::new)
    }

    fn assemble(prepared: Prepared, options: &Options) -> Result<Store<M>, Error> {
        let Prepared { pages, tier, mut logged, plan, publisher, spill } = prepared;
        let log = logged.as_ref().map(|logged| logged.log.clone());
        let mut pool = Builder::pool::<M>(options, &plan, pages.clone())?;
        if let Some(logged) = &logged {
            pool = pool.logged(logged.log.clone());
            let orphans = logged.orphans.iter().copied().collect();
            pool.redo_log().set_space(PageSpace::new(pages.taken_words(), orphans));
            pool.redo_log().rows().set(logged.rows.iter().copied());
        }
        let pool = Arc::new(pool);
        let workers = Workers::start(pool.clone())?;
        let catalog = match pages.catalog_root() {
            Some(root) => Some(Catalog::open(pool.clone(), root)?),
            None if pages.is_read_only() => None,
            None => Some(Catalog::create(pool.clone())?),
        };
        let mut named = Named { catalog, open: HashMap::new(), gone: (0, 0), dropping: Vec::new() };
        let next_tx = logged.as_ref().map_or(1, |logged| logged.next_tx);
        let has_locks = options.lab.locks && !options.read_only && !M::TREES_ONLY;
        let txns = transaction_manager(&plan.budget, &pool, log, has_locks, next_tx, spill);
        for room in rooms(&pool, &txns) {
            room.latencies.report_from(options.slow_after);
        }
        let checkpointer = match &mut logged {
            Some(logged) => {
                let root = named.catalog.as_ref().map(Catalog::root);
                Some(Self::begin_log(&pool, &pages, logged, &txns, &mut named, root, options)?)
            }
            None => None,
        };
        let named = Arc::new(Mutex::new(named));
        name_trees(&txns, &named);
        let workers = Some(workers);
        let running = Running { house: None, checkpointing: None, workers, is_open: true };
        let mut store = Store {
            pool,
            pages,
            tier,
            named,
            dropped: Dropped::default(),
            shrinking: Mutex::default(),
            gate: Arc::default(),
            running: Mutex::new(running),
            checkpointer,
            shares: ManagerShare::for_slots(&txns),
            txns,
            unfinished: Arc::default(),
            recovery: logged.and_then(|logged| logged.recovery),
            publisher,
            durability: options.durability,
            plan,
            opened: Instant::now(),
            alone: (!M::Latching::THREADS).then(|| std::thread::current().id()),
        };
        if let Some(publisher) = &store.publisher {
            // From now on other processes can see it.
            publisher.maybe_publish(|| store.stats());
        }
        if let Some(checkpointer) = &store.checkpointer {
            let thread = checkpoint_thread::start(checkpointer, &store.unfinished)?;
            threads_of(&mut store).checkpointing = Some(thread);
        }
        if !options.read_only {
            let house = store.keep_house(options.lab.background_merge)?;
            threads_of(&mut store).house = Some(house);
        }
        Ok(store)
    }

    /// Ends a recovery, if there was one, and takes the first checkpoint. From then on the log
    /// determines the store.
    fn begin_log(
        pool: &Arc<Pool<M>>,
        pages: &Arc<PageStore>,
        logged: &mut OpenedLog,
        txns: &Arc<TransactionManager>,
        named: &mut Named<M>,
        catalog_root: Option<PageId>,
        options: &Options,
    ) -> Result<Arc<Checkpointer<M>>, Error> {
        Self::finish_recovery(pool, pages, logged, named, options)?;
        named.keep_counts(pool)?;
        if logged.recovery.is_none()
            && let (Some(root), None) = (catalog_root, pages.catalog_root())
        {
            // The superblock will name it.
            pool.run(|mtr| {
                mtr.attached(root);
                Ok(())
            })?;
        }
        let checkpointer = Arc::new(Checkpointer {
            pool: pool.clone(),
            pages: pages.clone(),
            log: logged.log.clone(),
            txns: txns.clone(),
            catalog_root,
            gap_bytes: options.log_gap,
            redo: Mutex::default(),
            sweep: Mutex::default(),
            pins: Mutex::default(),
            next_bytes: AtomicU64::default(),
            rests: AtomicU32::default(),
        });
        if pool.writeback().sync_mode() == SyncMode::Ranges {
            pages.defer_syncs();
        }
        checkpointer.take()?;
        Ok(checkpointer)
    }

    /// Undoes losers and frees orphans, if there are any.
    fn finish_recovery(
        pool: &Arc<Pool<M>>,
        pages: &PageStore,
        logged: &mut OpenedLog,
        named: &mut Named<M>,
        options: &Options,
    ) -> Result<(), Error> {
        let Some(recovery) = &mut logged.recovery else {
            if !logged.orphans.is_empty() {
                // A page of them could not be read before the store was closed.
                undo::free_orphan(pool, pages, &HashSet::new())?;
            }
            return Ok(());
        };
        let started = Instant::now();
        let log = &logged.log;
        let mut structure_of = |owner| named.owned_by(pool, owner);
        let progress = |progress| options.recovery_watch.tell(progress);
        let undone = undo::undo(log, &logged.losers, &mut structure_of, &progress);
        let undone = undone.map_err(|error| match &error {
            Error::Pool(PoolError::Log(cause)) => {
                undo_damage(cause, log, pages.log_position()).map_or(error, Error::from)
            }
            _ => error,
        })?;
        recovery.undone = undone.records;
        recovery.freed = undo::free_orphan(pool, pages, &undone.kept)?;
        recovery.elapsed += started.elapsed();
        Ok(())
    }
}

/// Returns the threads of a store that no other thread has yet.
fn threads_of<M: PoolStrategy>(store: &mut Store<M>) -> &mut Running<M> {
    store.running.get_mut().past_poison()
}

fn transaction_manager<M: PoolStrategy>(
    budget: &Budget,
    pool: &Pool<M>,
    log: Option<Arc<Log>>,
    has_locks: bool,
    next: u64,
    spill: Option<Arc<SpillFile>>,
) -> Arc<TransactionManager> {
    let options = LockOptions::default().memory_bytes(budget.lock_bytes as usize);
    let locks = has_locks.then(|| Arc::new(LockManager::new(options)));
    let both = budget.version_bytes as usize;
    // Undo is read once, from the newest to the oldest: little of it is worth memory.
    let undo_bytes = both / 4;
    let history = HistoryMemory { version_bytes: both - undo_bytes, undo_bytes, spill };
    let page_bytes = pool.page_size() as u64;
    let txns = TransactionManager::new(log, locks, next, GROUP_DELAY, page_bytes, history);
    Arc::new(txns.counting(pool.redo_log().rows().clone()))
}
