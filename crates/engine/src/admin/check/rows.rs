//! Comparison of the entry counts in a store's log with the result of a check.

use std::path::Path;
use std::sync::Arc;

use millpond_base::Lsn;
use millpond_device::{Device, FileDevice, FileOptions};

use crate::admin::check::fault::Fault;
use crate::admin::check::walk::Walk;
use crate::io::PageStore;
use crate::recovery::log_open::{log_path, read_closed};
use crate::store::entry::Structure;

/// Numbers of entries of trees, by their owner ids.
pub type Rows = Vec<(u32, u64)>;

/// Returns the numbers in the last checkpoint of the log on `device`, which belongs to the closed
/// store `store`. Empty if the store was not closed, or the log cannot be read. Nothing is written
/// to the device.
pub fn rows_in_log(store: &PageStore, device: Arc<dyn Device>) -> Rows {
    if !needs_log(store) || device.length() == 0 {
        return Rows::new();
    }
    read_closed(store, device).unwrap_or_else(|error| {
        tracing::debug!(%error, "the log says nothing of how many entries there are");
        Rows::new()
    })
}

/// Returns `true` if opening the store reads the log beside it, if there is one, although it was
/// closed.
fn needs_log(store: &PageStore) -> bool {
    store.log_position() != Lsn(0) && store.superblock().is_some_and(|block| block.clean)
}

/// Returns the counts in the log beside the store at `path`, or the reason that opening refuses
/// that log. A closed store opens without one.
pub(super) fn rows_beside(store: &PageStore, path: &Path) -> Result<Rows, Fault> {
    let log = log_path(path);
    if !needs_log(store) || !log.exists() {
        return Ok(Rows::new());
    }
    let options = FileOptions { read_only: true, ..FileOptions::default() };
    let device = FileDevice::open(&log, &options).map_err(|error| refused(&error))?;
    match device.length() {
        0 => Ok(Rows::new()),
        _ => read_closed(store, Arc::new(device)).map_err(|error| refused(&error)),
    }
}

fn refused(error: &dyn std::error::Error) -> Fault {
    Fault::Log { reason: error.to_string() }
}

/// Compares the counts with the result of `walk`.
pub(super) fn compare(walk: &mut Walk<'_>, rows: &[(u32, u64)]) {
    for found in &walk.structures {
        let counted = rows.iter().find(|(owner, _)| *owner == found.owner);
        if let Some(&(_, counted)) = counted
            && found.kind == Structure::Tree
            && !found.damaged
            && counted != found.entries
        {
            let fault = Fault::Rows { counted, found: found.entries };
            walk.findings.add(found.root, Some(&found.name), fault);
        }
    }
}
