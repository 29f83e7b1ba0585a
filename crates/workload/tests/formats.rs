//! Each format reads what its header draws, and refuses what is damaged with file, record and
//! reason.

use std::io::Write;
use std::path::Path;

use millpond_base::{AccessKind, Lsn, Mark, PageKind, Reason};
use millpond_workload::formats::{Format, ReadOptions, open, open_reader};
use millpond_workload::trace::{Batch, Source, TraceError};

fn drain(mut source: Box<dyn Source>) -> Result<(Batch, Vec<String>), TraceError> {
    let mut batch = Batch::default();
    // An odd limit, so that runs are split between calls.
    while source.fill(&mut batch, 3)? > 0 {}
    Ok((batch, source.notes()))
}

fn read_as(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Batch, TraceError> {
    let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
    drain(open_reader(name, reader, options)?).map(|(batch, _)| batch)
}

fn read(name: &str, text: &str) -> Result<Batch, TraceError> {
    read_as(name, text.as_bytes(), &ReadOptions::default())
}

fn notes(name: &str, bytes: &[u8], options: &ReadOptions) -> Vec<String> {
    let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
    drain(open_reader(name, reader, options).unwrap()).unwrap().1
}

fn writes(batch: &Batch) -> Vec<bool> {
    batch.marks.iter().map(|m| m.is_write()).collect()
}

/// The record number and reason of a corrupt file; anything else fails the test.
fn corrupt<T: std::fmt::Debug>(outcome: Result<T, TraceError>) -> (u64, String) {
    match outcome.unwrap_err() {
        TraceError::Corrupt { record, reason, .. } => (record, reason),
        other => panic!("{other}"),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn text_has_pages_operations_comments_blank_lines_and_any_line_end() {
    let batch =
        read("t", "# head\n1\n2 W\n\n3\tr\r\n 44 \r\n5 # five\n6 w # six\n7\n10 1 # a\n").unwrap();
    assert_eq!(batch.pages, [1, 2, 3, 44, 5, 6, 7, 10]);
    assert_eq!(writes(&batch), [false, true, false, false, false, true, false, true]);
}

#[test]
fn a_damaged_text_line_is_named_by_its_number() {
    let (record, reason) = corrupt(read("t", "1\n2\n3x\n4\n"));
    assert_eq!(record, 3);
    assert!(reason.contains("'3x'"), "{reason}");
    let (record, _) = corrupt(read("t", "1 W\n2 Q\n"));
    assert_eq!(record, 2);
    let (record, _) = corrupt(read("t", "1\n99999999999999999999\n"));
    assert_eq!(record, 2);
    let (record, reason) = corrupt(read("t", "1\n2 W 3\n"));
    assert_eq!((record, reason.contains("3 columns")), (2, true));
}

#[test]
fn a_line_of_one_mebibyte_is_read_and_a_longer_one_is_named() {
    let of = |bytes: usize| format!("1\n2 # {}\n3\n", "x".repeat(bytes - "2 # \n".len()));
    for head in ["", "7\n", &"8\n".repeat(100_000)] {
        let text = head.to_string() + &of(1 << 20);
        let pages = read("t", &text).unwrap().pages;
        assert_eq!(pages[pages.len() - 3..], [1, 2, 3]);
        let text = head.to_string() + &of(3 << 20);
        let (record, reason) = corrupt(read("t", &text));
        assert_eq!(record, 2 + head.lines().count() as u64);
        assert!(reason.contains("longer than 1048576 bytes"), "{reason}");
    }
}

#[test]
fn names_are_numbered_and_negative_ids_kept_apart() {
    let options = ReadOptions::default();
    assert_eq!(read("t", "a\nb\na\n17\n").unwrap().pages, [0, 1, 0, 2]);
    assert!(notes("t", b"a\nb\n", &options)[0].contains("2 distinct"));
    assert_eq!(read("t", "5\n-5\n5\n").unwrap().pages, [5, 5u64.wrapping_neg(), 5]);
    // The last page of all was once lost in an empty range.
    assert_eq!(read("t", "-1\n*\n18446744073709551615\n").unwrap().pages, [u64::MAX; 2]);
    let mapped = ReadOptions { map_ids: true, ..options };
    assert_eq!(read_as("t", b"9\nx\n9\n", &mapped).unwrap().pages, [0, 1, 0]);
}

#[test]
fn lirs_markers_are_no_references() {
    assert_eq!(read("t", "1\n2\n*\n1\n").unwrap().pages, [1, 2, 1]);
    let lirs = ReadOptions { format: Some(Format::Lirs), ..ReadOptions::default() };
    assert_eq!(notes("t", b"1\n*\n", &lirs), ["1 '*' markers were skipped"]);
    assert_eq!(corrupt(read_as("t", b"1\n2 W\n", &lirs)).0, 2);
}

#[test]
fn extents_and_lis_expand_and_refuse_absurd_counts() {
    let batch = read("x.extents.txt", "10 3\n7 0\n5 2\n").unwrap();
    assert_eq!(batch.pages, [10, 11, 12, 5, 6]);
    assert_eq!(read("P1.lis", "10 3 0 0\n5 2 0 1\n").unwrap().pages, [10, 11, 12, 5, 6]);
    assert_eq!(read("unnamed", "10 3 0 0\n5 2 0 1\n").unwrap().pages, [10, 11, 12, 5, 6]);
    let (record, reason) = corrupt(read("x.extents", "1 2\n1 999999999999\n"));
    assert_eq!((record, reason.contains("absurd")), (2, true));
    let (_, reason) = corrupt(read("x.extents", "18446744073709551615 9\n"));
    assert!(reason.contains("64 bits"), "{reason}");
    assert_eq!(corrupt(read("P1.lis", "1 2 0 0\n1 2 0\n")).0, 2);
    assert_eq!(corrupt(read("x.extents", "1 2\nx 2\n")).0, 2);
}

#[test]
fn two_numbers_per_line_are_not_guessed() {
    let error = read("t", "10 3\n5 2\n").unwrap_err().to_string();
    assert!(error.contains("format=extents") && error.contains("columns="), "{error}");
    let extents = ReadOptions { format: Some(Format::Extents), ..ReadOptions::default() };
    assert_eq!(read_as("t", b"10 2\n", &extents).unwrap().pages, [10, 11]);
}

#[test]
fn csv_columns_come_from_the_header_or_from_the_caller() {
    let batch = read("t.csv", "time,op,page\n1,R,10\n2,write,\"20\"\n").unwrap();
    assert_eq!(batch.pages, [10, 20]);
    assert_eq!(writes(&batch), [false, true]);
    let chosen = |columns: &str| ReadOptions {
        columns: Some(columns.parse().unwrap()),
        ..ReadOptions::default()
    };
    let batch = read_as("t", b"1,2,3\n4,5,6\n", &chosen("page=3")).unwrap();
    assert_eq!(batch.pages, [3, 6]);
    let batch = read_as("t", b"a;lbn;rw\n4;5;W\n", &chosen("page=2,op=3")).unwrap();
    assert_eq!((batch.pages.clone(), writes(&batch)), (vec![5], vec![true]));
    let batch = read_as("t", b"obj,x\nk1,4\nk2,5\n", &chosen("page=obj")).unwrap();
    assert_eq!(batch.pages, [0, 1]);
    let batch = read_as("t", b"100 8192\n8191 2\n", &chosen("offset=1,size=2")).unwrap();
    assert_eq!(batch.pages, [0, 1, 2, 1, 2]);
    assert_eq!(read("t", "page op\n1 R\n").unwrap().pages, [1]);
    assert_eq!(read("t", "page\n1\n").unwrap().pages, [1]);
}

#[test]
fn csv_carries_every_mark() {
    let text = "page,op,reason,kind,depth,scan,lsn\n9,W,recov,3,2,1,77\n8,R,none,0,0,0,78\n";
    let batch = read("t.csv", text).unwrap();
    let mark = Mark::of(AccessKind::Write)
        .with_reason(Reason::Recov)
        .with_kind(PageKind::BTREE_LEAF, 2)
        .with_scan(true);
    assert_eq!(batch.marks, [mark, Mark::READ]);
    assert_eq!(batch.lsns, [Lsn(77), Lsn(78)]);
}

#[test]
fn damaged_csv_lines_name_record_and_column() {
    let (record, reason) = corrupt(read("t.csv", "page,op\n1,R\n2,Q\n"));
    assert_eq!((record, reason.contains("column 2")), (3, true));
    assert_eq!(corrupt(read("t.csv", "op,page\nR,1\nR\n")).0, 3);
    assert_eq!(corrupt(read("t.csv", "page,kind\n1,2\n1,256\n")).0, 3);
    assert!(corrupt(read("t.csv", "page\n1\n\"2\n")).1.contains("quote"));
    let (record, reason) = corrupt(read("t.csv", "page,op\n1,R\n\"2,W\n3\",R\n"));
    assert!(record == 3 && reason.contains("not closed"), "a field ends in its line: {reason}");
    let (record, reason) = corrupt(read("t.csv", "page,op\n\"1\"0,R\n"));
    assert!(record == 2 && reason.contains("behind a closing quote"), "{reason}");
    let error = read("t.csv", "1,2,3\n").unwrap_err().to_string();
    assert!(error.contains("columns=page=N"), "{error}");
}

#[test]
fn sizes_are_ignored_with_a_note_or_expanded() {
    let options = ReadOptions::default();
    let text = b"id,size\n1,100\n2,9000\n";
    assert_eq!(read_as("t.csv", text, &options).unwrap().pages, [1, 2]);
    let note = notes("t.csv", text, &options).join(" ");
    assert!(note.contains("sizes of 2 references") && note.contains("1 of them"), "{note}");
    let expand = ReadOptions { expand_sizes: true, ..options };
    let pages = read_as("t.csv", text, &expand).unwrap().pages;
    assert_eq!(pages.len(), 4);
    assert_eq!(pages[..2], [1, 2]);
    assert!(pages[2] > 1 << 32 && pages[3] > 1 << 32 && pages[2] != pages[3]);
}

#[test]
fn an_msr_trace_of_a_whole_fleet_keeps_up_to_65536_disks_apart() {
    let line = |disk: u32| format!("1,usr,{disk},Read,0,512,1\n");
    let fleet: String = (0..65536).map(line).collect();
    let pages = read("msr", &fleet).unwrap().pages;
    assert_eq!(pages.len(), 65536);
    assert!(pages.iter().enumerate().all(|(at, page)| *page == (at as u64) << 48));
    let (at, _) = corrupt(read("msr", &(fleet + &line(65536))));
    assert_eq!(at, 65537);
}

#[test]
fn spc_and_msr_expand_byte_ranges_to_pages() {
    let batch = read("spc", "0,8,4096,W,0.5\n1,0,512,r,0.6\n0,7,1024,R,0.7\n").unwrap();
    assert_eq!(batch.pages, [1, 1 << 48, 0, 1]);
    assert_eq!(writes(&batch), [true, false, false, false]);
    let text = "128166372003061629,usr,0,Read,8192,4097,41286\n\
                128166372016382155,usr,1,Write,0,512,100\n";
    let batch = read("msr", text).unwrap();
    assert_eq!(batch.pages, [2, 3, 1 << 48]);
    assert_eq!(writes(&batch), [false, false, true]);
    assert_eq!(corrupt(read("spc", "0,8,4096,W,0.5\n0,8,x,W,0.5\n")).0, 2);
    assert_eq!(corrupt(read("msr", &format!("{text}1,usr,0,Read,8192,4097\n"))).0, 3);
    let wide = ReadOptions { page_size: 16384, ..ReadOptions::default() };
    assert_eq!(read_as("msr", text.as_bytes(), &wide).unwrap().pages, [0, 1 << 48]);
}

fn oracle_record(time: u32, id: u64, size: u32, next: i64) -> Vec<u8> {
    let mut record = time.to_le_bytes().to_vec();
    record.extend(id.to_le_bytes());
    record.extend(size.to_le_bytes());
    record.extend(next.to_le_bytes());
    record
}

#[test]
fn oracle_general_is_told_by_its_content_and_a_cut_record_is_damage() {
    let mut bytes = oracle_record(1, 7, 1, 3);
    bytes.extend(oracle_record(1, u64::MAX, 9000, -1));
    bytes.extend(oracle_record(2, 7, 1, i64::MAX));
    let options = ReadOptions::default();
    assert_eq!(read_as("t", &bytes, &options).unwrap().pages, [7, u64::MAX, 7]);
    assert!(notes("t", &bytes, &options)[0].contains("1 of them larger"));
    let expand = ReadOptions { expand_sizes: true, ..ReadOptions::default() };
    assert_eq!(read_as("t", &bytes, &expand).unwrap().len(), 5);
    let cut = &bytes[..60];
    let (record, reason) = corrupt(read_as("x.oracleGeneral", cut, &options));
    assert_eq!((record, reason.contains("12 of 24")), (3, true));
    let error = read_as("t", &[0u8, 1, 2, 200, 7], &options).unwrap_err();
    assert!(matches!(error, TraceError::UnknownFormat { .. }), "{error}");
}

#[test]
fn gzip_and_zstd_are_seen_through_and_their_cuts_are_damage() {
    let text: String = (0..200_000u32).map(|i| format!("{}\n", i * 7919 % 1_000_003)).collect();
    let options = ReadOptions::default();
    let plain = read("t", &text).unwrap().pages;
    assert_eq!(plain.len(), 200_000);
    for packed in [gzip(text.as_bytes()), zstd::encode_all(text.as_bytes(), 1).unwrap()] {
        assert_eq!(read_as("t", &packed, &options).unwrap().pages, plain);
        let (record, reason) = corrupt(read_as("t", &packed[..packed.len() * 2 / 3], &options));
        assert!(record > 50_000 && reason.contains("cut off"), "{record}: {reason}");
        let mut bent = packed.clone();
        let middle = packed.len() / 2;
        bent[middle..middle + 64].fill(0x55);
        corrupt(read_as("t", &bent, &options));
    }
    let mut two = gzip(b"1\n2\n");
    two.extend(gzip(b"3\n"));
    assert_eq!(read_as("t", &two, &options).unwrap().pages, [1, 2, 3]);
    for rest in [&b"XXXXX"[..], &[0; 4000], b"a whole line of text\n"] {
        let (record, reason) = corrupt(read_as("t", &[&two, rest].concat(), &options));
        assert!(record == 4 && reason.contains("behind the end"), "{record}: {reason}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_id_or_column() {
    let mark = "\u{feff}";
    assert_eq!(read("t", &format!("{mark}1\n2\n1\n")).unwrap().pages, [1, 2, 1]);
    let csv = read("t.csv", &format!("{mark}page,op\n5,R\n6,W\n")).unwrap();
    assert_eq!((csv.pages.clone(), writes(&csv)), (vec![5, 6], vec![false, true]));
    let packed = gzip(format!("{mark}7\n").as_bytes());
    assert_eq!(read_as("t", &packed, &ReadOptions::default()).unwrap().pages, [7]);
}

#[test]
fn nothing_at_all_is_an_empty_trace() {
    for text in ["", "# only a comment\n", "\n\n"] {
        let error = read("t", text).unwrap_err();
        assert!(matches!(error, TraceError::Empty { .. }), "{text:?}: {error}");
    }
    assert!(matches!(read("t.csv", "page,op\n").unwrap_err(), TraceError::Empty { .. }));
    let error = read_as("t", &gzip(b""), &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, TraceError::Empty { .. }), "{error}");
}

#[test]
fn a_missing_file_a_folder_and_wrong_options_are_typed_errors() {
    let open_error = |path: &Path, options: &ReadOptions| match open(path, options) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    };
    let options = ReadOptions::default();
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    assert!(matches!(open_error(&missing, &options), TraceError::Io { .. }));
    assert!(matches!(open_error(folder.path(), &options), TraceError::Io { .. }));
    let zero = ReadOptions { page_size: 0, ..ReadOptions::default() };
    assert!(matches!(open_error(&missing, &zero), TraceError::Options(_)));
    let mixed = ReadOptions {
        format: Some(Format::Text),
        columns: Some("page=1".parse().unwrap()),
        ..ReadOptions::default()
    };
    assert!(matches!(open_error(&missing, &mixed), TraceError::Options(_)));
    let error = "parket".parse::<Format>().unwrap_err().to_string();
    assert!(error.contains("did you mean 'parquet'"), "{error}");
    assert_eq!("oracleGeneral".parse::<Format>().unwrap(), Format::OracleGeneral);
}
