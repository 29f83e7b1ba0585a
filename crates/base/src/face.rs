//! Names in messages, as each face of Millpond spells them.
//!
//! A library's message names a parameter that its caller can set: `columns` in Rust and in Python
//! is `--columns` on the command line. The library names the [`Parameter`]; the program that shows
//! messages says once, when it starts, which face it is ([`Face::show`]).

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

/// A face of Millpond: the way in which its user sets parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Face {
    /// A program in Rust, or in C.
    Rust,
    /// A command line.
    CommandLine,
    /// A program in Python.
    Python,
}

/// The face of the process.
static SHOWN: AtomicU8 = AtomicU8::new(Face::Rust as u8);

impl Face {
    /// Makes all messages of this process spell names as this face does. Without it they are
    /// spelled as in Rust.
    pub fn show(self) {
        SHOWN.store(self as u8, Ordering::Relaxed);
    }

    /// Returns the face of this process.
    fn shown() -> Face {
        match SHOWN.load(Ordering::Relaxed) {
            face if face == Face::CommandLine as u8 => Face::CommandLine,
            face if face == Face::Python as u8 => Face::Python,
            _ => Face::Rust,
        }
    }
}

/// A parameter that a message names.
///
/// ```
/// use millpond_base::Parameter;
/// const MAP_IDS: Parameter = Parameter::new("map_ids");
/// assert_eq!(format!("{MAP_IDS} numbers pages"), "`map_ids` numbers pages");
/// assert_eq!(MAP_IDS.set_to("true").to_string(), "`map_ids=true`");
/// assert_eq!(MAP_IDS.on_command_line(), "--map-ids");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    name: &'static str,
    flag: &'static str,
}

impl Parameter {
    /// Returns the parameter that is called `name` in programs, in snake case. Its flag is the
    /// same with hyphens.
    pub const fn new(name: &'static str) -> Parameter {
        Parameter { name, flag: name }
    }

    /// Returns the parameter that is called `name` in programs and `flag` on the command line,
    /// given without its two hyphens.
    pub const fn with_flag(name: &'static str, flag: &'static str) -> Parameter {
        Parameter { name, flag }
    }

    /// Returns the parameter with a value, as a caller would write it.
    pub fn set_to(self, value: impl fmt::Display) -> impl fmt::Display {
        fmt::from_fn(move |f| match Face::shown() {
            Face::CommandLine => write!(f, "{} {value}", self.on_command_line()),
            Face::Rust | Face::Python => write!(f, "`{}={value}`", self.name),
        })
    }

    /// Returns the parameter's flag.
    pub fn on_command_line(self) -> String {
        format!("--{}", self.flag.replace('_', "-"))
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Face::shown() {
            Face::CommandLine => f.write_str(&self.on_command_line()),
            Face::Rust | Face::Python => write!(f, "`{}`", self.name),
        }
    }
}

/// Words of a message that each face says in its own way.
///
/// ```
/// use millpond_base::Spelled;
/// const LIST: Spelled = Spelled {
///     rust: "`millpond policies` lists them",
///     command_line: "`millpond policies` lists them",
///     python: "`millpond.policies()` lists them",
/// };
/// assert_eq!(LIST.to_string(), "`millpond policies` lists them");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spelled {
    /// In Rust and C.
    pub rust: &'static str,
    /// On the command line.
    pub command_line: &'static str,
    /// In Python.
    pub python: &'static str,
}

impl fmt::Display for Spelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match Face::shown() {
            Face::Rust => self.rust,
            Face::CommandLine => self.command_line,
            Face::Python => self.python,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_face_has_its_spelling() {
        const FORMAT: Parameter = Parameter::with_flag("format", "trace_format");
        const SAID: Spelled = Spelled { rust: "r", command_line: "c", python: "p" };
        let said = || format!("{FORMAT} {} {SAID}", FORMAT.set_to("csv"));
        assert_eq!(said(), "`format` `format=csv` r");
        Face::CommandLine.show();
        assert_eq!(said(), "--trace-format --trace-format csv c");
        Face::Python.show();
        assert_eq!(said(), "`format` `format=csv` p");
        Face::Rust.show();
    }
}
