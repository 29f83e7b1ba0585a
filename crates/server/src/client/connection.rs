//! A connection to a server, used by one thread at a time.

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use super::error::LinkError;
use super::handshake::{Agreement, ask_for_tls, choose, greet};
use super::transfer::{Bytes, Transfer};
use super::uri::ServerAddress;
use crate::protocol::{
    Chunk, ChunkHeader, Command, REASON_SHIFT, ReplyHeader, Request, SimpleHeader, chunks, errors,
};
use crate::wire::{Socket, TlsClient, Wire};

/// Maximum number of unreplied requests. Their replies without data fit into any socket, so that
/// one thread that both sends and receives cannot deadlock.
const WINDOW: usize = 32;
/// Bytes of replies read per system call.
const READ_AHEAD: usize = 32 << 10;
/// Time limit to connect, and of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// A connection after its handshake.
#[derive(Debug)]
pub(super) struct Connection {
    reader: BufReader<Wire>,
    writer: Wire,
    agreement: Agreement,
    next: u64,
}

/// Connects to a server.
pub(super) fn connect(address: &ServerAddress) -> Result<Socket, LinkError> {
    match address {
        ServerAddress::Unix(path) => Ok(Socket::Unix(UnixStream::connect(path)?)),
        ServerAddress::Tcp(host, port) => {
            let mut failed = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
            for address in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, HANDSHAKE) {
                    Ok(stream) => return Ok(Socket::Tcp(stream)),
                    Err(error) => failed = error,
                }
            }
            Err(failed.into())
        }
    }
}

impl Connection {
    /// Chooses `export` over a new socket, under TLS if `tls` is given.
    pub fn over(
        socket: Socket,
        export: &str,
        tls: Option<&TlsClient>,
    ) -> Result<Connection, LinkError> {
        socket.tune();
        let mut wire = Wire::new(Arc::new(socket));
        wire.limit(Some(HANDSHAKE))?;
        greet(&mut wire)?;
        if let Some(tls) = tls {
            ask_for_tls(&mut wire)?;
            wire.begin_tls(tls.begin()?)?;
        }
        let agreement = choose(&mut wire, export)?;
        wire.limit(None)?;
        let writer = wire.clone();
        let reader = BufReader::with_capacity(READ_AHEAD, wire);
        Ok(Connection { reader, writer, agreement, next: 0 })
    }

    pub fn agreement(&self) -> &Agreement {
        &self.agreement
    }

