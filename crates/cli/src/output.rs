//! Output of results: to standard output or a file, in one of four forms.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use millpond_lab::results::machine;
use millpond_lab::table::{Table, terminal_width};
use millpond_workload::write::{WholeFile, is_same_file};
use serde_json::Value as Json;

use crate::error::Failure;
use crate::interrupt;

/// In which form results leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Form {
    /// An aligned table, for people
    Table,
    /// Comma-separated values
    Csv,
    /// One object with command, version, params, machine and rows
    Json,
    /// Parquet; needs --out
    Parquet,
}

/// Form and place of results.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Output {
    /// Form of the results
    #[arg(long, value_enum, default_value = "table", value_name = "FORM")]
    pub format: Form,
    /// Write results to this file instead of standard output. The file appears only once it is
    /// complete; Ctrl-C or a failure leaves the finished results in FILE.partial
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print all columns of a table, even beyond the width of the terminal
    #[arg(long)]
    pub wide: bool,
}

/// Returns the width of standard output in characters, from COLUMNS or the terminal; `None` if
/// neither gives one.
pub(crate) fn line_width() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    said.or_else(|| terminal_width().map(usize::from))
}

impl Output {
    /// Fails before the work if its results could not be written after it.
    pub(crate) fn check<'p>(
        &self,
        inputs: impl IntoIterator<Item = &'p PathBuf>,
    ) -> Result<(), Failure> {
        apart(self.out.as_deref(), inputs)?;
        if self.format == Form::Parquet && self.out.is_none() {
            return Err(Failure::Usage(
                "Parquet is not written to a terminal: name a file with --out".to_string(),
            ));
        }
        Ok(())
    }

    /// Returns the file to write. Unfinished output (`is_part`, or Ctrl-C) goes to another file,
    /// so an earlier file of that name stays.
    fn place(&self, is_part: bool) -> Option<PathBuf> {
        let out = self.out.as_deref()?;
        if !(is_part || interrupt::asked()) || !WholeFile::is_renamed(out) {
            return Some(out.to_path_buf());
        }
        let mut name = out.as_os_str().to_owned();
        name.push(".partial");
        complain(&format!("the rows that were finished are in {}", Path::new(&name).display()));
        Some(name.into())
    }

    /// Writes a finished table.
    pub(crate) fn write(&self, command: &str, params: &Json, table: &Table) -> Result<(), Failure> {
        self.write_at(self.place(false), command, params, table)
    }

    /// Writes the finished part of a table.
    pub(crate) fn write_part(
        &self,
        command: &str,
        params: &Json,
        table: &Table,
    ) -> Result<(), Failure> {
        self.write_at(self.place(true), command, params, table)
    }

    fn write_at(
        &self,
        place: Option<PathBuf>,
        command: &str,
        params: &Json,
        table: &Table,
    ) -> Result<(), Failure> {
        match &place {
            None => {
                let mut out = io::stdout().lock();
                self.write_to(command, params, table, &mut out)?;
                out.flush()?;
                Ok(())
            }
            Some(path) if self.format == Form::Parquet => Ok(table.write_parquet(path)?),
            Some(path) => write_whole(path, |out| self.write_to(command, params, table, out)),
        }
    }

    /// Writes tables for people, each below its text.
    pub(crate) fn write_parts(&self, parts: &[(String, Table)]) -> Result<(), Failure> {
        let part = |(text, table): &(String, Table)| match table.rows.is_empty() {
            true => format!("{text}\n"),
            false => format!("{text}\n{}", self.fitted(table)),
        };
        let all = parts.iter().map(part).collect::<Vec<_>>().join("\n");
        match &self.place(false) {
            None => print(&all),
            Some(path) => write_whole(path, |out| Ok(out.write_all(all.as_bytes())?)),
        }
    }

    /// Formats the table as text; on a terminal, only the columns that fit.
    fn fitted(&self, table: &Table) -> String {
        let width = if self.wide || self.out.is_some() { None } else { line_width() };
        let Some(width) = width else { return table.to_text() };
        let (fitted, left_out) = table.fitted(width.max(20));
        match left_out {
            0 => fitted.to_text(),
            n => format!("{}{n} more columns: --wide\n", fitted.to_text()),
        }
    }

    fn write_to(
        &self,
        command: &str,
        params: &Json,
        table: &Table,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        match self.format {
            Form::Table => out.write_all(self.fitted(table).as_bytes())?,
            Form::Csv => table.write_csv(out)?,
            Form::Json => table.write_json(command, params, &machine(), out)?,
            Form::Parquet => self.check([])?,
        }
        Ok(())
    }
}

/// Writes a file that appears under its name only once it is whole.
pub(crate) fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let named =
        |e: io::Error| Failure::Write(io::Error::new(e.kind(), format!("{}: {e}", path.display())));
    let mut file = WholeFile::create(path).map_err(named)?;
    let mut buffer = io::BufWriter::new(&mut file);
    fill(&mut buffer)?;
    buffer.flush().map_err(named)?;
    drop(buffer);
    file.finish().map_err(named)
}

/// Checks that `out` replaces none of the files that the command reads.
pub(crate) fn apart<'p>(
    out: Option<&Path>,
    inputs: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<(), Failure> {
    let Some(out) = out else { return Ok(()) };
    match inputs.into_iter().find(|input| is_same_file(out, input)) {
        None => Ok(()),
        Some(input) => Err(Failure::Usage(format!(
            "{} is what is read, and would be replaced: name another file to write",
            input.display()
        ))),
    }
}

/// Writes a line to standard error.
pub fn complain(line: &str) {
    // If standard error is closed, no reader is left.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes text to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
