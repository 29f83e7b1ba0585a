//! Traces as other programs write them: each is read as it was meant, or refused by name. None is a
//! little too long, too short, or of other pages, without a word.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use millpond_workload::formats::{Columns, Format, Ops, ReadOptions, open, open_reader};
use millpond_workload::trace::{Batch, Source, TraceError};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

type Read = Result<(Batch, Vec<String>), TraceError>;

fn drain(source: Result<Box<dyn Source>, TraceError>) -> Read {
    let (mut source, mut batch) = (source?, Batch::default());
    // An odd limit, so that runs are split between calls.
    while source.fill(&mut batch, 3)? > 0 {}
    Ok((batch, source.notes()))
}

fn read(name: &str, text: &str, options: &ReadOptions) -> Read {
    drain(open_reader(name, Box::new(std::io::Cursor::new(text.as_bytes().to_vec())), options))
}

fn read_bytes(name: &str, bytes: &[u8]) -> Read {
    let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
    drain(open_reader(name, reader, &ReadOptions::default()))
}

fn columns(text: &str) -> ReadOptions {
    let columns: Columns = text.parse().unwrap();
    ReadOptions { columns: Some(columns), ..ReadOptions::default() }
}

fn pages(read: Read) -> Vec<u64> {
    read.unwrap().0.pages
}

fn writes(read: Read) -> Vec<bool> {
    read.unwrap().0.marks.iter().map(|mark| mark.is_write()).collect()
}

fn refused(read: Read, says: &str) {
    let error = read.unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
}

#[test]
fn the_first_reference_is_never_taken_for_a_header() {
    let mapped = ReadOptions { ops: "gets=R,cas=W".parse().unwrap(), ..columns("page=1,op=2") };
    let text = "17,gets\n18,cas\n19,get\n";
    assert_eq!(pages(read("t.csv", text, &mapped)), [17, 18, 19]);
    refused(read("t.csv", text, &columns("page=1,op=2")), "--ops gets=R");
    // A size that is not known is none, and no reason to lose the reference.
    assert_eq!(pages(read("t.csv", "17,\n18,5\n", &columns("page=1,size=2"))), [17, 18]);
    refused(read("t.csv", "17,-1\n18,5\n", &columns("page=1,size=2")), "'-1'");
    // Numbers are no header.
    refused(read("t.csv", "id,17\nid,18\n", &ReadOptions::default()), "--columns page=N");
}

#[test]
fn a_header_is_never_taken_for_a_reference() {
    let by_number = columns("page=2");
    for header in ["time,uid,what", "# by a tool\ntime,key,op", "# a, b; c\n\ntime,obj_id,op"] {
        let text = format!("{header}\n1,17,get\n2,18,put\n");
        match read("t.csv", &text, &by_number) {
            Ok((batch, _)) => assert_eq!(batch.pages, [17, 18], "{header}"),
            Err(error) => assert!(error.to_string().contains("columns=page=uid"), "{error}"),
        }
    }
    let words = "uid,bytes\n17,5\n";
    assert_eq!(pages(read("t.csv", words, &columns("page=1,size=2"))), [17]);
    assert_eq!(pages(read("t.csv", words, &columns("page=uid"))), [17]);
    refused(read("t.txt", "uid\n17\n18\n", &ReadOptions::default()), "--columns page=uid");
    // A comment that has a word of a header is none, if the lines are not like it.
    let text = "# id mapping of disk 7\ntime,op,page\n1,R,17\n";
    assert_eq!(pages(read("t.csv", text, &ReadOptions::default())), [17]);
    let csv = ReadOptions { format: Some(Format::Csv), ..ReadOptions::default() };
    assert_eq!(pages(read("t.csv", "# a tool\n# op,page\nW,17\n", &csv)), [17]);
}

#[test]
fn runs_of_blanks_are_one_separator() {
    let biosnoop = "TIME(s)     COMM       PID    DISK    OP SECTOR     BYTES\n\
                    0.000004    supervise  1950   xvda1   W  13092560   4096\n\
                    0.000178    supervise  1950   xvda1   W  13092432   4096\n\
                    0.001469    supervise  1956   xvda1   R  13092440   4096\n";
    let (batch, notes) = read("biosnoop.txt", biosnoop, &ReadOptions::default()).unwrap();
    assert_eq!(batch.pages, [13092560 / 8, 13092432 / 8, 13092440 / 8], "{notes:?}");
    assert_eq!(batch.marks.iter().filter(|mark| mark.is_write()).count(), 2);
    let blkparse = "  8,0    3        1     0.000000000   697  Q  WS 223490 + 8 [kjournald]\n\
                    \x20 8,0    3       11     0.000009945   697  Q  RA 223498 + 16 [kjournald]\n";
    let chosen =
        ReadOptions { ops: "WS=W,RA=R".parse().unwrap(), ..columns("op=7,sector=8,sectors=10") };
    let blanks = blkparse.replace("8,0", "8:0");
    assert_eq!(pages(read("t", &blanks, &chosen)), [27936, 27937, 27937, 27938, 27939]);
}

