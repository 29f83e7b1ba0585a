//! Trees as mappings.

use std::ops::Bound as End;

use millpond::KeyRange;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::entries::{Cursor, Entries, Part, generic_alias};
use crate::error::{OtherType, no_key};
use crate::place::{TreeInContext, Within, read, write};

/// Entries of an update between two looks at whether a signal has come.
const SIGNALS_EACH: usize = 1024;

/// An ordered mapping of a store: keys of one type to values of one type.
///
/// Used by itself, each call takes effect as a whole. In a transaction, `tx[tree]` is the same
/// tree, whose calls are part of the transaction; in a snapshot, `snapshot[tree]` is for reading.
///
/// >>> import millpond
/// >>> with millpond.in_memory() as store:
/// ...     stock = store.tree("stock", tuple[str, int], int)
/// ...     stock["bolts", 8] = 1200
/// ...     stock["bolts", 6] = 300
/// ...     stock["nuts", 6] = 500
/// ...     list(stock.prefix(("bolts",))), stock["nuts", 6], len(stock)
/// ([(('bolts', 6), 300), (('bolts', 8), 1200)], 500, 3)
#[pyclass(frozen, module = "millpond")]
pub(crate) struct Tree {
    pub(crate) place: TreeInContext,
    pub(crate) name: String,
}

impl Tree {
    /// Returns the same tree in another context.
    pub(crate) fn within(&self, within: Within) -> Tree {
        Tree { place: TreeInContext { within, ..self.place.clone() }, name: self.name.clone() }
    }

    fn key_bytes(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        self.place.types.encode_key(key)
    }

    fn get_bytes(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
        let bytes = self.key_bytes(key)?;
        Ok(key.py().detach(|| read!(&self.place, |tree| tree.get(&bytes)))?)
    }

    fn value<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.place.types.value(py, bytes)
    }

    /// From `start` on, which is in it, up to `stop`, which is not.
    fn range_of(
        &self,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<KeyRange> {
        let types = &self.place.types;
        let end = |key: Option<&Bound<'_, PyAny>>| key.map(|key| types.encode_prefix(key));
        let start = end(start).transpose()?.map_or(End::Unbounded, End::Included);
        let stop = end(stop).transpose()?.map_or(End::Unbounded, End::Excluded);
        Ok(KeyRange { start, end: stop })
    }

    fn iterate(&self, py: Python<'_>, part: Part, forward: bool) -> PyResult<Entries> {
        Ok(py.detach(|| Entries::new(&self.place, KeyRange::ALL, part, forward))?)
    }

    /// Puts the entries of a mapping, or pairs of an iterable.
    fn update_from(&self, py: Python<'_>, entries: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(dict) = entries.cast::<PyDict>() {
            return self.put_all(py, dict.items().as_any());
        }
        if entries.hasattr("items")? {
            return self.put_all(py, &entries.call_method0("items")?);
        }
        if !entries.hasattr("keys")? {
            return self.put_all(py, entries);
        }
        for (number, key) in entries.call_method0("keys")?.try_iter()?.enumerate() {
            if number % SIGNALS_EACH == 0 {
                py.check_signals()?;
            }
            let key = key?;
            self.put(&key, &entries.get_item(&key)?)?;
        }
        Ok(())
    }

    /// Puts pairs of key and value one after the other.
    fn put_all(&self, py: Python<'_>, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        for (number, pair) in pairs.try_iter()?.enumerate() {
            if number % SIGNALS_EACH == 0 {
                py.check_signals()?;
            }
            // Any two things are a pair, as they are for a dictionary.
            let pair = pair?;
            match pair.cast::<PyTuple>() {
                Ok(tuple) if tuple.len() == 2 => self.put(&tuple.get_item(0)?, &tuple.get_item(1)?),
                _ => match &pair.try_iter()?.take(3).collect::<PyResult<Vec<_>>>()?[..] {
                    [key, value] => self.put(key, value),
                    _ => Err(PyValueError::new_err("an entry is a pair of a key and a value")),
                },
            }?;
        }
        Ok(())
    }

    fn put_bytes(&self, py: Python<'_>, key: &[u8], value: &[u8]) -> PyResult<bool> {
        Ok(py.detach(|| write!(&self.place, |tree| tree.put(key, value)))?)
    }
}

