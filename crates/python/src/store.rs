//! Stores: opened, used, closed.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use millpond::{Compression, Db, Durability, ErrorKind, Isolation, Options, Structure};
use millpond::{TxnOptions, TypeNames};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::core::{Core, Handle};
use crate::error::{Failure, Invalid};
use crate::path::AnyPath;
use crate::place::{TreeInContext, Within};
use crate::signals::{Signals, watch_waits};
use crate::transaction::{Snapshot, Transaction, transact};
use crate::tree::Tree;
use crate::value::{BYTES, Types, type_name};

/// A store: named trees, transactions, snapshots.
///
/// It closes at the end of a `with` block, or by `close()`: calls of other threads that are under
/// way end first, open transactions are aborted, everything is written, and the file is free for
/// others. Trees, cursors, transactions and snapshots of it raise `millpond.Closed` afterwards.
#[pyclass(frozen, module = "millpond")]
pub(crate) struct Store {
    core: Arc<Core>,
}

/// Bytes: a number, or a text as '64 MiB'.
fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(number) = object.extract::<u64>() {
        return Ok(number);
    }
    let Ok(text) = object.extract::<String>() else {
        let what = object.repr()?;
        return Err(Invalid::new_err(format!("{what} is no number of bytes: 67108864 or '64MiB'")));
    };
    match text.replace(' ', "").parse() {
        Ok(millpond_base::Size::Bytes(bytes) | millpond_base::Size::Frames(bytes)) => Ok(bytes),
        _ => Err(Invalid::new_err(format!("'{text}' is no number of bytes: 67108864 or '64MiB'"))),
    }
}

/// The value that a word stands for.
fn word<T: Copy>(what: &str, text: &str, all: &[(&str, T)]) -> PyResult<T> {
    let found = all.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<&str> = all.iter().map(|(word, _)| *word).collect();
        Invalid::new_err(format!("'{text}' is no {what}: {} are", all.join(", ")))
    })
}

fn compression_of(text: &str) -> PyResult<Compression> {
    word("compression", text, &[("none", Compression::None), ("lz4", Compression::Lz4)])
}

fn durability_of(text: &str) -> PyResult<Durability> {
    let all = [
        ("sync", Durability::Sync),
        ("group", Durability::Group),
        ("async", Durability::Async),
        ("bulk", Durability::Bulk),
    ];
    word("durability", text, &all)
}

fn isolation_of(text: &str) -> PyResult<Isolation> {
    let all =
        [("serializable", Isolation::Serializable), ("read-committed", Isolation::ReadCommitted)];
    word("isolation", text, &all)
}

/// The options of [`open`] and [`in_memory`] that both have.
fn common(
    memory: Option<&Bound<'_, PyAny>>,
    page_size: Option<u32>,
    policy: Option<String>,
    compression: Option<&str>,
    durability: Option<&str>,
) -> PyResult<Options> {
    let mut options = Options::new();
    if let Some(memory) = memory {
        options = options.memory(bytes_of(memory)?);
    }
    if let Some(page_size) = page_size {
        options = options.page_size(page_size);
    }
    if let Some(policy) = policy {
        options = options.policy(policy);
    }
    if let Some(compression) = compression {
        options = options.compression(compression_of(compression)?);
    }
    if let Some(durability) = durability {
        options = options.durability(durability_of(durability)?);
    }
    Ok(options)
}

