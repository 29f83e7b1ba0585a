//! Failures, and the exceptions that they become: one class for each kind of the engine's errors.

use millpond::ErrorKind;
use millpond_handles::{DatumError, Fault, TypeNameError};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyException, PyKeyError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

use crate::signals;

create_exception!(millpond, Error, PyException, "What all exceptions of a store are.");

macro_rules! exceptions {
    ($($name:ident $doc:literal,)*) => {
        $(create_exception!(millpond, $name, Error, $doc);)*

        /// Puts all exceptions into the module.
        pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let py = module.py();
            module.add("Error", py.get_type::<Error>())?;
            $(module.add(stringify!($name), py.get_type::<$name>())?;)*
            Ok(())
        }
    };
}

exceptions! {
    Invalid "An option, a policy, a name or an argument that is not possible.",
    NotFound "There is no such store or tree, and none was to be created.",
    Exists "There is one already.",
    OtherType "It has another type, another kind, or belongs to another store.",
    TooLong "A key, a value or a log record that does not fit.",
    InUse "Another process, or other handles, have it.",
    ReadOnly "The store, or the snapshot, is for reading only.",
    Deadlock "The transaction lost in a deadlock: it may succeed if it is restarted.",
    Timeout "A lock was waited for too long: the transaction may succeed if it is restarted.",
    OwnTransaction "A call would wait for the transaction whose block or function it is made in.",
    TransactionFailed "The transaction, savepoint, cursor or snapshot cannot go on.",
    Memory "Memory does not suffice for what was asked for.",
    DiskFull "The device is full. What is stored is intact.",
    Io "The device or the operating system failed.",
    Damaged "What is stored is not what was written.",
    Incomplete "Something of the store is missing, or it must be recovered first.",
    Version "It has a format that this version does not know.",
    Cancelled "The caller gave up.",
    Closed "The store was closed, or the handle was.",
}

/// Why a call failed.
pub(crate) enum Failure {
    /// A handle's or the engine's error.
    Fault(Fault),
    /// The store or the handle was closed.
    Closed(&'static str),
    /// The store is in a call of this thread, which asked to close it.
    InCall,
    /// The store or the handle is of a process of which this one is a fork.
    Forked,
    /// A call that only transactions have, outside of them.
    NoTransaction,
    /// A value that is not of the tree's type.
    Datum(DatumError),
    /// A type that no tree has.
    Type(TypeNameError),
    /// An exception raised by Python code.
    Python(PyErr),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Fault(fault)
    }
}

impl From<millpond::Error> for Failure {
    fn from(error: millpond::Error) -> Failure {
        Failure::Fault(error.into())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Fault(fault) => of_fault(&fault),
            Failure::Closed(what) => Closed::new_err(format!("the {what} is closed")),
            Failure::InCall => InUse::new_err(
                "the store cannot be closed by what one of its calls runs: close it afterwards",
            ),
            Failure::Forked => InUse::new_err(
                "this process is a fork of the one that opened the store, whose handles do not \
                 work here: open the store in this process, when the other one has closed it",
            ),
            Failure::NoTransaction => {
                Invalid::new_err("only transactions lock what they read: call it of tx[tree]")
            }
            Failure::Datum(error) => of_datum(&error),
            Failure::Type(error) => Invalid::new_err(error.to_string()),
            Failure::Python(error) => error,
        }
    }
}

/// The message, with Python's names of types.
fn with_types(error: &DatumError) -> String {
    match error {
        DatumError::Length { wanted, length, found } => {
            let wanted = type_in_python(wanted);
            format!("{found} elements are not those of {wanted}, which has {length}")
        }
        other => other.to_string(),
    }
}

/// The engine's name of a type as Python writes it. Of numbers that Python has no type for, the
/// engine's name is added.
pub(crate) fn type_in_python(name: &str) -> String {
    let within = |front: &str, back: &str| name.strip_prefix(front)?.strip_suffix(back);
    if let Some(inner) = within("Option<", ">") {
        return format!("{} | None", type_in_python(inner));
    }
    if let Some(elements) = within("(", ")").filter(|elements| !elements.is_empty()) {
        let elements: Vec<String> = parts(elements).map(type_in_python).collect();
        return format!("tuple[{}]", elements.join(", "));
    }
    match name {
        "()" => "None".to_string(),
        "bool" => "bool".to_string(),
        "i64" => "int".to_string(),
        "f64" => "float".to_string(),
        "String" => "str".to_string(),
        "Vec<u8>" => "bytes".to_string(),
        "f32" => "float (f32)".to_string(),
        "char" => "str (char)".to_string(),
        _ if name.starts_with('[') => format!("bytes ({name})"),
        _ => format!("int ({name})"),
    }
}

/// The names of the elements of a tuple, or of one that may be None; `None` of another type.
pub(crate) fn elements_of(name: &str) -> Option<impl Iterator<Item = &str>> {
    let name = name.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>')).unwrap_or(name);
    let elements = name.strip_prefix('(')?.strip_suffix(')')?;
    Some(parts(elements))
}

/// The elements of a tuple's name.
fn parts(elements: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let at_comma = move |letter: char| {
        match letter {
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    };
    elements.split(at_comma).map(str::trim).filter(|part| !part.is_empty())
}

fn of_datum(error: &DatumError) -> PyErr {
    let text = with_types(error);
    match error {
        DatumError::OtherType { .. } => PyTypeError::new_err(text),
        DatumError::OutOfRange { .. } => PyOverflowError::new_err(text),
        DatumError::Length { .. } => PyValueError::new_err(text),
        DatumError::Decode(_) => OtherType::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}

fn of_fault(fault: &Fault) -> PyErr {
    if let Some(raised) = signals::take_raised() {
        return raised;
    }
    let text = with_causes(fault);
    match fault.kind() {
        ErrorKind::Invalid => Invalid::new_err(text),
        ErrorKind::NotFound => NotFound::new_err(text),
        ErrorKind::Exists => Exists::new_err(text),
        ErrorKind::OtherType => OtherType::new_err(text),
        ErrorKind::TooLong => TooLong::new_err(text),
        ErrorKind::InUse => InUse::new_err(text),
        ErrorKind::ReadOnly => ReadOnly::new_err(text),
        ErrorKind::Deadlock => Deadlock::new_err(text),
        ErrorKind::Timeout => Timeout::new_err(text),
        ErrorKind::OwnTransaction => OwnTransaction::new_err(text),
        ErrorKind::TransactionFailed => TransactionFailed::new_err(text),
        ErrorKind::Memory => Memory::new_err(text),
        ErrorKind::DiskFull => DiskFull::new_err(text),
        ErrorKind::Io => Io::new_err(text),
        ErrorKind::Damaged => Damaged::new_err(text),
        ErrorKind::Incomplete => Incomplete::new_err(text),
        ErrorKind::Version => Version::new_err(text),
        ErrorKind::Cancelled => Cancelled::new_err(text),
        ErrorKind::Closed => Closed::new_err(text),
        _ => Error::new_err(text),
    }
}

/// The message, and those of the causes that it does not mention itself.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// A key that is not there, as mappings tell it.
pub(crate) fn no_key(key: &Bound<'_, PyAny>) -> PyErr {
    PyKeyError::new_err(key.clone().unbind())
}
