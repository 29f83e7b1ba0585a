//! Separated values: the columns are named by `--columns` or by a header.
//!
//! ```text
//! time,op,page            a header, optional where --columns gives numbers
//! 17,R,4711               a read of page 4711
//! ```
//!
//! The separator is a comma, semicolon, tab or blank, whichever the first line has (in this
//! order). Fields may be quoted, `""` inside quotes is a quote; a quoted field ends in its line.
//! With `offset` in place of `page`, a request of `size` bytes refers to every page it touches.

use std::borrow::Cow;

use millpond_base::{AccessKind, Lsn, Mark, PageKind, Reason};

use super::columns::{Columns, Role, role_of_header, roles_of_header};
use super::ids::Ids;
use super::lines::{LineFormat, Run, is_comment};
use super::number::{shown, whole};
use super::op::parse_op;

/// Reads separated values.
pub(crate) struct Csv {
    columns: Option<Columns>,
    roles: Vec<Option<Role>>,
    separator: Option<u8>,
    ids: Ids,
    page_size: u64,
    expand_sizes: bool,
    ignored: u64,
    larger: u64,
    times: bool,
    /// Columns of a recognised header that nothing is taken from.
    unused: Vec<String>,
}

/// The fields of one line that mean something.
#[derive(Default)]
struct Record<'a> {
    page: Option<Cow<'a, [u8]>>,
    offset: Option<u64>,
    size: Option<u64>,
    op: AccessKind,
    kind: u8,
    depth: u8,
    reason: Reason,
    scan: bool,
    lsn: Option<Lsn>,
}

impl Csv {
    pub(crate) fn new(options: &super::options::ReadOptions) -> Csv {
        Csv {
            columns: options.columns.clone(),
            roles: Vec::new(),
            separator: None,
            ids: Ids::new(options.map_ids),
            page_size: options.page_size,
            expand_sizes: options.expand_sizes,
            ignored: 0,
            larger: 0,
            times: false,
            unused: Vec::new(),
        }
    }

    /// Looks at the first line; `true` if it was a header.
    fn begin(&mut self, line: &[u8]) -> Result<bool, String> {
        let bare = line.strip_prefix(b"#").unwrap_or(line);
        let separator = separator_of(bare);
        let header: Vec<String> = Fields { rest: Some(bare), separator }
            .map(|f| f.map(|f| String::from_utf8_lossy(&f).into_owned()))
            .collect::<Result<_, _>>()?;
        let is_header = match &self.columns {
            Some(columns) => {
                self.roles = columns.resolve(&header)?;
                self.separator = Some(separator);
                columns.need_header() || self.looks_like_header(&header)
            }
            None => match roles_of_header(&header) {
                Some(roles) => {
                    let unused = header
                        .iter()
                        .enumerate()
                        .filter(|(at, _)| roles.get(*at).is_none_or(|role| role.is_none()));
                    self.unused = unused.map(|(_, name)| shown(name.trim().as_bytes())).collect();
                    self.roles = roles;
                    true
                }
                None if is_comment(line) => return Ok(true),
                None => {
                    let what = shown(line);
                    return Err(format!(
                        "no header names a page column in {what}: say which with --columns page=N"
                    ));
                }
            },
        };
        self.separator = Some(separator);
        self.times = self.roles.contains(&Some(Role::Time));
        Ok(is_header)
    }

    /// Where `--columns` gives numbers, the first line is a header if its fields are not what
    /// the columns hold, or are the usual words for it.
    fn looks_like_header(&self, header: &[String]) -> bool {
        self.roles.iter().zip(header).any(|(role, field)| {
            let number = whole(field.trim().as_bytes()).is_some();
            match role {
                None | Some(Role::Time) => false,
                Some(Role::Page) => !number && role_of_header(field).is_some(),
                Some(Role::AccessKind) => parse_op(field.trim().as_bytes()).is_err(),
                Some(Role::Scan) => field.trim().eq_ignore_ascii_case("scan"),
                Some(Role::Reason) => field.trim().eq_ignore_ascii_case("reason"),
                Some(_) => !number,
            }
        })
    }

    fn record<'a>(&self, line: &'a [u8], separator: u8) -> Result<Record<'a>, String> {
        let mut record = Record::default();
        let mut fields = Fields { rest: Some(line), separator };
        for (i, role) in self.roles.iter().enumerate() {
            let Some(field) = fields.next() else {
                return Err(format!("{} columns, but column {} is wanted", i, self.roles.len()));
            };
            let Some(role) = role else { continue };
            record.set(*role, trimmed(field?)).map_err(|e| format!("column {}: {e}", i + 1))?;
        }
        Ok(record)
    }
}

impl<'a> Record<'a> {
    fn set(&mut self, role: Role, field: Cow<'a, [u8]>) -> Result<(), String> {
        match role {
            Role::Page => self.page = Some(field),
            Role::Offset => self.offset = Some(number(&field, u64::MAX)?),
            Role::AccessKind => self.op = parse_op(&field)?,
            Role::Size => self.size = Some(number(&field, u64::MAX)?),
            Role::Kind => self.kind = number(&field, 255)? as u8,
            Role::Depth => self.depth = number(&field, 255)? as u8,
            Role::Reason => self.reason = reason_of(&field)?,
            Role::Scan => self.scan = flag_of(&field)?,
            Role::Lsn => self.lsn = Some(Lsn(number(&field, u64::MAX)?)),
            Role::Time => {}
        }
        Ok(())
    }
}

