//! Millpond's own format: Parquet, one row per reference.
//!
//! ```text
//! column  type             meaning
//! page    INT64 unsigned   the page; the only column that must be there
//! op      INT32            0 read, 1 write                      (or text: R, W, read, write)
//! reason  INT32            0 none 1 synch 2 replace 3 recov 4 dsync     (or text: the names)
//! kind    INT32            what the page holds (`PageKind`), 0 to 255
//! depth   INT32            below the root of its tree, 0 to 255
//! scan    BOOLEAN          belongs to a marked scan                      (or an integer)
//! lsn     INT64 unsigned   log position; null where unknown
//! ```
//!
//! Any integer width is accepted, nulls too, except in `page`; unknown columns are ignored.
//! Columns are read side by side, a batch at a time: memory is bounded by the file's own page
//! size, not by its row groups.

use std::fs::File;
use std::path::{Path, PathBuf};

use millpond_base::{AccessKind, Lsn, Mark, PageKind, Reason};
use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::trace::{Batch, Source, TraceError};

use super::number::shown;
use super::op::parse_op;

/// The columns, in the order in which they are written.
pub(crate) const COLUMNS: [&str; 7] = ["page", "op", "reason", "kind", "depth", "scan", "lsn"];

/// Rows that are decoded at a time.
const STEP: usize = 1 << 14;

/// Reads native Parquet.
pub(crate) struct Native {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    names: [&'static str; 7],
    places: [Option<usize>; 7],
    group: usize,
    open: Option<Group>,
    rows: u64,
    has_lsn: bool,
}

/// A row group being read.
struct Group {
    columns: Vec<Option<Cells>>,
    /// Rows that are not decoded yet.
    left: usize,
    /// Rows that are decoded, and how many of them were handed out.
    decoded: usize,
    at: usize,
}

impl Native {
    /// Opens the file and finds the columns; log positions are those of the column `lsn`.
    pub(crate) fn open(path: &Path, lsn: &'static str) -> Result<Native, TraceError> {
        let mut names = COLUMNS;
        names[6] = lsn;
        let file = File::open(path).map_err(|error| TraceError::Io { path: path.into(), error })?;
        let reader = guarded(|| SerializedFileReader::new(file))
            .map_err(|reason| TraceError::Corrupt { path: path.into(), record: 1, reason })?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let mut places = [None; 7];
        for (at, column) in schema.columns().iter().enumerate() {
            let name = column.name().to_ascii_lowercase();
            let is_flat = column.path().parts().len() == 1 && column.max_rep_level() == 0;
            let place = names.iter().position(|c| *c == name);
            if let Some(place) = place.filter(|_| is_flat) {
                places[place] = Some(at);
            }
        }
        let path = path.to_path_buf();
        if places[0].is_none() {
            let names: Vec<&str> = schema.columns().iter().map(|c| c.name()).collect();
            let reason = format!("no column 'page' among {}: rename one", names.join(", "));
            return Err(TraceError::UnknownFormat { path, reason });
        }
        let rows = reader.metadata().file_metadata().num_rows();
        let sum: i64 =
            reader.metadata().row_groups().iter().map(|g| g.num_rows()).fold(0, i64::wrapping_add);
        if rows != sum {
            let reason = format!("the file has {rows} rows, but its row groups have {sum}");
            return Err(TraceError::Corrupt { path, record: 1, reason });
        }
        let has_lsn = places[6].is_some_and(|at| has_values(&reader, at));
        Ok(Native { path, reader, names, places, group: 0, open: None, rows: 0, has_lsn })
    }

    fn next_group(&mut self) -> Result<bool, String> {
        if self.group == self.reader.num_row_groups() {
            return Ok(false);
        }
        let left = self.reader.metadata().row_group(self.group).num_rows();
        let left = usize::try_from(left).map_err(|_| format!("a row group of {left} rows"))?;
        let group = self.group;
        let mut columns = Vec::new();
        for (i, place) in self.places.iter().enumerate() {
            let wanted = place.filter(|_| i != 6 || self.has_lsn);
            columns.push(match wanted {
                Some(at) => Some(Cells::open(&self.reader, group, at, self.names[i])?),
                None => None,
            });
        }
        self.group += 1;
        self.open = Some(Group { columns, left, decoded: 0, at: 0 });
        Ok(true)
    }

