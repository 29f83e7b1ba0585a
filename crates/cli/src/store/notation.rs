//! Notation of keys and values on the command line and on the screen.
//!
//! A tree that a program created with types knows the types of its keys and values. They are then
//! written as literals of these types. In other trees, keys and values are text.

use std::fmt::Display;
use std::str::FromStr;

use millpond::internals::admin::dump::notation::{escaped, hex, unescape, unhex};
use millpond::internals::admin::dump::{Literals, ReadLiterals};
use millpond::{Structure, TypeNames};
use millpond_handles::{Datum, DatumError, KeyType, ValueType};

use super::literal;
use crate::error::Failure;

/// The form in which a key or value is written.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Form<T> {
    /// Text with escapes, or `0x` and digits.
    Text,
    /// Hexadecimal digits.
    Hex,
    /// A literal of a type.
    Of(T),
}

/// Requested forms of keys and values.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Notation {
    /// Form of keys: text, hex, or a type such as u64 or '(String, u32)'. The default is the type
    /// that the store knows, or text
    #[arg(long, value_name = "TYPE", value_parser = form::<KeyType>)]
    key_type: Option<Form<KeyType>>,
    /// Form of values, like --key-type
    #[arg(long, value_name = "TYPE", value_parser = form::<ValueType>)]
    value_type: Option<Form<ValueType>>,
    /// Keys and values in hexadecimal: short for --key-type hex --value-type hex
    #[arg(long, conflicts_with_all = ["key_type", "value_type"])]
    hex: bool,
}

fn form<T: FromStr<Err: Display>>(text: &str) -> Result<Form<T>, String> {
    match text {
        "text" => Ok(Form::Text),
        "hex" => Ok(Form::Hex),
        name => match name.parse() {
            Ok(of) => Ok(Form::Of(of)),
            Err(error) => Err(format!("{error}; or text, or hex")),
        },
    }
}

/// Returns the literal form of a type that the store knows. Returns text if the store has no type,
/// or one that only a program knows.
fn known<T: FromStr>(name: Option<&str>) -> Form<T> {
    let literal = name.filter(|name| !matches!(*name, "String" | "Vec<u8>"));
    literal.and_then(|name| name.parse().ok()).map_or(Form::Text, Form::Of)
}

fn name<T: Display>(form: Option<&Form<T>>) -> Option<String> {
    match form {
        Some(Form::Of(of)) => Some(of.to_string()),
        _ => None,
    }
}

/// Refuses a type that differs from the store's. With `unknown_too`, a type name that only a
/// program knows counts as different.
fn agrees<T: FromStr + Display + PartialEq>(
    form: &Form<T>,
    known: Option<&str>,
    unknown_too: bool,
    what: &str,
    name: &str,
) -> Result<(), Failure> {
    let (Form::Of(asked), Some(known)) = (form, known) else { return Ok(()) };
    let is_other = known.parse().map_or(unknown_too, |known: T| known != *asked);
    match is_other {
        true => Err(Failure::Usage(format!("{what} of '{name}' are {known}, not {asked}"))),
        false => Ok(()),
    }
}

impl Notation {
    /// Returns the notation for a structure whose keys and values are of `types`.
    pub(crate) fn of(&self, types: &TypeNames) -> TypedNotation {
        if self.hex {
            return TypedNotation { key: Form::Hex, value: Form::Hex };
        }
        let key = self.key_type.clone().unwrap_or_else(|| known(types.key.as_deref()));
        let value = self.value_type.clone().unwrap_or_else(|| known(types.value.as_deref()));
        TypedNotation { key, value }
    }

    /// Returns the types of a structure that is created with this notation.
    pub(crate) fn types(&self) -> TypeNames {
        TypeNames::new(name(self.key_type.as_ref()), name(self.value_type.as_ref()))
    }

    /// Like [`Notation::of`], for lookups in the structure `name`: a key of another type could not
    /// be found. A type that only a program knows is accepted, since the caller may know it.
    pub(crate) fn to_find(&self, types: &TypeNames, name: &str) -> Result<TypedNotation, Failure> {
        let notation = self.of(types);
        agrees(&notation.key, types.key.as_deref(), false, "keys", name)?;
        Ok(notation)
    }

    /// Like [`Notation::of`], for writes to the structure `name`: its typed handles must be able
    /// to read the entries.
    pub(crate) fn to_write(&self, types: &TypeNames, name: &str) -> Result<TypedNotation, Failure> {
        let notation = self.of(types);
        agrees(&notation.key, types.key.as_deref(), true, "keys", name)?;
        agrees(&notation.value, types.value.as_deref(), true, "values", name)?;
        Ok(notation)
    }
}

