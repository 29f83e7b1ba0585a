//! Writes Millpond's own Parquet: the columns of `formats::native`, dictionary-coded, zstd.

use std::io;
use std::sync::Arc;

use millpond_base::{Lsn, Mark};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::trace::{Batch, TraceError};

use super::output::Output;
use super::sink::{Sink, finished};

/// Rows per row group; a reader holds at most one group, and skips whole groups.
const GROUP: usize = 1 << 20;

const SCHEMA: &str = "message trace {
    required int64 page (INTEGER(64,false));
    required int32 op (INTEGER(8,false));
    required int32 reason (INTEGER(8,false));
    required int32 kind (INTEGER(8,false));
    required int32 depth (INTEGER(8,false));
    required boolean scan;
    optional int64 lsn (INTEGER(64,false));";

/// The columns of a storage-level trace that only its maker knows.
const PAGE_LSNS: &str = "
    optional int64 page_lsn (INTEGER(64,false));
    optional int64 rec_lsn (INTEGER(64,false));";

/// Writes native Parquet.
pub(crate) struct NativeSink {
    writer: Option<SerializedFileWriter<Output>>,
    path: std::path::PathBuf,
    pages: Vec<i64>,
    marks: Vec<Mark>,
    lsns: Vec<Option<Lsn>>,
    /// Values of the two columns, or none.
    page_lsns: Option<[Vec<Option<Lsn>>; 2]>,
}

impl NativeSink {
    pub(crate) fn new(output: Output, page_lsns: bool) -> Result<NativeSink, TraceError> {
        let path = output.path().to_path_buf();
        let level = ZstdLevel::try_new(3).unwrap_or_default();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by(concat!("millpond ", env!("CARGO_PKG_VERSION")).into())
            .set_key_value_metadata(Some(vec![KeyValue::new(
                "millpond.trace".to_string(),
                "op 0 read 1 write; reason 0 none 1 synch 2 replace 3 recov 4 dsync".to_string(),
            )]))
            .build();
        let extra = if page_lsns { PAGE_LSNS } else { "" };
        let writer = parse_message_type(&format!("{SCHEMA}{extra} }}")).and_then(|schema| {
            SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))
        });
        let writer = writer.map_err(|e| failure(&path, e))?;
        let (pages, marks, lsns) = (Vec::new(), Vec::new(), Vec::new());
        let page_lsns = page_lsns.then(Default::default);
        Ok(NativeSink { writer: Some(writer), path, pages, marks, lsns, page_lsns })
    }

    fn write_group(&mut self) -> Result<(), TraceError> {
        if self.pages.is_empty() {
            return Ok(());
        }
        let writer = self.writer.as_mut().ok_or_else(finished)?;
        let written = writer.next_row_group().and_then(|mut group| {
            let marks = &self.marks;
            let narrow = |of: fn(&Mark) -> i32| marks.iter().map(of).collect::<Vec<i32>>();
            column::<Int64Type>(&mut group, &self.pages, None)?;
            column::<Int32Type>(&mut group, &narrow(|m| m.op() as i32), None)?;
            column::<Int32Type>(&mut group, &narrow(|m| m.reason() as i32), None)?;
            column::<Int32Type>(&mut group, &narrow(|m| i32::from(m.kind().0)), None)?;
            column::<Int32Type>(&mut group, &narrow(|m| i32::from(m.depth())), None)?;
            let scans: Vec<bool> = marks.iter().map(|m| m.is_scan()).collect();
            column::<BoolType>(&mut group, &scans, None)?;
            let page_lsns = self.page_lsns.iter().flatten();
            for lsns in std::iter::once(&self.lsns).chain(page_lsns) {
                let levels: Vec<i16> = lsns.iter().map(|l| i16::from(l.is_some())).collect();
                let known: Vec<i64> = lsns.iter().flatten().map(|lsn| lsn.0 as i64).collect();
                column::<Int64Type>(&mut group, &known, Some(&levels))?;
            }
            group.close().map(|_| ())
        });
        self.pages.clear();
        self.marks.clear();
        self.lsns.clear();
        self.page_lsns.iter_mut().flatten().for_each(Vec::clear);
        written.map_err(|e| failure(&self.path, e))
    }
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Output>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".into()));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// Converts a Parquet error to the system's error inside it, if there is one.
fn failure(path: &std::path::Path, error: ParquetError) -> TraceError {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    };
    TraceError::Io { path: path.into(), error: source }
}

impl Sink for NativeSink {
    fn write(&mut self, batch: &Batch) -> Result<(), TraceError> {
        self.write_with_lsns(batch, &[])
    }

    fn write_with_lsns(&mut self, batch: &Batch, page_lsns: &[[Lsn; 2]]) -> Result<(), TraceError> {
        let mut from = 0;
        while from < batch.len() {
            let to = batch.len().min(from + GROUP - self.pages.len());
            self.pages.extend(batch.pages[from..to].iter().map(|p| *p as i64));
            self.marks.extend_from_slice(&batch.marks[from..to]);
            self.lsns.extend((from..to).map(|i| batch.lsns.get(i).copied()));
            for (which, column) in self.page_lsns.iter_mut().flatten().enumerate() {
                let of =
                    |at| page_lsns.get(at).and_then(|lsns: &[Lsn; 2]| lsns.get(which)).copied();
                column.extend((from..to).map(|at| of(at).filter(|lsn| lsn.0 != 0)));
            }
            from = to;
            if self.pages.len() == GROUP {
                self.write_group()?;
            }
        }
        if self.writer.is_none() { Err(finished()) } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), TraceError> {
        if self.writer.is_none() {
            return Ok(());
        }
        self.write_group()?;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.into_inner().map_err(|e| failure(&self.path, e))?.finish()
    }
}
