//! Keys and values on the command line, and on the screen.

use std::fmt::Display;
use std::str::FromStr;

use clap::ValueEnum;
use millpond::internals::admin::dump::notation::{escaped, hex, unescape, unhex};
use millpond::internals::encoding::key::{DecodeKey, EncodeKey};
use millpond::internals::encoding::value::{DecodeValue, EncodeValue};

use crate::error::Failure;

/// What a key or value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Type {
    /// Text; \\ \t \n \r \xHH are escapes, and 0x… before digits means bytes in hexadecimal
    Text,
    /// Bytes in hexadecimal digits
    Hex,
    /// An unsigned integer of 4 bytes
    U32,
    /// An unsigned integer of 8 bytes
    U64,
    /// A signed integer of 4 bytes
    I32,
    /// A signed integer of 8 bytes
    I64,
}

/// How keys and values are written.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Notation {
    /// What keys are
    #[arg(long, value_enum, default_value = "text", value_name = "TYPE")]
    key_type: Type,
    /// What values are
    #[arg(long, value_enum, default_value = "text", value_name = "TYPE")]
    value_type: Type,
    /// Keys and values in hexadecimal: the same as --key-type hex --value-type hex
    #[arg(long, conflicts_with_all = ["key_type", "value_type"])]
    hex: bool,
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

fn number<N: FromStr<Err: Display>>(text: &str, name: &str) -> Result<N, Failure> {
    let no_number = |error| Failure::Usage(format!("'{text}' is no {name}: {error}"));
    text.parse().map_err(no_number)
}

/// What is not of its type is shown in hexadecimal.
fn shown<N: ToString, E>(decoded: Result<N, E>, bytes: &[u8]) -> String {
    decoded.map_or_else(|_| format!("0x{}", digits(bytes)), |number| number.to_string())
}

impl Notation {
    fn key_type(&self) -> Type {
        if self.hex { Type::Hex } else { self.key_type }
    }

    fn value_type(&self) -> Type {
        if self.hex { Type::Hex } else { self.value_type }
    }

    /// The key that `text` denotes.
    pub(crate) fn key(&self, text: &str) -> Result<Vec<u8>, Failure> {
        Ok(match self.key_type() {
            Type::Text => bytes_of(text, false)?,
            Type::Hex => bytes_of(text, true)?,
            Type::U32 => number::<u32>(text, "u32")?.to_key_bytes(),
            Type::U64 => number::<u64>(text, "u64")?.to_key_bytes(),
            Type::I32 => number::<i32>(text, "i32")?.to_key_bytes(),
            Type::I64 => number::<i64>(text, "i64")?.to_key_bytes(),
        })
    }

    /// The key prefix that `text` denotes.
    pub(crate) fn prefix(&self, text: &str) -> Result<Vec<u8>, Failure> {
        match self.key_type() {
            Type::Text | Type::Hex => self.key(text),
            _ => Err(Failure::Usage(
                "numbers have no prefixes: use --from and --to, or --key-type hex".to_string(),
            )),
        }
    }

    /// The value that `text` denotes.
    pub(crate) fn value(&self, text: &str) -> Result<Vec<u8>, Failure> {
        Ok(match self.value_type() {
            Type::Text => bytes_of(text, false)?,
            Type::Hex => bytes_of(text, true)?,
            Type::U32 => number::<u32>(text, "u32")?.to_value_bytes(),
            Type::U64 => number::<u64>(text, "u64")?.to_value_bytes(),
            Type::I32 => number::<i32>(text, "i32")?.to_value_bytes(),
            Type::I64 => number::<i64>(text, "i64")?.to_value_bytes(),
        })
    }

    /// A key as text.
    pub(crate) fn show_key(&self, key: &[u8]) -> String {
        match self.key_type() {
            Type::Text => text_of(key),
            Type::Hex => digits(key),
            Type::U32 => shown(<u32 as DecodeKey>::decode(key), key),
            Type::U64 => shown(<u64 as DecodeKey>::decode(key), key),
            Type::I32 => shown(<i32 as DecodeKey>::decode(key), key),
            Type::I64 => shown(<i64 as DecodeKey>::decode(key), key),
        }
    }

    /// A value as text.
    pub(crate) fn show_value(&self, value: &[u8]) -> String {
        match self.value_type() {
            Type::Text => text_of(value),
            Type::Hex => digits(value),
            Type::U32 => shown(<u32 as DecodeValue>::decode(value), value),
            Type::U64 => shown(<u64 as DecodeValue>::decode(value), value),
            Type::I32 => shown(<i32 as DecodeValue>::decode(value), value),
            Type::I64 => shown(<i64 as DecodeValue>::decode(value), value),
        }
    }
}

/// Text that would be read as hexadecimal gets an escape.
fn text_of(bytes: &[u8]) -> String {
    let text = escaped(bytes);
    text.strip_prefix("0x").map(|rest| format!("\\x30x{rest}")).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key_type: Type) -> Notation {
        Notation { key_type, value_type: key_type, hex: false }
    }

    #[test]
    fn what_is_shown_can_be_typed() {
        for bytes in [&b"plain"[..], b"0x12", b"", b"a\tb\\", &[0, 255, b'x']] {
            for notation in [of(Type::Text), of(Type::Hex)] {
                assert_eq!(notation.key(&notation.show_key(bytes)).unwrap(), bytes);
                assert_eq!(notation.value(&notation.show_value(bytes)).unwrap(), bytes);
            }
        }
        for (key_type, text) in [
            (Type::U32, "4294967295"),
            (Type::U64, "18446744073709551615"),
            (Type::I32, "-5"),
            (Type::I64, "-9223372036854775808"),
        ] {
            let notation = of(key_type);
            assert_eq!(notation.show_key(&notation.key(text).unwrap()), text);
            assert_eq!(notation.show_value(&notation.value(text).unwrap()), text);
            assert_eq!(notation.show_key(&[1, 2, 3]), "0x010203");
            assert!(notation.key("x").is_err() && notation.prefix(text).is_err());
        }
        let minus = of(Type::I64).key("-1").unwrap();
        assert!(minus < of(Type::I64).key("0").unwrap(), "keys are in the order of numbers");
    }
}
