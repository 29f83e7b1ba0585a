//! Connection of a simulated device to its power supply: the schedule of failures that all
//! devices of the supply share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use millpond_base::PastPoison;

/// A failure of one operation while everything else works.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// The operation fails with `EIO`. Any number of a write's first sectors may have landed. A
    /// sync makes nothing durable, and no later sync covers its writes.
    Error,
    /// There is no room for a write or a growth. A sync needs none, and fails with `EIO`.
    DiskFull,
}

/// The outcome of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    Works,
    Fails(Fault),
    /// The power fails at this operation.
    Cut,
    /// The power failed before this operation.
    Off,
}

/// An operation on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeviceOperation {
    /// A write at this offset.
    Write(u64),
    Sync,
    Length,
}

/// Selection of the operations of which one, counted from now on, fails. Devices are numbered in
/// the order in which the supply created them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// Writes that begin before a place of the device.
    Write {
        /// Number of the device.
        device: usize,
        /// The place, in bytes.
        below: u64,
    },
    /// Syncs of the device.
    Sync {
        /// Number of the device.
        device: usize,
    },
    /// Syncs of the device that are the first ones behind a write before this place.
    SyncOf {
        /// Number of the device.
        device: usize,
        /// The place, in bytes.
        below: u64,
    },
}

#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Number of operations so far, including failed ones; none since the power failed.
    pub(super) operations: u64,
    /// Number of the operation at which the power fails.
    pub(super) cut: Option<u64>,
    /// The operations to fail at, and the number of them still to come; 1 is the next.
    pub(super) aim: Option<(Aim, u64)>,
    /// Fault at the aimed operation; if `None`, the power fails there.
    pub(super) aimed: Option<Fault>,
    /// Set if a write that [`Aim::SyncOf`] names has happened, and no sync since.
    pub(super) is_near: bool,
    /// Number of the operation that fails.
    pub(super) fault: Option<(u64, Fault)>,
    pub(super) is_off: bool,
    /// Set if the power failed at an operation, and not between two.
    pub(super) was_during_operation: bool,
}

impl Schedule {
    /// Returns `true` if this operation is the one to fail, and counts it if it matches the aim.
    fn is_hit(&mut self, device: usize, operation: DeviceOperation) -> bool {
        let Some((aim, left)) = self.aim else { return false };
        let is_meant = match (aim, operation) {
            (Aim::Write { device: of, below }, DeviceOperation::Write(at)) => {
                of == device && at < below
            }
            (Aim::Sync { device: of }, DeviceOperation::Sync) => of == device,
            (Aim::SyncOf { device: of, below }, DeviceOperation::Write(at)) => {
                self.is_near |= of == device && at < below;
                false
            }
            (Aim::SyncOf { device: of, .. }, DeviceOperation::Sync) => {
                of == device && std::mem::take(&mut self.is_near)
            }
            _ => false,
        };
        if is_meant {
            self.aim = Some((aim, left.saturating_sub(1)));
        }
        is_meant && left <= 1
    }
}

/// State that all devices of a supply share.
#[derive(Debug, Default)]
pub(super) struct Line(Mutex<Schedule>);

impl Line {
    pub(super) fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.0.lock().past_poison()
    }
}

/// The connection of a device to its supply, and its name.
#[derive(Debug)]
pub(crate) struct Plug {
    pub(super) line: Arc<Line>,
    pub(super) name: PathBuf,
    pub(super) device: usize,
}

impl Plug {
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    pub(crate) fn is_off(&self) -> bool {
        self.line.schedule().is_off
    }

    /// Counts an operation and returns its outcome.
    pub(crate) fn turn(&self, operation: DeviceOperation) -> Turn {
        let mut schedule = self.line.schedule();
        if schedule.is_off {
            return Turn::Off;
        }
        schedule.operations += 1;
        let number = schedule.operations;
        let is_hit = schedule.is_hit(self.device, operation);
        if is_hit && let Some(fault) = schedule.aimed {
            (schedule.aim, schedule.aimed) = (None, None);
            return Turn::Fails(fault);
        }
        if is_hit || schedule.cut.is_some_and(|cut| cut <= number) {
            (schedule.is_off, schedule.was_during_operation) = (true, true);
            return Turn::Cut;
        }
        match schedule.fault {
            Some((at, fault)) if at == number => {
                schedule.fault = None;
                Turn::Fails(fault)
            }
            _ => Turn::Works,
        }
    }
}
