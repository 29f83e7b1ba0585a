//! Parquet with one row per reference, in Millpond's own columns or in those of others.
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
//! Integers of any width and floats that are whole numbers are accepted. Texts are accepted as
//! pages, which are numbered by first appearance, and nulls everywhere except in `page`. Unknown
//! columns are ignored. In a file without a column `page`, `--columns` or the usual headers of
//! separated values assign the roles.
//!
//! Columns are read side by side, a batch at a time, so memory is bounded by the file's own page
//! size, not by its row groups.

use std::fs::File;
use std::path::{Path, PathBuf};

use millpond_base::{AccessKind, Lsn, Mark, PageKind, Reason};
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::trace::{Batch, Source, TraceError};

use super::columns::{Role, roles_of_header};
use super::csv::note_sizes;
use super::extents::note_empty;
use super::ids::Ids;
use super::lines::Run;
use super::number::shown;
use super::op::note_skipped;
use super::options::{Given, ReadOptions};
use super::parameters;
use super::parquet_cells::{BadRow, Cells, SKIP, Words, guarded};
use super::spaces::Spaces;
use super::spc::BLOCK;

/// Names of the columns, in the order of writing.
pub(crate) const COLUMNS: [&str; 7] = ["page", "op", "reason", "kind", "depth", "scan", "lsn"];

/// Roles of the columns, in the order of `COLUMNS`.
const ROLES: [Role; 7] =
    [Role::Page, Role::AccessKind, Role::Reason, Role::Kind, Role::Depth, Role::Scan, Role::Lsn];

/// Rows decoded at a time.
const STEP: usize = 1 << 14;

/// Reads Parquet.
pub(crate) struct Native {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    places: Vec<(Role, usize)>,
    words: Words,
    pages: Pages,
    unused: Vec<String>,
    given: Given,
    group: usize,
    open: Option<Group>,
    rows: u64,
}

/// A row group being read.
struct Group {
    columns: Vec<(Role, Cells)>,
    /// Rows not decoded yet.
    left: usize,
    /// Number of decoded rows, and of those already returned.
    decoded: usize,
    at: usize,
}

/// Conversion of rows to references, if a row is not one page.
struct Pages {
    /// `true` if a row may be no page, or several.
    are_runs: bool,
    page_size: u64,
    expand_sizes: bool,
    spaces: Spaces,
    rest: Run,
    skipped: u64,
    empty: u64,
    sized: u64,
    larger: u64,
}

impl Native {
    /// Finds the columns of a file; `path` names it in messages.
    pub(crate) fn open(
        path: &Path,
        file: File,
        options: &ReadOptions,
    ) -> Result<Native, TraceError> {
        Native::with(path, file, options, "lsn")
    }

    /// Like `open`, with log positions from the column `rec_lsn`.
    pub(crate) fn rec_lsns(path: &Path, file: File) -> Result<Native, TraceError> {
        Native::with(path, file, &ReadOptions::default(), "rec_lsn")
    }

    fn with(
        path: &Path,
        file: File,
        options: &ReadOptions,
        lsn: &str,
    ) -> Result<Native, TraceError> {
        let corrupt = |reason| TraceError::Corrupt { path: path.into(), record: 1, reason };
        let reader = guarded(|| SerializedFileReader::new(file)).map_err(corrupt)?;
        let metadata = reader.metadata();
        let rows = metadata.file_metadata().num_rows();
        let sum: i64 =
            metadata.row_groups().iter().map(|g| g.num_rows()).fold(0, i64::wrapping_add);
        if rows != sum {
            let what = format!("the file has {rows} rows, but its row groups have {sum}");
            return Err(corrupt(what));
        }
        let (mut places, unused) = places(&reader, options, lsn)
            .map_err(|reason| TraceError::UnknownFormat { path: path.into(), reason })?;
        places.retain(|(role, at)| *role != Role::Lsn || has_values(&reader, *at));
        let has = |role: Role| places.iter().any(|(known, _)| *known == role);
        let words = Words {
            ids: Ids::new(options.map_ids),
            volumes: Ids::new(true),
            ops: options.ops.clone(),
        };
        let pages = Pages {
            are_runs: !has(Role::Page)
                || has(Role::Size)
                || has(Role::Sectors)
                || has(Role::Volume)
                || !options.ops.is_empty(),
            page_size: options.page_size,
            expand_sizes: options.expand_sizes,
            spaces: Spaces::default(),
            rest: Run { count: 0, ..Run::page(0, Mark::READ) },
            skipped: 0,
            empty: 0,
            sized: 0,
            larger: 0,
        };
        Ok(Native {
            path: path.to_path_buf(),
            reader,
            places,
            words,
            pages,
            unused,
            given: Given::of(options),
            group: 0,
            open: None,
            rows: 0,
        })
    }

