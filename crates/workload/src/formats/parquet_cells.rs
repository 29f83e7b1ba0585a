//! Columns of a Parquet file, decoded to integers.
//!
//! Floats and decimals are read if they are whole numbers (`DECIMAL(18,1)` with 4096.0 is 4096). A
//! decimal with a fraction, a decimal stored as bytes, a date, a time and a UUID are errors that
//! name the column and its type. Floats of 32 bits are accepted below 2^24 and doubles below 2^53,
//! since a larger one may stand for several numbers. Only sizes may be larger than 2^24 in 32 bits:
//! the file has them rounded.

use std::fs::File;

use millpond_base::Reason;
use parquet::basic::{ConvertedType, LogicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::columns::Role;
use super::ids::Ids;
use super::number::shown;
use super::op::Ops;
use super::spc::BLOCK;

/// Operation value of a skipped reference.
pub(super) const SKIP: i64 = 2;

/// A stored float type. It represents every whole number below a power of two; that power itself
/// may also stand for the next number.
#[derive(Clone, Copy)]
struct FloatKind {
    bits: u32,
    digits: u32,
}

const FLOAT: FloatKind = FloatKind { bits: 32, digits: f32::MANTISSA_DIGITS };
const DOUBLE: FloatKind = FloatKind { bits: 64, digits: f64::MANTISSA_DIGITS };

/// Dictionaries for words in columns.
pub(super) struct Words {
    /// Pages.
    pub ids: Ids,
    /// Disks and volumes.
    pub volumes: Ids,
    /// Operations.
    pub ops: Ops,
}

/// An unreadable row, and the reason.
pub(super) struct BadRow {
    /// Number of the row, from the first requested one.
    pub row: usize,
    /// Description of the fault.
    pub reason: String,
}

impl BadRow {
    /// Returns a function that makes an error about row or value `row`.
    fn at(row: usize) -> impl Fn(String) -> BadRow {
        move |reason| BadRow { row, reason }
    }
}

impl From<String> for BadRow {
    /// Names the first row, for an error about no particular row.
    fn from(reason: String) -> BadRow {
        BadRow { row: 0, reason }
    }
}

/// One column of a row group, decoded to integers a step at a time.
pub(super) struct Cells {
    role: Role,
    reader: Typed,
    is_optional: bool,
    /// Set if stored negative values are large unsigned ones.
    is_unsigned: bool,
    /// Digits after the point of a decimal, which is stored without its point.
    scale: u32,
    largest: i64,
    levels: Vec<i16>,
    /// Values of the last step.
    pub values: Vec<i64>,
}

enum Typed {
    Bool(ColumnReaderImpl<BoolType>, Vec<bool>),
    Narrow(ColumnReaderImpl<Int32Type>, Vec<i32>),
    Wide(ColumnReaderImpl<Int64Type>, Vec<i64>),
    Float(ColumnReaderImpl<FloatType>, Vec<f32>),
    Double(ColumnReaderImpl<DoubleType>, Vec<f64>),
    Text(ColumnReaderImpl<ByteArrayType>, Vec<ByteArray>),
}

impl Cells {
    /// Opens column `at` of a row group, which has the role `role`.
    pub(super) fn open(
        reader: &SerializedFileReader<File>,
        group: usize,
        role: Role,
        at: usize,
    ) -> Result<Cells, String> {
        let column = guarded(|| reader.get_row_group(group)?.get_column_reader(at))?;
        let schema = reader.metadata().file_metadata().schema_descr().column(at);
        let converted = schema.converted_type();
        let is_decimal = converted == ConvertedType::DECIMAL;
        let is_flag = matches!(role, Role::Scan | Role::AccessKind);
        let has_words = matches!(role, Role::Page | Role::Volume | Role::AccessKind | Role::Reason);
        let typed = match column {
            ColumnReader::BoolColumnReader(r) if is_flag => Typed::Bool(r, Vec::new()),
            ColumnReader::Int32ColumnReader(r) if is_number(&schema) => {
                Typed::Narrow(r, Vec::new())
            }
            ColumnReader::Int64ColumnReader(r) if is_number(&schema) => Typed::Wide(r, Vec::new()),
            ColumnReader::FloatColumnReader(r) => Typed::Float(r, Vec::new()),
            ColumnReader::DoubleColumnReader(r) => Typed::Double(r, Vec::new()),
            ColumnReader::ByteArrayColumnReader(r) if has_words && !is_decimal => {
                Typed::Text(r, Vec::new())
            }
            _ => {
                let (name, kind) = (schema.name(), kind_of(&schema));
                return Err(format!("column '{name}' is {kind}, not an integer"));
            }
        };
        let is_optional = schema.max_def_level() > 0;
        let is_unsigned = matches!(
            converted,
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        );
        let scale = if is_decimal { schema.type_scale() } else { 0 };
        let scale = u32::try_from(scale).map_err(|_| format!("a decimal of scale {scale}"))?;
        let largest = match role {
            Role::AccessKind | Role::Scan => 1,
            Role::Reason => 4,
            Role::Kind | Role::Depth => 255,
            Role::Sector | Role::Sectors => (u64::MAX / BLOCK) as i64,
            _ => i64::MAX,
        };
        let (levels, values) = (Vec::new(), Vec::new());
        let reader = typed;
        Ok(Cells { role, reader, is_optional, is_unsigned, scale, largest, levels, values })
    }

    /// Decodes the next `n` values. A null becomes 0, or an error if a reference needs the value.
    pub(super) fn read(&mut self, n: usize, words: &mut Words) -> Result<(), BadRow> {
        self.levels.clear();
        self.values.clear();
        let is_checked = self.decode(n, words).map_err(|bad| self.in_rows(bad))?;
        if !is_checked {
            self.check().map_err(|bad| self.in_rows(bad))?;
        }
        if self.is_optional {
            self.spread(n)?;
        }
        match self.values.len() == n {
            true => Ok(()),
            false => Err(format!("{} values where {n} are due", self.values.len()).into()),
        }
    }

    /// Converts a value's number in an error to its row, since nulls have no value.
    fn in_rows(&self, bad: BadRow) -> BadRow {
        let mut valued = self.levels.iter().enumerate().filter(|(_, level)| **level != 0);
        let row = valued.nth(bad.row).map_or(bad.row, |(row, _)| row);
        BadRow { row, ..bad }
    }

    /// Decodes values without nulls. Returns `true` if they are already checked.
    fn decode(&mut self, n: usize, words: &mut Words) -> Result<bool, BadRow> {
        let levels = self.is_optional.then_some(&mut self.levels);
        let (values, role) = (&mut self.values, self.role);
        let mut is_checked = false;
        match &mut self.reader {
            Typed::Bool(reader, raw) => {
                records(reader, n, levels, raw)?;
                values.extend(raw.iter().map(|v| i64::from(*v)));
            }
            Typed::Narrow(reader, raw) => {
                records(reader, n, levels, raw)?;
                let is_unsigned = self.is_unsigned;
                let wide = |v: &i32| if is_unsigned { i64::from(*v as u32) } else { i64::from(*v) };
                values.extend(raw.iter().map(wide));
            }
            Typed::Wide(reader, raw) => {
                records(reader, n, levels, raw)?;
                values.extend_from_slice(raw);
            }
            Typed::Float(reader, raw) => {
                records(reader, n, levels, raw)?;
                for (at, value) in raw.iter().enumerate() {
                    let whole = whole_number(f64::from(*value), FLOAT, role);
                    values.push(whole.map_err(BadRow::at(at))?);
                }
            }
            Typed::Double(reader, raw) => {
                records(reader, n, levels, raw)?;
                for (at, value) in raw.iter().enumerate() {
                    values.push(whole_number(*value, DOUBLE, role).map_err(BadRow::at(at))?);
                }
            }
            Typed::Text(reader, raw) => {
                records(reader, n, levels, raw)?;
                for (at, word) in raw.iter().enumerate() {
                    values.push(word_value(role, word.data(), words).map_err(BadRow::at(at))?);
                }
                is_checked = true;
            }
        }
        whole_decimals(values, self.scale)?;
        if role == Role::AccessKind && !is_checked && !words.ops.is_empty() {
            for (at, value) in values.iter_mut().enumerate() {
                let word = value.to_string();
                *value = word_value(role, word.as_bytes(), words).map_err(BadRow::at(at))?;
            }
            is_checked = true;
        }
        if role == Role::Page && !is_checked {
            for (at, value) in values.iter_mut().enumerate() {
                *value = words.ids.number(*value as u64).map_err(BadRow::at(at))? as i64;
            }
        }
        Ok(is_checked)
    }

    /// Checks that all values are within the role's range.
    fn check(&self) -> Result<(), BadRow> {
        let is_size = matches!(self.role, Role::Offset | Role::Sector | Role::Size | Role::Sectors);
        let is_signed = is_size && !self.is_unsigned;
        for (at, v) in self.values.iter().enumerate() {
            if is_signed && *v < 0 {
                return Err(BadRow::at(at)(format!("{v} is negative, and no address or size")));
            }
            if self.largest < i64::MAX && !(0..=self.largest).contains(v) {
                return Err(BadRow::at(at)(format!("{v} is outside 0 to {}", self.largest)));
            }
        }
        Ok(())
    }

    /// Inserts zeros for the values that the levels mark as null.
    fn spread(&mut self, n: usize) -> Result<(), BadRow> {
        let nulls = self.levels.iter().filter(|level| **level == 0).count();
        let Some(first) = self.levels.iter().position(|level| *level == 0) else { return Ok(()) };
        let null = |what: &str| Err(BadRow::at(first)(format!("{what} is null")));
        match self.role {
            Role::Page => return null("a page"),
            Role::Offset | Role::Sector | Role::Size | Role::Sectors => {
                return null("an address or a size");
            }
            Role::Volume => return null("a volume"),
            _ => {}
        }
        if self.levels.len() != n || self.values.len() + nulls != n {
            return Err("the levels do not fit the values".to_string().into());
        }
        let mut from = self.values.len();
        self.values.resize(n, 0);
        for to in (0..n).rev() {
            self.values[to] = if self.levels[to] == 0 {
                0
            } else {
                from -= 1;
                self.values[from]
            };
        }
        Ok(())
    }
}

/// Reads exactly `n` rows, or returns the reason for failing.
fn records<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    n: usize,
    mut levels: Option<&mut Vec<i16>>,
    values: &mut Vec<T::T>,
) -> Result<(), BadRow> {
    values.clear();
    let mut done = 0;
    while done < n {
        let levels = levels.as_deref_mut();
        let (rows, ..) = guarded(|| reader.read_records(n - done, levels, None, values))?;
        if rows == 0 {
            return Err(format!("it ends {} rows early", n - done).into());
        }
        done += rows;
    }
    Ok(())
}

