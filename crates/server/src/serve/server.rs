//! Start and stop of a server.

use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, Shutdown};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millpond_base::PastPoison;
use rustix::event::{PollFd, PollFlags, poll};

use super::address::Address;
use super::connection::{self, Job, Shared};
use super::error::ServeError;
use super::exports::Exports;
use super::jobs::Jobs;
use super::listener::Listener;
use super::options::ServeOptions;
use crate::volume::Volume;
use crate::wire::{Socket, Wire};

/// Pause after the operating system ran out of descriptors or threads.
const PAUSE: Duration = Duration::from_millis(100);

/// Counters of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServeCounts {
    /// Accepted connections.
    pub connections: u64,
    /// Refused connections: too many at once, or an address that is not allowed.
    pub refused: u64,
    /// Connections that ended without their client's leave.
    pub broken: u64,
}

/// A volume that is being served. Dropping it stops the server.
#[derive(Debug)]
pub struct Server {
    inner: Arc<Inner>,
    address: Address,
    workers: Vec<JoinHandle<()>>,
    accepting: Option<JoinHandle<()>>,
    wake: UnixStream,
    is_stopped: bool,
}

#[derive(Debug)]
struct Inner {
    shared: Shared,
    connections: Mutex<HashMap<u64, Arc<Socket>>>,
    gone: Condvar,
    next: AtomicU64,
    refused: AtomicU64,
    broken: AtomicU64,
}

impl Inner {
    fn connections(&self) -> MutexGuard<'_, HashMap<u64, Arc<Socket>>> {
        // Nothing below can panic between two steps.
        self.connections.lock().past_poison()
    }

    fn is_stopping(&self) -> bool {
        self.shared.is_stopping.load(Ordering::Acquire)
    }
}

impl Server {
    /// Serves `volume` at `address`.
    ///
    /// # Errors
    /// An option is invalid, the address is in use, or the operating system refuses.
    pub fn start(
        volume: Arc<Volume>,
        address: &Address,
        options: ServeOptions,
    ) -> Result<Server, ServeError> {
        options.check()?;
        if !address.is_local() && options.tls.is_none() {
            return Err(ServeError::NotLocal { address: address.clone() });
        }
        // The permissions of a Unix socket's file decide who may use it.
        let tls = options.tls.clone().filter(|_| matches!(address, Address::Tcp(_)));
        let options = ServeOptions { tls, ..options };
        let listener = Listener::bind(address)?;
        let bound = listener.address(address);
        let (exports, workers) = (Exports::new(&options.name), options.workers.max(1));
        let jobs = Jobs::new(workers);
        let is_stopping = AtomicBool::new(false);
        let inner = Arc::new(Inner {
            shared: Shared { volume, exports, options, jobs, is_stopping },
            connections: Mutex::default(),
            gone: Condvar::new(),
            next: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            broken: AtomicU64::new(0),
        });
        let failed = |error| ServeError::Thread { error };
        let (wake, woken) = UnixStream::pair().map_err(failed)?;
        let mut server = Server {
            inner,
            address: bound,
            workers: Vec::new(),
            accepting: None,
            wake,
            is_stopped: false,
        };
        for _ in 0..workers {
            let inner = server.inner.clone();
            let worker = spawn("nbd-work", move || work(&inner.shared)).map_err(failed)?;
            server.workers.push(worker);
        }
        let (inner, at) = (server.inner.clone(), server.address.clone());
        let accept = move || {
            accept_all(&inner, &listener, &woken);
            listener.remove(&at);
        };
        server.accepting = Some(spawn("nbd-accept", accept).map_err(failed)?);
        Ok(server)
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Serves an already connected client, as if it had connected to the address.
    pub fn attach(&self, client: UnixStream) {
        let_in(&self.inner, Socket::Unix(client), None);
    }

    /// Returns the number of current connections.
    pub fn connections(&self) -> usize {
        self.inner.connections().len()
    }

    /// Returns the server's counters.
    pub fn counts(&self) -> ServeCounts {
        ServeCounts {
            connections: self.inner.next.load(Ordering::Relaxed),
            refused: self.inner.refused.load(Ordering::Relaxed),
            broken: self.inner.broken.load(Ordering::Relaxed),
        }
    }

    /// Stops the server: accepts no more connections, finishes the requests that were read, and
    /// returns once none is in progress. Clients that do not read their replies within the grace
    /// time lose them. The volume is neither flushed nor closed.
    pub fn stop(mut self) -> ServeCounts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.is_stopped, true) {
            return;
        }
        self.inner.shared.is_stopping.store(true, Ordering::Release);
        // The listener checks the flag when this becomes readable. It ends before connections are
        // counted, so that none is added later.
        let _ = self.wake.write_all(&[0]);
        self.accepting.take().map(JoinHandle::join);
        self.inner.connections().values().for_each(|socket| socket.shut_down(Shutdown::Read));
        self.wait_for_connections(self.inner.shared.options.grace);
        self.inner.connections().values().for_each(|socket| socket.shut_down(Shutdown::Both));
        self.wait_for_connections(Duration::MAX);
        self.inner.shared.jobs.close();
        for thread in self.workers.drain(..) {
            // A panic of a worker would be a bug; the others go on.
            let _ = thread.join();
        }
    }

    fn wait_for_connections(&self, most: Duration) {
        let deadline = Instant::now().checked_add(most);
        let mut connections = self.inner.connections();
        while !connections.is_empty() {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return;
            }
            let pause = left.unwrap_or(PAUSE).min(PAUSE);
            let waited = self.inner.gone.wait_timeout(connections, pause);
            connections = waited.past_poison().0;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(run)
}

