//! A database system above a file cache above a device, in a closed loop.
//!
//! Clients run transactions one after the other. A transaction takes its processor and log time,
//! and then sends the requests of a simulated first tier, in the order of the trace. A READ that
//! misses the file cache waits for the device. Writes go into the file cache. Dsync requests among
//! them make the writes durable: a run of them is one call, for all its pages.
//!
//! - A call for a page that was just written for replacement is the page cleaner's, which makes
//!   such calls one after the other. Clients wait for the page cleaner only if too many calls are
//!   queued. A call for a SYNCH write is the client's own.
//! - All other calls are the checkpointer's. A transaction with such a call waits while the
//!   checkpointer is busy for an earlier transaction, and no other transaction starts: the log is
//!   full.
//! - The kernel writes batches in the background while the file cache is dirtier than its limit. If
//!   almost all of it is dirty, no transaction starts.
//!
//! Calls wait for their own writes, not for writes that the kernel started before.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use millpond_base::{Mark, Reason};
use millpond_workload::trace::TraceError;

use super::actor::Actor;
use super::device::Device;
use super::file_cache::FileCache;
use super::meter::Meter;
use super::request::{Nanos, Request, merged};

/// Transactions as storage requests.
pub trait Requests {
    /// Appends the requests of the next transaction; returns `false` if there is none.
    ///
    /// # Errors
    /// As [`millpond_workload::trace::Source::fill`].
    fn next(&mut self, rows: &mut Vec<(u64, Mark)>) -> Result<bool, TraceError>;
}

/// Options of a system.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SystemOptions {
    /// Number of clients, at least 1.
    pub clients: usize,
    /// Sectors of a page.
    pub page_sectors: u64,
    /// Time of a transaction outside storage: processor and log.
    pub think: Nanos,
    /// Number of queued calls of the page cleaner above which clients wait.
    pub backlog: usize,
    /// Pages of the file cache.
    pub cache: usize,
    /// Share of the file cache that may be dirty before the kernel writes in the background.
    pub dirty: f64,
    /// Pages per batch of the kernel.
    pub batch: usize,
    /// `true` if a batch takes the least recently used pages, `false` if it follows the disk order.
    pub by_last_use: bool,
}

/// Dirty share of the file cache above which no transaction starts.
const DIRTY_MOST: f64 = 0.95;

/// Measurements of a system.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct SystemStat {
    /// Transactions.
    pub transactions: u64,
    /// Time of the transactions.
    pub time: Nanos,
    /// Counts of the device during that time.
    pub meter: Meter,
    /// Pages written into the file cache.
    pub writes: u64,
    /// READ requests.
    pub reads: u64,
    /// READ requests that hit the file cache.
    pub read_hits: u64,
    /// Number of checkpointer calls that wrote something.
    pub syncs: u64,
    /// Pages written by these calls.
    pub synced: u64,
    /// Pages that the kernel wrote in the background.
    pub background: u64,
    /// Dirty pages of the file cache at the end.
    pub left_dirty: u64,
}

/// Owner of a device request.
#[derive(Clone, Copy)]
enum Owner {
    Client(usize, u64),
    Actor(usize),
}

const CHECKPOINTER: usize = 0;
const CLEANER: usize = 1;
const KERNEL: usize = 2;

/// A client: its transaction, and its position in it.
#[derive(Default)]
struct Client {
    number: u64,
    rows: Vec<(u64, Mark)>,
    at: usize,
}

/// A system with its state.
pub struct System<'a> {
    options: SystemOptions,
    device: &'a mut dyn Device,
    requests: &'a mut dyn Requests,
    cache: FileCache,
    clients: Vec<Client>,
    /// The checkpointer, the page cleaner, the kernel, and one actor for each client.
    actors: Vec<Actor>,
    /// Clients that continue at some time.
    due: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    at_gate: Vec<usize>,
    owners: HashMap<u64, Owner>,
    ids: u64,
    now: Nanos,
    stat: SystemStat,
    begun: u64,
}

