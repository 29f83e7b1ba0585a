//! Names of the types of keys and values that trees keep, and their meaning.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// Deepest nesting of a type that is accepted.
pub const DEPTH_MAX: usize = 16;
/// Characters of a name that an error shows.
const SHOWN_MAX: usize = 200;
/// Maximum number of elements of a tuple, the engine's limit.
const TUPLE_MAX: usize = 8;

/// A type of keys or values that the engine supports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TypeName {
    Unit,
    Bool,
    Char,
    Unsigned(u32),
    Signed(u32),
    F32,
    F64,
    String,
    Bytes,
    Array(usize),
    Option(Box<TypeName>),
    Tuple(Vec<TypeName>),
}

/// Reason that a name is not a type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypeNameError {
    /// The name is unknown, or belongs to a type of the program that created the tree.
    #[error(
        "'{name}' is no type of keys or values: there are u8 to u128, i8 to i128, f32, f64, bool, \
         char, String, Vec<u8>, [u8; N], Option<T> and tuples of up to 8 such as (String, u32)"
    )]
    Unknown {
        /// The name.
        name: String,
    },
    /// The type is allowed for values, and not for keys.
    #[error("'{name}' is no type of keys: nothing could be told apart by it")]
    NoKey {
        /// The name.
        name: String,
    },
}

impl Display for TypeName {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            TypeName::Unit => f.write_str("()"),
            TypeName::Bool => f.write_str("bool"),
            TypeName::Char => f.write_str("char"),
            TypeName::Unsigned(bits) => write!(f, "u{bits}"),
            TypeName::Signed(bits) => write!(f, "i{bits}"),
            TypeName::F32 => f.write_str("f32"),
            TypeName::F64 => f.write_str("f64"),
            TypeName::String => f.write_str("String"),
            TypeName::Bytes => f.write_str("Vec<u8>"),
            TypeName::Array(length) => write!(f, "[u8; {length}]"),
            TypeName::Option(inner) => write!(f, "Option<{inner}>"),
            TypeName::Tuple(elements) => match &elements[..] {
                [only] => write!(f, "({only},)"),
                all => {
                    f.write_str("(")?;
                    for (at, element) in all.iter().enumerate() {
                        let between = if at == 0 { "" } else { ", " };
                        write!(f, "{between}{element}")?;
                    }
                    f.write_str(")")
                }
            },
        }
    }
}

impl FromStr for TypeName {
    type Err = TypeNameError;

    fn from_str(name: &str) -> Result<TypeName, TypeNameError> {
        let unknown = || {
            let mut shown: String = name.chars().take(SHOWN_MAX).collect();
            if shown.len() < name.len() {
                shown.push('…');
            }
            TypeNameError::Unknown { name: shown }
        };
        let mut rest = name;
        let found = take(&mut rest, 0).ok_or_else(unknown)?;
        if !rest.trim_start().is_empty() {
            return Err(unknown());
        }
        Ok(found)
    }
}

impl TypeName {
    /// Returns `true` if the type contains `()`, which keys must not.
    pub(crate) fn has_unit(&self) -> bool {
        match self {
            TypeName::Unit => true,
            TypeName::Option(inner) => inner.has_unit(),
            TypeName::Tuple(elements) => elements.iter().any(TypeName::has_unit),
            _ => false,
        }
    }
}

/// Drops `text` from the front of the rest.
fn eat(rest: &mut &str, text: &str) -> bool {
    let left = rest.trim_start().strip_prefix(text);
    *rest = left.unwrap_or(rest);
    left.is_some()
}

/// Takes a type from the front of the rest.
fn take(rest: &mut &str, depth: usize) -> Option<TypeName> {
    if depth > DEPTH_MAX {
        return None;
    }
    if eat(rest, "(") {
        return take_tuple(rest, depth);
    }
    if eat(rest, "[") {
        let closed = eat(rest, "u8") && eat(rest, ";");
        let digits = rest.trim_start();
        let end = digits.find(|c: char| !c.is_ascii_digit())?;
        let length = digits[..end].parse().ok()?;
        *rest = &digits[end..];
        return (closed && eat(rest, "]")).then_some(TypeName::Array(length));
    }
    if eat(rest, "Option<") {
        let inner = take(rest, depth + 1)?;
        // Only one encoding means "nothing", so it must not have two meanings.
        let is_plain = !matches!(inner, TypeName::Unit | TypeName::Option(_));
        return (is_plain && eat(rest, ">")).then(|| TypeName::Option(Box::new(inner)));
    }
    if eat(rest, "Vec<u8>") {
        return Some(TypeName::Bytes);
    }
    let word = rest.trim_start();
    let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
    let (word, left) = word.split_at(end);
    *rest = left;
    scalar(word)
}

fn take_tuple(rest: &mut &str, depth: usize) -> Option<TypeName> {
    let mut elements = Vec::new();
    while !eat(rest, ")") {
        elements.push(take(rest, depth + 1)?);
        if !eat(rest, ",") {
            // `(u32)` is not a tuple, but u32 in parentheses.
            let is_whole = elements.len() > 1 && eat(rest, ")");
            return tuple(elements).filter(|_| is_whole);
        }
    }
    if elements.is_empty() { Some(TypeName::Unit) } else { tuple(elements) }
}

fn tuple(elements: Vec<TypeName>) -> Option<TypeName> {
    (elements.len() <= TUPLE_MAX).then_some(TypeName::Tuple(elements))
}

fn scalar(word: &str) -> Option<TypeName> {
    let bits = |digits: &str| match digits {
        "8" | "16" | "32" | "64" | "128" => digits.parse().ok(),
        _ => None,
    };
    match word {
        "bool" => Some(TypeName::Bool),
        "char" => Some(TypeName::Char),
        "f32" => Some(TypeName::F32),
        "f64" => Some(TypeName::F64),
        "String" => Some(TypeName::String),
        _ => {
            let unsigned = word.strip_prefix('u').and_then(bits).map(TypeName::Unsigned);
            unsigned.or_else(|| word.strip_prefix('i').and_then(bits).map(TypeName::Signed))
        }
    }
}
