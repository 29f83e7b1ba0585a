//! One connection: its handshake, its requests, and its replies.

use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::ConnectionError;
use super::execute::{self, Refusal};
use super::exports::Exports;
use super::jobs::Jobs;
use super::negotiate::{Negotiation, Outcome};
use super::options::ServeOptions;
use super::outbox::Outbox;
use super::sending::Peer;
use super::session::Session;
use crate::protocol::{Command, PAYLOAD_BYTES_MAX, REQUEST_BYTES, Request};
use crate::volume::{Room, Volume};
use crate::wire::Wire;

/// Maximum number of reads done together, and of their bytes.
const READS_TOGETHER: usize = 16;
const BYTES_TOGETHER: u64 = 1 << 20;
/// Bytes of requests read per system call.
const READ_AHEAD: usize = 16 << 10;

/// A request for the workers.
#[derive(Debug)]
pub(super) struct Job {
    request: Request,
    session: Arc<Session>,
    payload: Option<Room>,
    cost: u64,
    peer: Arc<Peer>,
}

impl Job {
    /// Returns `true` if `next` can be done together with the jobs taken. A few reads can, since
    /// the device does them at the same time.
    pub fn joins(taken: &[Job], next: &Job) -> bool {
        let is_read = |job: &Job| job.request.command == Command::Read;
        let bytes = || taken.iter().map(|job| u64::from(job.request.length)).sum::<u64>();
        taken.len() < READS_TOGETHER
            && is_read(next)
            && taken.first().is_some_and(is_read)
            && bytes() + u64::from(next.request.length) <= BYTES_TOGETHER
    }

    /// Carries out jobs of one connection that were taken together, and replies.
    pub fn run(jobs: Vec<Job>, volume: &Volume) {
        let Some(peer) = jobs.first().map(|job| job.peer.clone()) else { return };
        if jobs.len() > 1 {
            let reads: Vec<_> = jobs.iter().map(|j| (&*j.session, &j.request, j.cost)).collect();
            return peer.reply(execute::execute_reads(volume, &reads));
        }
        for Job { request, session, payload, cost, peer } in jobs {
            peer.reply([execute::execute(volume, &session, &request, payload, cost)]);
        }
    }
}

/// State shared by all connections of a server.
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
    let peer = Arc::new(Peer::new(outbox, wire.clone()));
    std::thread::scope(|scope| {
        let sender = {
            let peer = peer.clone();
            let send = move || peer.send_rest();
            std::thread::Builder::new().name("nbd-send".into()).spawn_scoped(scope, send)?
        };
        let reader = BufReader::with_capacity(READ_AHEAD, &mut wire);
        let requests = Requests { shared, id, session, peer: &peer, reader, jobs: Vec::new() };
        let read = requests.read_all();
        peer.outbox.close();
        // A panic of the sender would be a bug; the connection ends either way.
        let _ = sender.join();
        read
    })
}

/// Runs the handshake, with that of TLS where it is required. `None` if the client left.
fn negotiate(shared: &Shared, wire: &mut Wire) -> Result<Option<Session>, ConnectionError> {
    let (volume, exports) = (&*shared.volume, &shared.exports);
    let tls = shared.options.tls.as_ref();
    let begun = Negotiation::begin(wire, volume, exports, tls.is_some())?;
    let Some(mut negotiation) = begun else { return Ok(None) };
    let mut outcome = negotiation.run()?;
    let client_flags = negotiation.client_flags();
    if let (Outcome::StartTls, Some(tls)) = (&outcome, tls) {
        wire.begin_tls(tls.begin()?)?;
        // Anything agreed on before TLS is void.
        outcome = Negotiation::go_on(wire, volume, exports, false, client_flags).run()?;
    }
    match outcome {
        Outcome::Session(session) => Ok(Some(session)),
        Outcome::Left | Outcome::StartTls => Ok(None),
    }
}

/// Reads a connection's requests.
struct Requests<'c> {
    shared: &'c Shared,
    id: u64,
    session: Arc<Session>,
    peer: &'c Arc<Peer>,
    reader: BufReader<&'c mut Wire>,
    /// Requests read and not handed to the workers yet.
    jobs: Vec<Job>,
}

impl Requests<'_> {
    fn read_all(mut self) -> Result<(), ConnectionError> {
        let read = self.read_on();
        self.hand_over();
        read
    }

    fn read_on(&mut self) -> Result<(), ConnectionError> {
        loop {
            if self.reader.buffer().len() < REQUEST_BYTES {
                // The next request may take its time.
                self.hand_over();
            }
            if self.shared.is_stopping.load(Ordering::Acquire) {
                return Ok(());
            }
            let read = Wire::read_array::<REQUEST_BYTES>(&mut self.reader)?;
            let Some(bytes) = read else { return Ok(()) };
            let request = Request::decode(&bytes)?;
            if request.command == Command::Disconnect {
                return Ok(());
            }
            self.take(&request)?;
        }
    }

    /// Hands the requests read so far to the workers.
    fn hand_over(&mut self) {
        if !self.jobs.is_empty() {
            self.shared.jobs.push(self.id, self.jobs.drain(..));
        }
    }

    fn take(&mut self, request: &Request) -> Result<(), ConnectionError> {
        let volume = &self.shared.volume;
        let is_write = request.command == Command::Write;
        if is_write && request.length > PAYLOAD_BYTES_MAX {
            // Skipping the data would take longer than a new connection.
            return Err(ConnectionError::Refused("a write has more than 32 MiB"));
        }
        let cost = execute::cost(volume, request);
        self.admit(cost)?;
        let payload = match self.payload(request) {
            Ok(Ok(payload)) => payload,
            Ok(Err(refusal)) => {
                self.peer.reply([refusal.reply(&self.session, request, cost)]);
                return Ok(());
            }
            Err(error) => {
                self.peer.outbox.withdraw(cost);
                return Err(error.into());
            }
        };
        let (session, peer) = (self.session.clone(), self.peer.clone());
        self.jobs.push(Job { request: *request, session, payload, cost, peer });
        Ok(())
    }

    fn admit(&mut self, cost: u64) -> Result<(), ConnectionError> {
        let broken = |_| ConnectionError::Refused("replies cannot be sent");
        if !self.peer.outbox.admits(cost).map_err(broken)? {
            // Replies to these make room.
            self.hand_over();
            self.peer.outbox.admit(cost).map_err(broken)?;
        }
        Ok(())
    }

    /// Checks a request, and reads its payload.
    fn payload(&mut self, request: &Request) -> std::io::Result<Result<Option<Room>, Refusal>> {
        let volume = &self.shared.volume;
        let is_write = request.command == Command::Write;
        if let Err(refusal) = execute::check(volume, &self.session, request) {
            if is_write {
                self.hand_over();
                Wire::skip(&mut self.reader, request.length.into())?;
            }
            return Ok(Err(refusal));
        }
        if !is_write {
            return Ok(Ok(None));
        }
        let mut room = volume.room(request.offset, request.length);
        if self.reader.buffer().len() < room.len() {
            self.hand_over();
        }
        self.reader.read_exact(&mut room)?;
        Ok(Ok(Some(room)))
    }
}
