//! Separated values: the columns are named by `--columns` or by a header.
//!
//! ```text
//! time,op,page            a header, optional where --columns gives numbers
//! 17,R,4711               a read of page 4711
//! ```
//!
//! The separator is a comma, semicolon, tab or blank, whichever the first line has (in this
//! order). A run of blanks is one separator. Fields may be quoted, `""` inside quotes is a quote;
//! a quoted field ends in its line. With `offset` (bytes) or `sector` (512 bytes) in place of
//! `page`, a request of `size` bytes or `sectors` refers to every page it touches. A column
//! `volume` keeps the pages of each disk apart.
//!
//! A header may be a comment. A line with a number where `--columns` says that there is one is a
//! reference and never a header; a header that cannot be told from an id is an error.
//!
//! The crate `csv` reads every text as some records, so it would accept the text that is refused
//! here. It appends the text behind a closing quote to the field, and a quote that is not closed
//! swallows the rest of the trace. It has no separator that is a run of blanks, and drops comments
//! unseen.

use std::borrow::Cow;

use millpond_base::{AccessKind, Lsn, Mark, PageKind, Reason};

use super::columns::{Columns, Role, role_of_header, roles_of_header};
use super::extents::note_empty;
use super::ids::Ids;
use super::lines::{LineFormat, Run, is_comment};
use super::number::{shown, whole};
use super::op::{Ops, note_skipped};
use super::options::Given;
use super::parameters::{COLUMNS, EXPAND_SIZES};
use super::spaces::Spaces;
use super::spc::BLOCK;

/// Reads separated values.
pub(crate) struct Csv {
    columns: Option<Columns>,
    roles: Vec<Option<Role>>,
    separator: Option<u8>,
    /// The separator and the number of fields of a header that is a comment.
    commented: Option<(u8, usize)>,
    ids: Ids,
    page_size: u64,
    expand_sizes: bool,
    ops: Ops,
    spaces: Spaces,
    skipped: u64,
    /// Lines behind the header that begin with `#`.
    comments: u64,
    empty: u64,
    ignored: u64,
    larger: u64,
    times: bool,
    given: Given,
    /// Columns of a recognised header that nothing is taken from.
    unused: Vec<String>,
}

