//! Writer of dumps.

use std::io::{Result, Write};

use serde_json::{Map, Value, json};

use crate::admin::dump::form::{Form, HEADER, KEYS, VALUES, VERSION, WORDS};
use crate::admin::dump::notation::{escape, hex};
use crate::store::entry::{Structure, TypeNames};

/// A key and a value as literals of their types; `None` for one that is text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Literals {
    /// The key.
    pub key: Option<String>,
    /// The value.
    pub value: Option<String>,
}

/// Converts entries of one structure to literals.
pub type ReadLiterals = dyn Fn(&[u8], &[u8]) -> Literals;

/// Finds the conversion for a structure with these types; `None` if all its entries are text.
pub type LiteralsOf = fn(Structure, &TypeNames) -> Option<Box<ReadLiterals>>;

/// Writes a dump to anything.
pub struct DumpWriter<W: Write> {
    out: W,
    form: Form,
    line: Vec<u8>,
    entries: u64,
    literals_of: Option<LiteralsOf>,
    read: Option<Box<ReadLiterals>>,
}

impl<W: Write> DumpWriter<W> {
    /// Begins a dump.
    ///
    /// # Errors
    /// The error of `out`.
    pub fn new(mut out: W, form: Form) -> Result<DumpWriter<W>> {
        match form {
            Form::Text => writeln!(out, "{HEADER}{VERSION} text")?,
            Form::Hex => writeln!(out, "{HEADER}{VERSION} hex")?,
            Form::Json => writeln!(out, "{}", json!({ "millpond_dump": VERSION }))?,
        }
        Ok(DumpWriter { out, form, line: Vec::new(), entries: 0, literals_of: None, read: None })
    }

    /// Also shows entries as literals of their types if they are not text: in a remark above the
    /// entry, or in JSON as `key_shown` and `value_shown`. Readers skip both. Hexadecimal dumps
    /// have bytes only.
    pub fn show_literals(&mut self, literals_of: LiteralsOf) {
        self.literals_of = Some(literals_of).filter(|_| self.form != Form::Hex);
    }

    /// Begins the tree `name`; its entries follow.
    ///
    /// # Errors
    /// The error of `out`.
    pub fn tree(&mut self, name: &str) -> Result<()> {
        self.structure(Structure::Tree, name)
    }

    /// Begins the structure `name`; its entries follow. Those of a heap have the decimal digits of
    /// their ids as keys.
    ///
    /// # Errors
    /// The error of `out`.
    pub fn structure(&mut self, kind: Structure, name: &str) -> Result<()> {
        self.structure_of(kind, name, &TypeNames::default())
    }

    /// Like [`DumpWriter::structure`], with the names of its types, as far as they are known.
    ///
    /// # Errors
    /// The error of `out`.
    pub fn structure_of(&mut self, kind: Structure, name: &str, types: &TypeNames) -> Result<()> {
        self.read = self.literals_of.and_then(|literals_of| literals_of(kind, types));
        let word = WORDS.iter().find(|(of, _)| *of == kind).map_or("tree", |(_, word)| word);
        self.line.clear();
        match self.form {
            Form::Json => {
                let mut object = Map::new();
                object.insert(word.to_string(), name.into());
                for (member, of) in [(KEYS, &types.key), (VALUES, &types.value)] {
                    if let Some(of) = of {
                        object.insert(member.to_string(), of.as_str().into());
                    }
                }
                serde_json::to_writer(&mut self.line, &Value::Object(object))?;
            }
            Form::Text | Form::Hex => {
                write!(self.line, "@{word} ")?;
                escape(name.as_bytes(), &mut self.line);
                if *types != TypeNames::default() {
                    for of in [&types.key, &types.value] {
                        self.line.push(b'\t');
                        escape(of.as_deref().unwrap_or_default().as_bytes(), &mut self.line);
                    }
                }
            }
        }
        self.end_line()
    }

    /// Writes a remark for readers; JSON has none.
    ///
    /// # Errors
    /// The error of `out`.
    pub fn remark(&mut self, text: &str) -> Result<()> {
        if self.form == Form::Json {
            return Ok(());
        }
        text.lines().try_for_each(|line| writeln!(self.out, "# {line}"))
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// The error of `out`.
    pub fn entry(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.entries += 1;
        self.line.clear();
        let literals = self.read.as_ref().map(|read| read(key, value)).unwrap_or_default();
        match self.form {
            Form::Text => {
                self.push_literals(&literals, key, value);
                // At the beginning of a line, these have another meaning.
                let rest = match key {
                    [first @ (b'@' | b'#'), rest @ ..] => {
                        self.line.extend_from_slice(b"\\x");
                        hex(&[*first], &mut self.line);
                        rest
                    }
                    all => all,
                };
                escape(rest, &mut self.line);
                self.line.push(b'\t');
                escape(value, &mut self.line);
            }
            Form::Hex => {
                hex(key, &mut self.line);
                self.line.push(b'\t');
                hex(value, &mut self.line);
            }
            Form::Json => {
                let mut object = Map::new();
                put(&mut object, ["key", "key_hex"], key);
                put(&mut object, ["value", "value_hex"], value);
                for (member, shown) in
                    [("key_shown", literals.key), ("value_shown", literals.value)]
                {
                    object.extend(shown.map(|text| (member.to_string(), text.into())));
                }
                serde_json::to_writer(&mut self.line, &Value::Object(object))?;
            }
        }
        self.end_line()
    }

    /// Adds the remark that shows an entry, if one of its parts is not text.
    fn push_literals(&mut self, literals: &Literals, key: &[u8], value: &[u8]) {
        if *literals == Literals::default() {
            return;
        }
        self.line.extend_from_slice(b"# ");
        for (shown, bytes, end) in [(&literals.key, key, b'\t'), (&literals.value, value, b'\n')] {
            match shown {
                // A control character would end the remark; literals have escapes for them.
                Some(text) => {
                    let text = text.chars().map(|c| if c.is_control() { ' ' } else { c });
                    self.line.extend_from_slice(text.collect::<String>().as_bytes());
                }
                None => escape(bytes, &mut self.line),
            }
            self.line.push(end);
        }
    }

    fn end_line(&mut self) -> Result<()> {
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    /// Returns the number of entries so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Ends the dump, and returns the output.
    ///
    /// # Errors
    /// The error of `out`.
    pub fn finish(mut self) -> Result<W> {
        match self.form {
            Form::Json => writeln!(self.out, "{}", json!({ "end": self.entries }))?,
            Form::Text | Form::Hex => writeln!(self.out, "@end {}", self.entries)?,
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Adds bytes as a member of an object: as text if they are, else as digits under the second name.
pub(crate) fn put(object: &mut Map<String, Value>, [name, name_hex]: [&str; 2], bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_string(), text.into()),
        Err(_) => {
            let mut digits = Vec::new();
            hex(bytes, &mut digits);
            object.insert(name_hex.to_string(), String::from_utf8_lossy(&digits).into())
        }
    };
}
