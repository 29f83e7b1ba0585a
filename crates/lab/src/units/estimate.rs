//! Estimates of a unit's memory, only from its trace's file.

use std::fs::File;
use std::path::Path;

use millpond_base::Size;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::unit::{Unit, UnitError};
use crate::registry::Registry;

/// Bytes of the program, batches of references and buffers of readers.
const FIXED: u64 = 64 << 20;
/// Bytes of text per reference, a little fewer than real traces have.
const TEXT_BYTES: u64 = 8;
/// Factor by which compression shrinks text.
const COMPRESSION: u64 = 8;
/// Bytes per distinct page: its dense number, in a hash table that may be growing.
const PAGE_BYTES: u64 = 40;
/// Bytes per distinct page and cell: the places of resident pages and of ghosts.
const PAGE_CELL_BYTES: u64 = 8;
/// Bytes per frame of the simulated pool.
const FRAME_BYTES: u64 = 16;
/// Bytes per reference that is kept in memory with its future.
const KEPT_BYTES: u64 = 24;

/// Returns the number of references in a trace's file: the rows of a Parquet file, or an estimate
/// from the length of another file.
pub(super) fn references(path: &Path) -> std::io::Result<u64> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    if let Ok(reader) = SerializedFileReader::new(file) {
        return Ok(reader.metadata().file_metadata().num_rows().max(0).unsigned_abs());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is_packed = name.ends_with(".gz") || name.ends_with(".zst");
    Ok(if is_packed { bytes * COMPRESSION / TEXT_BYTES } else { bytes / TEXT_BYTES })
}

impl Unit {
    /// Returns the number of references that the unit simulates, over all of its cells. The number
    /// is an estimate from the trace's file, used to start long units first. It is 0 if the file
    /// cannot be read; running the unit reports that error.
    pub fn work(&self) -> u64 {
        references(&self.trace.path).unwrap_or(0).saturating_mul(self.cells() as u64)
    }

    /// Returns the bytes of memory that running the unit may need. The estimate uses the length of
    /// the trace's file, or the rows of a Parquet file, and assumes half as many pages as
    /// references.
    ///
    /// # Errors
    /// [`UnitError`]: the trace cannot be read, or the policy is unknown.
    pub fn memory(&self, registry: &Registry) -> Result<u64, UnitError> {
        let path = &self.trace.path;
        let references = references(path)
            .map_err(|error| UnitError::Trace { path: path.clone(), error: error.to_string() })?;
        let plan = self.plan()?;
        let entry = registry.find(&plan.policies[0].id)?;
        let pages = references.div_ceil(2);
        let frame_bytes = FRAME_BYTES + entry.info.frame_bytes.ceil() as u64;
        let mut bytes = FIXED + pages * PAGE_BYTES;
        for size in &plan.sizes {
            let frames = match size {
                Size::Share(_) => size.frames(plan.page_size, pages),
                // A trace with fewer pages than frames leaves most frames unused.
                _ => size.frames(plan.page_size, pages).min(u64::from(u32::MAX)),
            };
            bytes = bytes.saturating_add(
                (frames.saturating_mul(frame_bytes))
                    .saturating_add(pages * PAGE_CELL_BYTES)
                    .saturating_mul(plan.seeds.len() as u64),
            );
        }
        if entry.needs_future {
            bytes = bytes.saturating_add(references * KEPT_BYTES);
        }
        Ok(bytes)
    }
}