/// The fields of one line that mean something.
#[derive(Default)]
struct Record<'a> {
    page: Option<Cow<'a, [u8]>>,
    volume: Option<Cow<'a, [u8]>>,
    offset: Option<u64>,
    size: Option<u64>,
    op: Option<AccessKind>,
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
            commented: None,
            ids: Ids::new(options.map_ids),
            page_size: options.page_size,
            expand_sizes: options.expand_sizes,
            ops: options.ops.clone(),
            spaces: Spaces::default(),
            skipped: 0,
            comments: 0,
            empty: 0,
            ignored: 0,
            larger: 0,
            times: false,
            given: Given::of(options),
            unused: Vec::new(),
        }
    }

    /// Looks at a line before the first reference; `true` if it is none.
    ///
    /// A comment may be the header: its roles hold until a header that is no comment, and only for
    /// lines that are separated as it is, into as many fields.
    fn begin(&mut self, line: &[u8]) -> Result<bool, String> {
        let (bare, is_comment) = match line.trim_ascii_start().strip_prefix(b"#") {
            Some(bare) => (bare, true),
            None => (line, false),
        };
        let separator = separator_of(bare);
        let fields: Result<Vec<String>, String> = Fields { rest: Some(bare), separator }
            .map(|f| f.map(|f| String::from_utf8_lossy(&trimmed(f)).into_owned()))
            .collect();
        if is_comment {
            if let Ok(fields) = fields
                && let Ok(Some(roles)) = self.named_roles(&fields)
            {
                self.commented = Some((separator, fields.len()));
                self.take_header(roles, &fields);
            }
            return Ok(true);
        }
        let fields = fields?;
        self.separator = Some(separator);
        let is_by_number = self.columns.as_ref().filter(|columns| !columns.need_header());
        if let Some(columns) = is_by_number {
            self.roles = columns.resolve(&fields)?;
            if self.may_be_header(&fields) {
                return Err(format!(
                    "{} may be a header or a reference: name the columns ({})",
                    shown(line),
                    COLUMNS.set_to("page=NAME")
                ));
            }
            return Ok(self.looks_like_header(&fields));
        }
        match self.named_roles(&fields) {
            Ok(Some(roles)) => {
                self.take_header(roles, &fields);
                Ok(true)
            }
            _ if self.commented == Some((separator, fields.len())) => Ok(false),
            Err(reason) => Err(reason),
            Ok(None) => Err(format!(
                "no header names a page column in {}: say which with {}",
                shown(line),
                COLUMNS.set_to("page=N")
            )),
        }
    }

    /// The roles of the columns, if these fields are the names of columns.
    fn named_roles(&self, fields: &[String]) -> Result<Option<Vec<Option<Role>>>, String> {
        match &self.columns {
            None => Ok(roles_of_header(fields)),
            Some(columns) if columns.need_header() => columns.resolve(fields).map(Some),
            Some(_) => Ok(None),
        }
    }

    fn take_header(&mut self, roles: Vec<Option<Role>>, fields: &[String]) {
        if self.columns.is_none() {
            let unused = fields
                .iter()
                .enumerate()
                .filter(|(at, _)| roles.get(*at).is_none_or(Option::is_none));
            self.unused = unused.map(|(_, name)| shown(name.as_bytes())).collect();
        }
        self.times = roles.contains(&Some(Role::Time));
        self.roles = roles;
    }

    /// Returns `true` if the first line is a header. With `--columns` given by number it is one if
    /// no field that means something is a number or an operation, and one is a usual header or
    /// should be a number.
    fn looks_like_header(&self, fields: &[String]) -> bool {
        let known = self.roles.iter().zip(fields).filter_map(|(role, field)| {
            let role = role.filter(|role| *role != Role::Time)?;
            Some((role, field.as_str()))
        });
        let is_data = |(role, field): (Role, &str)| {
            field.parse::<f64>().is_ok()
                || (role == Role::AccessKind && self.ops.find(field.as_bytes()).is_ok())
        };
        let is_name = |(role, field): (Role, &str)| {
            let is_word = !matches!(
                role,
                Role::Page | Role::Volume | Role::AccessKind | Role::Reason | Role::Scan
            );
            !field.is_empty() && (is_word || role_of_header(field).is_some())
        };
        !known.clone().any(is_data) && known.clone().any(is_name)
    }

    /// Returns whether the first line may be a header or a row: its page has the usual name of a
    /// column, its operation is a word that is both, such as `write`, and it has no number.
    fn may_be_header(&self, fields: &[String]) -> bool {
        let of = |wanted: Role| {
            let at = self.roles.iter().position(|role| *role == Some(wanted))?;
            fields.get(at)
        };
        let is_name = |field: &String| role_of_header(field).is_some();
        let is_word = |field: &String| self.ops.find(field.as_bytes()).is_ok();
        let known = self.roles.iter().zip(fields).filter(|(role, _)| role.is_some());
        of(Role::Page).is_some_and(is_name)
            && of(Role::AccessKind).is_some_and(is_word)
            && !known.into_iter().any(|(_, field)| field.parse::<f64>().is_ok())
    }

    fn record<'a>(&self, line: &'a [u8], separator: u8) -> Result<Record<'a>, String> {
        let mut record = Record::default();
        let mut fields = Fields { rest: Some(line), separator };
        for (i, role) in self.roles.iter().enumerate() {
            let Some(field) = fields.next() else {
                return Err(format!("{} columns, but column {} is wanted", i, self.roles.len()));
            };
            let Some(role) = role else { continue };
            let set = record.set(*role, trimmed(field?), &self.ops);
            set.map_err(|e| format!("column {}: {e}", i + 1))?;
        }
        if !self.roles.contains(&Some(Role::AccessKind)) {
            record.op = Some(AccessKind::Read);
        }
        Ok(record)
    }

    /// The pages of a record; `None` for an operation that is skipped.
    fn run(&mut self, record: Record<'_>) -> Result<Option<Run>, String> {
        let Some(op) = record.op else {
            self.skipped += 1;
            return Ok(None);
        };
        let mark = Mark::of(op)
            .with_reason(record.reason)
            .with_kind(PageKind(record.kind), record.depth)
            .with_scan(record.scan);
        let has_size = self.roles.iter().any(|r| matches!(r, Some(Role::Size | Role::Sectors)));
        let mut run = match (record.offset, record.page) {
            (Some(offset), _) => {
                let size = record.size.or((!has_size).then_some(1)).ok_or("the size is missing")?;
                self.empty += u64::from(size == 0);
                Run::bytes(offset, size, self.page_size, mark)?
            }
            (None, Some(token)) => {
                let id = self.ids.page(&token)?;
                match record.size {
                    Some(size) if self.expand_sizes => Run::object(id, size, self.page_size, mark)?,
                    None if self.expand_sizes && has_size => {
                        return Err(format!("the size is missing, which {EXPAND_SIZES} counts"));
                    }
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
        match record.volume {
            Some(volume) => self.spaces.place(&volume, run).map(Some),
            None => Ok(Some(run)),
        }
    }
}

impl<'a> Record<'a> {
    fn set(&mut self, role: Role, field: Cow<'a, [u8]>, ops: &Ops) -> Result<(), String> {
        match role {
            Role::Page => self.page = Some(field),
            Role::Volume => self.volume = Some(field),
            Role::Offset => self.offset = Some(number(&field, u64::MAX)?),
            Role::Sector => self.offset = Some(number(&field, u64::MAX / BLOCK)? * BLOCK),
            Role::AccessKind => self.op = ops.find(&field)?,
            // Of some objects the size is not known.
            Role::Size | Role::Sectors if field.is_empty() => {}
            Role::Size => self.size = Some(number(&field, u64::MAX)?),
            Role::Sectors => self.size = Some(number(&field, u64::MAX / BLOCK)? * BLOCK),
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
        if line.trim_ascii().is_empty() {
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
            self.comments += 1;
            return Ok(None);
        }
        let record = self.record(line, separator)?;
        self.run(record)
    }

    fn notes(&self, notes: &mut Vec<String>) {
        self.ids.notes(notes);
        self.spaces.notes(notes);
        note_skipped(self.skipped, notes);
        if self.comments > 0 {
            notes
                .push(format!("{} lines that begin with # were taken for comments", self.comments));
        }
        note_empty(self.empty, notes);
        note_sizes(self.ignored, self.larger, notes);
        if !self.unused.is_empty() {
            let reads = match self.roles.contains(&Some(Role::AccessKind)) {
                true => "",
                false => "; no column says what is read and what written, so all are reads",
            };
            notes.push(format!(
                "columns that are not used: {}{reads} ({COLUMNS} says what is where)",
                self.unused.join(", ")
            ));
        }
        if !self.roles.is_empty() {
            self.given.note(|role| self.roles.contains(&Some(role)), notes);
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

/// The separator of a line.
pub(super) fn separator_of(line: &[u8]) -> u8 {
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
        let mut line = self.rest.take()?;
        if self.separator == b' ' {
            // A run of blanks is one separator, at the line's end none.
            line = line.trim_ascii_start();
            if line.is_empty() {
                return None;
            }
        }
        if line.first() == Some(&b'"') {
            return Some(self.quoted(line));
        }
        let at = match self.separator {
            b' ' => memchr::memchr2(b' ', b'\t', line),
            separator => memchr::memchr(separator, line),
        };
        match at {
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
