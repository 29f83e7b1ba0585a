//! Reader of dumps in all forms.

use std::io::BufRead;

use serde_json::{Map, Value};

use crate::admin::dump::form::{Form, HEADER, KEYS, VALUES, VERSION, WORDS};
use crate::admin::dump::notation::{NotationError, unescape, unhex};
use crate::store::entry::{Structure, TypeNames};

/// A fault of a dump, with its line.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the dump: {fault}")]
pub struct DumpError {
    /// The line, counted from 1.
    pub line: u64,
    /// The fault.
    pub fault: DumpFault,
}

/// A fault of a line of a dump.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpFault {
    /// The line could not be read.
    #[error("cannot be read: {0}")]
    Read(std::io::Error),
    /// The input is not a dump, or not the beginning of one.
    #[error("not the beginning of a dump (`@millpond-dump 1 text`): is it one?")]
    Header,
    /// The dump has another version.
    #[error("the dump has format version {found}, and this program reads version {known}")]
    Version {
        /// The dump's version.
        found: String,
        /// The version that this library reads.
        known: u64,
    },
    /// The line is neither an entry nor anything else.
    #[error(
        "neither an entry (key, a tab, value) nor `@tree NAME`, `@hash NAME` or `@heap NAME` nor \
         `@end COUNT`"
    )]
    Line,
    /// A key, value or name has an invalid notation.
    #[error(transparent)]
    Notation(#[from] NotationError),
    /// A line is not valid JSON.
    #[error("not the JSON of a dump: {0}")]
    Json(String),
    /// The name of a structure is not UTF-8.
    #[error("the name of a tree, hash index or heap is no UTF-8")]
    Name,
    /// An entry precedes the first structure.
    #[error("an entry before the first `@tree`, `@hash` or `@heap`")]
    NoTree,
    /// The dump ends early.
    #[error("the dump ends without `@end`: its last part is missing")]
    Cut,
    /// There is more input behind the dump.
    #[error(
        "more follows behind `@end`, which is not loaded: give one dump at a time (what came before \
         it is loaded)"
    )]
    BehindEnd,
    /// The number of entries is wrong.
    #[error("the dump had {said} entries when it was written, and {found} are there")]
    Count {
        /// The number in the last line.
        said: u64,
        /// The number of entries found.
        found: u64,
    },
}

millpond_base::from_variants! { DumpFault {
    Read(std::io::Error),
} }

/// Content of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// Entries of this structure follow. The keys of a heap's records are the decimal digits of
    /// their former ids. The names of its types are included, as far as the dump has them.
    Structure(Structure, String, TypeNames),
    /// An entry; its key and value are in the buffers.
    Entry,
    /// The dump is complete.
    End,
}

/// Reads a dump line by line.
pub struct DumpReader<R: BufRead> {
    input: R,
    form: Form,
    line: u64,
    text: Vec<u8>,
    in_tree: bool,
    entries: u64,
}