    fn next_group(&mut self) -> Result<bool, String> {
        if self.group == self.reader.num_row_groups() {
            return Ok(false);
        }
        let left = self.reader.metadata().row_group(self.group).num_rows();
        let left = usize::try_from(left).map_err(|_| format!("a row group of {left} rows"))?;
        let (group, reader) = (self.group, &self.reader);
        let cells = |&(role, at): &(Role, usize)| Ok((role, Cells::open(reader, group, role, at)?));
        let columns = self.places.iter().map(cells).collect::<Result<Vec<_>, String>>()?;
        self.group += 1;
        self.open = Some(Group { columns, left, decoded: 0, at: 0 });
        Ok(true)
    }

    /// Takes rows of the open group with up to `limit` references; returns the number of rows. The
    /// decoding step does not depend on the limit, so that damage is found at the same record
    /// however a trace is read.
    fn rows(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, BadRow> {
        let Some(group) = &mut self.open else { return Ok(0) };
        if group.at == group.decoded {
            let n = group.left.min(STEP);
            (group.at, group.decoded) = (0, 0);
            let schema = self.reader.metadata().file_metadata().schema_descr();
            for ((_, cells), (_, at)) in group.columns.iter_mut().zip(&self.places) {
                let read = cells.read(n, &mut self.words);
                read.map_err(|BadRow { row, reason }| {
                    let reason = format!("column '{}': {reason}", schema.column(*at).name());
                    BadRow { row, reason }
                })?;
            }
            (group.decoded, group.left) = (n, group.left - n);
        }
        let n = limit.min(group.decoded - group.at);
        let taken = match self.pages.are_runs {
            true => self.pages.runs(group, batch, limit)?,
            false => {
                group.pages(batch, n);
                n
            }
        };
        group.at += taken;
        Ok(taken)
    }
}

impl Group {
    /// Returns the column with `role`, from the first row not yet returned.
    fn cell(&self, role: Role) -> Option<&[i64]> {
        let cells = self.columns.iter().find(|(known, _)| *known == role);
        cells.map(|(_, cells)| &cells.values[self.at..self.decoded])
    }

    /// Appends the pages of the next `n` rows.
    fn pages(&self, batch: &mut Batch, n: usize) {
        let pages = self.cell(Role::Page).unwrap_or_default();
        batch.pages.extend(pages[..n].iter().map(|p| *p as u64));
        let marks = Marks::of(self);
        batch.marks.extend((0..n).map(|i| marks.mark(i)));
        if let Some(lsns) = self.cell(Role::Lsn) {
            batch.lsns.extend(lsns[..n].iter().map(|lsn| Lsn(*lsn as u64)));
        }
    }
}

/// Columns that make up a mark.
struct Marks<'a> {
    op: Option<&'a [i64]>,
    reason: Option<&'a [i64]>,
    kind: Option<&'a [i64]>,
    depth: Option<&'a [i64]>,
    scan: Option<&'a [i64]>,
}