/// Opens the store in the file at `path`, or creates it.
///
/// A signal whose handler raises ends a recovery; the next opening begins it again.
///
/// `memory` is in bytes, or a text as '64MiB'; `durability` is 'sync', 'group', 'async' or 'bulk';
/// `policy` is a replacement policy as 'watt' or 'lru'; `tier` is a second-tier cache on another
/// device: a path, its bytes and its policy. What is left out has the engine's defaults.
///
/// >>> import millpond, pathlib, tempfile
/// >>> folder = tempfile.TemporaryDirectory()
/// >>> path = pathlib.Path(folder.name) / "pond.mp"
/// >>> with millpond.open(path, memory="16MiB") as store:
/// ...     store.tree("birds", str, int)["heron"] = 3
/// >>> with millpond.open(path, memory="16MiB") as store:
/// ...     store.tree("birds")["heron"]
/// 3
/// >>> folder.cleanup()
#[pyfunction]
#[pyo3(signature = (
    path, memory = None, *, page_size = None, policy = None, compression = None,
    durability = None, read_only = false, create = true, log_gap = None, spill_max = None,
    slow_after = None, tier = None, write_back = false,
))]
#[expect(clippy::too_many_arguments, reason = "Python has keywords for them")]
pub(crate) fn open(
    py: Python<'_>,
    path: AnyPath,
    memory: Option<&Bound<'_, PyAny>>,
    page_size: Option<u32>,
    policy: Option<String>,
    compression: Option<&str>,
    durability: Option<&str>,
    read_only: bool,
    create: bool,
    log_gap: Option<&Bound<'_, PyAny>>,
    spill_max: Option<&Bound<'_, PyAny>>,
    slow_after: Option<f64>,
    tier: Option<(AnyPath, Bound<'_, PyAny>, String)>,
    write_back: bool,
) -> PyResult<Store> {
    let mut options = common(memory, page_size, policy, compression, durability)?;
    options = options.read_only(read_only).create_if_missing(create);
    if let Some(bytes) = log_gap {
        options = options.log_gap(bytes_of(bytes)?);
    }
    if let Some(bytes) = spill_max {
        options = options.spill_max(bytes_of(bytes)?);
    }
    if let Some(seconds) = slow_after {
        options = options.slow_after(seconds_of(seconds)?);
    }
    if let Some((path, bytes, policy)) = tier {
        options = options.second_tier(path.0, bytes_of(&bytes)?, policy).write_back(write_back);
    }
    let db = py.detach(|| {
        watch_waits();
        Db::open(path.0, options).map_err(Failure::from)
    })?;
    Ok(Store { core: Core::new(db) })
}

/// A store in memory, which is gone when it is closed.
///
/// >>> import millpond
/// >>> with millpond.in_memory() as store:
/// ...     store.tree("birds", str, int).put("heron", 3)
/// False
#[pyfunction]
#[pyo3(signature = (memory = None, *, page_size = None, policy = None))]
pub(crate) fn in_memory(
    py: Python<'_>,
    memory: Option<&Bound<'_, PyAny>>,
    page_size: Option<u32>,
    policy: Option<String>,
) -> PyResult<Store> {
    let mut options = common(memory, page_size, policy, None, None)?;
    options.memory = options.memory.or(Some(IN_MEMORY));
    let db = py.detach(|| Db::in_memory(options).map_err(Failure::from))?;
    Ok(Store { core: Core::new(db) })
}

/// Default memory of an in-memory store: 64 MiB.
const IN_MEMORY: u64 = 64 << 20;

fn seconds_of(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Invalid::new_err(format!("{seconds} is no time in seconds")))
}

/// Returns the options with which transactions begin.
fn txn_options(
    db: &Db,
    durability: Option<&str>,
    isolation: Option<&str>,
    wait_max: Option<f64>,
) -> PyResult<Option<TxnOptions>> {
    if durability.is_none() && isolation.is_none() && wait_max.is_none() {
        return Ok(None);
    }
    let mut options = TxnOptions::default().durability(db.durability());
    if let Some(durability) = durability {
        options = options.durability(durability_of(durability)?);
    }
    if let Some(isolation) = isolation {
        options = options.isolation(isolation_of(isolation)?);
    }
    if let Some(seconds) = wait_max {
        options.wait_max = Some(seconds_of(seconds)?);
    }
    Ok(Some(options))
}

impl Store {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    fn options(
        &self,
        durability: Option<&str>,
        isolation: Option<&str>,
        wait_max: Option<f64>,
    ) -> PyResult<Option<TxnOptions>> {
        let options = self
            .core
            .with(|db| txn_options(db, durability, isolation, wait_max).map_err(Failure::Python))?;
        Ok(options)
    }