/// The forms in which keys and values of one structure are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TypedNotation {
    key: Form<KeyType>,
    value: Form<ValueType>,
}

/// Types of one structure, as far as their names determine the encoding.
pub(crate) struct KnownTypes<'n> {
    name: &'n str,
    key: Option<KeyType>,
    value: Option<ValueType>,
}

/// Refuses bytes that are no value of the store's type.
fn check<T: Display>(
    known: Option<&T>,
    decode: impl FnOnce(&T) -> Result<Datum, DatumError>,
    what: &str,
    name: &str,
) -> Result<(), Failure> {
    let Some(of) = known else { return Ok(()) };
    let wrong = |error: DatumError| {
        let text = format!("{what} of '{name}' are {of}, and this is none: {error}");
        Failure::Usage(text)
    };
    decode(of).map(drop).map_err(wrong)
}

impl<'n> KnownTypes<'n> {
    /// Reads the types of the structure `name`.
    pub(crate) fn of(types: &TypeNames, name: &'n str) -> KnownTypes<'n> {
        let key = types.key.as_deref().and_then(|key| key.parse().ok());
        let value = types.value.as_deref().and_then(|value| value.parse().ok());
        KnownTypes { name, key, value }
    }

    /// Refuses a key that the structure's typed handles could not read.
    pub(crate) fn check_key(&self, key: &[u8]) -> Result<(), Failure> {
        check(self.key.as_ref(), |of| of.decode(key), "keys", self.name)
    }

    /// Refuses a value that the structure's typed handles could not read.
    pub(crate) fn check_value(&self, value: &[u8]) -> Result<(), Failure> {
        check(self.value.as_ref(), |of| of.decode(value), "values", self.name)
    }

    /// Returns `true` if every sequence of bytes is a value.
    pub(crate) fn takes_any_value(&self) -> bool {
        self.value.as_ref().is_none_or(|of| of.to_string() == "Vec<u8>")
    }
}

/// Returns the reader of literals for a dump, or `None` if keys and values are text.
pub(crate) fn literals_of(kind: Structure, types: &TypeNames) -> Option<Box<ReadLiterals>> {
    let key = match known::<KeyType>(types.key.as_deref()) {
        Form::Of(of) if kind != Structure::Heap => Some(of),
        _ => None,
    };
    let value = match known::<ValueType>(types.value.as_deref()) {
        Form::Of(of) => Some(of),
        _ => None,
    };
    if key.is_none() && value.is_none() {
        return None;
    }
    Some(Box::new(move |key_bytes, value_bytes| Literals {
        key: key.as_ref().map(|of| shown(of.decode(key_bytes), key_bytes)),
        value: value.as_ref().map(|of| shown(of.decode(value_bytes), value_bytes)),
    }))
}

fn digits(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    hex(bytes, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn bytes_of(text: &str, is_hex: bool) -> Result<Vec<u8>, Failure> {
    let read = if is_hex || text.starts_with("0x") { unhex } else { unescape };
    let mut bytes = Vec::new();
    read(text.as_bytes(), &mut bytes)
        .map_err(|error| Failure::Usage(format!("'{text}' is no sequence of bytes: {error}")))?;
    Ok(bytes)
}

/// Encodes the literal `text` as a value of type `of`.
fn encoded<T: Display>(
    text: &str,
    of: &T,
    encode: impl FnOnce(&Datum) -> Result<Vec<u8>, DatumError>,
) -> Result<Vec<u8>, Failure> {
    let wrong = |error: String| Failure::Usage(format!("'{text}' is no {of}: {error}"));
    let datum = literal::parse(text).map_err(wrong)?;
    encode(&datum).map_err(|error| wrong(error.to_string()))
}

/// Returns a literal, or hexadecimal digits if the bytes are not of the type.
fn shown(datum: Result<Datum, DatumError>, bytes: &[u8]) -> String {
    datum.map_or_else(|_| format!("0x{}", digits(bytes)), |datum| literal::show(&datum))
}

impl TypedNotation {
    /// Returns the key that `text` denotes.
    pub(crate) fn key(&self, text: &str) -> Result<Vec<u8>, Failure> {
        match &self.key {
            Form::Text => bytes_of(text, false),
            Form::Hex => bytes_of(text, true),
            Form::Of(of) => encoded(text, of, |datum| of.encode(datum)),
        }
    }

    /// Returns the key prefix that `text` denotes: the first elements, if keys are tuples.
    pub(crate) fn prefix(&self, text: &str) -> Result<Vec<u8>, Failure> {
        match &self.key {
            Form::Of(of) if of.to_string().starts_with('(') => {
                encoded(text, of, |datum| of.encode_prefix(datum))
            }
            Form::Of(of) => Err(Failure::Usage(format!(
                "keys of type {of} have no prefixes: use --from and --to, or --key-type hex"
            ))),
            _ => self.key(text),
        }
    }

    /// Returns the value that `text` denotes.
    pub(crate) fn value(&self, text: &str) -> Result<Vec<u8>, Failure> {
        match &self.value {
            Form::Text => bytes_of(text, false),
            Form::Hex => bytes_of(text, true),
            Form::Of(of) => encoded(text, of, |datum| of.encode(datum)),
        }
    }

    /// Formats a key as text.
    pub(crate) fn show_key(&self, key: &[u8]) -> String {
        match &self.key {
            Form::Text => text_of(key),
            Form::Hex => digits(key),
            Form::Of(of) => shown(of.decode(key), key),
        }
    }

    /// Formats a value as text.
    pub(crate) fn show_value(&self, value: &[u8]) -> String {
        match &self.value {
            Form::Text => text_of(value),
            Form::Hex => digits(value),
            Form::Of(of) => shown(of.decode(value), value),
        }
    }
}

/// Formats bytes as text. Text that would be read as hexadecimal gets an escape.
fn text_of(bytes: &[u8]) -> String {
    let text = escaped(bytes);
    text.strip_prefix("0x").map(|rest| format!("\\x30x{rest}")).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> TypedNotation {
        TypedNotation { key: form(name).unwrap(), value: form(name).unwrap() }
    }

    #[test]
    fn what_is_shown_can_be_typed() {
        for bytes in [&b"plain"[..], b"0x12", b"", b"a\tb\\", &[0, 255, b'x']] {
            for notation in [of("text"), of("hex")] {
                assert_eq!(notation.key(&notation.show_key(bytes)).unwrap(), bytes);
                assert_eq!(notation.value(&notation.show_value(bytes)).unwrap(), bytes);
            }
        }
        for (name, text) in [
            ("u32", "4294967295"),
            ("u64", "18446744073709551615"),
            ("i32", "-5"),
            ("i64", "-9223372036854775808"),
            ("(String, u32)", r#"("bolts", 8)"#),
            ("Option<char>", "None"),
            ("f64", "-0.25"),
        ] {
            let notation = of(name);
            assert_eq!(notation.show_key(&notation.key(text).unwrap()), text);
            assert_eq!(notation.show_value(&notation.value(text).unwrap()), text);
            assert_eq!(notation.show_key(&[9, 2, 3]), "0x090203");
            assert!(notation.key("x").is_err(), "{name}");
        }
        let minus = of("i64").key("-1").unwrap();
        assert!(minus < of("i64").key("0").unwrap(), "keys are in the order of numbers");
        assert!(of("u64").prefix("7").is_err());
        let pair = of("(String, u32)");
        let (front, whole) = (pair.prefix(r#"("bolts",)"#), pair.key(r#"("bolts", 8)"#));
        assert!(whole.unwrap().starts_with(&front.unwrap()));
    }

    #[test]
    fn types_that_the_store_knows_are_taken_and_what_contradicts_them_is_not_written() {
        let plain = Notation { key_type: None, value_type: None, hex: false };
        let name = |text: &str| Some(text.to_string());
        let types = TypeNames::new(name("(String, u32)"), name("u64"));
        let typed = plain.to_write(&types, "parts").unwrap();
        assert_eq!(typed.show_value(&typed.value("7").unwrap()), "7");
        assert!(typed.key("bolts").is_err());
        let account = TypeNames::new(name("String"), name("Account"));
        let text = TypedNotation { key: Form::Text, value: Form::Text };
        assert_eq!(plain.of(&account), text);
        let other = Notation { key_type: form("u64").ok(), ..plain.clone() };
        let Err(Failure::Usage(error)) = other.to_write(&types, "parts") else { panic!("refused") };
        assert_eq!(error, "keys of 'parts' are (String, u32), not u64");
        let spaced = TypeNames::new(name("(String,u32)"), name("u64"));
        let same = Notation { key_type: form("(String, u32)").ok(), ..plain.clone() };
        assert!(same.to_write(&spaced, "parts").is_ok());
        assert!(Notation { hex: true, ..plain }.to_write(&types, "parts").is_ok());
        assert!(form::<KeyType>("Account").unwrap_err().contains("or text, or hex"));
    }
}
