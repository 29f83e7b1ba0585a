//! Replacement of io_uring on other systems: no pool of rings can be created, so none is used.

use std::fs::File;

use crate::device::ReadRequest;
use crate::device::WriteRequest;
use crate::error::Errno;

/// The rings of a device; there are none.
#[derive(Debug)]
pub(super) enum RingPool {}

impl RingPool {
    /// Fails, since the system has no io_uring.
    pub(super) fn new(_: u32) -> Result<RingPool, Errno> {
        Err(Errno(libc::ENOSYS))
    }

    pub(super) fn read(
        &self,
        _: &File,
        _: &mut [ReadRequest<'_, '_>],
        _: impl FnMut(&mut ReadRequest<'_, '_>, Option<i32>),
    ) {
        match *self {}
    }

    pub(super) fn write(
        &self,
        _: &File,
        _: &mut [WriteRequest<'_, '_>],
        _: impl FnMut(&mut WriteRequest<'_, '_>, Option<i32>),
    ) {
        match *self {}
    }

    pub(super) fn write_back(&self, _: &File, _: &[(u64, u32)]) -> Option<Result<(), Errno>> {
        match *self {}
    }

    pub(super) fn sync_range(&self, _: &File, _: u64, _: u32) -> Option<Result<(), Errno>> {
        match *self {}
    }
}