impl<R: BufRead> DumpReader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// The input is not a dump of this version.
    pub fn new(input: R) -> Result<DumpReader<R>, DumpError> {
        let form = Form::Text;
        let mut reader =
            DumpReader { input, form, line: 0, text: Vec::new(), in_tree: false, entries: 0 };
        match reader.header() {
            Ok(form) => reader.form = form,
            Err(fault) => return Err(DumpError { line: reader.line.max(1), fault }),
        }
        Ok(reader)
    }

    /// Reads the next line without its end; `false` at the end of the input.
    fn next_line(&mut self) -> Result<bool, DumpFault> {
        self.text.clear();
        self.line += 1;
        if self.input.read_until(b'\n', &mut self.text)? == 0 {
            return Ok(false);
        }
        for end in [b'\n', b'\r'] {
            if self.text.last() == Some(&end) {
                self.text.pop();
            }
        }
        Ok(true)
    }

    fn header(&mut self) -> Result<Form, DumpFault> {
        if !self.next_line()? {
            return Err(DumpFault::Header);
        }
        let text = String::from_utf8_lossy(&self.text).into_owned();
        let version = |found: &str| match found.parse::<u64>() {
            Ok(VERSION) => Ok(()),
            _ => Err(DumpFault::Version { found: found.to_string(), known: VERSION }),
        };
        if let Some(rest) = text.strip_prefix(HEADER) {
            let (found, form) = rest.split_once(' ').ok_or(DumpFault::Header)?;
            version(found)?;
            return match form.trim() {
                "text" => Ok(Form::Text),
                "hex" => Ok(Form::Hex),
                _ => Err(DumpFault::Header),
            };
        }
        let object: Value = serde_json::from_str(&text).map_err(|_| DumpFault::Header)?;
        version(&object.get("millpond_dump").ok_or(DumpFault::Header)?.to_string())?;
        Ok(Form::Json)
    }

    /// Returns the number of the last line, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next item. An entry's key and value replace the content of `key` and `value`.
    ///
    /// # Errors
    /// A line is invalid, or the dump ends early.
    pub fn read(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Item, DumpError> {
        self.read_item(key, value).map_err(|fault| DumpError { line: self.line, fault })
    }

    fn read_item(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Item, DumpFault> {
        loop {
            if !self.next_line()? {
                return Err(DumpFault::Cut);
            }
            let blank = self.text.is_empty() || self.text.starts_with(b"#");
            if blank && self.form != Form::Json {
                continue;
            }
            key.clear();
            value.clear();
            let item = match self.form {
                Form::Json => self.json(key, value)?,
                Form::Text | Form::Hex => self.text(key, value)?,
            };
            match item {
                Item::Structure(..) => self.in_tree = true,
                Item::Entry if !self.in_tree => return Err(DumpFault::NoTree),
                Item::Entry => self.entries += 1,
                Item::End => {}
            }
            return Ok(item);
        }
    }

    /// Reads the rest of the input, behind [`Item::End`].
    ///
    /// # Errors
    /// There is more than blank lines, such as another dump.
    pub(crate) fn expect_end(&mut self) -> Result<(), DumpError> {
        let mut is_blank = || -> Result<(), DumpFault> {
            while self.next_line()? {
                if !self.text.is_empty() {
                    return Err(DumpFault::BehindEnd);
                }
            }
            Ok(())
        };
        is_blank().map_err(|fault| DumpError { line: self.line, fault })
    }

    fn end(&self, said: u64) -> Result<Item, DumpFault> {
        let found = self.entries;
        if said == found { Ok(Item::End) } else { Err(DumpFault::Count { said, found }) }
    }

    fn text(&self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Item, DumpFault> {
        for (kind, word) in WORDS {
            let rest = self.text.strip_prefix(b"@").and_then(|t| t.strip_prefix(word.as_bytes()));
            if let Some(name) = rest.and_then(|rest| rest.strip_prefix(b" ")) {
                let mut words = name.split(|byte| *byte == b'\t');
                let mut next = || match words.next() {
                    None => Ok(String::new()),
                    Some(word) => {
                        let mut bytes = Vec::new();
                        unescape(word, &mut bytes)?;
                        String::from_utf8(bytes).map_err(|_| DumpFault::Name)
                    }
                };
                let (name, key, value) = (next()?, next()?, next()?);
                if words.next().is_some() {
                    return Err(DumpFault::Line);
                }
                let known = |of: String| Some(of).filter(|of| !of.is_empty());
                let types = TypeNames::new(known(key), known(value));
                return Ok(Item::Structure(kind, name, types));
            }
        }
        if let Some(count) = self.text.strip_prefix(b"@end ") {
            let said = std::str::from_utf8(count).ok().and_then(|text| text.trim().parse().ok());
            return self.end(said.ok_or(DumpFault::Line)?);
        }
        let tab = self.text.iter().position(|byte| *byte == b'\t').ok_or(DumpFault::Line)?;
        if self.text.starts_with(b"@") {
            return Err(DumpFault::Line);
        }
        let read = if self.form == Form::Hex { unhex } else { unescape };
        read(&self.text[..tab], key)?;
        read(&self.text[tab + 1..], value)?;
        Ok(Item::Entry)
    }

    fn json(&self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<Item, DumpFault> {
        let object: Map<String, Value> = serde_json::from_slice(&self.text)
            .map_err(|error| DumpFault::Json(error.to_string()))?;
        for (kind, word) in WORDS {
            if let Some(name) = object.get(word).and_then(Value::as_str) {
                let of = |member| object.get(member).and_then(Value::as_str).map(str::to_string);
                let types = TypeNames::new(of(KEYS), of(VALUES));
                return Ok(Item::Structure(kind, name.to_string(), types));
            }
        }
        if let Some(said) = object.get("end").and_then(Value::as_u64) {
            return self.end(said);
        }
        take(&object, ["key", "key_hex"], key)?;
        take(&object, ["value", "value_hex"], value)?;
        Ok(Item::Entry)
    }
}

fn take(
    object: &Map<String, Value>,
    [name, name_hex]: [&str; 2],
    out: &mut Vec<u8>,
) -> Result<(), DumpFault> {
    let member = |name: &str| object.get(name).and_then(Value::as_str);
    if let Some(text) = member(name) {
        out.extend_from_slice(text.as_bytes());
        return Ok(());
    }
    let missing = || DumpFault::Json(format!("neither `{name}` nor `{name_hex}` is there"));
    Ok(unhex(member(name_hex).ok_or_else(missing)?.as_bytes(), out)?)
}