    /// Carries out several requests at once; each records its own error.
    ///
    /// # Errors
    /// The connection is unusable, and so are all bytes that were read.
    pub fn run(&mut self, transfers: &mut [Transfer<'_>]) -> Result<(), LinkError> {
        let mut under_way: HashMap<u64, usize> = HashMap::with_capacity(WINDOW);
        let mut together = Vec::new();
        let mut next = 0;
        while next < transfers.len() || !under_way.is_empty() {
            while under_way.len() < WINDOW
                && let Some(transfer) = transfers.get(next)
            {
                let cookie = self.cookie(transfer.reason);
                self.send(transfer, cookie, &mut together)?;
                under_way.insert(cookie, next);
                next += 1;
            }
            self.writer.write_all(&together)?;
            together.clear();
            self.receive(transfers, &mut under_way)?;
        }
        Ok(())
    }

    /// Tells the server that no more requests come.
    pub fn leave(mut self) {
        const LEAVE: Duration = Duration::from_secs(1);
        let command = Command::Disconnect;
        let leave = Request { flags: 0, command, cookie: 0, offset: 0, length: 0 };
        // The server may be gone already.
        let told = self.writer.limit(Some(LEAVE));
        let _ = told.and_then(|()| self.writer.write_all(&leave.encode()));
        self.writer.finish();
    }

    fn cookie(&mut self, reason: u64) -> u64 {
        let number = self.next;
        self.next = (self.next + 1) & ((1 << REASON_SHIFT) - 1);
        let reason = if self.agreement.has_hints { reason } else { 0 };
        number | reason << REASON_SHIFT
    }

    fn send(
        &mut self,
        transfer: &Transfer<'_>,
        cookie: u64,
        together: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        const SMALL: usize = 16 << 10;
        let Transfer { command, flags, offset, length, .. } = *transfer;
        together.extend(Request { flags, command, cookie, offset, length }.encode());
        let Bytes::Write(bytes) = transfer.bytes else { return Ok(()) };
        if bytes.len() <= SMALL {
            together.extend_from_slice(bytes);
            return Ok(());
        }
        self.writer.write_all(together)?;
        together.clear();
        self.writer.write_all(bytes)
    }

    /// Reads one reply, or a chunk of one.
    fn receive(
        &mut self,
        transfers: &mut [Transfer<'_>],
        under_way: &mut HashMap<u64, usize>,
    ) -> Result<(), LinkError> {
        let mut bytes = [0; ChunkHeader::BYTES];
        let (first, rest) = bytes.split_at_mut(ReplyHeader::BYTES_MIN);
        self.reader.read_exact(first)?;
        let length = ReplyHeader::length(first)?;
        let rest = rest.get_mut(..length - ReplyHeader::BYTES_MIN).unwrap_or(&mut []);
        self.reader.read_exact(rest)?;
        let header = ReplyHeader::decode(bytes.get(..length).unwrap_or(&[]))?;
        let cookie = match &header {
            ReplyHeader::Simple(simple) => simple.cookie,
            ReplyHeader::Chunk(chunk) => chunk.cookie,
        };
        let transfer = under_way.get(&cookie).and_then(|at| transfers.get_mut(*at));
        let transfer = transfer.ok_or(LinkError::Reply("is to nothing that was asked"))?;
        let is_last = match header {
            ReplyHeader::Simple(simple) => {
                self.simple(transfer, simple)?;
                true
            }
            ReplyHeader::Chunk(chunk) => {
                self.chunk(transfer, chunk)?;
                chunk.is_last()
            }
        };
        if is_last {
            transfer.check_end()?;
            under_way.remove(&cookie);
        }
        Ok(())
    }

    fn simple(
        &mut self,
        transfer: &mut Transfer<'_>,
        reply: SimpleHeader,
    ) -> Result<(), LinkError> {
        transfer.error = reply.error;
        if transfer.command != Command::Read {
            return Ok(());
        }
        if self.agreement.is_structured && reply.error == 0 {
            return Err(LinkError::Reply("to a READ is a simple one, and chunks were agreed on"));
        }
        if reply.error == 0 {
            let part = transfer.part(transfer.offset, transfer.length.into())?;
            self.reader.read_exact(part)?;
        }
        Ok(())
    }

    fn chunk(&mut self, transfer: &mut Transfer<'_>, header: ChunkHeader) -> Result<(), LinkError> {
        if !self.agreement.is_structured {
            return Err(LinkError::Reply("comes in chunks, and they were not agreed on"));
        }
        if header.kind == chunks::OFFSET_DATA {
            // Received directly into the caller's buffer.
            let mut offset = [0; 8];
            let length = header.length.checked_sub(8).filter(|length| *length > 0);
            let length = length.ok_or(LinkError::Reply("has a chunk that is too short"))?;
            self.reader.read_exact(&mut offset)?;
            let part = transfer.part(u64::from_be_bytes(offset), length.into())?;
            return Ok(self.reader.read_exact(part)?);
        }
        let mut data = vec![0; header.length as usize];
        self.reader.read_exact(&mut data)?;
        match Chunk::decode(header.kind, &data)? {
            Chunk::Hole { offset, length } => transfer.part(offset, length.into())?.fill(0),
            Chunk::Error { error, message, .. } => {
                tracing::debug!(error, message, "a request failed at the server");
                // An error with the number 0 is invalid, and still an error.
                transfer.error = if error == 0 { errors::EIO } else { error };
            }
            // Unknown types may be ignored, unless they are errors.
            Chunk::None | Chunk::Other(_) => {}
            Chunk::BlockStatus { .. } | Chunk::Data { .. } => {
                return Err(LinkError::Reply("has a chunk that belongs to another command"));
            }
        }
        Ok(())
    }
}
