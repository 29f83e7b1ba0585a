//! An export as a device.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use millpond_device::{
    Alignment, Device, DeviceError, Errno, Operation, ReadRequest, Tag, WriteRequest,
};

use super::connection::{Connection, connect};
use super::error::{LinkError, NbdError};
use super::handshake::Agreement;
use super::transfer::{Bytes, Transfer};
use super::uri::{NbdUri, ServerAddress};
use crate::protocol::{Command, command_flags, errors, number_of, transmission_flags};
use crate::wire::{Socket, TlsClient};

/// The peer is gone.
const GONE: Errno = Errno(107);
/// Bytes of one WRITE_ZEROES, of one CACHE.
const STEP: u64 = 1 << 30;

/// Options of the use of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NbdOptions {
    /// Connections, where the server takes several for one device: as many threads use it at once.
    pub connections: usize,
    /// If true, the export counts as an empty device that grows, up to the export's size, as a new
    /// file does. Its content is lost.
    pub is_new: bool,
}

impl Default for NbdOptions {
    fn default() -> NbdOptions {
        NbdOptions { connections: 4, is_new: false }
    }
}

/// An export of an NBD server.
///
/// Tags of writes become reasons if the server knows them, and `sync_ranges` becomes dsync;
/// otherwise `sync_ranges` is a FLUSH.
///
/// A connection that breaks breaks the device: what was written before and not synced may be lost,
/// and a sync by way of another connection would not tell. All further requests fail.
#[derive(Debug)]
pub struct NbdDevice {
    /// The export, as a path for messages.
    path: PathBuf,
    agreement: Agreement,
    idle: Mutex<Vec<Connection>>,
    returned: Condvar,
    length: AtomicU64,
    broken: OnceLock<String>,
}

impl NbdDevice {
    /// Connects to an export.
    ///
    /// # Errors
    /// There is no such server or export, or it cannot be used as a device.
    pub fn open(uri: &NbdUri, options: &NbdOptions) -> Result<NbdDevice, NbdError> {
        let name = uri.to_string();
        let tls = match (&uri.certificates, &uri.address) {
            (Some(folder), ServerAddress::Tcp(host, _)) => Some(TlsClient::open(folder, host)),
            _ => None,
        };
        let tls = tls.transpose().map_err(|error| LinkError::from(error).of(&name))?;
        let more = || Connection::over(connect(&uri.address)?, uri.export(), tls.as_ref());
        let first = more().map_err(|error| error.of(&name))?;
        let agreement = *first.agreement();
        let mut all = vec![first];
        // All at once: later, it might be another server that answers.
        if agreement.can(transmission_flags::CAN_MULTI_CONN) {
            while all.len() < options.connections {
                match more() {
                    Ok(connection) if *connection.agreement() == agreement => all.push(connection),
                    // With fewer it works as well.
                    _ => break,
                }
            }
        }
        Ok(NbdDevice::of(name, all, agreement, options.is_new))
    }

    /// An export by way of a connection that is there already.
    ///
    /// # Errors
    /// As [`NbdDevice::open`].
    pub fn over(stream: UnixStream, export: &str) -> Result<NbdDevice, NbdError> {
        let name = format!("nbd:{export}");
        let connection = Connection::over(Socket::Unix(stream), export, None);
        let connection = connection.map_err(|error| error.of(&name))?;
        let agreement = *connection.agreement();
        Ok(NbdDevice::of(name, vec![connection], agreement, false))
    }

    fn of(name: String, idle: Vec<Connection>, agreement: Agreement, is_new: bool) -> NbdDevice {
        NbdDevice {
            path: name.into(),
            agreement,
            idle: Mutex::new(idle),
            returned: Condvar::new(),
            length: AtomicU64::new(if is_new { 0 } else { agreement.size }),
            broken: OnceLock::new(),
        }
    }

    /// Returns `true` if the server receives the reasons of writes.
    pub fn has_hints(&self) -> bool {
        self.agreement.has_hints
    }

    /// Bytes of the export.
    pub fn capacity(&self) -> u64 {
        self.agreement.size
    }