#[test]
fn semicolons_separate_whatever_the_file_is_called() {
    let text = "time;op;page\n1;R;17\n2;W;18\n";
    assert_eq!(pages(read("trace.log", text, &ReadOptions::default())), [17, 18]);
    refused(read("trace.log", "17;R\n18;W\n", &ReadOptions::default()), "--columns page=N");
}

#[test]
fn a_request_of_no_bytes_is_noted_and_a_missing_id_is_no_page() {
    let (batch, notes) = read("t", "4096,0\n4096,1\n", &columns("offset=1,size=2")).unwrap();
    assert_eq!(batch.pages, [1]);
    assert!(notes.iter().any(|note| note.contains("1 requests of length 0")), "{notes:?}");
    let missing = "a,R\nb,R\n,R\na,R\n";
    refused(read("t", missing, &columns("page=1,op=2")), "record 3: the page id is missing");
    let mapped = ReadOptions { map_ids: true, ..columns("page=1,op=2") };
    refused(read("t", missing, &mapped), "record 3: the page id is missing");
    refused(read("t", "4096,\n", &columns("offset=1,size=2")), "the size is missing");
}

#[test]
fn operations_of_any_tool_are_mapped_or_skipped() {
    let ops = |text: &str| text.parse::<Ops>().unwrap();
    let text = "1,gets\n2,HEAD\n3,D\n4,F\n5,incr\n";
    let all =
        ReadOptions { ops: ops("gets=R,head=r,D=skip,F=skip,incr=W"), ..columns("page=1,op=2") };
    let (batch, notes) = read("t.csv", text, &all).unwrap();
    assert_eq!(batch.pages, [1, 2, 5]);
    assert!(notes.iter().any(|note| note.contains("2 references were skipped")), "{notes:?}");
    assert_eq!(writes(read("t.csv", text, &all)), [false, false, true]);
    let plain = ReadOptions { ops: ops("r=W,x=skip"), ..ReadOptions::default() };
    assert_eq!(writes(read("t.txt", "1 r\n2 x\n3 R\n", &plain)), [true, true]);
    let spc = ReadOptions { ops: ops("u=skip"), ..ReadOptions::default() };
    assert_eq!(pages(read("t", "0,8,4096,R,0.1\n0,16,512,U,0.2\n", &spc)), [1]);
    let msr = "1,usr,0,Read,4096,512,1\n1,usr,0,Trim,8192,512,1\n";
    let trim = ReadOptions { ops: ops("trim=skip"), ..ReadOptions::default() };
    assert_eq!(pages(read("t", msr, &trim)), [1]);
}

#[test]
fn volumes_do_not_share_pages_and_sectors_are_sectors() {
    // Alibaba: device_id,opcode,offset,length,timestamp.
    let alibaba = "419,W,4096,4096,1\n725,R,4096,4096,2\n419,R,4096,4096,3\n";
    let chosen = columns("volume=1,op=2,offset=3,size=4");
    let read_as = |text: &str, options: &ReadOptions| pages(read("io_traces.csv", text, options));
    assert_eq!(read_as(alibaba, &chosen), [1, 1 | 1 << 48, 1]);
    let named = format!("device_id,opcode,offset,length,timestamp\n{alibaba}");
    assert_eq!(read_as(&named, &ReadOptions::default()), [1, 1 | 1 << 48, 1]);
    // Tencent: timestamp,offset,size,iotype,volume_id, in sectors.
    let tencent = "1538323200,8,16,0,1063\n1538323200,8,8,1,1064\n";
    let chosen = columns("sector=2,sectors=3,op=4,volume=5");
    assert_eq!(read_as(tencent, &chosen), [1, 2, 1 | 1 << 48]);
    let wide = format!("1,{}\n2,5\n", u64::MAX - 5);
    refused(read("t.csv", &wide, &columns("volume=1,page=2")), "second disk");
}