impl Marks<'_> {
    fn of(group: &Group) -> Marks<'_> {
        let [op, reason, kind, depth, scan] =
            [Role::AccessKind, Role::Reason, Role::Kind, Role::Depth, Role::Scan]
                .map(|role| group.cell(role));
        Marks { op, reason, kind, depth, scan }
    }

    fn mark(&self, i: usize) -> Mark {
        let at = |cells: Option<&[i64]>| cells.map_or(0, |c| c[i]);
        let op = if at(self.op) == 0 { AccessKind::Read } else { AccessKind::Write };
        Mark::of(op)
            .with_reason(REASONS[at(self.reason) as usize])
            .with_kind(PageKind(at(self.kind) as u8), at(self.depth) as u8)
            .with_scan(at(self.scan) != 0)
    }
}

const REASONS: [Reason; 5] =
    [Reason::None, Reason::Synch, Reason::Replace, Reason::Recov, Reason::Dsync];

impl Pages {
    /// Appends up to `limit` references of rows; returns the number of rows taken. The remainder
    /// of the last row is left in `rest`.
    fn runs(&mut self, group: &Group, batch: &mut Batch, limit: usize) -> Result<usize, BadRow> {
        let marks = Marks::of(group);
        let [page, offset, sector, size, sectors, volume, lsn] = [
            Role::Page,
            Role::Offset,
            Role::Sector,
            Role::Size,
            Role::Sectors,
            Role::Volume,
            Role::Lsn,
        ]
        .map(|role| group.cell(role));
        let (mut room, mut taken) = (limit, 0);
        while room > 0 && group.at + taken < group.decoded {
            let at = |cells: Option<&[i64]>| cells.map(|c| c[taken] as u64);
            if at(marks.op) == Some(SKIP as u64) {
                self.skipped += 1;
                taken += 1;
                continue;
            }
            let offset = at(offset).or(at(sector).map(|sector| sector * BLOCK));
            let size = at(size).or(at(sectors).map(|sectors| sectors * BLOCK));
            let bad = |reason| BadRow { row: taken, reason };
            let run = self.run(at(page).unwrap_or(0), offset, size, marks.mark(taken));
            let mut run = run.map_err(bad)?;
            run.lsn = at(lsn).map(Lsn);
            if let Some(volume) = at(volume) {
                let placed = self.spaces.place(volume.to_string().as_bytes(), run);
                run = placed.map_err(bad)?;
            }
            self.rest = run;
            room -= self.rest.move_into(batch, room);
            taken += 1;
        }
        Ok(taken)
    }

    fn run(
        &mut self,
        page: u64,
        offset: Option<u64>,
        size: Option<u64>,
        mark: Mark,
    ) -> Result<Run, String> {
        match (offset, size) {
            (Some(offset), size) => {
                let size = size.unwrap_or(1);
                self.empty += u64::from(size == 0);
                Run::bytes(offset, size, self.page_size, mark)
            }
            (None, Some(size)) if self.expand_sizes => {
                Run::object(page, size, self.page_size, mark)
            }
            (None, size) => {
                self.sized += u64::from(size.is_some());
                self.larger += u64::from(size.is_some_and(|size| size > self.page_size));
                Ok(Run::page(page, mark))
            }
        }
    }
}