impl LineFormat for Csv {
    fn line(&mut self, line: &[u8]) -> Result<Option<Run>, String> {
        if line.is_empty() {
            return Ok(None);
        }
        let separator = match self.separator {
            Some(separator) => separator,
            None => {
                if self.begin(line)? {
                    return Ok(None);
                }
                separator_of(line)
            }
        };
        if is_comment(line) {
            return Ok(None);
        }
        let record = self.record(line, separator)?;
        let mark = Mark::of(record.op)
            .with_reason(record.reason)
            .with_kind(PageKind(record.kind), record.depth)
            .with_scan(record.scan);
        let mut run = match (record.offset, record.page) {
            (Some(offset), _) => {
                Run::bytes(offset, record.size.unwrap_or(1), self.page_size, mark)?
            }
            (None, Some(token)) => {
                let id = self.ids.page(&token)?;
                match record.size {
                    Some(size) if self.expand_sizes => Run::object(id, size, self.page_size, mark)?,
                    Some(size) => {
                        self.ignored += 1;
                        self.larger += u64::from(size > self.page_size);
                        Run::page(id, mark)
                    }
                    None => Run::page(id, mark),
                }
            }
            (None, None) => return Err("the line has no page".into()),
        };
        run.lsn = record.lsn;
        Ok(Some(run))
    }

    fn notes(&self, notes: &mut Vec<String>) {
        self.ids.notes(notes);
        note_sizes(self.ignored, self.larger, notes);
        if !self.unused.is_empty() {
            let reads = match self.roles.contains(&Some(Role::AccessKind)) {
                true => "",
                false => "; no column says what is read and what written, so all are reads",
            };
            notes.push(format!(
                "columns that are not used: {}{reads} (--columns says what is where)",
                self.unused.join(", ")
            ));
        }
        if self.times {
            notes.push("the time column was not kept: a trace is a sequence".into());
        }
    }
}

/// The note on object sizes that did not count.
pub(crate) fn note_sizes(ignored: u64, larger: u64, notes: &mut Vec<String>) {
    if ignored > 0 {
        notes.push(format!(
            "the sizes of {ignored} references were ignored, {larger} of them larger than a page \
             (--expand-sizes counts their pages)"
        ));
    }
}

fn separator_of(line: &[u8]) -> u8 {
    let seen = |b: &&u8| line.contains(*b);
    b",;\t ".iter().find(seen).copied().unwrap_or(b',')
}

fn trimmed(field: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match field {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.trim_ascii()),
        owned => owned,
    }
}

fn number(field: &[u8], most: u64) -> Result<u64, String> {
    let value = whole(field).ok_or_else(|| format!("{} is no 64-bit number", shown(field)))?;
    if value > most {
        return Err(format!("{value} exceeds {most}"));
    }
    Ok(value)
}

fn reason_of(field: &[u8]) -> Result<Reason, String> {
    let all = [Reason::None, Reason::Synch, Reason::Replace, Reason::Recov, Reason::Dsync];
    if field.is_empty() {
        return Ok(Reason::None);
    }
    if let Some(reason) = whole(field).and_then(|n| all.get(usize::try_from(n).ok()?)) {
        return Ok(*reason);
    }
    let text = std::str::from_utf8(field).unwrap_or_default();
    text.parse().map_err(|()| {
        format!("{} is no reason: none, synch, replace, recov or dsync", shown(field))
    })
}

fn flag_of(field: &[u8]) -> Result<bool, String> {
    match field {
        b"" | b"0" | b"false" | b"False" => Ok(false),
        b"1" | b"true" | b"True" => Ok(true),
        other => Err(format!("{} is no flag: 0, 1, true or false", shown(other))),
    }
}

/// The fields of a line.
struct Fields<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Cow<'a, [u8]>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.rest.take()?;
        if line.first() == Some(&b'"') {
            return Some(self.quoted(line));
        }
        match memchr::memchr(self.separator, line) {
            Some(at) => {
                self.rest = Some(&line[at + 1..]);
                Some(Ok(Cow::Borrowed(&line[..at])))
            }
            None => Some(Ok(Cow::Borrowed(line))),
        }
    }
}

impl<'a> Fields<'a> {
    fn quoted(&mut self, line: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        let mut field = Vec::new();
        let mut at = 1;
        loop {
            let Some(len) = memchr::memchr(b'"', &line[at..]) else {
                return Err(format!("a quote is not closed in {}", shown(line)));
            };
            field.extend_from_slice(&line[at..at + len]);
            at += len + 1;
            match line.get(at) {
                Some(b'"') => {
                    field.push(b'"');
                    at += 1;
                }
                Some(b) if *b == self.separator => {
                    self.rest = Some(&line[at + 1..]);
                    return Ok(Cow::Owned(field));
                }
                Some(_) => return Err(format!("text behind a closing quote in {}", shown(line))),
                None => return Ok(Cow::Owned(field)),
            }
        }
    }
}