#[test]
fn a_name_never_outweighs_what_is_in_the_file() {
    let text = "time,op,page\n1,R,17\n2,W,18\n";
    for name in ["w01.oracleGeneral.csv", "oracleGeneral.csv", "w.oracleGeneral"] {
        assert_eq!(pages(read(name, text, &ReadOptions::default())), [17, 18], "{name}");
    }
    assert_eq!(pages(read("oracleGeneral.txt", "17\n18\n", &ReadOptions::default())), [17, 18]);
}

#[test]
fn a_binary_file_that_has_the_name_of_oracle_general_is_not_read_as_one() {
    let text = "time,op,page\n".to_string() + &"1,R,17\n2,W,18\n".repeat(200);
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [&b"\xff\xfe"[..], &little].concat();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let mut seed = 1u64;
    let random: Vec<u8> = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 56) as u8
    })
    .take(2400)
    .collect();
    let short = little[..48].to_vec();
    for bytes in [&little, &marked, &big, &random, &vec![0; 2400], &short] {
        for name in ["w01.oracleGeneral", "w01.oracleGeneral.csv", "trace.bin"] {
            let read = read_bytes(name, bytes);
            refused(read, if name == "trace.bin" { "" } else { "--trace-format oracleGeneral" });
        }
    }
    refused(read_bytes("t.csv", &marked), "UTF-16");
}

#[test]
fn a_name_that_only_contains_an_extension_does_not_decide() {
    let four = "90 5 4096 17\n80 6 512 3\n";
    refused(read("disk.list.txt", four, &ReadOptions::default()), "--trace-format");
    refused(read("my.extents-of-disk.txt", "5 4\n", &ReadOptions::default()), "ambiguous");
    assert_eq!(pages(read("P1.LIS", "5 2 0 9\n7 1 0 3\n", &ReadOptions::default())), [5, 6, 7]);
    assert_eq!(pages(read("t.extents.txt.gz", "5 2\n", &ReadOptions::default())), [5, 6]);
}

#[test]
fn long_windows_of_zstd_are_read_and_other_packings_are_named() {
    let lines: String = (0..300_000).map(|i| format!("{}\n", i % 1000)).collect();
    let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
    packer.window_log(30).unwrap();
    packer.write_all(lines.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    assert_eq!(pages(read_bytes("t", &packed)).len(), 300_000);
    for (begin, name) in [
        (&b"\xfd7zXZ\0\0\x04"[..], "xz"),
        (b"BZh91AY&SY\x12\x34", "bzip2"),
        (b"\x04\x22\x4d\x18\x64\x40", "lz4"),
        (b"PK\x03\x04\x14\0\0\0", "zip"),
    ] {
        refused(read_bytes("t", begin), &format!("packed with {name}"));
    }
}

/// A file of three rows: texts, whole floats and integers with nulls, as data frames have them.
fn data_frame(path: &Path, packing: Compression) {
    let schema = "message m { optional binary obj (UTF8); optional double addr; required int64 n;
                  optional binary verb (UTF8); optional int64 len; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(packing).build());
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let texts = |words: [&str; 3]| words.map(|word| ByteArray::from(word.as_bytes().to_vec()));
    let mut at = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        match column.untyped() {
            ColumnWriter::ByteArrayColumnWriter(w) => {
                let words = if at == 0 { ["b", "a", "b"] } else { ["gets", "cas", "gets"] };
                w.write_batch(&texts(words), Some(&[1, 1, 1]), None).unwrap();
            }
            ColumnWriter::DoubleColumnWriter(w) => {
                w.write_batch(&[4096.0, 8192.0, 0.0], Some(&[1, 1, 1]), None).unwrap();
            }
            ColumnWriter::Int64ColumnWriter(w) if at == 2 => {
                w.write_batch(&[900, 7, 900], None, None).unwrap();
            }
            ColumnWriter::Int64ColumnWriter(w) => {
                w.write_batch(&[8192, 1, 4096], Some(&[1, 1, 1]), None).unwrap();
            }
            _ => unreachable!(),
        }
        column.close().unwrap();
        at += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_of_data_frames_is_read_whatever_packs_it() {
    let folder = tempfile::tempdir().unwrap();
    for packing in [
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::UNCOMPRESSED,
    ] {
        let path = folder.path().join("frame.parquet");
        data_frame(&path, packing);
        assert_eq!(pages(drain(open(&path, &columns("page=n")))), [900, 7, 900], "{packing:?}");
    }
}

#[test]
fn columns_and_ids_of_parquet_are_those_that_were_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frame.parquet");
    data_frame(&path, Compression::SNAPPY);
    let ops: Ops = "gets=R,cas=W".parse().unwrap();
    let chosen = ReadOptions { ops, ..columns("page=obj,op=verb") };
    assert_eq!(pages(drain(open(&path, &chosen))), [0, 1, 0]);
    assert_eq!(writes(drain(open(&path, &chosen))), [false, true, false]);
    let mapped = ReadOptions { map_ids: true, ..columns("page=3") };
    assert_eq!(pages(drain(open(&path, &mapped))), [0, 1, 0]);
    let bytes = columns("offset=addr,size=len");
    assert_eq!(pages(drain(open(&path, &bytes))), [1, 2, 2, 0]);
    let skipping = ReadOptions { ops: "gets=skip,cas=W".parse().unwrap(), ..chosen.clone() };
    assert_eq!(pages(drain(open(&path, &skipping))).len(), 1);
    let expanded = ReadOptions { expand_sizes: true, ..columns("page=n,size=len") };
    assert_eq!(pages(drain(open(&path, &expanded))).len(), 4);
    refused(drain(open(&path, &ReadOptions::default())), "no column 'page' among obj, addr, n");
    refused(drain(open(&path, &columns("page=9"))), "there are no more");
    refused(drain(open(&path, &columns("page=obj,op=verb"))), "--ops");
}

