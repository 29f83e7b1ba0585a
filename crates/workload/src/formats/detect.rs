//! Detects the format of a trace from its name and its first bytes.
//!
//! In this order, and the first that fits decides:
//!
//! 1. `PAR1` at the start: Parquet (looked at before decompression).
//! 2. Bytes that are no text: oracleGeneral if the records make sense as such (time never
//!    decreases, next accesses are ahead). If the name has that word (as libCacheSim calls its
//!    files), it is enough that next accesses are numbers of references. Else unknown.
//! 3. Columns chosen by the caller: CSV.
//! 4. Text with commas or semicolons (or `.csv` in the name): MSR Cambridge by its seven
//!    columns, SPC by its five, else CSV if a header names a page column.
//! 5. Words: a header that names a page makes it CSV. One word per line is text (a lone `*` among
//!    them makes it LIRS), a word and an operation is text. Four numbers are `.lis` if the file
//!    name has that extension, or the third is always 0 and the fourth never decreases.
//!    **Two numbers** could be a page and a flag, a time and a page, a page and a size, or an
//!    extent: only the extension `.extents` decides; otherwise the error asks for
//!    `--trace-format`: a wrong guess would be a wrong result that looks right.

use std::path::Path;

use crate::trace::TraceError;

use super::csv::separator_of;
use super::lines::{is_comment, words};
use super::number::{shown, whole};
use super::options::{Format, ReadOptions};
use super::oracle_general;
use super::parameters::{COLUMNS, FORMAT};

/// Bytes of the trace that detection looks at.
pub(crate) const SAMPLE: usize = 64 << 10;
/// Lines that it looks at.
const LINES: usize = 1000;