fn work(shared: &Shared) {
    while let Some((id, jobs)) = shared.jobs.take(Job::joins) {
        Job::run(jobs, &shared.volume);
        let is_quiet = shared.jobs.done(id);
        shared.volume.write_waiting(is_quiet);
    }
}

fn accept_all(inner: &Arc<Inner>, listener: &Listener, woken: &UnixStream) {
    while !inner.is_stopping() {
        let mut ready = [
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN),
        ];
        if let Err(error) = poll(&mut ready, None)
            && error != rustix::io::Errno::INTR
        {
            std::thread::sleep(PAUSE);
        }
        if inner.is_stopping() {
            return;
        }
        match listener.accept() {
            Ok((socket, peer)) => let_in(inner, socket, peer),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Serves a new connection on a thread of its own, unless there are too many.
fn let_in(inner: &Arc<Inner>, socket: Socket, peer: Option<IpAddr>) {
    let options = &inner.shared.options;
    let is_allowed =
        |peer: IpAddr| options.allow.is_empty() || options.allow.iter().any(|p| p.contains(peer));
    if !peer.is_none_or(is_allowed) {
        tracing::info!(?peer, "a connection is refused: its address is not on the list");
        inner.refused.fetch_add(1, Ordering::Relaxed);
        return;
    }
    socket.tune();
    let socket = Arc::new(socket);
    let id = {
        let mut connections = inner.connections();
        if connections.len() >= options.connections {
            tracing::info!(?peer, "a connection is refused: there are as many as there may be");
            inner.refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let id = inner.next.fetch_add(1, Ordering::Relaxed);
        connections.insert(id, socket.clone());
        id
    };
    let serving = inner.clone();
    let serve = move || {
        let served = connection::serve(&serving.shared, id, Wire::new(socket.clone()));
        if let Err(error) = served {
            tracing::debug!(id, ?peer, %error, "a connection broke");
            serving.broken.fetch_add(1, Ordering::Relaxed);
        }
        socket.shut_down(Shutdown::Both);
        serving.connections().remove(&id);
        serving.gone.notify_all();
    };
    if let Err(error) = spawn("nbd-read", serve) {
        tracing::warn!(%error, "no thread for a connection");
        inner.connections().remove(&id);
        inner.gone.notify_all();
        std::thread::sleep(PAUSE);
    }
}
