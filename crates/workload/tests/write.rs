//! A written trace reads back equal, and a trace that cannot be written leaves nothing behind.

use std::fs;
use std::path::Path;

use millpond_base::{AccessKind, Lsn, Mark, PageKind, Reason, Seed};
use millpond_workload::formats::{Format, ReadOptions, open};
use millpond_workload::generate::generate;
use millpond_workload::trace::{Batch, Source, TraceError};
use millpond_workload::write::{WriteOptions, convert, create};
use proptest::prelude::*;

/// A trace from memory.
struct Given {
    batch: Batch,
    at: usize,
}

impl Source for Given {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        let end = self.batch.len().min(self.at + limit);
        batch.pages.extend_from_slice(&self.batch.pages[self.at..end]);
        batch.marks.extend_from_slice(&self.batch.marks[self.at..end]);
        if !self.batch.lsns.is_empty() {
            batch.lsns.extend_from_slice(&self.batch.lsns[self.at..end]);
        }
        let n = end - self.at;
        self.at = end;
        Ok(n)
    }
}

fn write(batch: &Batch, path: &Path) -> Result<Vec<String>, TraceError> {
    let mut sink = create(path, &WriteOptions::default())?;
    let n = convert(&mut Given { batch: batch.clone(), at: 0 }, &mut *sink)?;
    assert_eq!(n, batch.len() as u64);
    Ok(sink.notes())
}

fn read(path: &Path) -> Result<Batch, TraceError> {
    let mut source = open(path, &ReadOptions::default())?;
    let mut batch = Batch::default();
    while source.fill(&mut batch, 777)? > 0 {}
    Ok(batch)
}

fn assert_same(found: &Batch, wanted: &Batch, what: &str) {
    assert!(found.pages == wanted.pages, "{what}: pages");
    assert!(found.marks == wanted.marks, "{what}: marks");
    assert!(found.lsns == wanted.lsns, "{what}: lsns");
}

fn marks() -> impl Strategy<Value = Mark> {
    let reasons = [Reason::None, Reason::Synch, Reason::Replace, Reason::Recov, Reason::Dsync];
    (any::<bool>(), 0..5usize, any::<u8>(), any::<u8>(), any::<bool>()).prop_map(
        move |(write, reason, kind, depth, scan)| {
            Mark::of(if write { AccessKind::Write } else { AccessKind::Read })
                .with_reason(reasons[reason])
                .with_kind(PageKind(kind), depth)
                .with_scan(scan)
        },
    )
}

fn batches() -> impl Strategy<Value = Batch> {
    let page = prop_oneof![0..20u64, any::<u64>()];
    let row = (page, marks(), any::<u64>());
    (prop::collection::vec(row, 1..200), any::<bool>()).prop_map(|(rows, with_lsns)| Batch {
        pages: rows.iter().map(|r| r.0).collect(),
        marks: rows.iter().map(|r| r.1).collect(),
        lsns: if with_lsns { rows.iter().map(|r| Lsn(r.2)).collect() } else { Vec::new() },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn parquet_and_csv_keep_everything(batch in batches()) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["t.parquet", "t.csv", "t.csv.gz", "t.csv.zst"] {
            let path = folder.path().join(name);
            prop_assert!(write(&batch, &path).unwrap().is_empty());
            assert_same(&read(&path).unwrap(), &batch, name);
        }
    }

    #[test]
    fn text_keeps_pages_and_operations_and_says_what_it_lost(batch in batches()) {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = Batch::default();
        for (page, mark) in batch.pages.iter().zip(&batch.marks) {
            if mark.reason() != Reason::Dsync {
                kept.push(*page, Mark::of(mark.op()));
            }
        }
        prop_assume!(!kept.is_empty());
        let path = folder.path().join("t.txt.zst");
        let notes = write(&batch, &path).unwrap().join("\n");
        assert_same(&read(&path).unwrap(), &kept, "text");
        prop_assert_eq!(kept.len() < batch.len(), notes.contains("dsync"));
        prop_assert_eq!(!batch.lsns.is_empty(), notes.contains("log positions"));
        let path = folder.path().join("t.oracleGeneral.bin");
        write(&batch, &path).unwrap();
        kept.marks.fill(Mark::READ);
        assert_same(&read(&path).unwrap(), &kept, "oracleGeneral");
    }
}

#[test]
fn a_generated_trace_larger_than_a_row_group_survives_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let params = [("refs".to_string(), "1100k".to_string())];
    let mut whole = Batch::default();
    let mut source = generate("dynzipf-rw", &params, Seed(4)).unwrap();
    while source.fill(&mut whole, 1 << 20).unwrap() > 0 {}
    assert!(whole.len() > 1 << 20);
    for name in ["t.parquet", "t.csv.zst"] {
        let path = folder.path().join(name);
        write(&whole, &path).unwrap();
        assert_same(&read(&path).unwrap(), &whole, name);
    }
    let bytes = fs::metadata(folder.path().join("t.parquet")).unwrap().len();
    assert!(bytes < 4 * whole.len() as u64, "{bytes} bytes are not compressed");
}

