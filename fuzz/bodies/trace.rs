//! Bodies of the fuzz targets of the trace readers.
//!
//! The same functions are run by `crates/workload/tests/mutations.rs` over mutated examples, so
//! that every test run exercises them without cargo-fuzz.

use std::io::Cursor;

use millpond_workload::formats::{FORMATS, Format, Ops, ReadOptions, open, open_reader};
use millpond_workload::trace::{Batch, Source, TraceError};

/// References that are read of one input: an extent of a few bytes may stand for millions.
const ENOUGH: usize = 20_000;

/// Any bytes, with automatic detection.
pub fn detect(data: &[u8]) {
    check(data, "fuzz", &ReadOptions::default());
}

/// Any bytes as the format and with the options that the first two bytes choose.
pub fn formats(data: &[u8]) {
    let [which, flags, data @ ..] = data else { return };
    let format = FORMATS[usize::from(*which) % FORMATS.len()].format;
    let columns = match flags >> 4 {
        1 => Some("page=2,op=1"),
        2 => Some("offset=1,size=2,op=3"),
        3 => Some("page=1,size=2,reason=3,kind=4,depth=5,scan=6,lsn=7"),
        4 => Some("page=id,op=op"),
        5 => Some("sector=1,sectors=2,volume=3,op=4"),
        _ => None,
    };
    let columns = columns.filter(|_| format == Format::Csv);
    let options = ReadOptions {
        ops: if flags & 8 == 0 {
            Ops::default()
        } else {
            "d=skip,gets=R".parse().unwrap_or_default()
        },
        format: Some(format),
        columns: columns.and_then(|text| text.parse().ok()),
        page_size: if flags & 1 == 0 { 4096 } else { 1 },
        expand_sizes: flags & 2 != 0,
        map_ids: flags & 4 != 0,
    };
    check(data, "fuzz", &options);
}

/// Any bytes behind a magic number, as a compressed stream.
pub fn packed(data: &[u8]) {
    let [which, data @ ..] = data else { return };
    let magic: &[u8] = match which % 3 {
        0 => &[0x1f, 0x8b, 8],
        1 => &[0x28, 0xb5, 0x2f, 0xfd],
        _ => &[],
    };
    let bytes = [magic, data].concat();
    let options = ReadOptions { format: Some(Format::Text), ..ReadOptions::default() };
    check(&bytes, "fuzz", &options);
}

/// Any bytes as a Parquet file.
pub fn parquet(data: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let path = folder.path().join("fuzz.parquet");
    if std::fs::write(&path, data).is_err() {
        return;
    }
    let options = ReadOptions { format: Some(Format::Parquet), ..ReadOptions::default() };
    same_for_all_limits(|| open(&path, &options));
}

fn check(data: &[u8], name: &str, options: &ReadOptions) {
    same_for_all_limits(|| open_reader(name, Box::new(Cursor::new(data.to_vec())), options));
}

/// Reads the trace twice, in large and in small batches, and compares references and outcome.
fn same_for_all_limits(open: impl Fn() -> Result<Box<dyn Source>, TraceError>) {
    let (large, end_of_large) = drain(open(), 4096);
    let (small, end_of_small) = drain(open(), 61);
    let n = large.len().min(small.len());
    assert_eq!(large.pages[..n], small.pages[..n], "pages depend on the batch size");
    assert_eq!(large.marks[..n], small.marks[..n], "marks depend on the batch size");
    if n < ENOUGH {
        assert_eq!(end_of_large, end_of_small, "the outcome depends on the batch size");
    }
}

/// The references before the end or the error, and the error's text.
fn drain(source: Result<Box<dyn Source>, TraceError>, limit: usize) -> (Batch, Option<String>) {
    let mut batch = Batch::default();
    let mut source = match source {
        Ok(source) => source,
        Err(error) => return (batch, Some(error.to_string())),
    };
    while batch.len() < ENOUGH {
        let before = batch.len();
        match source.fill(&mut batch, limit) {
            Ok(0) => {
                assert_eq!(batch.len(), before);
                assert_eq!(source.fill(&mut batch, limit).ok(), Some(0), "ended, and went on");
                break;
            }
            Ok(n) => {
                assert!(n <= limit && batch.len() == before + n, "{n} references were claimed");
                assert_eq!(batch.marks.len(), batch.len());
                assert!(batch.lsns.is_empty() || batch.lsns.len() == batch.len());
            }
            Err(error) => return (batch, Some(error.to_string())),
        }
    }
    drop(source.notes());
    (batch, None)
}