fn word_value(role: Role, word: &[u8], words: &mut Words) -> Result<i64, String> {
    match role {
        Role::Page => words.ids.page(word).map(|page| page as i64),
        Role::Volume => words.volumes.page(word).map(|volume| volume as i64),
        Role::AccessKind => words.ops.find(word).map(|op| op.map_or(SKIP, |op| op as i64)),
        _ => {
            let text = std::str::from_utf8(word).unwrap_or_default();
            let reason: Result<Reason, ()> = text.parse();
            reason.map(|reason| reason as i64).map_err(|()| format!("{} is no reason", shown(word)))
        }
    }
}

/// Returns `true` if a column of integers holds numbers, not dates or times.
fn is_number(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        // Columns of nulls have an unknown type.
        Some(LogicalType::Integer(_) | LogicalType::Decimal(_) | LogicalType::Unknown) => true,
        Some(_) => false,
        None => !matches!(
            column.converted_type(),
            ConvertedType::DATE
                | ConvertedType::TIME_MILLIS
                | ConvertedType::TIME_MICROS
                | ConvertedType::TIMESTAMP_MILLIS
                | ConvertedType::TIMESTAMP_MICROS
        ),
    }
}

/// Returns a column's type for an error: the stored type and the logical type.
fn kind_of(column: &ColumnDescriptor) -> String {
    let stored = column.physical_type();
    let means = match (column.converted_type(), column.logical_type_ref()) {
        (ConvertedType::NONE, Some(LogicalType::Time(_))) => "TIME".to_string(),
        (ConvertedType::NONE, Some(LogicalType::Timestamp(_))) => "TIMESTAMP".to_string(),
        (ConvertedType::NONE, Some(LogicalType::Uuid)) => "UUID".to_string(),
        (ConvertedType::NONE, Some(LogicalType::Float16)) => "FLOAT16".to_string(),
        (ConvertedType::NONE, _) => return stored.to_string(),
        (converted, _) => converted.to_string(),
    };
    format!("{stored} ({means})")
}

