//! Transactions, snapshots, and transactions that are retried.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millpond::{Snapshot as EngineSnapshot, TxnOptions};
use millpond_handles::{Fault, Transaction as Owned};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::core::{Core, Handle};
use crate::error::{Deadlock, Failure, OtherType, Timeout};
use crate::place::Within;
use crate::tree::Tree;

/// A transaction: `tx[tree]` is a tree within it. A `with` block commits it at its end, or aborts
/// it if an exception leaves the block.
///
/// >>> import millpond
/// >>> with millpond.in_memory() as store:
/// ...     ponds = store.tree("ponds", str, int)
/// ...     with store.begin() as tx:
/// ...         tx[ponds]["mill"] = 3
/// ...     tx = store.begin()
/// ...     tx[ponds]["weir"] = 5
/// ...     tx.abort()
/// ...     dict(ponds.items())
/// {'mill': 3}
#[pyclass(frozen, module = "millpond")]
pub(crate) struct Transaction {
    tx: Handle<Owned>,
    /// True once `commit` or `abort` was called. If a transaction is over without either call,
    /// closing the store aborted it, and the user must see an error.
    was_ended: AtomicBool,
}

impl Transaction {
    pub(crate) fn begin(
        core: &std::sync::Arc<Core>,
        options: Option<TxnOptions>,
    ) -> Result<Transaction, Failure> {
        let tx = Handle::make(core, "transaction", |db| Ok(Owned::begin(db, options)?))?;
        Ok(Transaction { tx, was_ended: AtomicBool::new(false) })
    }

    /// Makes it the calling thread's own: a call of this thread that would wait for it fails.
    ///
    /// That is so where the thread waits for its end: in a `with` block, and in the function that
    /// `transact` calls.
    pub(crate) fn keep_in_thread(&self) -> Result<(), Failure> {
        self.tx.with(|tx| Ok(tx.claim_thread()?))
    }

    /// Commits or aborts it.
    fn end(&self, end: impl FnOnce(&Owned) -> Result<(), Fault>) -> Result<(), Failure> {
        self.tx.with(|tx| {
            self.was_ended.store(true, Ordering::Relaxed);
            Ok(end(tx)?)
        })
    }

    /// Commits it, unless it was ended before.
    fn commit_at_last(&self, py: Python<'_>) -> PyResult<()> {
        if self.was_ended.load(Ordering::Relaxed) { Ok(()) } else { self.commit(py) }
    }

    fn is_open(&self) -> bool {
        self.tx.with(|tx| Ok(tx.is_open())).unwrap_or(false)
    }

    /// The tree within it.
    fn tree_of(&self, tree: &Tree) -> PyResult<Tree> {
        if !self.tx.is_of(tree.place.tree.core()) {
            return Err(OtherType::new_err("the tree is of another store"));
        }
        Ok(tree.within(Within::Txn(self.tx.clone())))
    }
}

#[pymethods]
impl Transaction {
    fn __getitem__(&self, tree: &Bound<'_, Tree>) -> PyResult<Tree> {
        self.tree_of(tree.get())
    }

    /// A tree within the transaction, the same as `tx[tree]`.
    fn tree(&self, tree: &Bound<'_, Tree>) -> PyResult<Tree> {
        self.tree_of(tree.get())
    }

    /// Makes what it did final, and ends it.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.end(Owned::commit))?)
    }

    /// Undoes what it did, and ends it.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.end(Owned::abort))?)
    }

    /// Makes a savepoint; returns its number.
    fn savepoint(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.detach(|| self.tx.with(|tx| Ok(tx.savepoint()?)))?)
    }

    /// Undoes what was done since a savepoint, which ends later ones and all cursors.
    fn rollback_to(&self, py: Python<'_>, savepoint: usize) -> PyResult<()> {
        Ok(py.detach(|| self.tx.with(|tx| Ok(tx.rollback_to(savepoint)?)))?)
    }

    /// True if it was neither committed nor aborted.
    #[getter(is_open)]
    fn is_open_yet(&self, py: Python<'_>) -> bool {
        py.detach(|| self.is_open())
    }

    fn __enter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let tx = this.get();
        this.py().detach(|| tx.keep_in_thread())?;
        Ok(this.clone())
    }

    #[pyo3(signature = (kind, *_args))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _args: &Bound<'_, PyTuple>,
    ) -> PyResult<bool> {
        if kind.is_none() {
            self.commit_at_last(py)?;
        } else if self.is_open_yet(py) {
            self.abort(py)?;
        }
        Ok(false)
    }
}

