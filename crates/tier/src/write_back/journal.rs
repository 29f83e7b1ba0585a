//! The directory on the cache's device, and its journal, which `sync` makes durable.

use millpond_base::PastPoison;
use millpond_base::sync::MutexGuard;
use millpond_base::sync::atomic::Ordering;
use millpond_device::DeviceError;

use crate::write_back::back_device::BackDevice;
use crate::write_back::format::{Journal, State, batch, batch_offset};

impl BackDevice {
    pub(super) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().past_poison()
    }

    /// Makes all earlier writes durable.
    pub(super) fn commit(&self) -> Result<(), DeviceError> {
        self.with_journal(|journal| self.write_changes(journal))
    }

    /// Like `commit`, with clean copies in the directory, too: the tier is being closed, or given
    /// up.
    pub(super) fn close_as(&self, state: State) -> Result<(), DeviceError> {
        self.with_journal(|journal| {
            journal.header.state = state;
            self.write_directory(journal, Vec::new())
        })
    }

    fn with_journal(
        &self,
        work: impl FnOnce(&mut Journal) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let mut journal = self.journal();
        if let Some(error) = &journal.failed {
            return Err(error.clone());
        }
        let done = work(&mut journal);
        if let Err(error) = &done {
            journal.failed = Some(error.clone());
            self.has_failed.store(true, Ordering::Release);
        }
        done
    }

    /// Makes all earlier writes to both devices durable. The records of these writes must exist
    /// already, so that it covers all bytes that they name.
    fn sync_data(&self) -> Result<(), DeviceError> {
        if self.below_is_ahead.swap(false, Ordering::AcqRel) {
            self.below.sync()?;
        }
        if self.fast_is_ahead.swap(false, Ordering::AcqRel) {
            self.fast.sync()?;
        }
        Ok(())
    }

    fn write_changes(&self, journal: &mut Journal) -> Result<(), DeviceError> {
        let (records, slots) = self.cache().take_changes();
        let bytes = batch(journal.header.epoch, journal.batches, &records);
        let length = bytes.len() as u64;
        let Some(offset) = batch_offset(&self.layout, journal.position, length) else {
            return self.write_directory(journal, slots);
        };
        self.sync_data()?;
        if !records.is_empty() {
            self.fast.write(offset, &bytes)?;
            self.fast.sync()?;
            journal.position += length;
            journal.batches += 1;
        }
        self.cache().unmap(slots);
        Ok(())
    }

    fn write_directory(
        &self,
        journal: &mut Journal,
        mut slots: Vec<u32>,
    ) -> Result<(), DeviceError> {
        let (records, more) = self.cache().directory(journal.header.state == State::Closed);
        slots.extend(more);
        self.sync_data()?;
        journal.header.store_snapshot(&*self.fast, &records)?;
        (journal.position, journal.batches) = (0, 0);
        self.cache().unmap(slots);
        Ok(())
    }
}
