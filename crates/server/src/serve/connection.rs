//! One connection: its handshake, its requests, and its replies.

use std::io::{BufReader, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::ConnectionError;
use super::execute::{self, Refusal};
use super::exports::Exports;
use super::jobs::Jobs;
use super::negotiate::{Negotiation, Outcome};
use super::options::ServeOptions;
use super::outbox::{Outbox, Reply};
use super::session::Session;
use crate::protocol::{Command, PAYLOAD_BYTES_MAX, REQUEST_BYTES, Request};
use crate::volume::{Room, Volume};
use crate::wire::Wire;

/// Bytes of replies that are sent at once, about; larger ones go by themselves.
const TOGETHER: usize = 64 << 10;
/// Bytes of requests that are read at once.
const READ_AHEAD: usize = 16 << 10;

/// A request for a worker.
#[derive(Debug)]
pub(super) struct Job {
    request: Request,
    session: Arc<Session>,
    payload: Option<Room>,
    cost: u64,
    outbox: Arc<Outbox>,
}

impl Job {
    /// Carries it out, and puts the reply where it is sent from.
    pub fn run(self, volume: &Volume) {
        let Job { request, session, payload, cost, outbox } = self;
        outbox.push(execute::execute(volume, &session, &request, payload, cost));
    }
}

/// What all connections of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub volume: Arc<Volume>,
    pub exports: Exports,
    pub options: ServeOptions,
    pub jobs: Jobs<Job>,
    pub is_stopping: AtomicBool,
}

/// Serves a connection until it ends.
pub(super) fn serve(shared: &Shared, id: u64, mut wire: Wire) -> Result<(), ConnectionError> {
    wire.limit(Some(shared.options.handshake))?;
    let Some(session) = negotiate(shared, &mut wire)? else { return Ok(()) };
    let session = Arc::new(session);
    wire.limit(None)?;
    let outbox = Outbox::new(shared.options.in_flight_bytes, shared.options.in_flight_requests);
    let outbox = Arc::new(outbox);
    std::thread::scope(|scope| {
        let sender = {
            let (outbox, mut wire) = (outbox.clone(), wire.clone());
            let send = move || send(&outbox, &mut wire);
            std::thread::Builder::new().name("nbd-send".into()).spawn_scoped(scope, send)?
        };
        let requests = Requests { shared, id, session, outbox: &outbox };
        let read = requests.read_all(&mut BufReader::with_capacity(READ_AHEAD, &mut wire));
        outbox.close();
        // A panic of the sender's would be a bug of its; the connection ends either way.
        let _ = sender.join();
        read
    })
}

/// The handshake, with that of TLS where it is needed; `None`: the client left.
fn negotiate(shared: &Shared, wire: &mut Wire) -> Result<Option<Session>, ConnectionError> {
    let (volume, exports) = (&*shared.volume, &shared.exports);
    let tls = shared.options.tls.as_ref();
    let begun = Negotiation::begin(wire, volume, exports, tls.is_some())?;
    let Some(mut negotiation) = begun else { return Ok(None) };
    let mut outcome = negotiation.run()?;
    let client_flags = negotiation.client_flags();
    if let (Outcome::StartTls, Some(tls)) = (&outcome, tls) {
        wire.begin_tls(tls.begin()?)?;
        // Nothing that was agreed on before counts.
        outcome = Negotiation::go_on(wire, volume, exports, false, client_flags).run()?;
    }
    match outcome {
        Outcome::Session(session) => Ok(Some(session)),
        Outcome::Left | Outcome::StartTls => Ok(None),
    }
}

/// Sends replies until there are no more.
fn send(outbox: &Outbox, wire: &mut Wire) {
    while let Some(replies) = outbox.take() {
        if let Err(error) = send_all(outbox, wire, replies) {
            tracing::debug!(%error, "a reply cannot be sent");
            outbox.break_off();
            wire.shut_down(Shutdown::Both);
            return;
        }
    }
    wire.finish();
}

fn send_all(
    outbox: &Outbox,
    wire: &mut Wire,
    replies: impl IntoIterator<Item = Reply>,
) -> std::io::Result<()> {
    let mut together = Vec::new();
    let mut costs = Vec::new();
    let mut flush = |together: &mut Vec<u8>, costs: &mut Vec<u64>, body: Option<&Room>| {
        let sent = wire.write_all(together);
        let sent = sent.and_then(|()| body.map_or(Ok(()), |body| wire.write_all(body)));
        together.clear();
        // Sent or not, they are done with.
        costs.drain(..).for_each(|cost| outbox.sent(cost));
        sent
    };
    for Reply { head, body, cost } in replies {
        together.extend_from_slice(&head);
        costs.push(cost);
        match body {
            Some(body) if body.len() > TOGETHER / 4 => {
                flush(&mut together, &mut costs, Some(&body))?;
            }
            Some(body) => together.extend_from_slice(&body),
            None => {}
        }
        if together.len() >= TOGETHER {
            flush(&mut together, &mut costs, None)?;
        }
    }
    if together.is_empty() { Ok(()) } else { flush(&mut together, &mut costs, None) }
}

/// Reads a connection's requests.
struct Requests<'c> {
    shared: &'c Shared,
    id: u64,
    session: Arc<Session>,
    outbox: &'c Arc<Outbox>,
}

impl Requests<'_> {
    fn read_all(&self, reader: &mut impl Read) -> Result<(), ConnectionError> {
        loop {
            if self.shared.is_stopping.load(Ordering::Acquire) {
                return Ok(());
            }
            let Some(bytes) = Wire::read_array::<REQUEST_BYTES>(reader)? else { return Ok(()) };
            let request = Request::decode(&bytes)?;
            if request.command == Command::Disconnect {
                return Ok(());
            }
            self.take(&request, reader)?;
        }
    }

    fn take(&self, request: &Request, reader: &mut impl Read) -> Result<(), ConnectionError> {
        let volume = &self.shared.volume;
        let is_write = request.command == Command::Write;
        if is_write && request.length > PAYLOAD_BYTES_MAX {
            // To get past the data would take longer than to connect again.
            return Err(ConnectionError::Refused("a write has more than 32 MiB"));
        }
        let cost = execute::cost(volume, request);
        let broken = ConnectionError::Refused("replies cannot be sent");
        let Ok(()) = self.outbox.admit(cost) else { return Err(broken) };
        let payload = match self.payload(request, reader) {
            Ok(Ok(payload)) => payload,
            Ok(Err(refusal)) => {
                self.outbox.push(refusal.reply(&self.session, request, cost));
                return Ok(());
            }
            Err(error) => {
                self.outbox.withdraw(cost);
                return Err(error.into());
            }
        };
        let (session, outbox) = (self.session.clone(), self.outbox.clone());
        self.shared.jobs.push(self.id, Job { request: *request, session, payload, cost, outbox });
        Ok(())
    }

    /// Checks a request, and reads what it brings.
    fn payload(
        &self,
        request: &Request,
        reader: &mut impl Read,
    ) -> std::io::Result<Result<Option<Room>, Refusal>> {
        let volume = &self.shared.volume;
        let is_write = request.command == Command::Write;
        if let Err(refusal) = execute::check(volume, &self.session, request) {
            if is_write {
                Wire::skip(reader, request.length.into())?;
            }
            return Ok(Err(refusal));
        }
        if !is_write {
            return Ok(Ok(None));
        }
        let mut room = volume.room(request.offset, request.length);
        reader.read_exact(&mut room)?;
        Ok(Ok(Some(room)))
    }
}