/// A view of a tree, of a class of the package.
fn view<'py>(tree: &Bound<'py, Tree>, class: &str, reverse: bool) -> PyResult<Bound<'py, PyAny>> {
    tree.py().import("millpond.views")?.call_method1(class, (tree, reverse))
}

#[pymethods]
impl Tree {
    /// The tree's name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The type of its keys, as the engine calls it.
    #[getter]
    fn key_type(&self) -> String {
        self.place.types.key.to_string()
    }

    /// The type of its values, as the engine calls it.
    #[getter]
    fn value_type(&self) -> String {
        self.place.types.value.to_string()
    }

    fn __repr__(&self) -> String {
        let (key, value) = (self.key_type(), self.value_type());
        format!("<millpond.Tree {:?} of {key} to {value}>", self.name)
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.get_bytes(key)? {
            Some(value) => self.value(key.py(), &value),
            None => Err(no_key(key)),
        }
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value).map(drop)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.delete(key)? { Ok(()) } else { Err(no_key(key)) }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = self.key_bytes(key)?;
        Ok(key.py().detach(|| read!(&self.place, |tree| tree.contains(&bytes)))?)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let length = py.detach(|| read!(&self.place, |tree| tree.len()))?;
        Ok(usize::try_from(length)?)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Entries> {
        self.iterate(py, Part::Keys, true)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Entries> {
        self.iterate(py, Part::Keys, false)
    }

    /// `Tree[str, int]`, for annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(class, item)
    }

