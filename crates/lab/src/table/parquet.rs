//! Parquet: a table's columns, written and read as a whole.
//!
//! Text columns are UTF-8, counts are INT64, and measurements are DOUBLE. Every column is optional.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use millpond_workload::write::WholeFile;
use parquet::basic::{
    Compression, ConvertedType, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::schema::types::{Type, TypePtr};

use super::{Table, TableError, Value};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Int,
    Float,
}

impl Table {
    /// Writes the table to `path`, completely or not at all: the file appears under its name only
    /// once it is complete.
    ///
    /// # Errors
    /// [`TableError`], which names the file.
    pub fn write_parquet(&self, path: &Path) -> Result<(), TableError> {
        let io = |error| TableError::Io { path: path.to_path_buf(), error };
        let mut file = WholeFile::create(path).map_err(io)?;
        self.write_columns(&mut file, &[]).map_err(|e| failed(path, e))?;
        file.finish().map_err(io)
    }

    /// Returns the table as the bytes of a Parquet file; equal tables give equal bytes. `metadata`
    /// holds names and values that other readers of Parquet show.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn parquet_bytes(&self, metadata: &[(&str, &str)]) -> Result<Vec<u8>, TableError> {
        let mut bytes = Vec::new();
        let written = self.write_columns(&mut bytes, metadata);
        written.map_err(|error| failed(Path::new("rows in memory"), error))?;
        Ok(bytes)
    }

    fn kind(&self, column: usize) -> Kind {
        let mut kinds = self.rows.iter().map(|row| &row[column]);
        if kinds.clone().any(|v| matches!(v, Value::Text(_))) {
            Kind::Text
        } else if kinds.any(|v| matches!(v, Value::Float(_))) {
            Kind::Float
        } else {
            Kind::Int
        }
    }

    fn schema(&self) -> Result<TypePtr, ParquetError> {
        let mut fields = Vec::new();
        for (index, name) in self.columns.iter().enumerate() {
            let (physical, text) = match self.kind(index) {
                Kind::Text => (Physical::BYTE_ARRAY, true),
                Kind::Int => (Physical::INT64, false),
                Kind::Float => (Physical::DOUBLE, false),
            };
            let mut builder =
                Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
            if text {
                builder = builder
                    .with_logical_type(Some(LogicalType::String))
                    .with_converted_type(ConvertedType::UTF8);
            }
            fields.push(Arc::new(builder.build()?));
        }
        Ok(Arc::new(Type::group_type_builder("rows").with_fields(fields).build()?))
    }

    fn write_columns(
        &self,
        file: impl Write + Send,
        metadata: &[(&str, &str)],
    ) -> Result<(), ParquetError> {
        let zstd = Compression::ZSTD(ZstdLevel::default());
        let mut properties = WriterProperties::builder().set_compression(zstd);
        if !metadata.is_empty() {
            let pair = |(name, value): &(&str, &str)| {
                KeyValue::new((*name).to_string(), (*value).to_string())
            };
            let pairs = metadata.iter().map(pair).collect();
            properties = properties.set_key_value_metadata(Some(pairs));
        }
        let properties = Arc::new(properties.build());
        let mut writer = SerializedFileWriter::new(file, self.schema()?, properties)?;
        let mut group = writer.next_row_group()?;
        for index in 0..self.columns.len() {
            let Some(mut column) = group.next_column()? else { break };
            let kind = self.kind(index);
            let there = |v: &Value| match v {
                Value::Empty => false,
                Value::Float(x) => x.is_finite(),
                _ => true,
            };
            let values = self.rows.iter().map(|row| &row[index]);
            let levels: Vec<i16> = values.clone().map(|v| i16::from(there(v))).collect();
            let values = values.filter(|v| there(v));
            match column.untyped() {
                ColumnWriter::ByteArrayColumnWriter(w) => {
                    let v: Vec<ByteArray> =
                        values.map(|v| ByteArray::from(v.to_string().into_bytes())).collect();
                    w.write_batch(&v, Some(&levels), None)?;
                }
                ColumnWriter::DoubleColumnWriter(w) => {
                    let v: Vec<f64> = values.filter_map(Value::number).collect();
                    w.write_batch(&v, Some(&levels), None)?;
                }
                ColumnWriter::Int64ColumnWriter(w) => {
                    let v: Vec<i64> =
                        values.map(|v| if let Value::Int(n) = v { *n as i64 } else { 0 }).collect();
                    w.write_batch(&v, Some(&levels), None)?;
                }
                _ => return Err(ParquetError::General(format!("column kind {}", kind as u8))),
            }
            column.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }

    /// Reads a table that [`Table::write_parquet`] wrote, or any flat table with such columns.
    ///
    /// # Errors
    /// [`TableError`], which names the file.
    pub fn read_parquet(path: &Path) -> Result<Table, TableError> {
        let io = |error| TableError::Io { path: path.to_path_buf(), error };
        let file = File::open(path).map_err(io)?;
        let reader = SerializedFileReader::new(file).map_err(|e| failed(path, e))?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let mut table = Table::new(schema.columns().iter().map(|c| c.name()));
        for row in reader.get_row_iter(None).map_err(|e| failed(path, e))? {
            let row = row.map_err(|e| failed(path, e))?;
            table.rows.push(row.get_column_iter().map(|(_, field)| value_of(field)).collect());
        }
        Ok(table)
    }

    /// Returns the note called `name` in a Parquet file, if there is one.
    pub(crate) fn parquet_note(path: &Path, name: &str) -> Result<Option<String>, TableError> {
        let io = |error| TableError::Io { path: path.to_path_buf(), error };
        let file = File::open(path).map_err(io)?;
        let reader = SerializedFileReader::new(file).map_err(|e| failed(path, e))?;
        let notes = reader.metadata().file_metadata().key_value_metadata();
        let note = notes.and_then(|notes| notes.iter().find(|note| note.key == name));
        Ok(note.and_then(|note| note.value.clone()))
    }
}

fn value_of(field: &Field) -> Value {
    match field {
        Field::Null => Value::Empty,
        Field::Str(text) => Value::Text(text.clone()),
        Field::Double(x) => Value::Float(*x),
        Field::Float(x) => Value::Float(f64::from(*x)),
        Field::Long(n) => Value::Int(*n as u64),
        Field::Int(n) => Value::Int(*n as u64),
        Field::ULong(n) => Value::Int(*n),
        Field::UInt(n) => Value::Int(u64::from(*n)),
        other => Value::Text(other.to_string()),
    }
}

fn failed(path: &Path, error: ParquetError) -> TableError {
    TableError::Parquet { path: path.to_path_buf(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        let mut table = Table::new(["policy", "hits", "ratio"]);
        for i in 0..1000u64 {
            let hits = if i % 7 == 0 { Value::Empty } else { Value::Int(i) };
            table.rows.push(vec![format!("p{}", i % 3).into(), hits, (i as f64 / 7.0).into()]);
        }
        table.write_parquet(&path).unwrap();
        assert_eq!(Table::read_parquet(&path).unwrap(), table);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary is left");
    }

    #[test]
    fn a_damaged_file_is_an_error_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        std::fs::write(&path, b"PAR1 this is none").unwrap();
        let error = Table::read_parquet(&path).unwrap_err().to_string();
        assert!(error.contains("rows.parquet"), "{error}");
    }
}