    /// Hands out up to `limit` rows of the open group. What is decoded at a time does not depend
    /// on the limit, so that damage is found at the same record however a trace is read.
    fn rows(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, String> {
        let Some(group) = &mut self.open else { return Ok(0) };
        if group.at == group.decoded {
            let n = group.left.min(STEP);
            (group.at, group.decoded) = (0, 0);
            for (column, name) in group.columns.iter_mut().zip(self.names) {
                if let Some(cells) = column {
                    cells.read(n, name).map_err(|e| format!("column '{name}': {e}"))?;
                }
            }
            (group.decoded, group.left) = (n, group.left - n);
        }
        let n = limit.min(group.decoded - group.at);
        let range = group.at..group.at + n;
        let cell = |i: usize| group.columns[i].as_ref().map(|c| &c.values[range.clone()]);
        let pages = cell(0).unwrap_or_default();
        batch.pages.extend(pages.iter().map(|p| *p as u64));
        let (op, reason, kind) = (cell(1), cell(2), cell(3));
        let (depth, scan) = (cell(4), cell(5));
        let at = |cells: Option<&[i64]>, i: usize| cells.map_or(0, |c| c[i]);
        batch.marks.extend((0..n).map(|i| {
            let op = if at(op, i) == 0 { AccessKind::Read } else { AccessKind::Write };
            Mark::of(op)
                .with_reason(REASONS[at(reason, i) as usize])
                .with_kind(PageKind(at(kind, i) as u8), at(depth, i) as u8)
                .with_scan(at(scan, i) != 0)
        }));
        if let Some(lsns) = cell(6) {
            batch.lsns.extend(lsns.iter().map(|lsn| Lsn(*lsn as u64)));
        }
        group.at += n;
        Ok(n)
    }
}

const REASONS: [Reason; 5] =
    [Reason::None, Reason::Synch, Reason::Replace, Reason::Recov, Reason::Dsync];

/// Whether a column has any value, as far as the file's statistics tell.
fn has_values(reader: &SerializedFileReader<File>, at: usize) -> bool {
    reader.metadata().row_groups().iter().any(|group| {
        let nulls = group.column(at).statistics().and_then(|s| s.null_count_opt());
        nulls.is_none_or(|nulls| nulls < group.num_rows().max(0) as u64)
    })
}

impl Source for Native {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        let before = batch.pages.len();
        loop {
            let added = batch.pages.len() - before;
            if added == limit {
                return Ok(added);
            }
            let step = self.rows(batch, limit - added).and_then(|n| {
                self.rows += n as u64;
                if n > 0 { Ok(true) } else { self.next_group() }
            });
            match step {
                Ok(true) => {}
                Ok(false) => return Ok(added),
                Err(reason) => {
                    let (path, record) = (self.path.clone(), self.rows + 1);
                    return Err(TraceError::Corrupt { path, record, reason });
                }
            }
        }
    }
}

/// One column of a row group, decoded to integers a step at a time.
struct Cells {
    reader: Typed,
    is_optional: bool,
    largest: i64,
    levels: Vec<i16>,
    values: Vec<i64>,
}

enum Typed {
    Bool(ColumnReaderImpl<BoolType>, Vec<bool>),
    Narrow(ColumnReaderImpl<Int32Type>, Vec<i32>),
    Wide(ColumnReaderImpl<Int64Type>, Vec<i64>),
    Text(ColumnReaderImpl<ByteArrayType>, Vec<parquet::data_type::ByteArray>),
}

impl Cells {
    fn open(
        reader: &SerializedFileReader<File>,
        group: usize,
        at: usize,
        name: &str,
    ) -> Result<Cells, String> {
        let column = guarded(|| reader.get_row_group(group)?.get_column_reader(at))?;
        let typed = match column {
            ColumnReader::BoolColumnReader(r) if name == "scan" => Typed::Bool(r, Vec::new()),
            ColumnReader::Int32ColumnReader(r) => Typed::Narrow(r, Vec::new()),
            ColumnReader::Int64ColumnReader(r) => Typed::Wide(r, Vec::new()),
            ColumnReader::ByteArrayColumnReader(r) if matches!(name, "op" | "reason") => {
                Typed::Text(r, Vec::new())
            }
            _ => {
                let schema = reader.metadata().file_metadata().schema_descr();
                let kind: Physical = schema.column(at).physical_type();
                return Err(format!("column '{name}' is {kind}, not an integer"));
            }
        };
        let schema = reader.metadata().file_metadata().schema_descr();
        let is_optional = schema.column(at).max_def_level() > 0;
        let largest = match name {
            "op" | "scan" => 1,
            "reason" => 4,
            "kind" | "depth" => 255,
            _ => i64::MAX,
        };
        Ok(Cells { reader: typed, is_optional, largest, levels: Vec::new(), values: Vec::new() })
    }

