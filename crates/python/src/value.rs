//! Python's values as the engine's, and types as either calls them.

use millpond_handles::{DEPTH_MAX, Datum, KeyType, ValueType};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::error::{Failure, Invalid};

/// The types of a tree's keys and values.
pub(crate) struct Types {
    pub(crate) key: KeyType,
    pub(crate) value: ValueType,
    /// Whether these are byte strings, which need no [`Datum`].
    key_is_bytes: bool,
    value_is_bytes: bool,
    value_is_str: bool,
}

/// What a type is called if none is given.
pub(crate) const BYTES: &str = "Vec<u8>";

impl Types {
    pub(crate) fn of(key: &str, value: &str) -> Result<Types, Failure> {
        let (key, value): (KeyType, ValueType) =
            (key.parse().map_err(Failure::Type)?, value.parse().map_err(Failure::Type)?);
        let (key_is_bytes, value_is_bytes) = (key.to_string() == BYTES, value.to_string() == BYTES);
        let value_is_str = value.to_string() == "String";
        Ok(Types { key, value, key_is_bytes, value_is_bytes, value_is_str })
    }

    pub(crate) fn encode_key(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        if self.key_is_bytes {
            return bytes_of(key);
        }
        Ok(self.key.encode(&datum_of(key)?).map_err(Failure::Datum)?)
    }

    /// What keys begin with.
    pub(crate) fn encode_prefix(&self, prefix: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        if self.key_is_bytes {
            return bytes_of(prefix);
        }
        Ok(self.key.encode_prefix(&datum_of(prefix)?).map_err(Failure::Datum)?)
    }

    pub(crate) fn encode_value(&self, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        if self.value_is_bytes {
            return bytes_of(value);
        }
        Ok(self.value.encode(&datum_of(value)?).map_err(Failure::Datum)?)
    }

    pub(crate) fn key<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        if self.key_is_bytes {
            return bytes_object(py, bytes);
        }
        object_of(py, &self.key.decode(bytes).map_err(Failure::Datum)?)
    }

    pub(crate) fn value<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        if self.value_is_bytes {
            return bytes_object(py, bytes);
        }
        // Without a copy in between: it may be large.
        if self.value_is_str && std::str::from_utf8(bytes).is_ok() {
            return Ok(PyString::from_bytes(py, bytes)?.into_any());
        }
        object_of(py, &self.value.decode(bytes).map_err(Failure::Datum)?)
    }

    /// A key and its value.
    pub(crate) fn item<'py>(
        &self,
        py: Python<'py>,
        (key, value): &(Vec<u8>, Vec<u8>),
    ) -> PyResult<Bound<'py, PyAny>> {
        let item = [self.key(py, key)?, self.value(py, value)?];
        Ok(PyTuple::new(py, item)?.into_any())
    }
}

/// A copy of a byte string, or of anything that has a buffer of bytes.
fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("a string is no byte string: encode it, as by b'…'"));
    }
    let bytes = PyBuffer::<u8>::get(object).map_err(|_| {
        let found = object.get_type().name().map_or_else(|_| String::new(), |n| n.to_string());
        PyTypeError::new_err(format!("{found} is no byte string: bytes or a buffer of bytes is"))
    })?;
    bytes.to_vec(object.py())
}

fn datum_of(object: &Bound<'_, PyAny>) -> PyResult<Datum> {
    datum_within(object, 0)
}

/// The value of what is nested in `depth` tuples.
fn datum_within(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Datum> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Datum::Str(text.to_str()?.to_string()));
    }
    // Before integers, which truth values are, too.
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Datum::Bool(flag.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return integer_of(object);
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(Datum::Float(number.value()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Datum::Bytes(bytes.as_bytes().to_vec()));
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        if depth > DEPTH_MAX {
            let text = format!("a tuple is nested more than {DEPTH_MAX} deep, as no type is");
            return Err(PyValueError::new_err(text));
        }
        let elements = tuple.iter().map(|element| datum_within(&element, depth + 1));
        return Ok(Datum::Tuple(elements.collect::<PyResult<_>>()?));
    }
    if object.is_none() {
        return Ok(Datum::None);
    }
    // Integers and floats of NumPy.
    if let Ok(number) = object.call_method0("__index__") {
        return integer_of(&number);
    }
    if let Ok(number) = object.extract::<f64>() {
        return Ok(Datum::Float(number));
    }
    Ok(Datum::Bytes(bytes_of(object)?))
}

