//! The configuration of a key-value run.

use crate::keys::{ChooserError, Distribution, Scramble};

use super::shape::Shape;

/// The name of the table.
pub const TABLE: &str = "usertable";

/// Order of loading the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadOrder {
    /// In the order of their keys, through the store's bulk loader. Scattered keys are sorted
    /// first, which takes 24 bytes a row.
    Ascending,
    /// In random order, row by row.
    Random,
}

/// Form in which an update reaches the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpdateStyle {
    /// One random field is changed in place, and its version raised by one.
    InPlace,
    /// The whole value is replaced without a read, with a random version, which suits a
    /// log-structured engine best.
    Put,
}

/// Treatment of the value by a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadStyle {
    /// Copies the value into the worker's memory, like a client that uses it afterwards.
    Copy,
    /// Reads only the first word of the value, the best case of a zero-copy store.
    FirstWord,
}

/// Shares of the operations, in parts of their sum.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Mix {
    /// Point reads.
    pub read: u32,
    /// Updates of an existing row.
    pub update: u32,
    /// Inserts of a new row.
    pub insert: u32,
    /// Range scans.
    pub scan: u32,
    /// A read and then an update of the same row, in one transaction.
    pub read_modify_write: u32,
}

impl Mix {
    /// Only reads.
    pub const READ: Mix = Mix { read: 100, update: 0, insert: 0, scan: 0, read_modify_write: 0 };

    /// Returns a mix of `percent` updates, the rest reads.
    pub fn updates(percent: u32) -> Mix {
        let update = percent.min(100);
        Mix { read: 100 - update, update, ..Mix::default() }
    }

    /// Only scans.
    pub const SCAN: Mix = Mix { read: 0, update: 0, insert: 0, scan: 100, read_modify_write: 0 };

    /// Returns the parts in order.
    pub(super) fn parts(&self) -> [u32; 5] {
        [self.read, self.update, self.insert, self.scan, self.read_modify_write]
    }
}

/// A key-value run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Keys and values.
    pub shape: Shape,
    /// Number of loaded rows.
    pub rows: u64,
    /// Order of loading.
    pub load_order: LoadOrder,
    /// Shares of the operations.
    pub mix: Mix,
    /// Distribution of the rows.
    pub distribution: Distribution,
    /// Spread of popular rows.
    pub scramble: Scramble,
    /// Form of updates.
    pub update: UpdateStyle,
    /// Form of reads.
    pub read: ReadStyle,
    /// Minimum and maximum rows of a scan, which takes a uniform number between them.
    pub scan_rows: (u32, u32),
    /// If true, each read value is checked in full.
    pub verify: bool,
    /// Number of workers, which share out the numbers of new rows.
    pub threads: u32,
}

impl Config {
    /// Returns the run of leanstore VI-B: 120-byte values, uniform reads.
    pub fn leanstore(rows: u64) -> Config {
        Config {
            shape: Shape::LEANSTORE,
            rows,
            load_order: LoadOrder::Random,
            mix: Mix::READ,
            distribution: Distribution::Uniform,
            scramble: Scramble::Permute,
            update: UpdateStyle::InPlace,
            read: ReadStyle::Copy,
            scan_rows: (100, 100),
            verify: false,
            threads: 1,
        }
    }

    /// Returns the run of watt 6.2: Zipf 0.9, `update_percent` updates (the paper has 0 and 10).
    pub fn watt(rows: u64, update_percent: u32) -> Config {
        Config {
            mix: Mix::updates(update_percent),
            distribution: Distribution::Zipf { theta: 0.9 },
            ..Config::leanstore(rows)
        }
    }

    /// Returns the run of gilbert 2.3.1.1: values of 1000 bytes, Zipf 0.99, `update_percent`
    /// updates (the thesis has 0 and 100). The thesis does not give its exponent; 0.99 is YCSB's
    /// default.
    pub fn gilbert(rows: u64, update_percent: u32) -> Config {
        Config {
            shape: Shape::GILBERT,
            mix: Mix::updates(update_percent),
            distribution: Distribution::Ycsb { theta: 0.99 },
            ..Config::leanstore(rows)
        }
    }

    /// Checks that the run is possible.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let shape = self.shape;
        if shape.fields == 0 || shape.field_len < 8 {
            return Err(ConfigError::Shape { fields: shape.fields, field_len: shape.field_len });
        }
        if self.mix.parts().iter().all(|part| *part == 0) {
            return Err(ConfigError::NoOperations);
        }
        let (fewest, most) = self.scan_rows;
        if fewest == 0 || fewest > most {
            return Err(ConfigError::ScanRows { fewest, most });
        }
        if self.threads == 0 {
            return Err(ConfigError::NoThreads);
        }
        Ok(())
    }
}

/// Reason that a run is impossible.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Values are too small for their fields.
    #[error("{fields} fields of {field_len} bytes: at least 1 of at least 8 bytes is needed")]
    Shape {
        /// Fields of a value.
        fields: u32,
        /// Bytes of a field.
        field_len: u32,
    },
    /// All shares are 0.
    #[error("the mix has no operations")]
    NoOperations,
    /// Impossible row numbers of a scan.
    #[error("scans of {fewest} to {most} rows: at least 1, and no fewer than the first number")]
    ScanRows {
        /// The fewest rows.
        fewest: u32,
        /// The most rows.
        most: u32,
    },
    /// No workers.
    #[error("a run needs at least one thread")]
    NoThreads,
    /// The distribution of rows is impossible.
    #[error(transparent)]
    Chooser(#[from] ChooserError),
}