#[test]
fn oracle_general_says_when_each_page_comes_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.oracleGeneral");
    let mut batch = Batch::default();
    // More than a block, with pages that recur across its border.
    let pages: Vec<u64> = (0..200_000u64).map(|i| i * i % 70_001).collect();
    pages.iter().for_each(|p| batch.push(*p, Mark::READ));
    write(&batch, &path).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), pages.len() * 24);
    let mut next = std::collections::HashMap::new();
    for i in (0..pages.len()).rev() {
        let record = &bytes[i * 24..i * 24 + 24];
        let found = i64::from_le_bytes(record[16..].try_into().unwrap());
        let wanted = next.insert(pages[i], i as i64 + 1).unwrap_or(-1);
        assert_eq!(found, wanted, "record {i}");
        assert_eq!(record[4..12], pages[i].to_le_bytes());
    }
}

#[test]
fn an_unfinished_or_failed_trace_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["t.parquet", "t.csv", "t.txt.gz", "t.oracleGeneral"] {
        let path = folder.path().join(name);
        let mut sink = create(&path, &WriteOptions::default()).unwrap();
        let mut batch = Batch::default();
        batch.push(1, Mark::READ);
        sink.write(&batch).unwrap();
        assert!(!path.exists(), "{name} appeared too early");
        drop(sink);
        let mut broken = open_bad();
        let mut sink = create(&path, &WriteOptions::default()).unwrap();
        assert!(convert(&mut *broken, &mut *sink).is_err());
        drop(sink);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{name} left something");
    }
}

fn open_bad() -> Box<dyn Source> {
    let bad = Box::new(std::io::Cursor::new(b"1\n2\nx\n".to_vec()));
    millpond_workload::formats::open_reader("bad", bad, &ReadOptions::default()).unwrap()
}

#[test]
fn a_full_disk_is_a_typed_error() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let mut batch = Batch::default();
    (0..300_000).for_each(|i| batch.push(i, Mark::WRITE));
    for format in [Format::Text, Format::Csv, Format::Parquet, Format::OracleGeneral] {
        let mut sink =
            create(full, &WriteOptions { format: Some(format), ..WriteOptions::default() })
                .unwrap();
        let mut source = Given { batch: batch.clone(), at: 0 };
        let error = convert(&mut source, &mut *sink).unwrap_err();
        match error {
            TraceError::Io { error: source, .. } => {
                assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "{format:?}");
            }
            other => panic!("{format:?}: {other}"),
        }
    }
    assert!(full.exists(), "the device was not replaced by a file");
}

#[test]
fn names_that_do_not_fit_are_refused_with_advice() {
    let refuse = |name: &str, format| {
        let outcome = create(
            Path::new("/nowhere").join(name),
            &WriteOptions { format, ..WriteOptions::default() },
        );
        outcome.err().expect(name).to_string()
    };
    assert!(refuse("trace", None).contains("does not say the format"));
    assert!(refuse("t.parquet.gz", None).contains("compresses itself"));
    assert!(refuse("t", Some(Format::Msr)).contains("cannot be written"));
    assert!(refuse("t.txt", None).contains("/nowhere/t.txt"));
}

#[test]
fn damaged_parquet_is_an_error_and_never_a_short_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let mut batch = Batch::default();
    (0..50_000u64).for_each(|i| batch.push(i * i % 10_007, Mark::READ));
    write(&batch, &path).unwrap();
    let good = fs::read(&path).unwrap();
    let bad = folder.path().join("bad.parquet");
    for cut in [5, good.len() / 3, good.len() - 1] {
        fs::write(&bad, &good[..cut]).unwrap();
        assert!(matches!(read(&bad), Err(TraceError::Corrupt { .. })), "cut at {cut}");
    }
    let mut bent = good.clone();
    bent[good.len() / 4..good.len() / 4 + 200].fill(0xa5);
    fs::write(&bad, &bent).unwrap();
    assert!(matches!(read(&bad), Err(TraceError::Corrupt { .. })), "bent in the data");
}
