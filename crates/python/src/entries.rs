//! Cursors and iterators.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use millpond::KeyRange;
use millpond_base::PastPoison;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::core::Handle;
use crate::error::Failure;
use crate::place::{Entry, Reading, TreeInContext, Within, cursor_of};
use crate::value::Types;

/// Most entries that an iterator reads ahead.
const AHEAD_MAX: usize = 64;

/// The items of an iterator: keys, values or pairs.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Keys,
    Values,
    Items,
}

/// An iterator over the entries of a tree within a range of keys.
///
/// It yields keys, values, or pairs of both, in the order of keys or backwards. Outside of
/// transactions it reads up to 64 entries ahead.
#[pyclass(frozen, module = "millpond")]
pub(crate) struct Entries {
    reading: Handle<Reading>,
    types: Arc<Types>,
    part: Part,
    forward: bool,
    /// True if others may change the entries read ahead: at most this iterator's few.
    forgets: bool,
    ahead: Mutex<Ahead>,
}

/// Entries read ahead of the caller.
struct Ahead {
    entries: VecDeque<Entry>,
    /// Number of entries in the next read, and the maximum.
    next: usize,
    most: usize,
    is_over: bool,
}

impl Entries {
    pub(crate) fn new(
        place: &TreeInContext,
        range: KeyRange,
        part: Part,
        forward: bool,
    ) -> Result<Entries, Failure> {
        // What a transaction writes behind an entry is to be seen when that is reached.
        let most = if matches!(place.within, Within::Txn(_)) { 1 } else { AHEAD_MAX };
        let ahead = Ahead { entries: VecDeque::new(), next: 1, most, is_over: false };
        let reading = cursor_of(place, range)?;
        let (types, ahead) = (place.types.clone(), Mutex::new(ahead));
        let forgets = matches!(place.within, Within::Alone);
        Ok(Entries { reading, types, part, forward, forgets, ahead })
    }

    fn next_entry(&self) -> Result<Option<Entry>, Failure> {
        // A thread of its parent may have had this locked.
        self.reading.core().check_process()?;
        let mut ahead = self.ahead.lock().past_poison();
        if let Some(entry) = ahead.entries.pop_front() {
            // A closed store has no entries, although some were read before.
            return self.reading.with(|_| Ok(Some(entry)));
        }
        if ahead.is_over {
            return Ok(None);
        }
        let forward = self.forward;
        self.reading.with(|reading| {
            for _ in 0..ahead.next {
                let entry = reading.entry(|c| if forward { c.next() } else { c.prev() })?;
                let Some(entry) = entry else {
                    ahead.is_over = true;
                    break;
                };
                ahead.entries.push_back(entry);
            }
            if self.forgets {
                reading.forget_ahead();
            }
            Ok(())
        })?;
        ahead.next = (ahead.next * 2).min(ahead.most);
        Ok(ahead.entries.pop_front())
    }
}

/// `class[item]`, for annotations such as `Tree[str, int]`.
pub(crate) fn generic_alias<'py>(
    class: &Bound<'py, PyType>,
    item: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    class.py().import("types")?.call_method1("GenericAlias", (class, item))
}

#[pymethods]
impl Entries {
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(class, item)
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let entry = py.detach(|| self.next_entry())?;
        let Some(entry) = entry else { return Ok(None) };
        let found = match self.part {
            Part::Keys => self.types.key(py, &entry.0)?,
            Part::Values => self.types.value(py, &entry.1)?,
            Part::Items => self.types.item(py, &entry.0, &entry.1)?,
        };
        Ok(Some(found))
    }
}

/// A place among the entries of a tree, which seeks and moves both ways.
///
/// Each move returns the entry, a pair of key and value, or None if there is none; a cursor that
/// found none stays where it was.
///
/// >>> import millpond
/// >>> with millpond.in_memory() as store:
/// ...     tree = store.tree("ponds", str, int)
/// ...     tree.update({"mill": 3, "weir": 5})
/// ...     cursor = tree.cursor()
/// ...     cursor.seek("moor"), cursor.prev(), cursor.prev()
/// (('weir', 5), ('mill', 3), None)
#[pyclass(frozen, module = "millpond")]
pub(crate) struct Cursor {
    reading: Handle<Reading>,
    types: Arc<Types>,
}

impl Cursor {
    pub(crate) fn new(place: &TreeInContext, range: KeyRange) -> Result<Cursor, Failure> {
        Ok(Cursor { reading: cursor_of(place, range)?, types: place.types.clone() })
    }

    fn go<'py>(
        &self,
        py: Python<'py>,
        move_on: impl FnOnce(&mut millpond_handles::Cursor) -> Result<bool, millpond_handles::Fault>
        + Send,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let entry = py.detach(|| self.reading.with(|reading| reading.entry(move_on)))?;
        entry.map(|(key, value)| self.types.item(py, &key, &value)).transpose()
    }
}

#[pymethods]
impl Cursor {
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(class, item)
    }

    /// Goes to the first entry.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.go(py, |cursor| cursor.first())
    }

    /// Goes to the last entry.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.go(py, |cursor| cursor.last())
    }

    /// Goes to the first entry at or above a key; the first elements of a tuple will do.
    fn seek<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = self.types.encode_prefix(key)?;
        self.go(py, move |cursor| cursor.seek(&key))
    }

    /// Goes to the last entry at or below a key.
    fn seek_back<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = self.types.encode_prefix(key)?;
        self.go(py, move |cursor| cursor.seek_back(&key))
    }

    /// Goes to the next entry; a new cursor to the first one.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.go(py, |cursor| cursor.next())
    }

    /// Goes to the entry before; a new cursor to the last one.
    fn prev<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.go(py, |cursor| cursor.prev())
    }

    /// Ends it: it reads nothing any more.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.reading.close());
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }
}
