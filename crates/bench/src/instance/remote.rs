//! The export of a server as the device of a run.

use std::sync::Arc;

use millpond_device::Device;
use millpond_server::client::{NbdDevice, NbdOptions, NbdUri};

use crate::error::BenchError;

/// Returns the export at `uri` as an empty device that grows, since a run's data are its
/// own.
pub(super) fn remote(uri: &NbdUri) -> Result<Arc<dyn Device>, BenchError> {
    let options = NbdOptions { is_new: true, ..NbdOptions::default() };
    Ok(Arc::new(NbdDevice::open(uri, &options)?))
}