    /// A tree and its types: those that are asked for, the catalog's, byte strings.
    fn open_tree(
        &self,
        name: &str,
        key: Option<String>,
        value: Option<String>,
        is_raw: bool,
    ) -> Result<Tree, Failure> {
        let mut types = None;
        let tree = Handle::make(&self.core, "tree", |db| {
            let known = db.types(name)?;
            let or_bytes = |asked: &Option<String>, known: &Option<String>| match asked {
                _ if is_raw => BYTES.to_string(),
                Some(asked) => asked.clone(),
                None => known.clone().unwrap_or_else(|| BYTES.to_string()),
            };
            let of = Types::of(&or_bytes(&key, &known.key), &or_bytes(&value, &known.value))?;
            let names = TypeNames::new(Some(of.key.to_string()), Some(of.value.to_string()));
            let is_new = match db.open_tree(name) {
                Ok(_) => false,
                Err(error) if error.kind() == ErrorKind::NotFound && !is_raw => true,
                Err(error) => return Err(error.into()),
            };
            let differs = (known.key.is_some() && known.key != names.key)
                || (known.value.is_some() && known.value != names.value);
            if !is_raw && (is_new || differs) {
                db.make(Structure::Tree, name, &names)?;
            }
            types = Some(of);
            Ok(db.open_tree(name)?)
        })?;
        let types = Arc::new(types.ok_or(Failure::Closed("tree"))?);
        let place = TreeInContext { tree, types, within: Within::Alone };
        Ok(Tree { place, name: name.to_string() })
    }
}

