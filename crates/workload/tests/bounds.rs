//! Bounds of the readers: a trace at a bound is read whole, one beyond it is refused by name.

use std::io::Cursor;

use millpond_workload::formats::{Columns, Format, ReadOptions, open_reader};
use millpond_workload::trace::{Batch, TraceError};

/// Pages of a request, or of an object, at most.
const RUN_MAX: u64 = 1 << 24;

/// Contents of a trace: references, the least and the largest page, the last page.
type Read = Result<(u64, u64, u64, u64), TraceError>;

fn read_bytes(bytes: Vec<u8>, options: &ReadOptions) -> Read {
    let mut source = open_reader("t.csv", Box::new(Cursor::new(bytes)), options)?;
    let (mut batch, mut found) = (Batch::default(), (0, u64::MAX, 0, 0));
    while source.fill(&mut batch, 1 << 16)? > 0 {
        found.0 += batch.len() as u64;
        found.1 = batch.pages.iter().copied().fold(found.1, u64::min);
        found.2 = batch.pages.iter().copied().fold(found.2, u64::max);
        found.3 = *batch.pages.last().unwrap();
        batch.clear();
    }
    Ok(found)
}

fn read(text: &str, options: &ReadOptions) -> Read {
    read_bytes(text.as_bytes().to_vec(), options)
}

fn columns(text: &str) -> ReadOptions {
    let columns: Columns = text.parse().unwrap();
    ReadOptions { columns: Some(columns), ..ReadOptions::default() }
}

fn refused(read: Read, says: &str) {
    let error = read.unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
}

#[test]
fn a_request_of_2_to_the_24_pages_is_read_and_a_larger_one_is_refused() {
    let extents = ReadOptions { format: Some(Format::Extents), ..ReadOptions::default() };
    let whole = read(&format!("7 {RUN_MAX}\n"), &extents).unwrap();
    assert_eq!(whole, (RUN_MAX, 7, 6 + RUN_MAX, 6 + RUN_MAX));
    refused(read(&format!("7 {}\n", RUN_MAX + 1), &extents), "16777217 pages");
    let bytes = ReadOptions { page_size: 512, ..columns("offset=1,size=2") };
    let whole = read(&format!("512,{}\n", RUN_MAX * 512), &bytes).unwrap();
    assert_eq!(whole, (RUN_MAX, 1, RUN_MAX, RUN_MAX));
    // One byte more reaches into one page more.
    refused(read(&format!("512,{}\n", RUN_MAX * 512 + 1), &bytes), "16777217 pages");
}

#[test]
fn an_object_of_2_to_the_24_pages_is_read_and_a_larger_one_is_refused() {
    let sizes = ReadOptions { expand_sizes: true, page_size: 512, ..columns("page=1,size=2") };
    assert_eq!(read(&format!("7,{}\n", RUN_MAX * 512), &sizes).unwrap().0, RUN_MAX);
    refused(read(&format!("7,{}\n", RUN_MAX * 512 + 1), &sizes), "16777217 pages");
}

#[test]
fn volumes_up_to_65536_and_pages_up_to_2_to_the_48_are_kept_apart() {
    let volumes = columns("volume=1,page=2");
    let page_max = (1u64 << 48) - 1;
    let of = |count: u64| (0..count).map(|v| format!("v{v},{page_max}\n")).collect::<String>();
    assert_eq!(read(&of(1 << 16), &volumes).unwrap(), (1 << 16, page_max, u64::MAX, u64::MAX));
    refused(read(&of((1 << 16) + 1), &volumes), "65536");
    refused(read(&format!("a,1\nb,{}\n", page_max + 1), &volumes), "2^48");
}

#[test]
fn a_column_is_chosen_up_to_number_1024_and_found_by_its_header_wherever_it_is() {
    let row = |at: usize, last: &str| format!("{}{last}\n", "x,".repeat(at - 1));
    let at_bound = read(&row(1024, "17"), &columns("page=1024"));
    assert_eq!(at_bound.unwrap(), (1, 17, 17, 17));
    let error = "page=1025".parse::<Columns>().unwrap_err().to_string();
    assert!(error.contains("1 to 1024"), "{error}");
    // The header says where the column is: no number is typed wrongly.
    for at in [1024, 1025, 3000] {
        let text = row(at, "page") + &row(at, "17");
        assert_eq!(read(&text, &ReadOptions::default()).unwrap(), (1, 17, 17, 17), "{at}");
        assert_eq!(read(&text, &columns("page=page")).unwrap(), (1, 17, 17, 17), "{at}");
    }
}

/// A zstd frame of one raw block, whose header asks for a window of `descriptor` (RFC 8878, 3.1.1).
fn zstd_frame(descriptor: u8, content: &[u8]) -> Vec<u8> {
    let size = content.len() as u32;
    let block = size << 3 | 1;
    let head = [&[0x28, 0xb5, 0x2f, 0xfd, 0x80, descriptor][..], &size.to_le_bytes()];
    [&head.concat(), &block.to_le_bytes()[..3], content].concat()
}

#[test]
fn a_zstd_window_of_2_gib_is_read_and_a_larger_one_is_named() {
    let frame = |exponent: u8, mantissa: u8| zstd_frame((exponent - 10) << 3 | mantissa, b"17\n");
    let options = ReadOptions { format: Some(Format::Text), ..ReadOptions::default() };
    assert_eq!(read_bytes(frame(31, 0), &options).unwrap(), (1, 17, 17, 17));
    refused(read_bytes(frame(31, 1), &options), "window");
}
