//! A device backed by an export of an NBD server.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};

use millpond_base::PastPoison;
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
/// Maximum bytes of one WRITE_ZEROES or CACHE.
const STEP: u64 = 1 << 30;

/// Options for using an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NbdOptions {
    /// Number of connections, if the server allows several to one device; each serves one thread at
    /// a time.
    pub connections: usize,
    /// If set, the export counts as an empty device that grows up to the export's size, like a new
    /// file. Its content is lost.
    pub is_new: bool,
}

impl Default for NbdOptions {
    fn default() -> NbdOptions {
        NbdOptions { connections: 4, is_new: false }
    }
}

/// An export of an NBD server.
///
/// Tags of writes become reasons if the server supports them, and `sync_ranges` becomes dsync;
/// otherwise `sync_ranges` is a FLUSH.
///
/// A broken connection breaks the device. Earlier writes that were not synced may be lost, and a
/// sync over another connection would not report that. All further requests fail.
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
    /// The server or the export does not exist, or it cannot be used as a device.
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
        // All connections are opened now: later, another server might answer.
        if agreement.can(transmission_flags::CAN_MULTI_CONN) {
            while all.len() < options.connections {
                match more() {
                    Ok(connection) if *connection.agreement() == agreement => all.push(connection),
                    // Fewer connections work, too.
                    _ => break,
                }
            }
        }
        Ok(NbdDevice::of(name, all, agreement, options.is_new))
    }

    /// Opens an export over an existing connection.
    ///
    /// # Errors
    /// Same as [`NbdDevice::open`].
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

    /// Returns the bytes of the export.
    pub fn capacity(&self) -> u64 {
        self.agreement.size
    }

    /// Zeroes bytes.
    ///
    /// # Errors
    /// The server refuses the request, or is gone.
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

    /// Sends a command without data for a range of any length, in steps.
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
        self.idle.lock().past_poison()
    }

    /// Carries out requests on a free connection.
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
                    idle = self.returned.wait(idle).past_poison();
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
            // Linux and the protocol have the same error numbers.
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
        // Our server makes the range of a durable CACHE durable.
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
        // Data of an earlier user must not be seen.
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
    /// Records the outcome of each request's parts.
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