    /// Makes bytes zeros.
    ///
    /// # Errors
    /// The server refuses, or is gone.
    pub fn write_zeros(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        self.check(offset, length)?;
        let can = self.agreement.can(transmission_flags::SEND_WRITE_ZEROES);
        if !can {
            let zeros = vec![0; (1 << 20).min(length as usize)];
            for at in (offset..offset + length).step_by(1 << 20) {
                let count = (offset + length - at).min(1 << 20) as usize;
                self.write(at, zeros.get(..count).unwrap_or(&[]))?;
            }
            return Ok(());
        }
        self.in_steps(Command::WriteZeroes, 0, offset..offset + length, Operation::Write)
    }

    /// A command of no bytes for a range of any length.
    fn in_steps(
        &self,
        command: Command,
        flags: u16,
        range: Range<u64>,
        operation: Operation,
    ) -> Result<(), DeviceError> {
        let step = |at: u64| {
            let length = (range.end - at).min(STEP) as u32;
            Transfer::bare(command, flags, at, length)
        };
        let mut all: Vec<Transfer<'_>> = range.clone().step_by(STEP as usize).map(step).collect();
        self.run(&mut all);
        all.iter().try_for_each(|transfer| self.outcome(transfer, operation))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        // Nothing below can panic between two steps.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out requests by way of a connection that is free.
    fn run(&self, transfers: &mut [Transfer<'_>]) {
        if transfers.is_empty() {
            return;
        }
        let mut idle = self.idle();
        let connection = loop {
            if self.broken.get().is_some() {
                break None;
            }
            match idle.pop() {
                Some(connection) => break Some(connection),
                None => {
                    idle = self.returned.wait(idle).unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        drop(idle);
        let ran = match connection {
            None => Err(LinkError::Unable("is gone")),
            Some(mut connection) => {
                let ran = connection.run(transfers);
                if ran.is_ok() {
                    self.idle().push(connection);
                    self.returned.notify_one();
                }
                ran
            }
        };
        if let Err(error) = ran {
            let message = error.to_string();
            if self.broken.set(message).is_ok() {
                let path = self.path.display();
                tracing::warn!(%path, %error, "the connection broke: the device is of no use");
            }
            self.idle().clear();
            self.returned.notify_all();
            for transfer in transfers {
                transfer.error = u32::MAX;
            }
        }
    }

    fn failed(&self, operation: Operation, offset: u64, length: u64, errno: Errno) -> DeviceError {
        DeviceError::Io { operation, path: self.path.clone(), offset, length, errno }
    }

    fn outcome(&self, transfer: &Transfer<'_>, operation: Operation) -> Result<(), DeviceError> {
        let (offset, length) = (transfer.offset, u64::from(transfer.length));
        let path = || self.path.clone();
        Err(match transfer.error {
            0 => return Ok(()),
            u32::MAX => self.failed(operation, offset, length, GONE),
            errors::EPERM => DeviceError::ReadOnly { path: path() },
            errors::ENOSPC => DeviceError::DiskFull { path: path(), offset, needed: length },
            // Linux numbers its errors as the protocol does.
            number @ (errors::ENOMEM
            | errors::EINVAL
            | errors::EOVERFLOW
            | errors::ENOTSUP
            | errors::ESHUTDOWN) => self.failed(operation, offset, length, Errno(number as i32)),
            _ => self.failed(operation, offset, length, Errno::IO),
        })
    }

    fn check(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        let device_length = self.length();
        let path = || self.path.clone();
        if offset.checked_add(length).is_none_or(|end| end > device_length) {
            return Err(DeviceError::PastEnd { path: path(), offset, length, device_length });
        }
        let alignment = u64::from(self.agreement.block);
        if !offset.is_multiple_of(alignment) || !length.is_multiple_of(alignment) {
            return Err(DeviceError::Misaligned { path: path(), offset, length, alignment });
        }
        Ok(())
    }

    fn check_write(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        if self.agreement.can(transmission_flags::READ_ONLY) {
            return Err(DeviceError::ReadOnly { path: self.path.clone() });
        }
        self.check(offset, length)
    }
}

impl Drop for NbdDevice {
    fn drop(&mut self) {
        self.idle().drain(..).for_each(Connection::leave);
    }
}

impl Device for NbdDevice {
    fn path(&self) -> &Path {
        &self.path
    }

    fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    fn alignment(&self) -> Alignment {
        Alignment { memory: 1, offset: u64::from(self.agreement.block) }
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let mut parts = [IoSliceMut::new(bytes)];
        let mut requests = [ReadRequest::new(offset, &mut parts)];
        self.read_batch(&mut requests);
        let [request] = requests;
        request.result
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let parts = [IoSlice::new(bytes)];
        let mut requests = [WriteRequest::new(offset, &parts)];
        self.write_batch(&mut requests);
        let [request] = requests;
        request.result
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_, '_>]) {
        let most = self.agreement.request_max as usize;
        let mut transfers = Vec::new();
        let mut results = Vec::with_capacity(requests.len());
        for (of, request) in requests.iter_mut().enumerate() {
            let checked = self.check(request.offset, request.length() as u64);
            let is_sound = checked.is_ok();
            results.push(checked);
            let mut offset = request.offset;
            for piece in request.parts.iter_mut().flat_map(|part| part.chunks_mut(most)) {
                let length = piece.len() as u32;
                let bare = Transfer::bare(Command::Read, 0, offset, length);
                offset += u64::from(length);
                if is_sound {
                    transfers.push(Transfer { bytes: Bytes::Read(piece), of, ..bare });
                }
            }
        }
        self.run(&mut transfers);
        self.note(&transfers, &mut results, Operation::Read);
        drop(transfers);
        requests.iter_mut().zip(results).for_each(|(request, result)| request.result = result);
    }

    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        let most = self.agreement.request_max as usize;
        let mut transfers = Vec::new();
        let mut results = Vec::with_capacity(requests.len());
        for (of, request) in requests.iter().enumerate() {
            let checked = self.check_write(request.offset, request.length() as u64);
            let is_sound = checked.is_ok();
            results.push(checked);
            let tags = request.tags.iter().map(Some).chain(std::iter::repeat(None));
            let mut offset = request.offset;
            for (part, tag) in request.parts.iter().zip(tags).filter(|_| is_sound) {
                let reason = tag.map_or(0, |tag: &Tag| number_of(tag.reason));
                for piece in part.chunks(most) {
                    let length = piece.len() as u32;
                    let bare = Transfer::bare(Command::Write, 0, offset, length);
                    offset += u64::from(length);
                    transfers.push(Transfer { bytes: Bytes::Write(piece), reason, of, ..bare });
                }
            }
        }
        self.run(&mut transfers);
        self.note(&transfers, &mut results, Operation::Write);
        requests.iter_mut().zip(results).for_each(|(request, result)| request.result = result);
    }

    fn sync(&self) -> Result<(), DeviceError> {
        if self.agreement.can(transmission_flags::READ_ONLY) {
            return Ok(());
        }
        let mut flush = [Transfer::bare(Command::Flush, 0, 0, 0)];
        self.run(&mut flush);
        flush.iter().try_for_each(|transfer| self.outcome(transfer, Operation::Sync))
    }

    fn sync_ranges(&self, ranges: &[Range<u64>]) -> Result<(), DeviceError> {
        let mut ranges = ranges.iter().filter(|range| !range.is_empty());
        if !self.agreement.has_hints {
            return if ranges.next().is_none() { Ok(()) } else { self.sync() };
        }
        // A server of ours takes a CACHE that is to be durable for just that.
        let mut all = ranges.flat_map(|range| {
            let step = |at: u64| (at, (range.end - at).min(STEP) as u32);
            range.clone().step_by(STEP as usize).map(step)
        });
        let sync = |(at, length): (u64, u32)| {
            Transfer::bare(Command::Cache, command_flags::FUA, at, length)
        };
        let mut transfers: Vec<Transfer<'_>> = all.by_ref().map(sync).collect();
        self.run(&mut transfers);
        transfers.iter().try_for_each(|transfer| self.outcome(transfer, Operation::Sync))
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        let old = self.length();
        if length <= old {
            return Ok(());
        }
        if length > self.agreement.size {
            let (path, needed) = (self.path.clone(), length - old);
            return Err(DeviceError::DiskFull { path, offset: old, needed });
        }
        // What an earlier user has left there must not be seen.
        self.length.store(length, Ordering::Release);
        let cleared =
            self.check_write(old, length - old).and_then(|()| self.write_zeros(old, length - old));
        if cleared.is_err() {
            self.length.store(old, Ordering::Release);
        }
        cleared
    }
}

impl NbdDevice {
    /// Writes down what came of requests' parts.
    fn note(
        &self,
        transfers: &[Transfer<'_>],
        results: &mut [Result<(), DeviceError>],
        operation: Operation,
    ) {
        for transfer in transfers {
            if let Some(result) = results.get_mut(transfer.of).filter(|result| result.is_ok()) {
                *result = self.outcome(transfer, operation);
            }
        }
    }
}