/// Converts decimals, stored without their point, to whole numbers.
fn whole_decimals(values: &mut [i64], scale: u32) -> Result<(), BadRow> {
    if scale > 0 {
        for (at, value) in values.iter_mut().enumerate() {
            *value = whole_decimal(*value, scale).map_err(BadRow::at(at))?;
        }
    }
    Ok(())
}

/// Returns the whole number of a decimal, from its digits without the point.
fn whole_decimal(digits: i64, scale: u32) -> Result<i64, String> {
    // If the unit exceeds any number, only zeros are before the point.
    let unit = 10u64.checked_pow(scale).unwrap_or(u64::MAX);
    let (whole, rest) = (digits.unsigned_abs() / unit, digits.unsigned_abs() % unit);
    if rest > 0 {
        let (sign, width) = (if digits < 0 { "-" } else { "" }, scale as usize);
        return Err(format!("{sign}{whole}.{rest:0width$} is no whole number"));
    }
    let whole = whole as i64;
    Ok(if digits < 0 { -whole } else { whole })
}

/// Returns the whole number that a float represents; many data frames store integers with gaps as
/// floats. A size may be rounded, as far as a double is exact. Ids and addresses must be exact.
fn whole_number(value: f64, kind: FloatKind, role: Role) -> Result<i64, String> {
    if value.fract() != 0.0 {
        return Err(format!("{value} is no whole number"));
    }
    if value < 0.0 {
        return Err(format!("{value} is negative"));
    }
    let exact = match role {
        Role::Size | Role::Sectors => DOUBLE,
        _ => kind,
    };
    if value >= 2f64.powi(exact.digits as i32) {
        let FloatKind { bits, digits } = kind;
        return Err(format!(
            "{value} may stand for several numbers: a {bits}-bit float is exact below 2^{digits}"
        ));
    }
    Ok(value as i64)
}

/// Runs a part of the Parquet decoder and turns a panic into an error. The decoder panics on some
/// damaged files; to a user they are just corrupt files.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    match outcome {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(ParquetError::NYI(what))) => {
            Err(format!("the Parquet file has what is not read: {what}"))
        }
        Ok(Err(error)) => Err(format!("the Parquet file is damaged: {error}")),
        Err(_) => Err("the Parquet file is damaged: its decoder gave up".into()),
    }
}