/// The format of the trace called `path` that begins with `data` (after decompression).
pub(crate) fn detect(
    path: &Path,
    data: &[u8],
    is_whole_file: bool,
    options: &ReadOptions,
) -> Result<Format, TraceError> {
    let unknown = |reason: String| TraceError::UnknownFormat { path: path.into(), reason };
    if data.is_empty() {
        return Err(TraceError::Empty { path: path.into() });
    }
    if data.starts_with(b"PAR1") {
        let why = "Parquet is read from an uncompressed file only, not from a pipe, gz or zst";
        return Err(unknown(why.into()));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if !is_text(data) {
        let is_named = name.contains("oraclegeneral") || name.contains("oracle-general");
        let fits = match is_named {
            true => oracle_general::may_fit(data),
            false => oracle_general::fits(data, is_whole_file),
        };
        return match fits {
            true => Ok(Format::OracleGeneral),
            false => Err(unknown(binary(data, is_named))),
        };
    }
    if options.columns.is_some() {
        return Ok(Format::Csv);
    }
    let sample = sample_lines(data, is_whole_file);
    let Some(first) = sample.iter().find(|line| !is_comment(line)) else {
        return if is_whole_file {
            Err(TraceError::Empty { path: path.into() })
        } else {
            Ok(Format::Text)
        };
    };
    if first.iter().any(|b| matches!(b, b',' | b';')) || has_extension(&name, ".csv") {
        return separated(first, options).map_err(unknown);
    }
    let data_lines: Vec<&[u8]> = sample.iter().copied().filter(|l| !is_comment(l)).collect();
    worded(&name, &data_lines, options).map_err(unknown)
}

/// The reason that a binary trace is not read.
fn binary(data: &[u8], is_named: bool) -> String {
    if data.starts_with(b"\xff\xfe") || data.starts_with(b"\xfe\xff") {
        let named = match is_named {
            true => format!(" (or {}, if it is that)", FORMAT.set_to("oracleGeneral")),
            false => String::new(),
        };
        return format!(
            "it begins as UTF-16 does: iconv -f UTF-16 -t UTF-8 makes text of it{named}"
        );
    }
    if is_named {
        let what = "it has the name of oracleGeneral, but its records make no sense as such";
        return format!("{what}; {} reads it all the same", FORMAT.set_to("oracleGeneral"));
    }
    let what = "it is binary, but neither Parquet nor oracleGeneral";
    format!("{what}; {FORMAT} can name a format")
}

/// Text has no control characters but blanks and line ends.
fn is_text(data: &[u8]) -> bool {
    data.iter().all(|b| *b >= b' ' || matches!(b, b'\t' | b'\r' | b'\n'))
}

fn has_extension(name: &str, extension: &str) -> bool {
    let bare = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    bare.ends_with(extension)
}

/// Returns `true` if `part` is one of the extensions of `name`, as in `P2.extents.txt.gz`.
fn has_part(name: &str, part: &str) -> bool {
    name.split('.').skip(1).any(|one| one == part)
}

/// The first lines, without their ends; a last line that may be cut is left out.
fn sample_lines(data: &[u8], is_whole_file: bool) -> Vec<&[u8]> {
    let end = match memchr::memrchr(b'\n', data) {
        Some(at) if !is_whole_file => at,
        _ => data.len(),
    };
    let lines = data[..end].split(|b| *b == b'\n').take(LINES);
    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
}

/// Decides between the formats with separators by the first line.
fn separated(line: &[u8], options: &ReadOptions) -> Result<Format, String> {
    let separator = separator_of(line);
    let fields: Vec<&[u8]> = line.split(|b| *b == separator).map(|f| f.trim_ascii()).collect();
    let is_number = |i: usize| fields.get(i).is_some_and(|f| whole(f).is_some());
    let is_op = |i: usize| {
        let word = fields.get(i).filter(|f| whole(f).is_none());
        word.is_some_and(|f| options.ops.find(f).is_ok())
    };
    let is_msr_header = fields.len() == 7
        && fields[0].eq_ignore_ascii_case(b"timestamp")
        && fields[1].eq_ignore_ascii_case(b"hostname");
    let is_msr = fields.len() == 7 && is_op(3) && [0, 2, 4, 5, 6].into_iter().all(is_number);
    if is_msr || is_msr_header {
        return Ok(Format::Msr);
    }
    if fields.len() >= 5 && is_op(3) && (0..3).all(is_number) {
        return Ok(Format::Spc);
    }
    let header: Vec<String> =
        fields.iter().map(|f| String::from_utf8_lossy(f).trim_matches('"').to_string()).collect();
    if super::columns::roles_of_header(&header).is_some() {
        return Ok(Format::Csv);
    }
    let what = shown(line);
    let columns = COLUMNS.set_to("page=N,op=M");
    Err(format!("{what} has no header that names a page: choose columns ({columns})"))
}

/// Decides between the formats of words. The first line decides for text, so that a damaged line
/// further down is the reader's to complain about, with its number.
fn worded(name: &str, lines: &[&[u8]], options: &ReadOptions) -> Result<Format, String> {
    let rows: Vec<([&[u8]; 4], usize)> = lines.iter().map(|line| words::<4>(line)).collect();
    let first = lines.first().copied().unwrap_or_default();
    let header = String::from_utf8_lossy(first).into_owned();
    let header: Vec<String> = header.split_whitespace().map(String::from).collect();
    if super::columns::roles_of_header(&header).is_some() {
        return Ok(Format::Csv);
    }
    if header.len() == 1 {
        let has_markers = rows.iter().any(|(f, found)| *found == 1 && f[0] == b"*");
        return Ok(if has_markers { Format::Lirs } else { Format::Text });
    }
    let second = header.get(1).map_or(&b""[..], |f| f.as_bytes());
    let is_op = whole(second).is_none() && options.ops.find(second).is_ok();
    if second.starts_with(b"#") || (is_op && header.len() == 2) {
        return Ok(Format::Text);
    }
    let all_numbers = header.iter().all(|f| whole(f.as_bytes()).is_some());
    if all_numbers && header.len() == 4 {
        let in_order = rows.windows(2).all(|w| whole(w[0].0[3]) <= whole(w[1].0[3]));
        let zero = rows.iter().all(|(f, _)| whole(f[2]) == Some(0));
        if has_part(name, "lis") || (in_order && zero) {
            return Ok(Format::Lis);
        }
    }
    let shown = shown(first);
    if all_numbers && header.len() == 2 {
        if has_part(name, "extents") {
            return Ok(Format::Extents);
        }
        return Err(format!(
            "two numbers per line ({shown}) are ambiguous: say {} for 'start count', or {} with \
             {} (or page=2)",
            FORMAT.set_to("extents"),
            FORMAT.set_to("csv"),
            COLUMNS.set_to("page=1,op=2")
        ));
    }
    Err(format!(
        "no format has lines like {shown}: say {FORMAT}, or {} for columns",
        COLUMNS.set_to("page=N")
    ))
}
