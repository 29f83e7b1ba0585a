//! The counts of entries that the log of a store has, compared with what a check finds.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use millpond_base::Lsn;

use crate::admin::check::fault::Fault;
use crate::admin::check::walk::Walk;
use crate::io::{Device, FileDevice, FileOptions, OverlayDevice, PageStore};
use crate::log::{Log, LogOptions};
use crate::recovery::Checkpoint;
use crate::recovery::log_open::log_path;
use crate::store::entry::Structure;

/// How many entries trees have, by their owner ids.
pub type Rows = Vec<(u32, u64)>;

/// What the last checkpoint in the log on `device` says of `store`, which was closed; nothing of a
/// store that was not, or where the log cannot be read: a store that was closed does not need it.
/// Nothing is written to the device.
pub fn rows_in_log(store: &PageStore, device: Arc<dyn Device>) -> Rows {
    let (position, is_closed) = (store.log_position(), store.superblock().is_some_and(|b| b.clean));
    if !is_closed || position == Lsn(0) || device.length() == 0 {
        return Rows::new();
    }
    let device = Arc::new(OverlayDevice::new(device));
    let options = LogOptions { flush_interval: Duration::ZERO, ..LogOptions::default() };
    let log = match Log::open_from_record(device, store.uuid(), position, &options) {
        Ok((log, _)) => log,
        Err(error) => {
            tracing::debug!(%error, "the log says nothing of how many entries there are");
            return Rows::new();
        }
    };
    match Checkpoint::read(&log, position) {
        Ok(checkpoint) => checkpoint.rows,
        Err(error) => {
            tracing::debug!(%error, "the checkpoint says nothing of how many entries there are");
            Rows::new()
        }
    }
}

/// The same of the log beside the store at `path`.
pub(super) fn rows_beside(store: &PageStore, path: &Path) -> Rows {
    let options = FileOptions { read_only: true, ..FileOptions::default() };
    match FileDevice::open(&log_path(path), &options) {
        Ok(device) => rows_in_log(store, Arc::new(device)),
        Err(_) => Rows::new(),
    }
}

/// Compares them with what `walk` has found.
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