    /// Decodes the next `n` values; nulls are 0, except for a page.
    fn read(&mut self, n: usize, name: &str) -> Result<(), String> {
        self.levels.clear();
        self.values.clear();
        let levels = self.is_optional.then_some(&mut self.levels);
        let values = &mut self.values;
        match &mut self.reader {
            Typed::Bool(reader, raw) => {
                records(reader, n, levels, raw)?;
                values.extend(raw.iter().map(|v| i64::from(*v)));
            }
            Typed::Narrow(reader, raw) => {
                records(reader, n, levels, raw)?;
                // A page of 32 bits is unsigned if it looks negative.
                values.extend(raw.iter().map(|v| i64::from(*v as u32)));
            }
            Typed::Wide(reader, raw) => {
                records(reader, n, levels, raw)?;
                values.extend_from_slice(raw);
            }
            Typed::Text(reader, raw) => {
                records(reader, n, levels, raw)?;
                for word in raw {
                    values.push(word_value(name, word.data())?);
                }
            }
        }
        if self.is_optional {
            self.spread(n, name)?;
        }
        let outside = |v: &&i64| self.largest < i64::MAX && !(0..=self.largest).contains(*v);
        match self.values.iter().find(outside) {
            Some(v) => Err(format!("{v} is outside 0 to {}", self.largest)),
            None if self.values.len() == n => Ok(()),
            None => Err(format!("{} values where {n} are due", self.values.len())),
        }
    }

    /// Puts zeros where the levels say that a value is null.
    fn spread(&mut self, n: usize, name: &str) -> Result<(), String> {
        let nulls = self.levels.iter().filter(|level| **level == 0).count();
        if nulls == 0 {
            return Ok(());
        }
        if name == "page" {
            return Err("a page is null".into());
        }
        if self.levels.len() != n || self.values.len() + nulls != n {
            return Err("the levels do not fit the values".into());
        }
        let mut from = self.values.len();
        self.values.resize(n, 0);
        for to in (0..n).rev() {
            self.values[to] = if self.levels[to] == 0 {
                0
            } else {
                from -= 1;
                self.values[from]
            };
        }
        Ok(())
    }
}

/// Reads exactly `n` rows, or says why not.
fn records<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    n: usize,
    mut levels: Option<&mut Vec<i16>>,
    values: &mut Vec<T::T>,
) -> Result<(), String> {
    values.clear();
    let mut done = 0;
    while done < n {
        let levels = levels.as_deref_mut();
        let (rows, ..) = guarded(|| reader.read_records(n - done, levels, None, values))?;
        if rows == 0 {
            return Err(format!("it ends {} rows early", n - done));
        }
        done += rows;
    }
    Ok(())
}

fn word_value(name: &str, word: &[u8]) -> Result<i64, String> {
    if name == "op" {
        return parse_op(word).map(|op| op as i64);
    }
    let text = std::str::from_utf8(word).unwrap_or_default();
    let reason: Reason = text.parse().map_err(|()| format!("{} is no reason", shown(word)))?;
    Ok(reason as i64)
}

/// Runs a piece of the Parquet decoder. It panics on some damaged files instead of returning an
/// error; to a user both are a corrupt file.
fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(format!("the Parquet file is damaged: {error}")),
        Err(_) => Err("the Parquet file is damaged: its decoder gave up".into()),
    }
}
