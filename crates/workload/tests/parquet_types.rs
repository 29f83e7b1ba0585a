//! Parquet columns whose integers stand for something else: decimals, dates, times, small
//! integers with and without a sign.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use millpond_workload::formats::{ReadOptions, open};
use millpond_workload::trace::{Batch, TraceError};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// Writes a file whose columns have these stored values.
fn write(path: &Path, columns: &str, values: &[&[i64]]) {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {columns} }}")).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema.clone(), properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (values, kind) in values.iter().zip(schema.get_fields()) {
        let mut column = group.next_column().unwrap().unwrap();
        let narrow: Vec<i32> = values.iter().map(|value| *value as i32).collect();
        let bytes = |length: usize| -> Vec<ByteArray> {
            let bytes = |value: &i64| value.to_be_bytes().repeat(2)[16 - length..].to_vec().into();
            values.iter().map(bytes).collect()
        };
        match column.untyped() {
            ColumnWriter::Int64ColumnWriter(w) => w.write_batch(values, None, None).unwrap(),
            ColumnWriter::Int32ColumnWriter(w) => w.write_batch(&narrow, None, None).unwrap(),
            ColumnWriter::Int96ColumnWriter(w) => {
                let days = vec![Int96::new(); values.len()];
                w.write_batch(&days, None, None).unwrap()
            }
            ColumnWriter::FloatColumnWriter(w) => {
                let floats: Vec<f32> = values.iter().map(|value| *value as f32).collect();
                w.write_batch(&floats, None, None).unwrap()
            }
            ColumnWriter::DoubleColumnWriter(w) => {
                let floats: Vec<f64> = values.iter().map(|value| *value as f64).collect();
                w.write_batch(&floats, None, None).unwrap()
            }
            ColumnWriter::ByteArrayColumnWriter(w) => w.write_batch(&bytes(1), None, None).unwrap(),
            ColumnWriter::FixedLenByteArrayColumnWriter(w) => {
                let length = match kind.as_ref() {
                    parquet::schema::types::Type::PrimitiveType { type_length, .. } => *type_length,
                    parquet::schema::types::Type::GroupType { .. } => unreachable!(),
                };
                let fixed: Vec<FixedLenByteArray> =
                    bytes(length as usize).into_iter().map(FixedLenByteArray::from).collect();
                w.write_batch(&fixed, None, None).unwrap()
            }
            _ => unreachable!(),
        };
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

fn read(columns: &str, values: &[&[i64]], options: &ReadOptions) -> Result<Vec<u64>, TraceError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, columns, values);
    let (mut source, mut batch) = (open(&path, options)?, Batch::default());
    while source.fill(&mut batch, 100)? > 0 {}
    Ok(batch.pages)
}

fn pages(columns: &str, values: &[&[i64]]) -> Vec<u64> {
    read(columns, values, &ReadOptions::default()).unwrap()
}

fn refused(columns: &str, values: &[&[i64]], says: &str) {
    for map_ids in [false, true] {
        let options = ReadOptions { map_ids, ..ReadOptions::default() };
        let error = read(columns, values, &options).unwrap_err().to_string();
        assert!(error.contains(says), "{columns}: {error}");
    }
}

#[test]
fn a_decimal_column_has_the_numbers_that_it_says() {
    // 4096.0 and 8192.0, of 4096.0 bytes each.
    let offset = "required int64 offset (DECIMAL(18,1)); required int64 size (DECIMAL(18,1));";
    assert_eq!(pages(offset, &[&[40_960, 81_920], &[40_960, 40_960]]), [1, 2]);
    assert_eq!(pages("required int32 sector (DECIMAL(9,3));", &[&[8_000, 16_000]]), [1, 2]);
    assert_eq!(pages("required int64 page (DECIMAL(18,18));", &[&[10i64.pow(18), 0]]), [1, 0]);
    assert_eq!(pages("required int64 page (DECIMAL(18,0));", &[&[17, 18]]), [17, 18]);
    // Objects of 4096.00 bytes are one page each.
    let sized = "required int64 obj_id; required int32 size (DECIMAL(9,2));";
    let expanded = ReadOptions { expand_sizes: true, ..ReadOptions::default() };
    assert_eq!(read(sized, &[&[7, 8], &[409_600, 409_600]], &expanded).unwrap(), [7, 8]);
    // Writes and reads.
    let op = "required int64 page; required int32 op (DECIMAL(9,1));";
    assert_eq!(pages(op, &[&[7, 8], &[10, 0]]), [7, 8]);
}

