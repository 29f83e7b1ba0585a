//! A write-back tier with a thread that writes to storage ahead of need.
//!
//! The thread starts when fewer than half of the spare slots (an eighth of all) are free. It writes
//! copies without an owner, 32 at a time, in the order of their places: first those whose pages the
//! policy has evicted, and if need be those whose pages are elsewhere now. Copies that the policy
//! keeps stay dirty. So the policy decides as it would without the thread, and as in the model.

use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use millpond_base::PastPoison;
use millpond_base::sync::thread::{Builder, JoinHandle};
use millpond_base::sync::unmodelled::Mutex;
use millpond_device::{Alignment, Device, DeviceError, ReadRequest, WriteRequest};
use millpond_policies::contract::Shape;
use millpond_policies::policy_host::ErasedPolicyHost;

use crate::error::TierError;
use crate::options::TierOptions;
use crate::write_back::back_device::BackDevice;

/// Pause of the thread after an error, before it tries again.
const PAUSE: Duration = Duration::from_secs(1);

/// A device, and a cache with the last writes to it.
pub struct BackTier {
    device: Arc<BackDevice>,
    /// Held for a step, and never while the thread does anything.
    destager: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for BackTier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackTier").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Deref for BackTier {
    type Target = BackDevice;

    fn deref(&self) -> &BackDevice {
        &self.device
    }
}

impl BackTier {
    /// Opens a tier above `below`, with its cache on `fast`. The cache is the one that `below` was
    /// last opened with. If there was none, `fast` may be empty, or hold a tier that is no longer
    /// needed.
    ///
    /// # Errors
    /// The cache has no room, the two do not belong together, or one of them fails.
    pub fn open(
        below: Arc<dyn Device>,
        fast: Arc<dyn Device>,
        options: &TierOptions,
        policy: impl FnOnce(&Shape) -> Box<dyn ErasedPolicyHost>,
    ) -> Result<BackTier, TierError> {
        let device = Arc::new(BackDevice::open(below, fast, options, policy)?);
        Ok(BackTier { device, destager: Mutex::default() })
    }

    /// Adds a thread that writes to storage ahead of need, until the tier is closed, given up or
    /// dropped. Without it, writers do this when there is no room.
    #[must_use]
    pub fn destaging_ahead(self) -> BackTier {
        let device = self.device.clone();
        let thread = Builder::new().name("millpond-destage".to_string());
        match thread.spawn(move || destage_ahead(&device)) {
            Ok(thread) => {
                self.device.bell.listen(true);
                *self.destager.lock().past_poison() = Some(thread);
            }
            Err(error) => tracing::warn!(%error, "the second tier does without its thread"),
        }
        self
    }

    /// Returns `true` if `fast`, as the second tier of `below`, has data that `below` lacks.
    ///
    /// # Errors
    /// Same as [`BackTier::open`].
    pub fn is_pair(below: &dyn Device, fast: &dyn Device) -> Result<bool, TierError> {
        BackDevice::is_pair(below, fast)
    }

    /// Returns the options for opening the tier that has data `below` lacks; `None` if no tier
    /// does.
    ///
    /// # Errors
    /// Same as [`BackTier::open`].
    pub fn options_of(
        below: &dyn Device,
        fast: &dyn Device,
    ) -> Result<Option<TierOptions>, TierError> {
        BackDevice::options_of(below, fast)
    }

    /// Writes everything to the device below, which is then complete without the cache. Nothing
    /// else may be read or written during the call or after it.
    ///
    /// # Errors
    /// A device fails. The two still belong together, and all synced bytes are there.
    pub fn give_up(&self) -> Result<(), DeviceError> {
        self.end_thread();
        self.device.give_up()
    }

    /// Ends the thread and waits until its work is done.
    fn end_thread(&self) {
        self.device.bell.end();
        self.device.bell.listen(false);
        let thread = self.destager.lock().past_poison().take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the second tier's thread ended by a panic");
        }
    }
}

impl Drop for BackTier {
    fn drop(&mut self) {
        self.end_thread();
    }
}

fn destage_ahead(device: &BackDevice) {
    let mut has_failed = false;
    while device.bell.wait() {
        while !device.bell.is_over() {
            match device.destage_some() {
                Ok(true) => has_failed = false,
                Ok(false) => break,
                Err(error) => {
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::warn!(%error, "the second tier cannot be written to storage");
                    }
                    device.bell.pause(PAUSE);
                    break;
                }
            }
        }
    }
}

impl Device for BackTier {
    fn path(&self) -> &Path {
        self.device.path()
    }

    fn length(&self) -> u64 {
        self.device.length()
    }

    fn alignment(&self) -> Alignment {
        self.device.alignment()
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(offset, bytes)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_, '_>]) {
        self.device.read_batch(requests);
    }

    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        self.device.write_batch(requests);
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.device.sync()
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.device.grow(length)
    }

    fn append(&self, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.append(bytes)
    }

    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        self.device.shrink(length)
    }

    fn distrust(&self, range: Range<u64>) -> bool {
        self.device.distrust(range)
    }

    fn discard(&self, ranges: &[Range<u64>]) {
        self.device.discard(ranges);
    }

    fn superseded_max(&self) -> u64 {
        self.device.superseded_max()
    }

    fn is_displaced(&self) -> bool {
        self.device.is_displaced()
    }

    fn displaced(&self) -> Option<PathBuf> {
        self.device.displaced()
    }

    fn release(&self) {
        self.end_thread();
        self.device.release();
    }
}