    /// The keys in order, as a view; backwards with `reverse`.
    #[pyo3(signature = (*, reverse = false))]
    fn keys<'py>(this: &Bound<'py, Self>, reverse: bool) -> PyResult<Bound<'py, PyAny>> {
        view(this, "Keys", reverse)
    }

    /// The values in the order of keys, as a view; backwards with `reverse`.
    #[pyo3(signature = (*, reverse = false))]
    fn values<'py>(this: &Bound<'py, Self>, reverse: bool) -> PyResult<Bound<'py, PyAny>> {
        view(this, "Values", reverse)
    }

    /// The pairs of key and value in the order of keys, as a view; backwards with `reverse`.
    ///
    /// >>> import millpond
    /// >>> with millpond.in_memory() as store:
    /// ...     ponds = store.tree("ponds", str, int)
    /// ...     ponds |= {"mill": 3, "weir": 5}
    /// ...     len(ponds.items()), ("weir", 5) in ponds.items(), ponds.popitem()
    /// (2, True, ('weir', 5))
    #[pyo3(signature = (*, reverse = false))]
    fn items<'py>(this: &Bound<'py, Self>, reverse: bool) -> PyResult<Bound<'py, PyAny>> {
        view(this, "Items", reverse)
    }

    /// What a view iterates: 'keys', 'values' or 'items'.
    fn _iterate(&self, py: Python<'_>, part: &str, reverse: bool) -> PyResult<Entries> {
        let part = match part {
            "keys" => Part::Keys,
            "values" => Part::Values,
            _ => Part::Items,
        };
        self.iterate(py, part, !reverse)
    }

    /// The pairs whose keys are `start` or above and below `stop`; backwards with `reverse`.
    ///
    /// >>> import millpond
    /// >>> with millpond.in_memory() as store:
    /// ...     squares = store.tree("squares", int, int)
    /// ...     squares.update((n, n * n) for n in range(10))
    /// ...     list(squares.range(2, 4)), list(squares.range(8, reverse=True))
    /// ([(2, 4), (3, 9)], [(9, 81), (8, 64)])
    #[pyo3(signature = (start = None, stop = None, *, reverse = false))]
    fn range(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<Entries> {
        let range = self.range_of(start, stop)?;
        Ok(py.detach(|| Entries::new(&self.place, range, Part::Items, !reverse))?)
    }

    /// The pairs whose keys begin with the first elements of a tuple, or the front of a string.
    #[pyo3(signature = (prefix, *, reverse = false))]
    fn prefix(&self, prefix: &Bound<'_, PyAny>, reverse: bool) -> PyResult<Entries> {
        let bytes = self.place.types.encode_prefix(prefix)?;
        let range = KeyRange::of_prefix::<Vec<u8>>(&bytes[..]);
        let place = &self.place;
        Ok(prefix.py().detach(|| Entries::new(place, range, Part::Items, !reverse))?)
    }

    /// A cursor of the entries whose keys are `start` or above and below `stop`.
    #[pyo3(signature = (start = None, stop = None))]
    fn cursor(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Cursor> {
        let range = self.range_of(start, stop)?;
        Ok(py.detach(|| Cursor::new(&self.place, range))?)
    }

    /// The first pair, or None.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let entry = py.detach(|| self.place.end(true))?;
        entry.map(|(key, value)| self.place.types.item(py, &key, &value)).transpose()
    }

    /// The last pair, or None.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let entry = py.detach(|| self.place.end(false))?;
        entry.map(|(key, value)| self.place.types.item(py, &key, &value)).transpose()
    }

    /// Returns the number of keys that are `start` or above and below `stop`.
    #[pyo3(signature = (start = None, stop = None))]
    fn count(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let range = self.range_of(start, stop)?;
        Ok(py.detach(|| read!(&self.place, |tree| tree.count(range.clone())))?)
    }

    /// The value of a key, or `default`.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.get_bytes(key)? {
            Some(value) => self.value(key.py(), &value).map(Some),
            None => Ok(default),
        }
    }

    /// The value of a key, or None; in a transaction, which locks it for a write of its own.
    fn get_for_update<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, bytes) = (key.py(), self.key_bytes(key)?);
        let value = py.detach(|| self.place.get_for_update(&bytes))?;
        value.map(|value| self.value(py, &value)).transpose()
    }

    /// The value of a key; `default` is put there first if there is none.
    #[pyo3(signature = (key, default = None))]
    fn setdefault<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let default = default.unwrap_or_else(|| key.py().None().into_bound(key.py()));
        loop {
            if let Some(value) = self.get_bytes(key)? {
                return self.value(key.py(), &value);
            }
            if self.insert_if_absent(key, &default)? {
                return Ok(default);
            }
        }
    }

    /// Sets the value of a key; returns whether it had one.
    fn put(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let types = &self.place.types;
        let (key_bytes, value) = (types.encode_key(key)?, types.encode_value(value)?);
        self.put_bytes(key.py(), &key_bytes, &value)
    }

    /// Sets the value of a key; returns the one that it had, or None.
    fn insert<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, types) = (key.py(), &self.place.types);
        let (key, value) = (types.encode_key(key)?, types.encode_value(value)?);
        let old = py.detach(|| write!(&self.place, |tree| tree.insert(&key, &value)))?;
        old.map(|old| self.value(py, &old)).transpose()
    }

    /// Sets the value of a key that has none; returns whether it did.
    fn insert_if_absent(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, types) = (key.py(), &self.place.types);
        let (key, value) = (types.encode_key(key)?, types.encode_value(value)?);
        Ok(py.detach(|| write!(&self.place, |tree| tree.insert_if_absent(&key, &value)))?)
    }

    /// Sets the value of a key that has one; returns whether it did.
    fn replace(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, types) = (key.py(), &self.place.types);
        let (key, value) = (types.encode_key(key)?, types.encode_value(value)?);
        Ok(py.detach(|| write!(&self.place, |tree| tree.replace(&key, &value)))?)
    }

    /// Sets the value of a key to `new` if it is `expected`, where None is no entry; returns
    /// whether it was. Of a tree whose values may be None themselves, entries with that value
    /// cannot be told from none by this call, which refuses them.
    ///
    /// >>> import millpond
    /// >>> with millpond.in_memory() as store:
    /// ...     ponds = store.tree("ponds", str, int)
    /// ...     ponds.compare_and_swap("mill", None, 1), ponds.compare_and_swap("mill", 2, 3)
    /// (True, False)
    fn compare_and_swap(
        &self,
        key: &Bound<'_, PyAny>,
        expected: Option<&Bound<'_, PyAny>>,
        new: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let (py, types) = (key.py(), &self.place.types);
        if self.value_type().starts_with("Option<") || self.value_type() == "()" {
            let text = "in a tree whose values may be None, None is not 'no entry'";
            return Err(OtherType::new_err(text));
        }
        let value = |value: Option<&Bound<'_, PyAny>>| value.map(|v| types.encode_value(v));
        let (expected, new) = (value(expected).transpose()?, value(new).transpose()?);
        let key = types.encode_key(key)?;
        let (expected, new) = (expected.as_deref(), new.as_deref());
        Ok(py.detach(|| write!(&self.place, |tree| tree.compare_and_swap(&key, expected, new)))?)
    }

    /// Puts all entries of a mapping, or all pairs of an iterable, and those given by name: one by
    /// one, so that a failure leaves some of them; in a transaction, all or none.
    ///
    /// An object with `keys` and without `items` is asked for each of its keys.
    #[pyo3(signature = (*entries, **named), text_signature = "($self, entries=(), /, **named)")]
    fn update(
        &self,
        py: Python<'_>,
        entries: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        if entries.len() > 1 {
            return Err(PyTypeError::new_err("update takes one mapping, or one iterable of pairs"));
        }
        for entries in entries.iter() {
            self.update_from(py, &entries)?;
        }
        named.map_or(Ok(()), |named| self.put_all(py, named.items().as_any()))
    }

    /// Same as `update`.
    fn __ior__(&self, py: Python<'_>, entries: &Bound<'_, PyAny>) -> PyResult<()> {
        self.update_from(py, entries)
    }

    /// Removes the last entry; returns it, or raises KeyError if there is none.
    fn popitem<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.pop_last(py)?.ok_or_else(|| PyKeyError::new_err("popitem(): the tree is empty"))
    }

    /// Removes a key; returns whether it was there.
    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = self.key_bytes(key)?;
        Ok(key.py().detach(|| write!(&self.place, |tree| tree.delete(&bytes)))?)
    }

    /// Removes a key; returns its value. Without one, it returns the default, or raises KeyError
    /// if none is given.
    #[pyo3(signature = (key, *default))]
    fn pop<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if default.len() > 1 {
            return Err(PyTypeError::new_err("pop takes a key and at most one default"));
        }
        let (py, bytes) = (key.py(), self.key_bytes(key)?);
        match py.detach(|| write!(&self.place, |tree| tree.remove(&bytes)))? {
            Some(value) => self.value(py, &value),
            None => default.get_item(0).map_err(|_| no_key(key)),
        }
    }

    /// Removes the first entry; returns it, or None.
    fn pop_first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let entry = py.detach(|| write!(&self.place, |tree| tree.pop_first()))?;
        entry.map(|(key, value)| self.place.types.item(py, &key, &value)).transpose()
    }

    /// Removes the last entry; returns it, or None.
    fn pop_last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let entry = py.detach(|| write!(&self.place, |tree| tree.pop_last()))?;
        entry.map(|(key, value)| self.place.types.item(py, &key, &value)).transpose()
    }

    /// Removes all keys from `start` on that are below `stop`; returns how many. If the handler of
    /// a signal ends the call, some of them are left; in a transaction, it can be aborted.
    #[pyo3(signature = (start = None, stop = None))]
    fn remove_range(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let range = self.range_of(start, stop)?;
        Ok(py.detach(|| write!(&self.place, |tree| tree.remove_range(range.clone())))?)
    }

    /// Removes everything; returns how many entries there were. A signal ends it as it ends
    /// `remove_range`.
    fn clear(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(py.detach(|| write!(&self.place, |tree| tree.clear()))?)
    }
}
