//! Python's values as the engine's, and types as either calls them.

use std::fmt::Display;

use millpond_handles::{DEPTH_MAX, Datum, DatumError, KeyType, ValueType};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::error::{Failure, Invalid, elements_of, type_in_python};

/// The types of a tree's keys and values.
pub(crate) struct Types {
    pub(crate) key: KeyType,
    pub(crate) value: ValueType,
    /// True if these are byte strings, which need no [`Datum`].
    key_is_bytes: bool,
    value_is_bytes: bool,
    value_is_str: bool,
}

/// The type's name if none is given.
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
            return encode_bytes(key);
        }
        encode(key, &self.key, |datum| self.key.encode(datum))
    }

    /// Encodes a prefix of keys.
    pub(crate) fn encode_prefix(&self, prefix: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        if self.key_is_bytes {
            return encode_bytes(prefix);
        }
        encode(prefix, &self.key, |datum| self.key.encode_prefix(datum))
    }

    pub(crate) fn encode_value(&self, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        if self.value_is_bytes {
            return encode_bytes(value);
        }
        encode(value, &self.value, |datum| self.value.encode(datum))
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
        key: &[u8],
        value: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let item = [self.key(py, key)?, self.value(py, value)?];
        Ok(PyTuple::new(py, item)?.into_any())
    }
}

/// Why there is no [`Datum`] of an object.
enum Unfit {
    /// No type of keys and values has such.
    Other,
    /// An exception raised by Python code during the conversion.
    Raised(PyErr),
}

impl From<PyErr> for Unfit {
    fn from(raised: PyErr) -> Unfit {
        Unfit::Raised(raised)
    }
}

/// Encodes an object with `encode`; `wanted` is the type, for messages.
fn encode(
    object: &Bound<'_, PyAny>,
    wanted: impl Display,
    encode: impl FnOnce(&Datum) -> Result<Vec<u8>, DatumError>,
) -> PyResult<Vec<u8>> {
    match datum_within(object, 0) {
        Ok(datum) => match encode(&datum) {
            Ok(bytes) => Ok(bytes),
            Err(DatumError::OtherType { .. }) => Err(other_type(object, &wanted.to_string())),
            Err(error) => Err(Failure::Datum(error).into()),
        },
        Err(Unfit::Other) => Err(other_type(object, &wanted.to_string())),
        Err(Unfit::Raised(raised)) => Err(raised),
    }
}

/// The error of an object that is not of a type, or of the element of a tuple that is not: with
/// the name of its class, and Python's name of the type.
fn other_type(object: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    if let (Ok(tuple), Some(elements)) = (object.cast::<PyTuple>(), elements_of(wanted)) {
        for (element, wanted) in tuple.iter().zip(elements) {
            if !is_of(&element, wanted) {
                return other_type(&element, wanted);
            }
        }
    }
    let found = match object.is_none() {
        true => Ok("None".to_string()),
        false => object.get_type().name().map(|name| name.to_string()),
    };
    let wanted = type_in_python(wanted);
    let advice = match wanted == "bytes" && object.is_instance_of::<PyString>() {
        true => ": encode it, as by text.encode()",
        false => "",
    };
    match found {
        Ok(found) => PyTypeError::new_err(format!("{found} is no {wanted}{advice}")),
        Err(raised) => raised,
    }
}

/// Returns `true` if an object is of a type, or at least of its kind.
fn is_of(object: &Bound<'_, PyAny>, wanted: &str) -> bool {
    match (datum_within(object, 0), wanted.parse::<ValueType>()) {
        (Ok(datum), Ok(wanted)) => {
            !matches!(wanted.encode(&datum), Err(DatumError::OtherType { .. }))
        }
        (Err(Unfit::Other), _) => false,
        _ => true,
    }
}

/// A copy of a byte string, or of anything that has a buffer of bytes.
fn bytes_of(object: &Bound<'_, PyAny>) -> Result<Vec<u8>, Unfit> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    let py = object.py();
    match PyBuffer::<u8>::get(object) {
        Ok(bytes) => Ok(bytes.to_vec(py)?),
        // It has no buffer, or one of something else.
        Err(e) if e.is_instance_of::<PyTypeError>(py) => Err(Unfit::Other),
        Err(e) if e.is_instance_of::<PyBufferError>(py) => Err(Unfit::Other),
        Err(raised) => Err(Unfit::Raised(raised)),
    }
}

fn encode_bytes(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    bytes_of(object).map_err(|unfit| match unfit {
        Unfit::Other => other_type(object, BYTES),
        Unfit::Raised(raised) => raised,
    })
}

/// The value of what is nested in `depth` tuples.
fn datum_within(object: &Bound<'_, PyAny>, depth: usize) -> Result<Datum, Unfit> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Datum::Str(text.to_str()?.to_string()));
    }
    // Before integers, which truth values are, too.
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Datum::Bool(flag.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return Ok(integer_of(object)?);
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
            return Err(PyValueError::new_err(text).into());
        }
        let elements = tuple.iter().map(|element| datum_within(&element, depth + 1));
        return Ok(Datum::Tuple(elements.collect::<Result<_, _>>()?));
    }
    if object.is_none() {
        return Ok(Datum::None);
    }
    if let Some(datum) = numpy_datum(object)? {
        return Ok(datum);
    }
    if let Some(datum) = index_of(object)? {
        return Ok(datum);
    }
    Ok(Datum::Bytes(bytes_of(object)?))
}

/// A truth value or a float of NumPy, which are no Python's. Numbers of other classes may have a
/// float near them, but are none: it would be another key than the one that was given.
fn numpy_datum(object: &Bound<'_, PyAny>) -> PyResult<Option<Datum>> {
    let class = object.get_type();
    if class.module()?.to_cow()? != "numpy" {
        return Ok(None);
    }
    match &*class.name()?.to_cow()? {
        "bool" | "bool_" => Ok(Some(Datum::Bool(object.is_truthy()?))),
        "float16" | "float32" => Ok(Some(Datum::Float(object.extract()?))),
        name @ ("longdouble" | "float96" | "float128") => {
            let number: f64 = object.extract()?;
            if !number.is_nan() && !object.eq(number)? {
                let text = format!("the {name} {object} is no float exactly");
                return Err(PyOverflowError::new_err(text));
            }
            Ok(Some(Datum::Float(number)))
        }
        _ => Ok(None),
    }
}

/// The integer that an object of another class stands for, as those of NumPy do.
fn index_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Datum>> {
    let (py, class) = (object.py(), object.get_type());
    if !class.hasattr("__index__")? {
        return Ok(None);
    }
    let number = match object.call_method0("__index__") {
        Ok(number) => number,
        // An array has the method, and an index only if it is a single number.
        Err(e) if e.is_instance_of::<PyTypeError>(py) && class.hasattr("__len__")? => {
            return Ok(None);
        }
        Err(raised) => return Err(raised),
    };
    if !number.is_instance_of::<PyInt>() {
        let found = number.get_type().name()?;
        let text = format!("__index__ returned non-int (type {found})");
        return Err(PyTypeError::new_err(text));
    }
    integer_of(&number).map(Some)
}

/// An integer, which is one of Python's.
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