impl<'a> System<'a> {
    /// Creates a system with an empty file cache, whose clients are about to start.
    pub fn new(
        options: SystemOptions,
        device: &'a mut dyn Device,
        requests: &'a mut dyn Requests,
    ) -> System<'a> {
        let clients = options.clients.max(1);
        let limit = (options.cache as f64 * options.dirty) as usize;
        let mut cache = FileCache::new(options.cache, limit, options.batch);
        if options.by_last_use {
            cache = cache.by_last_use();
        }
        System {
            cache,
            clients: (0..clients).map(|_| Client::default()).collect(),
            actors: (0..KERNEL + 1 + clients).map(|_| Actor::default()).collect(),
            due: (0..clients).map(|client| Reverse((0, client as u64, client))).collect(),
            at_gate: Vec::new(),
            owners: HashMap::new(),
            ids: clients as u64,
            now: 0,
            stat: SystemStat::default(),
            begun: 0,
            options,
            device,
            requests,
        }
    }

    /// Runs `warm` transactions and then `count`, or all if there are fewer, and measures the
    /// latter.
    ///
    /// # Errors
    /// Errors of the requests.
    pub fn run(&mut self, warm: u64, count: u64) -> Result<SystemStat, TraceError> {
        let mut done = Vec::new();
        let (mut then, mut then_at) = (SystemStat::default(), 0);
        let mut is_warm = warm == 0;
        while self.stat.transactions < warm + count {
            let client = self.due.peek().map(|Reverse((at, ..))| *at);
            let Some(next) = self.device.next().into_iter().chain(client).min() else { break };
            self.now = self.now.max(next);
            self.device.advance(self.now, &mut done);
            for id in done.drain(..) {
                self.request_done(id)?;
            }
            while let Some(Reverse((at, _, client))) = self.due.peek().copied()
                && at <= self.now
            {
                self.due.pop();
                self.go_on(client)?;
            }
            self.open_gate();
            if !is_warm && self.stat.transactions >= warm {
                is_warm = true;
                (then, then_at) = (self.stat, self.now);
            }
        }
        Ok(self.measured(&then, then_at))
    }

    fn measured(&self, then: &SystemStat, then_at: Nanos) -> SystemStat {
        let now = self.stat;
        SystemStat {
            transactions: now.transactions - then.transactions,
            time: self.now - then_at,
            meter: now.meter.since(&then.meter, then_at, self.now),
            writes: now.writes - then.writes,
            reads: now.reads - then.reads,
            read_hits: now.read_hits - then.read_hits,
            syncs: now.syncs - then.syncs,
            synced: now.synced - then.synced,
            background: now.background - then.background,
            left_dirty: self.cache.dirty_pages() as u64,
        }
    }

    fn wake(&mut self, client: usize, at: Nanos) {
        self.ids += 1;
        self.due.push(Reverse((at, self.ids, client)));
    }

    fn is_gate_open(&self) -> bool {
        let most = self.options.cache as f64 * DIRTY_MOST;
        (self.cache.dirty_pages() as f64) < most && self.actors[CHECKPOINTER].waiting.is_empty()
    }

    fn open_gate(&mut self) {
        if !self.at_gate.is_empty() && self.is_gate_open() {
            for client in std::mem::take(&mut self.at_gate) {
                self.wake(client, self.now);
            }
        }
    }

    fn send(&mut self, sector: u64, sectors: u64, is_write: bool, owner: Owner) {
        self.ids += 1;
        let request = Request { sector, sectors, is_write, id: self.ids };
        self.owners.insert(self.ids, owner);
        self.stat.meter.sent(self.now, &request);
        self.device.submit(self.now, request);
    }

    fn request_done(&mut self, id: u64) -> Result<(), TraceError> {
        self.stat.meter.done(self.now);
        match self.owners.remove(&id) {
            None => Ok(()),
            Some(Owner::Client(client, page)) => {
                self.cache.fill(page);
                self.go_on(client)
            }
            Some(Owner::Actor(actor)) => {
                if self.actors[actor].done() {
                    self.work(actor);
                }
                Ok(())
            }
        }
    }

    /// Runs an actor's next jobs, until one has writes to wait for.
    fn work(&mut self, actor: usize) {
        while let Some(pages) = self.next_job(actor) {
            let writes = merged(&pages, self.options.page_sectors);
            self.actors[actor].sent(writes.len());
            for (sector, sectors) in writes {
                self.send(sector, sectors, true, Owner::Actor(actor));
            }
        }
        let is_free = match actor {
            CLEANER => self.actors[actor].backlog() <= self.options.backlog,
            _ => self.actors[actor].is_idle(),
        };
        if is_free {
            for client in std::mem::take(&mut self.actors[actor].waiting) {
                self.wake(client, self.now);
            }
        }
    }

    /// Returns the pages that the next job writes; `None` if there is no job, or one is running.
    fn next_job(&mut self, actor: usize) -> Option<Vec<u64>> {
        if actor == KERNEL {
            let batch = match self.actors[KERNEL].is_at_work() {
                true => Vec::new(),
                false => self.cache.background(),
            };
            self.stat.background += batch.len() as u64;
            return Some(batch).filter(|batch| !batch.is_empty());
        }
        let pages = self.actors[actor].next_job()?;
        let due = self.cache.sync(&pages);
        if actor == CHECKPOINTER && !due.is_empty() {
            self.stat.syncs += 1;
            self.stat.synced += due.len() as u64;
        }
        Some(due)
    }

    /// Continues a client's transaction, or starts its next one.
    fn go_on(&mut self, client: usize) -> Result<(), TraceError> {
        if self.clients[client].rows.is_empty() {
            if !self.is_gate_open() {
                self.at_gate.push(client);
                return Ok(());
            }
            if !self.begin(client)? {
                return Ok(());
            }
        }
        while self.clients[client].at < self.clients[client].rows.len() {
            if !self.step(client) {
                return Ok(());
            }
        }
        self.clients[client].rows.clear();
        self.stat.transactions += 1;
        self.wake(client, self.now + self.options.think);
        Ok(())
    }

    fn begin(&mut self, client: usize) -> Result<bool, TraceError> {
        self.begun += 1;
        let state = &mut self.clients[client];
        state.number = self.begun;
        state.at = 0;
        // A transaction may need nothing from storage; a client without requests has no
        // transaction.
        let there = self.requests.next(&mut state.rows)?;
        if there && state.rows.is_empty() {
            self.stat.transactions += 1;
            self.wake(client, self.now + self.options.think);
            return Ok(false);
        }
        Ok(there)
    }

    /// Processes one request of a transaction, or a run of dsync requests; returns `true` if the
    /// client can continue immediately.
    fn step(&mut self, client: usize) -> bool {
        let state = &self.clients[client];
        let (page, mark) = state.rows[state.at];
        match (mark.is_write(), mark.reason()) {
            (false, _) => self.read(client, page),
            (true, Reason::Dsync) => self.dsync(client),
            (true, reason) => {
                if reason == Reason::Recov && self.must_wait(client) {
                    return false;
                }
                self.clients[client].at += 1;
                self.stat.writes += 1;
                self.cache.write(page);
                self.work(KERNEL);
                true
            }
        }
    }

    fn read(&mut self, client: usize, page: u64) -> bool {
        self.clients[client].at += 1;
        self.stat.reads += 1;
        if self.cache.read(page) {
            self.stat.read_hits += 1;
            return true;
        }
        let sectors = self.options.page_sectors;
        self.send(page * sectors, sectors, false, Owner::Client(client, page));
        false
    }

    /// Returns `true` if the checkpointer is still busy for an earlier transaction; the client then
    /// waits.
    fn must_wait(&mut self, client: usize) -> bool {
        let number = self.clients[client].number;
        let checkpointer = &mut self.actors[CHECKPOINTER];
        if !checkpointer.is_idle() && checkpointer.of != number {
            checkpointer.waiting.push(client);
            return true;
        }
        checkpointer.of = number;
        false
    }

    /// Makes a call for the pages of a run of dsync requests; returns `true` if the client can
    /// continue immediately.
    fn dsync(&mut self, client: usize) -> bool {
        let state = &self.clients[client];
        let run = state.rows[state.at..].iter().take_while(|(_, mark)| mark.is_dsync());
        let pages: Vec<u64> = run.map(|(page, _)| *page).collect();
        let before = state.at.checked_sub(1).map(|at| state.rows[at]);
        let own = before.filter(|(page, mark)| mark.is_write() && pages == [*page]);
        let actor = match own.map(|(_, mark)| mark.reason()) {
            Some(Reason::Replace) => CLEANER,
            Some(Reason::Synch) => KERNEL + 1 + client,
            _ => CHECKPOINTER,
        };
        if actor == CHECKPOINTER && self.must_wait(client) {
            return false;
        }
        self.clients[client].at += pages.len();
        self.actors[actor].give(pages);
        self.work(actor);
        let is_busy = match actor {
            CHECKPOINTER => false,
            CLEANER => self.actors[CLEANER].backlog() > self.options.backlog,
            _ => !self.actors[actor].is_idle(),
        };
        if is_busy {
            self.actors[actor].waiting.push(client);
        }
        !is_busy
    }
}

#[cfg(test)]
mod tests;