fn integer_of(object: &Bound<'_, PyAny>) -> PyResult<Datum> {
    if let Ok(number) = object.extract::<i64>() {
        return Ok(Datum::Int(number.into()));
    }
    if let Ok(number) = object.extract::<i128>() {
        return Ok(Datum::Int(number));
    }
    match object.extract::<u128>() {
        Ok(number) => Ok(Datum::Uint(number)),
        Err(_) => Err(PyOverflowError::new_err("the integer does not fit into 128 bits")),
    }
}

fn object_of<'py>(py: Python<'py>, datum: &Datum) -> PyResult<Bound<'py, PyAny>> {
    Ok(match datum {
        Datum::None => py.None().into_bound(py),
        Datum::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Datum::Int(number) => match i64::try_from(*number) {
            Ok(number) => number.into_pyobject(py)?.into_any(),
            Err(_) => number.into_pyobject(py)?.into_any(),
        },
        Datum::Uint(number) => number.into_pyobject(py)?.into_any(),
        Datum::Float(number) => PyFloat::new(py, *number).into_any(),
        Datum::Str(text) => PyString::from_bytes(py, text.as_bytes())?.into_any(),
        Datum::Bytes(bytes) => bytes_object(py, bytes)?,
        Datum::Tuple(elements) => {
            let elements: Vec<_> =
                elements.iter().map(|element| object_of(py, element)).collect::<PyResult<_>>()?;
            PyTuple::new(py, elements)?.into_any()
        }
    })
}

/// A byte string; `PyBytes::new` panics where memory does not suffice.
fn bytes_object<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let fill = |there: &mut [u8]| {
        there.copy_from_slice(bytes);
        Ok(())
    };
    Ok(PyBytes::new_with(py, bytes.len(), fill)?.into_any())
}

/// The engine's name of a type: of `str`, `tuple[str, int]`, `int | None`; a string is one already.
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> PyResult<String> {
    type_name_within(object, 0)
}

fn type_name_within(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<String> {
    if depth > DEPTH_MAX {
        return Err(Invalid::new_err(format!("types are nested {DEPTH_MAX} deep at most")));
    }
    if let Ok(name) = object.cast::<PyString>() {
        return Ok(name.to_str()?.to_string());
    }
    let py = object.py();
    let unknown = || {
        Invalid::new_err(format!(
            "{object} is no type of keys or values: there are int, str, bytes, float, bool, \
             tuple[…], T | None, and the engine's names, as '(String, u32)'"
        ))
    };
    if let (Ok(class), Err(_)) = (object.cast::<PyType>(), object.getattr("__args__")) {
        let is = |other: Bound<'_, PyType>| class.is(&other);
        return match () {
            () if is(py.get_type::<PyString>()) => Ok("String".to_string()),
            () if is(py.get_type::<PyBytes>()) => Ok(BYTES.to_string()),
            () if is(py.get_type::<PyBool>()) => Ok("bool".to_string()),
            () if is(py.get_type::<PyInt>()) => Ok("i64".to_string()),
            () if is(py.get_type::<PyFloat>()) => Ok("f64".to_string()),
            () => Err(unknown()),
        };
    }
    let args = object.getattr("__args__").map_err(|_| unknown())?;
    let args: Vec<Bound<'_, PyAny>> = args.extract().map_err(|_| unknown())?;
    let origin = object.getattr("__origin__");
    if origin.is_ok_and(|origin| origin.is(py.get_type::<PyTuple>())) {
        let names = args.iter().map(|arg| type_name_within(arg, depth + 1));
        let names = names.collect::<PyResult<Vec<_>>>()?;
        return Ok(match &names[..] {
            [only] => format!("({only},)"),
            all => format!("({})", all.join(", ")),
        });
    }
    let nothing = py.None().bind(py).get_type();
    let (none, rest): (Vec<_>, Vec<_>) = args.into_iter().partition(|arg| arg.is(&nothing));
    match (&none[..], &rest[..]) {
        ([_], [only]) => Ok(format!("Option<{}>", type_name_within(only, depth + 1)?)),
        _ => Err(unknown()),
    }
}
