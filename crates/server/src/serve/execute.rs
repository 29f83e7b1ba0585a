//! Execution of requests, and their replies.

use super::outbox::Reply;
use super::session::{Context, Session};
use crate::protocol::{
    Chunk, Command, Extent, PAYLOAD_BYTES_MAX, Request, SimpleHeader, command_flags, errors,
};
use crate::volume::{Room, Volume, VolumeError};

/// Maximum number of extents in one reply: a client asks again for those behind them.
const EXTENTS: usize = 4096;

/// Reason that a request was refused or failed: the protocol's error number, and a message.
#[derive(Debug)]
pub(super) struct Refusal {
    number: u32,
    message: String,
}

impl Refusal {
    fn new(number: u32, message: &str) -> Refusal {
        Refusal { number, message: message.to_string() }
    }

    fn of(error: &VolumeError, request: &Request) -> Refusal {
        let writes = matches!(request.command, Command::Write | Command::WriteZeroes);
        let number = match error {
            VolumeError::PastEnd { .. } if writes => errors::ENOSPC,
            error => error.number(),
        };
        Refusal { number, message: error.to_string() }
    }

    /// Returns the outcome as a reply.
    pub fn reply(&self, session: &Session, request: &Request, cost: u64) -> Reply {
        let head = if session.is_structured {
            let (error, message) = (self.number, self.message.clone());
            Chunk::Error { error, message, offset: None }.encode(request.cookie, true)
        } else {
            SimpleHeader { error: self.number, cookie: request.cookie }.encode().to_vec()
        };
        Reply { head, body: None, cost }
    }
}

/// Checks a request before any of it is carried out.
pub(super) fn check(volume: &Volume, session: &Session, request: &Request) -> Result<(), Refusal> {
    let mut known = command_flags::FUA;
    match request.command {
        Command::Read if session.is_structured => known |= command_flags::DF,
        Command::WriteZeroes => known |= command_flags::NO_HOLE,
        Command::BlockStatus => known |= command_flags::REQ_ONE,
        Command::Unknown(_) => {
            return Err(Refusal::new(errors::EINVAL, "the command is not known"));
        }
        _ => {}
    }
    if request.flags & !known != 0 {
        return Err(Refusal::new(errors::EINVAL, "a flag is not known, or not of this command"));
    }
    let of = |error: VolumeError| Refusal::of(&error, request);
    match request.command {
        Command::Flush | Command::Disconnect => return Ok(()),
        Command::Write | Command::WriteZeroes | Command::Trim => {
            volume.check_writable().map_err(of)?;
        }
        Command::Read if request.length > PAYLOAD_BYTES_MAX => {
            return Err(Refusal::new(errors::EOVERFLOW, "a read may have 32 MiB at most"));
        }
        Command::BlockStatus if request.length == 0 || session.contexts.is_empty() => {
            let why = "no bytes are asked about, or no metadata context was chosen";
            return Err(Refusal::new(errors::EINVAL, why));
        }
        _ => {}
    }
    volume.check(request.offset, request.length.into()).map_err(of)
}

/// Carries out a checked request; `payload` is the data that came with it.
pub(super) fn execute(
    volume: &Volume,
    session: &Session,
    request: &Request,
    payload: Option<Room>,
    cost: u64,
) -> Reply {
    match try_execute(volume, session, request, payload) {
        Ok((head, body)) => Reply { head, body, cost },
        Err(error) => failed(&error, session, request, cost),
    }
}

/// Carries out checked reads at the same time.
pub(super) fn execute_reads(volume: &Volume, reads: &[(&Session, &Request, u64)]) -> Vec<Reply> {
    let wanted: Vec<(u64, u32)> = reads.iter().map(|(_, r, _)| (r.offset, r.length)).collect();
    let read = volume.read_many(&wanted);
    let reply = |((session, request, cost), read): (&(&Session, &Request, u64), _)| match read {
        Ok(room) => {
            let (head, body) = of_read(session, request, room);
            Reply { head, body, cost: *cost }
        }
        Err(error) => failed(&error, session, request, *cost),
    };
    reads.iter().zip(read).map(reply).collect()
}

fn failed(error: &VolumeError, session: &Session, request: &Request, cost: u64) -> Reply {
    let Request { command, offset, length, .. } = *request;
    tracing::debug!(%error, ?command, offset, length, "a request failed");
    Refusal::of(error, request).reply(session, request, cost)
}

type Parts = (Vec<u8>, Option<Room>);

fn try_execute(
    volume: &Volume,
    session: &Session,
    request: &Request,
    payload: Option<Room>,
) -> Result<Parts, VolumeError> {
    let Request { offset, length, cookie, .. } = *request;
    let is_durable = request.flags & command_flags::FUA != 0;
    match request.command {
        Command::Read => return Ok(of_read(session, request, volume.read(offset, length)?)),
        Command::BlockStatus => return Ok((block_status(volume, session, request)?, None)),
        Command::Write => {
            let room = payload.unwrap_or_else(|| volume.room(offset, 0));
            volume.write(offset, room, session.reason(request), is_durable)?;
        }
        Command::Flush => volume.flush()?,
        Command::Trim => volume.trim(offset, length, is_durable)?,
        Command::WriteZeroes => {
            let keeps_room = request.flags & command_flags::NO_HOLE != 0;
            volume.write_zeros(offset, length, keeps_room, is_durable)?;
        }
        // Our client asks in this way for earlier writes into a range to be made durable.
        Command::Cache if is_durable && session.has_hints() => {
            volume.sync_range(offset, length)?;
        }
        Command::Cache => volume.prefetch(offset, length)?,
        Command::Disconnect | Command::Unknown(_) => {}
    }
    Ok((SimpleHeader { error: 0, cookie }.encode().to_vec(), None))
}

fn of_read(session: &Session, request: &Request, room: Room) -> Parts {
    let Request { offset, length, cookie, .. } = *request;
    let head = match session.is_structured {
        false => SimpleHeader { error: 0, cookie }.encode().to_vec(),
        true if length == 0 => Chunk::None.encode(cookie, true),
        true => Chunk::Data { offset, bytes: &room }.encode(cookie, true),
    };
    (head, Some(room))
}

fn block_status(
    volume: &Volume,
    session: &Session,
    request: &Request,
) -> Result<Vec<u8>, VolumeError> {
    let Request { offset, length, cookie, .. } = *request;
    let is_one = request.flags & command_flags::REQ_ONE != 0;
    let most = if is_one { 1 } else { EXTENTS };
    let mut bytes = Vec::new();
    for (at, context) in session.contexts.iter().enumerate() {
        let extents = match context {
            Context::Allocation => volume.allocation(offset, length, most)?,
            Context::Residency => volume.residency(offset, length, most)?,
            Context::Reason => vec![Extent { length, status: session.class_number() }],
        };
        let chunk = Chunk::BlockStatus { context: context.id(), extents };
        bytes.extend(chunk.encode(cookie, at + 1 == session.contexts.len()));
    }
    Ok(bytes)
}

/// Returns roughly the bytes of memory that a request takes until its reply is sent.
pub(super) fn cost(volume: &Volume, request: &Request) -> u64 {
    const EACH: u64 = 512;
    EACH + match request.command {
        Command::Read | Command::Write => {
            Room::bytes_max(request.length.min(PAYLOAD_BYTES_MAX), volume.block())
        }
        Command::BlockStatus => 3 * 8 * EXTENTS as u64,
        Command::Cache => 1 << 20,
        _ => u64::from(volume.block()),
    }
}