/// What a store was at one time: `snapshot[tree]` is a tree as it was then, for reading.
///
/// >>> import millpond
/// >>> with millpond.in_memory() as store:
/// ...     ponds = store.tree("ponds", str, int)
/// ...     ponds["mill"] = 3
/// ...     with store.snapshot() as before:
/// ...         ponds["mill"] = 4
/// ...         before[ponds]["mill"], ponds["mill"]
/// (3, 4)
#[pyclass(frozen, module = "millpond")]
pub(crate) struct Snapshot {
    snapshot: Handle<EngineSnapshot>,
}

impl Snapshot {
    pub(crate) fn take(core: &std::sync::Arc<Core>) -> Result<Snapshot, Failure> {
        let snapshot = Handle::make(core, "snapshot", |db| Ok(db.snapshot()?))?;
        Ok(Snapshot { snapshot })
    }

    fn tree_of(&self, tree: &Tree) -> PyResult<Tree> {
        if !self.snapshot.is_of(tree.place.tree.core()) {
            return Err(OtherType::new_err("the tree is of another store"));
        }
        Ok(tree.within(Within::Snapshot(self.snapshot.clone())))
    }
}

#[pymethods]
impl Snapshot {
    fn __getitem__(&self, tree: &Bound<'_, Tree>) -> PyResult<Tree> {
        self.tree_of(tree.get())
    }

    /// A tree as it was then, the same as `snapshot[tree]`.
    fn tree(&self, tree: &Bound<'_, Tree>) -> PyResult<Tree> {
        self.tree_of(tree.get())
    }

    /// Ends it; what is open of it fails afterwards.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.snapshot.close());
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

/// Returns the result of `work`, unless it is a coroutine or a generator: then `work` has not run.
fn has_run(done: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let types = done.py().import("types")?;
    for (name, how) in [
        ("CoroutineType", "is asynchronous"),
        ("AsyncGeneratorType", "is an asynchronous generator"),
        ("GeneratorType", "is a generator"),
    ] {
        if !done.is_instance(&types.getattr(name)?)? {
            continue;
        }
        if done.hasattr("close")? {
            // Otherwise Python warns that it was never awaited.
            done.call_method0("close")?;
        }
        return Err(PyTypeError::new_err(format!(
            "the function that transact() calls {how}, and so does nothing when it is called: \
             give transact() a plain function, or use `with store.begin() as tx`"
        )));
    }
    Ok(done)
}

/// Runs `work` in transactions until one is committed, or fails of something else than of others.
pub(crate) fn transact<'py>(
    core: &std::sync::Arc<Core>,
    work: &Bound<'py, PyAny>,
    options: Option<TxnOptions>,
    retry_time: Duration,
    retry_timeouts: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = work.py();
    let begun = Instant::now();
    loop {
        let tx = py.detach(|| {
            let tx = Transaction::begin(core, options)?;
            tx.keep_in_thread()?;
            Ok::<_, Failure>(tx)
        })?;
        let tx = Py::new(py, tx)?;
        let error = match work.call1((&tx,)).and_then(has_run) {
            Ok(done) => match tx.get().commit_at_last(py) {
                Ok(()) => return Ok(done),
                Err(error) => error,
            },
            Err(error) => error,
        };
        if tx.get().is_open_yet(py) {
            tx.get().abort(py)?;
        }
        let is_worth_it = error.is_instance_of::<Deadlock>(py)
            || (retry_timeouts && error.is_instance_of::<Timeout>(py));
        if !is_worth_it || begun.elapsed() >= retry_time {
            return Err(error);
        }
        py.check_signals()?;
        // The one that it lost to is to come first.
        py.detach(std::thread::yield_now);
    }
}