#[test]
fn a_parquet_column_called_page_leaves_the_others_their_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("named.parquet");
    let schema = "message m { required int64 page; required int64 vol; required int64 rw;
        required int64 bytes; optional int32 mood; }";
    two_rows(&path, schema, false);
    let (batch, notes) = drain(open(&path, &ReadOptions::default())).unwrap();
    // Page 0 of volume 0, and page 1 of volume 1, which is written.
    assert_eq!(batch.pages, [0, 1 << 48 | 1]);
    assert!(!batch.marks[0].is_write() && batch.marks[1].is_write());
    let notes = notes.join("; ");
    assert!(notes.contains("2 disks") && notes.contains("not used: 'mood'"), "{notes}");
    assert!(notes.contains("sizes of 2 references were ignored"), "{notes}");
}

#[test]
fn lines_of_a_csv_that_pass_for_comments_are_counted() {
    let text = "# made by hand\nkey,op\n#new,R\nplain,R\n# a note\n";
    let notes = read("tags.csv", text, &ReadOptions::default()).unwrap().1.join("; ");
    assert!(notes.contains("2 lines that begin with # were taken for comments"), "{notes}");
}

/// Writes two rows: the first columns as they are, then those of `last`, whose values are -1 and 1,
/// or null and 1.
fn two_rows(path: &Path, schema: &str, last_is_null: bool) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    while let Some(mut column) = group.next_column().unwrap() {
        match column.untyped() {
            ColumnWriter::Int64ColumnWriter(w) => {
                w.write_batch(&[0, 1], Some(&[1, 1]), None).unwrap();
            }
            ColumnWriter::Int32ColumnWriter(w) if last_is_null => {
                w.write_batch(&[1], Some(&[0, 1]), None).unwrap();
            }
            ColumnWriter::Int32ColumnWriter(w) => {
                w.write_batch(&[-1, 1], Some(&[1, 1]), None).unwrap();
            }
            _ => unreachable!(),
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_never_makes_a_number_of_what_it_does_not_understand() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let nested = "message m { required group user { optional int64 key; } optional int64 obj_id; }";
    two_rows(&path, nested, false);
    assert_eq!(pages(drain(open(&path, &ReadOptions::default()))), [0, 1], "the flat column");
    refused(drain(open(&path, &columns("page=key"))), "nested");
    two_rows(&path, "message m { optional int64 page; optional int64 op; }", false);
    let swapped = ReadOptions { ops: "0=W,1=R".parse().unwrap(), ..columns("page=page,op=op") };
    assert_eq!(writes(drain(open(&path, &swapped))), [true, false]);
    let skipping = ReadOptions { ops: "0=skip".parse().unwrap(), ..swapped };
    assert_eq!(pages(drain(open(&path, &skipping))), [1]);
    two_rows(&path, "message m { optional int64 offset; optional int32 len; }", false);
    refused(drain(open(&path, &columns("offset=offset,size=len"))), "-1 is negative");
    two_rows(&path, "message m { optional int64 page; optional int32 disk; }", true);
    refused(drain(open(&path, &columns("page=page,volume=disk"))), "a volume is null");
}

#[test]
fn a_line_that_may_be_a_header_or_a_reference_is_refused() {
    refused(read("t.csv", "key,write\nabc,0\n", &columns("page=1,op=2")), "may be a header");
    assert_eq!(pages(read("t.csv", "key,write\n7,0\n", &columns("page=key,op=write"))), [7]);
}

/// Writes a column of 64-bit integers, with a null in row `null` of each.
fn long_column(path: &Path, columns: &[(&str, Vec<i64>)], null: Option<usize>) {
    let fields: String =
        columns.iter().map(|(name, _)| format!("optional int64 {name}; ")).collect();
    let schema = Arc::new(parse_message_type(&format!("message m {{ {fields} }}")).unwrap());
    let file = File::create(path).unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut all = columns.iter();
    while let Some(mut column) = group.next_column().unwrap() {
        let ColumnWriter::Int64ColumnWriter(w) = column.untyped() else { unreachable!() };
        let mut values = all.next().unwrap().1.clone();
        let mut levels = vec![1; values.len()];
        if let Some(null) = null {
            levels[null] = 0;
            values.remove(null);
        }
        w.write_batch(&values, Some(&levels), None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn an_error_of_parquet_names_the_row_that_is_wrong() {
    const ROWS: i64 = 40_000;
    const BAD: usize = 17_320;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let plain: Vec<i64> = (0..ROWS).collect();
    let with = |bad: i64| {
        let mut values = vec![1; ROWS as usize];
        values[BAD] = bad;
        values
    };
    let at = format!("record {}: ", BAD + 1);
    // What the values of a step are checked for, and what the runs of pages are.
    long_column(&path, &[("page", plain.clone()), ("op", with(7))], None);
    refused(drain(open(&path, &columns("page=page,op=op"))), &at);
    long_column(&path, &[("offset", plain.clone()), ("size", with(-3))], None);
    refused(drain(open(&path, &columns("offset=offset,size=size"))), &at);
    long_column(&path, &[("offset", plain.clone()), ("size", with(i64::MAX))], None);
    refused(drain(open(&path, &columns("offset=offset,size=size"))), &at);
    long_column(&path, &[("page", plain)], Some(BAD));
    refused(drain(open(&path, &columns("page=page"))), &at);
}

#[test]
fn options_that_a_format_does_not_use_are_named_in_a_note() {
    let notes = |text: &str, format: Format| {
        let ops: Ops = "gets=R".parse().unwrap();
        let options = ReadOptions { map_ids: true, expand_sizes: true, ops, ..Default::default() };
        let options = ReadOptions { format: Some(format), ..options };
        read("t", text, &options).unwrap().1.join("; ")
    };
    let unused = "not used with the format";
    for (text, format, says) in [
        ("5 4 0 1\n", Format::Lis, "lis: --ops, --expand-sizes, --map-ids"),
        ("5 4\n", Format::Extents, "extents: --ops, --expand-sizes, --map-ids"),
        ("5\n*\n6\n", Format::Lirs, "lirs: --ops, --expand-sizes"),
        ("0,8,4096,W,0.5\n", Format::Spc, "spc: --expand-sizes, --map-ids"),
        ("5 W\n", Format::Text, "text: --expand-sizes"),
    ] {
        let said = notes(text, format);
        assert!(said.ends_with(&format!("{unused} {says}")), "{said}");
    }
    let said = notes("page,op,size\n5,gets,1\n", Format::Csv);
    assert!(!said.contains("not used with"), "{said}");
    for (text, says) in [
        ("page\n5\n", "columns: --ops, --expand-sizes ("),
        ("offset,op\n5,gets\n", "columns: --map-ids ("),
        ("offset\n5\n", "columns: --ops, --map-ids ("),
    ] {
        let said = notes(text, Format::Csv);
        assert!(said.contains(&format!("not used with these {says}")), "{said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    long_column(&path, &[("page", vec![1, 2]), ("size", vec![9000, 1])], None);
    let options = ReadOptions { expand_sizes: true, ..ReadOptions::default() };
    assert_eq!(pages(drain(open(&path, &options))).len(), 4, "9,000 bytes are three pages");
    long_column(&path, &[("page", vec![1, 2])], None);
    let (batch, notes) = drain(open(&path, &options)).unwrap();
    assert_eq!(batch.pages, [1, 2]);
    assert!(notes.join("; ").contains("not used with these columns: `expand_sizes`"), "{notes:?}");
}