#[pymethods]
impl Store {
    /// The tree of that name, which is made if there is none.
    ///
    /// Types are Python's, `int` (64 bits, with a sign), `str`, `bytes`, `float`, `bool`,
    /// `tuple[str, int]`, `int | None`, or the engine's by name, as `"(String, u32)"`. A tree that
    /// is there knows its types; a new one is of `bytes` unless something else is asked for.
    ///
    /// >>> import millpond
    /// >>> with millpond.in_memory() as store:
    /// ...     store.tree("ponds", tuple[str, int], "Option<u16>")
    /// <millpond.Tree "ponds" of (String, i64) to Option<u16>>
    #[pyo3(signature = (name, key = None, value = None))]
    fn tree(
        &self,
        py: Python<'_>,
        name: &str,
        key: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Tree> {
        let (key, value) = (key.map(type_name).transpose()?, value.map(type_name).transpose()?);
        Ok(py.detach(|| self.open_tree(name, key, value, false))?)
    }

    /// A tree that is there, whatever its types are, as byte strings in the engine's encoding.
    fn raw_tree(&self, py: Python<'_>, name: &str) -> PyResult<Tree> {
        Ok(py.detach(|| self.open_tree(name, None, None, true))?)
    }

    /// Removes a tree with all that is in it; no handle of it may be alive.
    fn drop_tree(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        Ok(py.detach(|| self.core.with(|db| Ok(db.drop_tree(name)?)))?)
    }

    /// Returns pairs of a structure's name and of 'tree', 'hash index' or 'heap'.
    fn structures(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let found = py.detach(|| self.core.with(|db| Ok(db.trees()?)))?;
        Ok(found.into_iter().map(|(name, entry)| (name, entry.structure.to_string())).collect())
    }

    /// Begins a transaction.
    ///
    /// `durability` is 'sync', 'group', 'async' or 'bulk', `isolation` 'serializable' or
    /// 'read-committed', `wait_max` the seconds that it waits for a lock.
    #[pyo3(signature = (*, durability = None, isolation = None, wait_max = None))]
    fn begin(
        &self,
        py: Python<'_>,
        durability: Option<&str>,
        isolation: Option<&str>,
        wait_max: Option<f64>,
    ) -> PyResult<Transaction> {
        let options = self.options(durability, isolation, wait_max)?;
        Ok(py.detach(|| Transaction::begin(&self.core, options))?)
    }

    /// Calls `work` with a transaction, commits it, and returns what `work` returned.
    ///
    /// A transaction that lost in a deadlock is undone, and `work` called again, for `retry_time`
    /// seconds. Any other exception aborts it and is raised.
    ///
    /// >>> import millpond
    /// >>> with millpond.in_memory() as store:
    /// ...     accounts = store.tree("accounts", str, int)
    /// ...     accounts.update({"Ada": 10, "Grace": 5})
    /// ...     def move(tx):
    /// ...         here = tx[accounts]
    /// ...         here["Ada"] = here.get_for_update("Ada") - 3
    /// ...         here["Grace"] = here.get_for_update("Grace") + 3
    /// ...     store.transact(move)
    /// ...     dict(accounts.items())
    /// {'Ada': 7, 'Grace': 8}
    #[pyo3(signature = (
        work, *, durability = None, isolation = None, wait_max = None, retry_time = 10.0,
        retry_timeouts = false,
    ))]
    fn transact<'py>(
        &self,
        work: &Bound<'py, PyAny>,
        durability: Option<&str>,
        isolation: Option<&str>,
        wait_max: Option<f64>,
        retry_time: f64,
        retry_timeouts: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = self.options(durability, isolation, wait_max)?;
        transact(&self.core, work, options, seconds_of(retry_time)?, retry_timeouts)
    }

    /// What is committed now, for reading at leisure.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        Ok(py.detach(|| Snapshot::take(&self.core))?)
    }

    /// Makes everything durable that was committed before the call.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.core.with(|db| Ok(db.flush()?)))?)
    }

    /// Writes what a recovery would have to redo.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.core.with(|db| Ok(db.checkpoint()?)))?)
    }

    /// Copies the store to a new file while it is used; returns what was copied.
    ///
    /// `progress` is called with the phase ('pages', 'log' or 'recovery') and with how much of how
    /// much is done; if it returns False, the backup is given up, with `millpond.Cancelled`.
    #[pyo3(signature = (target, progress = None))]
    fn backup<'py>(
        &self,
        py: Python<'py>,
        target: AnyPath,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut raised = None;
        let mut watch = |now: millpond::report::BackupProgress| {
            let phase = format!("{:?}", now.phase).to_lowercase();
            let goes_on = Python::attach(|py| {
                py.check_signals()?;
                let Some(progress) = &progress else { return Ok(true) };
                let said = progress.call1(py, (phase, now.done, now.total))?;
                Ok(!said.bind(py).is(pyo3::types::PyBool::new(py, false)))
            });
            match goes_on {
                Ok(true) => ControlFlow::Continue(()),
                Ok(false) => ControlFlow::Break(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let done = py.detach(|| self.core.with(|db| Ok(db.backup_with(target.0, &mut watch)?)));
        if let Some(error) = raised {
            return Err(error);
        }
        let done = done?;
        let copied = PyDict::new(py);
        copied.set_item("page_bytes", done.page_bytes)?;
        copied.set_item("log_bytes", done.log_bytes)?;
        copied.set_item("seconds", done.elapsed.as_secs_f64())?;
        Ok(copied)
    }

    /// Verifies all structures: for each a dictionary with its name, its kind, its entries, and
    /// the faults that were found, as texts.
    fn check<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut signals = Signals::new();
        let mut watch = |_| match signals.stop() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let report = py.detach(|| self.core.with(|db| Ok(db.check_with(&mut watch)?)));
        if let Some(raised) = signals.raised {
            return Err(raised);
        }
        let report = report?;
        let one = |structure: &millpond::report::CheckedStructure| {
            let row = PyDict::new(py);
            row.set_item("name", &structure.name)?;
            row.set_item("kind", structure.kind.to_string())?;
            row.set_item("entries", structure.entries)?;
            let faults = structure.faults.iter().map(|(page, text)| format!("page {page}: {text}"));
            row.set_item("faults", faults.collect::<Vec<_>>())?;
            Ok(row)
        };
        report.structures.iter().map(one).collect()
    }

    /// The store's counters, by name.
    ///
    /// >>> import millpond
    /// >>> with millpond.in_memory() as store:
    /// ...     store.tree("birds", str, int).update({"heron": 3, "coot": 5})
    /// ...     store.stats()["puts"]
    /// 2
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats = py.detach(|| self.core.with(|db| Ok(db.stats())))?;
        let text = serde_json::to_string(&stats)
            .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// Bytes of a page.
    #[getter]
    fn page_size(&self) -> PyResult<usize> {
        Ok(self.core.with(|db| Ok(db.page_size()))?)
    }

    /// True if the store was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Closes the store and everything of it. Again, it does nothing, nor in the child of a fork.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.core.close())?)
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let state = if self.core.is_closed() { "closed" } else { "open" };
        format!("<millpond.Store, {state}>")
    }
}