#[test]
fn a_decimal_that_is_no_whole_number_is_refused() {
    let offset = "required int64 offset (DECIMAL(18,2));";
    refused(offset, &[&[409_600, 409_650]], "4096.50 is no whole number");
    refused("required int32 page (DECIMAL(9,3));", &[&[-7]], "-0.007 is no whole number");
    refused("required int64 offset (DECIMAL(18,1));", &[&[-10]], "-1 is negative");
    // These are digits as text where they are no decimals.
    refused("required binary page (DECIMAL(5,0));", &[&[0x31, 0x32]], "BYTE_ARRAY (DECIMAL)");
    let fixed = "required fixed_len_byte_array(16) page (DECIMAL(38,0));";
    refused(fixed, &[&[1, 2]], "FIXED_LEN_BYTE_ARRAY (DECIMAL), not an integer");
}

#[test]
fn dates_times_and_bytes_are_no_pages() {
    for (columns, says) in [
        ("required int32 page (DATE);", "INT32 (DATE)"),
        ("required int32 page (TIME_MILLIS);", "INT32 (TIME_MILLIS)"),
        ("required int64 page (TIME_MICROS);", "INT64 (TIME_MICROS)"),
        ("required int64 offset (TIMESTAMP_MILLIS);", "INT64 (TIMESTAMP_MILLIS)"),
        ("required int64 page (TIMESTAMP_MICROS);", "INT64 (TIMESTAMP_MICROS)"),
        ("required int64 sector (TIMESTAMP(NANOS,true));", "INT64 (TIMESTAMP)"),
        ("required int64 page (TIME(NANOS,false));", "INT64 (TIME)"),
        ("required int96 page;", "INT96"),
        ("required fixed_len_byte_array(16) page (UUID);", "FIXED_LEN_BYTE_ARRAY (UUID)"),
        ("required fixed_len_byte_array(12) page (INTERVAL);", "FIXED_LEN_BYTE_ARRAY (INTERVAL)"),
        ("required fixed_len_byte_array(2) page (FLOAT16);", "FIXED_LEN_BYTE_ARRAY (FLOAT16)"),
    ] {
        refused(columns, &[&[1, 2]], &format!("is {says}, not an integer"));
    }
    // A column that is not read may hold anything.
    assert_eq!(pages("required int64 page; required int32 day (DATE);", &[&[7], &[1]]), [7]);
    assert_eq!(pages("required int64 page; required int32 time (DATE);", &[&[7], &[1]]), [7]);
}

#[test]
fn a_float_that_may_stand_for_two_numbers_is_refused() {
    for role in ["page", "offset", "sector"] {
        for (kind, digits, bits) in [("float", 24, 32), ("double", 53, 64)] {
            let columns = format!("required {kind} {role};");
            let first = 1i64 << digits;
            assert_eq!(pages(&columns, &[&[first - 1, 0]]).len(), 2, "{columns}");
            for value in [first, first + 2] {
                let says = format!(
                    "{value} may stand for several numbers: a {bits}-bit float is exact below \
                     2^{digits}"
                );
                refused(&columns, &[&[value]], &says);
            }
        }
    }
    assert_eq!(pages("required float page;", &[&[(1 << 24) - 1]]), [(1 << 24) - 1]);
    assert_eq!(pages("required double page;", &[&[(1 << 53) - 1]]), [(1 << 53) - 1]);
    refused("required float page;", &[&[-1]], "-1 is negative");
}

#[test]
fn a_size_may_be_any_whole_float() {
    let options = ReadOptions { page_size: 4 << 20, ..ReadOptions::default() };
    for columns in ["offset; required float size;", "sector; required float sectors;"] {
        let columns = format!("required int64 {columns}");
        let unit = if columns.contains("sector") { 512 } else { 1 };
        let (at, length) = (4_194_304 / unit, 20_971_520 / unit);
        assert_eq!(read(&columns, &[&[at], &[length]], &options).unwrap(), [1, 2, 3, 4, 5]);
    }
    let sized = "required int64 offset; required float size;";
    let error = read(sized, &[&[0], &[i64::MAX]], &options).unwrap_err().to_string();
    assert!(error.contains("may stand for several numbers"), "{error}");
}

#[test]
fn a_negative_page_is_the_same_in_every_width() {
    for columns in [
        "required int64 page;",
        "required int32 page;",
        "required int32 page (INT_8);",
        "required int64 page (INT_64);",
        "required int64 page (UINT_64);",
        "required int64 page (DECIMAL(18,0));",
    ] {
        assert_eq!(pages(columns, &[&[-1, 17]]), [u64::MAX, 17], "{columns}");
    }
    assert_eq!(pages("required int32 page (UINT_32);", &[&[-1, 17]]), [u64::from(u32::MAX), 17]);
    let unsigned = "required int32 page (INTEGER(32,false));";
    assert_eq!(pages(unsigned, &[&[-1, 17]]), [u64::from(u32::MAX), 17]);
}