/// Returns the columns to read, and the names of unread columns that a user may miss.
#[expect(clippy::type_complexity, reason = "two lists, taken apart by the only caller")]
fn places(
    reader: &SerializedFileReader<File>,
    options: &ReadOptions,
    lsn: &str,
) -> Result<(Vec<(Role, usize)>, Vec<String>), String> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let is_flat = |at: usize| {
        let column = schema.column(at);
        column.path().parts().len() == 1 && column.max_rep_level() == 0
    };
    let names: Vec<String> = schema.columns().iter().map(|c| c.name().to_string()).collect();
    let of_roles = |roles: Vec<Option<Role>>| -> Vec<(Role, usize)> {
        let there = roles.into_iter().enumerate().filter_map(|(at, role)| Some((role?, at)));
        there.filter(|(role, at)| *role != Role::Time && is_flat(*at)).collect()
    };
    if let Some(columns) = &options.columns {
        let roles = columns.resolve(&names)?;
        if roles.len() > names.len() {
            let text = format!("column {} of {}: there are no more", roles.len(), names.len());
            return Err(text);
        }
        let is_nested = |at: &usize| roles[*at].is_some() && !is_flat(*at);
        if let Some(at) = (0..roles.len()).find(is_nested) {
            return Err(format!("column '{}' is nested: only flat columns are read", names[at]));
        }
        return Ok((of_roles(roles), Vec::new()));
    }
    let own = |at: usize| {
        let name = names[at].to_ascii_lowercase();
        let at = COLUMNS[..6].iter().chain([&lsn]).position(|known| *known == name);
        at.map(|at| ROLES[at])
    };
    let own: Vec<Option<Role>> =
        (0..names.len()).map(|at| own(at).filter(|_| is_flat(at))).collect();
    // Names of nested columns, such as the key of a map, are ignored.
    let flat: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(at, name)| match is_flat(at) {
            true => name.clone(),
            false => String::new(),
        })
        .collect();
    let usual = roles_of_header(&flat);
    let roles = match usual {
        usual if own.contains(&Some(Role::Page)) => with_own(own, &usual.unwrap_or_default()),
        Some(usual) => usual,
        None => {
            return Err(format!(
                "no column 'page' among {}: say which with {}",
                names.join(", "),
                parameters::COLUMNS.set_to("page=NAME")
            ));
        }
    };
    // A recording has two log positions, of which one is read.
    let is_position = |name: &str| matches!(name, "lsn" | "page_lsn" | "rec_lsn");
    let unused =
        names.iter().zip(&roles).filter(|(name, role)| role.is_none() && !is_position(name));
    let unused = unused.map(|(name, _)| shown(name.as_bytes())).collect();
    Ok((of_roles(roles), unused))
}

/// Returns the roles of columns by our own names, and of the others by the usual headers.
fn with_own(own: Vec<Option<Role>>, usual: &[Option<Role>]) -> Vec<Option<Role>> {
    let is_free = |role: &Role| !own.contains(&Some(*role)) && *role != Role::Lsn;
    let usual = |at: usize| usual.get(at).copied().flatten().filter(is_free);
    own.iter().enumerate().map(|(at, own)| own.or(usual(at))).collect()
}

/// Returns `true` if a column may have a value, by the file's statistics.
fn has_values(reader: &SerializedFileReader<File>, at: usize) -> bool {
    reader.metadata().row_groups().iter().any(|group| {
        let nulls = group.column(at).statistics().and_then(|s| s.null_count_opt());
        nulls.is_none_or(|nulls| nulls < group.num_rows().max(0) as u64)
    })
}

impl Source for Native {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        let before = batch.pages.len();
        self.pages.rest.move_into_if_any(batch, limit);
        loop {
            let added = batch.pages.len() - before;
            if added == limit {
                return Ok(added);
            }
            let step = self.rows(batch, limit - added).and_then(|n| {
                self.rows += n as u64;
                if n > 0 { Ok(true) } else { Ok(self.next_group()?) }
            });
            match step {
                Ok(true) => {}
                Ok(false) => return Ok(added),
                Err(BadRow { row, reason }) => {
                    let (path, record) = (self.path.clone(), self.rows + row as u64 + 1);
                    return Err(TraceError::Corrupt { path, record, reason });
                }
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        self.words.ids.notes(&mut notes);
        self.pages.spaces.notes(&mut notes);
        note_skipped(self.pages.skipped, &mut notes);
        note_empty(self.pages.empty, &mut notes);
        note_sizes(self.pages.sized, self.pages.larger, &mut notes);
        self.given.note(|role| self.places.iter().any(|(known, _)| *known == role), &mut notes);
        if !self.unused.is_empty() {
            let names = self.unused.join(", ");
            let how = parameters::COLUMNS;
            notes.push(format!("columns that are not used: {names} ({how} says what is what)"));
        }
        notes
    }
}
