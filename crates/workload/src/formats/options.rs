//! Options that a caller may set before a trace is read: its format, columns and page size.

use std::str::FromStr;

use millpond_base::nearest::nearest;

use crate::trace::TraceError;

use super::columns::{Columns, Role};
use super::op::Ops;
use super::parameters::{COLUMNS, EXPAND_SIZES, MAP_IDS, OPS};

/// A trace format that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Format {
    /// One page per line, optionally followed by `R` or `W`.
    Text,
    /// The LIRS authors' text: one page per line and lone `*` markers.
    Lirs,
    /// Separated columns, chosen by [`Columns`] or by a header.
    Csv,
    /// `start count` per line.
    Extents,
    /// The ARC authors' `.lis`: `start count 0 request`.
    Lis,
    /// SPC-1 style: ASU, LBA, size, opcode, timestamp.
    Spc,
    /// MSR Cambridge block traces.
    Msr,
    /// libCacheSim's binary records of 24 bytes.
    OracleGeneral,
    /// Millpond's own Parquet columns.
    Parquet,
}

/// The description of a format, for the choice of one.
#[derive(Clone, Copy, Debug)]
pub struct FormatInfo {
    /// The format described.
    pub format: Format,
    /// Name of the format on the command line.
    pub id: &'static str,
    /// Summary of the format, in a line.
    pub summary: &'static str,
    /// One record of it.
    pub example: &'static str,
    /// `true` if the format can be written too.
    pub writable: bool,
}

/// Every format, in the order in which lists show them.
pub const FORMATS: &[FormatInfo] = &[
    FormatInfo {
        format: Format::Text,
        id: "text",
        summary: "one page per line, R or W may follow; # starts a comment",
        example: "4711 W",
        writable: true,
    },
    FormatInfo {
        format: Format::Csv,
        id: "csv",
        summary: "separated columns, named by a header or by the caller",
        example: "17,read,4711",
        writable: true,
    },
    FormatInfo {
        format: Format::Lis,
        id: "lis",
        summary: "ARC/SPC .lis: start, count, an ignored 0, request number",
        example: "4711 8 0 17",
        writable: false,
    },
    FormatInfo {
        format: Format::Extents,
        id: "extents",
        summary: "start and count per line",
        example: "4711 8",
        writable: false,
    },
    FormatInfo {
        format: Format::Lirs,
        id: "lirs",
        summary: "one page per line with lone * markers between phases",
        example: "4711",
        writable: false,
    },
    FormatInfo {
        format: Format::Spc,
        id: "spc",
        summary: "SPC-1 style: ASU, LBA (512 bytes), size in bytes, opcode, timestamp",
        example: "0,20941264,8192,W,0.551706",
        writable: false,
    },
    FormatInfo {
        format: Format::Msr,
        id: "msr",
        summary: "MSR Cambridge: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
        example: "128166372003061629,usr,0,Read,7014609920,24576,41286",
        writable: false,
    },
    FormatInfo {
        format: Format::OracleGeneral,
        id: "oracle-general",
        summary: "libCacheSim oracleGeneral: 24-byte records, little endian",
        example: "u32 time, u64 id, u32 size, i64 next access",
        writable: true,
    },
    FormatInfo {
        format: Format::Parquet,
        id: "parquet",
        summary: "Millpond's own columns: page, op, reason, kind, depth, scan, lsn",
        example: "page=4711, op=1, reason=0, kind=3, depth=2, scan=false",
        writable: true,
    },
];

impl Format {
    /// The format's name on the command line.
    pub fn id(self) -> &'static str {
        FORMATS.iter().find(|f| f.format == self).map_or("unknown", |f| f.id)
    }
}

impl FromStr for Format {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Format, TraceError> {
        let wanted = text.to_ascii_lowercase().replace('_', "-");
        // libCacheSim writes the name in one word.
        let wanted = if wanted == "oraclegeneral" { "oracle-general".into() } else { wanted };
        if let Some(info) = FORMATS.iter().find(|f| f.id == wanted) {
            return Ok(info.format);
        }
        let known: Vec<&str> = FORMATS.iter().map(|f| f.id).collect();
        let hint = match nearest(&wanted, known.iter().copied()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("known are {}", known.join(", ")),
        };
        Err(TraceError::Options(format!("unknown trace format '{text}': {hint}")))
    }
}

/// Options of reading a trace. `ReadOptions::default()` detects everything.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format, where detection is not wanted.
    pub format: Option<Format>,
    /// Columns of a CSV file; its header decides where this is `None`.
    pub columns: Option<Columns>,
    /// Meanings of words for operations, beside the usual ones.
    pub ops: Ops,
    /// Bytes per page, for formats that address bytes. At least 1.
    pub page_size: u64,
    /// Turn an object of several pages into that many references instead of one.
    pub expand_sizes: bool,
    /// Number all ids by first appearance, even if the first one looks like a number.
    pub map_ids: bool,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            format: None,
            columns: None,
            ops: Ops::default(),
            page_size: 4096,
            expand_sizes: false,
            map_ids: false,
        }
    }
}

/// Options that are of use with some columns only.
#[derive(Debug)]
pub(crate) struct Given {
    ops: bool,
    expand_sizes: bool,
    map_ids: bool,
}

impl Given {
    pub(crate) fn of(options: &ReadOptions) -> Given {
        let ReadOptions { expand_sizes, map_ids, .. } = *options;
        Given { ops: !options.ops.is_empty(), expand_sizes, map_ids }
    }

    /// The note on options that were given and that these columns have no use for.
    pub(crate) fn note(&self, has: impl Fn(Role) -> bool, notes: &mut Vec<String>) {
        let has_sizes = has(Role::Size) || has(Role::Sectors);
        let all = [
            (OPS, self.ops && !has(Role::AccessKind)),
            // Ranges of addresses have as many references as pages anyway.
            (EXPAND_SIZES, self.expand_sizes && has(Role::Page) && !has_sizes),
            (MAP_IDS, self.map_ids && !has(Role::Page)),
        ];
        let unused = all.into_iter().filter(|(_, is_unused)| *is_unused);
        let names: Vec<String> = unused.map(|(parameter, _)| parameter.to_string()).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            notes.push(format!(
                "not used with these columns: {names} ({COLUMNS} says what is what)"
            ));
        }
    }
}
