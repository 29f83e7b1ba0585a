//! A store's life from its making to its last check: it is opened, used, and the power fails,
//! again and again.
//!
//! After most crashes the devices' contents are drawn twice, with the same outcome. One of the two
//! stores is recovered without another crash, compared, closed and checked; with the other the
//! story goes on, and whatever happens to its recovery, it must come to the same contents.

use fastrand::Rng;
use millpond_device::{Aim, Device, Fault, Faults, MemoryDevice, PowerSupply};

use crate::common::{COMMON, Common, counter, own_group, tag_of};
use crate::oracle::{Change, State, Tree};
use crate::plan::{Blow, FailurePhase, Forced, Kind, Plan, Start, pick};
use crate::subject::{Devices, Failure, Store, Subject};
use crate::worker::{Life, SHARED, Stop, Worker, wrong};

/// Numbers of the devices.
const DATA: usize = 0;
const LOG: usize = 1;

/// Recoveries in a row that may crash.
const DEPTH_MAX: usize = 4;

/// Counts of one story, or of several.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub stories: u64,
    pub lives: u64,
    /// Crashes: in the run, in recovery, in the recovery from a crash of recovery.
    pub crashes: [u64; 3],
    /// Processes that died while the machine went on.
    pub deaths: u64,
    /// Operations that failed while the power was on.
    pub faults: u64,
    pub closes: u64,
    /// Stores that were closed and checked from end to end.
    pub checks: u64,
    pub commits: u64,
    pub aborts: u64,
    pub reads: u64,
    pub backups: u64,
    /// Transactions that were undone on a full disk.
    pub crowded: u64,
    /// Openings that were refused since the data file was missing.
    pub refused: u64,
    /// Operations of the devices.
    pub operations: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.stories += other.stories;
        self.lives += other.lives;
        for (sum, crashes) in self.crashes.iter_mut().zip(other.crashes) {
            *sum += crashes;
        }
        self.deaths += other.deaths;
        self.faults += other.faults;
        self.closes += other.closes;
        self.checks += other.checks;
        self.commits += other.commits;
        self.aborts += other.aborts;
        self.reads += other.reads;
        self.backups += other.backups;
        self.crowded += other.crowded;
        self.refused += other.refused;
        self.operations += other.operations;
    }
}

/// Devices, and the power that they share.
pub(crate) struct World {
    pub(crate) supply: PowerSupply,
    pub(crate) devices: Devices,
    /// Contents of the cache's device after former crashes.
    older: Vec<Vec<u8>>,
}

impl World {
    fn new() -> World {
        let supply = PowerSupply::new();
        let data = supply.device("data", MemoryDevice::new());
        let log = supply.device("log", MemoryDevice::new());
        let fast = supply.device("fast", MemoryDevice::new());
        World { supply, devices: Devices { data, log, fast }, older: Vec::new() }
    }

    /// Returns a world that a crash may leave.
    fn crashed(&self, seed: u64, keeps_fast: bool) -> World {
        let (supply, devices) = self.supply.images(seed);
        // Of several for a cache, the newest one was in use.
        let [data, log, .., fast] = &devices[..] else { unreachable!("as many as there were") };
        let mut older = self.older.clone();
        let mut bytes = vec![0; fast.length() as usize];
        fast.read(0, &mut bytes).expect("a new device works");
        older.push(bytes);
        // The cache's device may be another one by now: a new one, or one from an earlier time.
        let mut random = Rng::with_seed(!seed);
        let fast = match random.u8(..4) {
            // It is a part of the store.
            _ if keeps_fast => fast.clone(),
            0 => supply.device("fast", MemoryDevice::new()),
            1 => {
                let bytes = &older[random.usize(..older.len())];
                supply.device("fast", MemoryDevice::from_bytes(bytes))
            }
            _ => fast.clone(),
        };
        let devices = Devices { data: data.clone(), log: log.clone(), fast };
        World { supply, devices, older }
    }
}

pub(crate) struct Story<'a> {
    pub(crate) subject: &'a dyn Subject,
    pub(crate) plan: Plan,
    pub(crate) forced: Option<Forced>,
    /// `true` once the forced failure has happened.
    is_done: bool,
    random: Rng,
    /// The disk was full in this life: the log may take nothing more, and closing may fail.
    pub(crate) is_crowded: bool,
    /// Decides the operations on a store from outside.
    pub(crate) outside: Rng,
    pub(crate) world: World,
    workers: Vec<Worker>,
    common: Common,
    pub(crate) tally: Tally,
    /// Crashes since the store was open the last time.
    depth: usize,
    /// State that the next recovery must restore.
    awaited: Option<State>,
    /// Events between the workers' lives.
    events: Vec<String>,
}

/// Tells the story of `seed`.
///
/// # Errors
/// The failure of the story, with all that is known.
pub fn tell(subject: &dyn Subject, seed: u64) -> Result<Tally, String> {
    let mut random = Rng::with_seed(seed);
    let plan = Plan::of(seed, &mut random);
    Ok(Story::new(subject, plan, random, None).told()?.0)
}

/// Tells a short story of `seed` in which one thing goes wrong; and whether it came to that.
///
/// # Errors
/// The failure of the story, unless the forced one explains it.
pub fn tell_forced(
    subject: &dyn Subject,
    seed: u64,
    forced: Forced,
) -> Result<(Tally, bool), String> {
    let mut random = Rng::with_seed(seed);
    let plan = Plan::forced(seed, &mut random, forced);
    Story::new(subject, plan, random, Some(forced)).told()
}

impl<'a> Story<'a> {
    fn new(subject: &'a dyn Subject, plan: Plan, random: Rng, forced: Option<Forced>) -> Story<'a> {
        let workers = (0..plan.threads()).map(|id| Worker::new(id, &plan)).collect();
        Story {
            subject,
            forced,
            is_done: false,
            random,
            is_crowded: false,
            outside: Rng::with_seed(plan.seed ^ 0x5EED),
            world: World::new(),
            workers,
            common: Common::default(),
            plan,
            tally: Tally { stories: 1, ..Tally::default() },
            depth: 0,
            awaited: None,
            events: Vec::new(),
        }
    }

    fn told(mut self) -> Result<(Tally, bool), String> {
        self.tell().map_err(|what| self.report(&what))?;
        for worker in &self.workers {
            self.tally.commits += worker.done.commits;
            self.tally.aborts += worker.done.aborts;
            self.tally.reads += worker.done.reads;
            self.tally.backups += worker.done.backups;
        }
        Ok((self.tally, self.is_done))
    }
}

impl Story<'_> {
    fn report(&self, what: &str) -> String {
        let mut text = format!("{what}\n  {:?}", self.plan);
        text += &format!("\n  the story:\n    {}", self.events.join("\n    "));
        for worker in &self.workers {
            text += &format!("\n  last of worker {}:\n    {}", worker.id, worker.events());
        }
        text
    }

    fn is_forced_at(&self, place: FailurePhase) -> bool {
        self.forced.is_some_and(|forced| forced.place == place)
    }

    pub(crate) fn note(&mut self, event: String) {
        for worker in &mut self.workers {
            worker.note(format!("[{event}]"));
        }
        self.events.push(event);
    }

    fn tell(&mut self) -> Result<(), String> {
        self.make()?;
        for _ in 0..self.plan.lives {
            let (store, was_due) = self.open()?;
            self.live(store, was_due)?;
        }
        self.world.supply.spare();
        let store = self.recover()?;
        let settled = self.settle(&*store);
        settled.map_err(|stop| format!("at the end: {stop:?}"))?;
        self.close_and_check(store)
    }

    /// The trees that are there from the beginning.
    fn all_trees(&self) -> Vec<&'static str> {
        let common = self.subject.has_extras().then_some(COMMON);
        SHARED.into_iter().chain(common).collect()
    }

    /// A new store with the trees that all use.
    fn make(&mut self) -> Result<(), String> {
        let mut tries = 0;
        while self.forced.is_none() && self.subject.may_fail_early() && self.random.bool() {
            self.make_and_crash()?;
            tries += 1;
            if tries == 3 {
                break;
            }
        }
        let store = self.recover()?;
        let there = store.contents().map_err(|failure| format!("unreadable: {}", failure.text))?;
        let all = self.all_trees();
        let is_beginning = all.iter().take(there.len()).all(|tree| there.contains_key(*tree));
        if !is_beginning || there.values().any(|tree| !tree.is_empty()) {
            return Err(format!("a store that was being made has {:?} in it", there.keys()));
        }
        let made = all.iter().skip(there.len()).try_for_each(|tree| store.create_tree(tree));
        made.map_err(|failure| format!("making trees failed: {}", failure.text))?;
        self.workers.iter_mut().for_each(Worker::begin_with_shared_trees);
        if self.forced.is_none() && self.subject.has_extras() {
            let grown = self.grow(&*store);
            grown.map_err(|failure| format!("growing the store failed: {}", failure.text))?;
        }
        self.close_and_check(store)
    }

    /// Fills a store that is to be large once, with rows behind what is dropped again: then there
    /// are many page ids and few pages.
    fn grow(&mut self, store: &dyn Store) -> Result<(), Failure> {
        let bytes = self.plan.once_bytes();
        if bytes == 0 {
            return Ok(());
        }
        let (tree, entries) = self.workers[0].large_tree(bytes);
        store.create_tree(&tree)?;
        store.load(&tree, &entries)?;
        for worker in &mut self.workers {
            worker.settle_in(store)?;
        }
        let what = self.random.u8(..4);
        self.note(format!("{bytes} bytes in {tree}; then {what}"));
        if what == 0 {
            let name = tree.clone();
            let changes = vec![Change::Create { tree }, Change::Load { tree: name, entries }];
            self.workers[0].oracle.committed(changes, true);
            return Ok(());
        }
        store.drop_tree(&tree)?;
        if what > 1 {
            store.shrink()?;
        }
        Ok(())
    }

    /// Makes a store, or goes on with one that was not made to its end, and the power fails.
    fn make_and_crash(&mut self) -> Result<(), String> {
        let at = pick(&mut self.random, &[3, 12, 40, 100]);
        let at = self.random.u64(1..=at);
        self.note(format!("the power fails at operation {at} of making the store"));
        self.world.supply.cut_at(at);
        let (start, all) = (self.start(), self.all_trees());
        let made = self.subject.open(&self.world.devices, &start).and_then(|store| {
            let there = store.contents()?;
            let missing = all.iter().filter(|tree| !there.contains_key(**tree));
            missing.into_iter().try_for_each(|tree| store.create_tree(tree))?;
            self.world.supply.cut();
            Ok(())
        });
        match made {
            Err(failure) if !self.world.supply.is_off() => {
                return Err(format!("making the store failed: {}", failure.text));
            }
            _ => {}
        }
        self.tally.operations += self.world.supply.operations();
        self.tally.crashes[0] += 1;
        let seed = self.random.u64(..);
        let before = std::mem::replace(&mut self.world, World::new());
        self.world = before.crashed(seed, self.plan.writes_back());
        Ok(())
    }

    fn close_and_check(&mut self, store: Box<dyn Store>) -> Result<(), String> {
        let failed = |what, failure: Failure| format!("{what} failed: {}", failure.text);
        let is_at_rest = store.close().map_err(|failure| failed("closing", failure))?;
        self.tally.closes += 1;
        self.flushed();
        if !is_at_rest {
            return Ok(());
        }
        self.tally.checks += 1;
        let checked = self.subject.check(&self.world.devices);
        checked.map_err(|failure| failed("the check", failure))
    }

    /// Everything so far is durable.
    fn flushed(&mut self) {
        self.workers.iter_mut().for_each(|worker| worker.oracle.flushed());
        self.common.flushed(self.common.moment());
    }

    /// Lets the power fail, or an operation, some time soon; in a story where one thing is forced,
    /// that, at its place.
    fn arm(&mut self, place: FailurePhase, limits: &[u64]) {
        if let Some(Forced { blow, at, .. }) = self.forced.filter(|forced| forced.place == place) {
            self.note(format!("operation {at} from now: {blow:?}"));
            match blow {
                Blow::Cut => self.world.supply.cut_at(at),
                Blow::Fails(fault) => self.world.supply.fail_at(at, fault),
            }
            return;
        }
        // What was planned before is not to happen as well.
        self.world.supply.spare();
        let limit = pick(&mut self.random, limits);
        let at = self.random.u64(1..=limit);
        let fault = [Fault::Error, Fault::DiskFull][usize::from(self.random.bool())];
        let may_fail = self.plan.kind == Kind::Faults && self.forced.is_none();
        let fails = may_fail && self.random.u8(..4) > 0;
        let fault = fails.then_some(fault);
        if self.plan.is_restless || self.random.u8(..3) == 0 {
            return self.take_aim(fault);
        }
        match fault {
            Some(fault) => {
                self.note(format!("operation {at} from now fails: {fault:?}"));
                self.world.supply.fail_at(at, fault);
            }
            None => {
                self.note(format!("the power fails at operation {at} from now"));
                self.world.supply.cut_at(at);
            }
        }
    }

    /// Lets the power fail, or an operation, where most depends on it.
    fn take_aim(&mut self, fault: Option<Fault>) {
        let below = u64::from(self.plan.page_size);
        let aims = [
            Aim::SyncOf { device: DATA, below },
            Aim::Write { device: DATA, below },
            Aim::Sync { device: DATA },
            Aim::Sync { device: LOG },
        ];
        let aims = match fault {
            _ if self.plan.is_restless => &aims[..1],
            // A log that could not be synced, and was written, is the worst that can be.
            Some(_) if self.random.bool() => &aims[3..],
            _ => &aims[..],
        };
        let aim = pick(&mut self.random, aims);
        let last = pick(&mut self.random, &[2, 6, 20]);
        let nth = self.random.u64(1..=last);
        self.note(format!("{aim:?}, number {nth} from now: {fault:?} or no power"));
        match fault {
            Some(fault) => self.world.supply.fail_at_aim(aim, nth, fault),
            None => self.world.supply.cut_at_aim(aim, nth),
        }
    }

    pub(crate) fn start(&mut self) -> Start {
        let latency_us_max = self.plan.latency_us_max;
        for device in [&self.world.devices.data, &self.world.devices.log] {
            device.set_faults(Faults { latency_us_max, ..Faults::default() });
        }
        let start = Start::draw(&self.plan, &mut self.random);
        self.note(format!("open {start:?}"));
        start
    }

    /// Opens a store that must open.
    fn recover(&mut self) -> Result<Box<dyn Store>, String> {
        let start = self.start();
        let opened = self.subject.open(&self.world.devices, &start);
        opened.map_err(|failure| format!("does not open: {}", failure.text))
    }

    /// Opens the store, while the power may fail. Returns, besides the store, whether an operation
    /// was to fail that the life to come may meet.
    fn open(&mut self) -> Result<(Box<dyn Store>, bool), String> {
        loop {
            self.world.supply.spare();
            let may_fail = match self.forced {
                Some(_) => self.is_forced_at(FailurePhase::Recovery) && self.depth == 1,
                None => self.depth < DEPTH_MAX && self.random.u8(..5) < 2,
            };
            if may_fail {
                self.arm(FailurePhase::Recovery, &[4, 20, 100, 400]);
            }
            let was_due = self.world.supply.is_fault_due();
            let start = self.start();
            let failure = match self.subject.open(&self.world.devices, &start) {
                Ok(store) => {
                    if self.is_forced_at(FailurePhase::Recovery) {
                        let supply = &self.world.supply;
                        self.is_done |= supply.is_off() || was_due && !supply.is_fault_due();
                        supply.spare();
                        return Ok((store, false));
                    }
                    return Ok((store, was_due));
                }
                Err(failure) => failure,
            };
            let has_struck = was_due && !self.world.supply.is_fault_due();
            if !self.world.supply.is_off() && !has_struck {
                return Err(format!("does not open: {}", failure.text));
            }
            self.is_done = true;
            self.note(format!("opening failed: {}", failure.text));
            self.crash()?;
        }
    }

    /// The power fails, if it did not before.
    fn crash(&mut self) -> Result<(), String> {
        self.tally.operations += self.world.supply.operations();
        self.tally.crashes[self.depth.min(2)] += 1;
        self.depth += 1;
        let seed = self.random.u64(..);
        self.note(format!("crash {} at operation {}", self.depth, self.world.supply.operations()));
        let before = std::mem::replace(&mut self.world, World::new());
        if self.random.u8(..3) > 0 {
            self.world = before.crashed(seed, self.plan.writes_back());
            self.open_without_data()?;
            self.lengthen();
            let found = self.audit()?;
            if self.awaited.as_ref().is_some_and(|awaited| *awaited != found) {
                return Err("recovery crashed, and the next one found something else".into());
            }
            self.awaited = Some(found);
        }
        self.world = before.crashed(seed, self.plan.writes_back());
        self.lengthen();
        Ok(())
    }

    /// Recovers from a crash without another one, and looks at everything.
    fn audit(&mut self) -> Result<State, String> {
        let failed = |what, failure: Failure| format!("{what} after a crash: {}", failure.text);
        let store = self.recover()?;
        let found = store.contents().map_err(|failure| failed("reading", failure))?;
        self.expected_only(&found)?;
        for worker in &self.workers {
            worker.oracle.allows(&worker.part_of(&found))?;
        }
        self.common.allows(&self.common_of(&found)?)?;
        if store.close().map_err(|failure| failed("closing", failure))? {
            let checked = self.subject.check(&self.world.devices);
            checked.map_err(|failure| failed("the check", failure))?;
            self.tally.checks += 1;
        }
        // What was closed opens, and has the same in it.
        let store = self.recover()?;
        let again = store.contents().map_err(|failure| failed("reading again", failure))?;
        if again != found {
            return Err("closed after a crash, and opened with other contents".into());
        }
        store.close().map_err(|failure| failed("closing again", failure))?;
        Ok(found)
    }

    /// Returns the tree of the keys that all threads write, after a check: each thread's last
    /// transaction has written both there and to a key of its own.
    fn common_of(&self, found: &State) -> Result<Tree, String> {
        let Some(common) = found.get(COMMON) else {
            let is_fine = !self.subject.has_extras();
            return is_fine.then(Tree::new).ok_or_else(|| format!("tree {COMMON} is gone"));
        };
        for Worker { id, .. } in &self.workers {
            let counted = common.get(&counter(own_group(*id))).and_then(|value| tag_of(value));
            let mirror = found.get(SHARED[0]).and_then(|tree| tree.get(&vec![*id]));
            let mirrored = mirror.and_then(|value| tag_of(value));
            if counted != mirrored {
                return Err(format!(
                    "transaction {:x} of thread {id} is there in one tree, {:x} in another",
                    counted.unwrap_or_default(),
                    mirrored.unwrap_or_default()
                ));
            }
        }
        Ok(common.clone())
    }

    /// Nothing is there that is no worker's.
    fn expected_only(&self, found: &State) -> Result<(), String> {
        let parts: Vec<State> = self.workers.iter().map(|worker| worker.part_of(found)).collect();
        for (name, tree) in found.iter().filter(|(name, _)| *name != COMMON) {
            let entries = parts.iter().filter_map(|part| part.get(name)).map(|part| part.len());
            if entries.clone().count() == 0 || entries.sum::<usize>() != tree.len() {
                return Err(format!("tree {name} has things in it that nobody made, or all of it"));
            }
        }
        Ok(())
    }

    /// Compares the contents with the permitted ones.
    fn settle(&mut self, store: &dyn Store) -> Result<(), Stop> {
        let found = match store.contents() {
            Ok(found) => found,
            Err(_) if self.world.supply.is_off() => return Err(Stop::Down),
            Err(failure) => return Err(wrong("the contents cannot be read", &failure)),
        };
        if self.awaited.as_ref().is_some_and(|awaited| *awaited != found) {
            return Err(Stop::Wrong("two recoveries from one crash differ".into()));
        }
        self.expected_only(&found).map_err(Stop::Wrong)?;
        let common = self.common_of(&found).map_err(Stop::Wrong)?;
        self.common.settle(common).map_err(Stop::Wrong)?;
        for worker in &mut self.workers {
            let part = worker.part_of(&found);
            worker.oracle.settle(part).map_err(Stop::Wrong)?;
        }
        (self.depth, self.awaited) = (0, None);
        Ok(())
    }

    /// A life of the store; `was_due`: an operation was to fail since before it was opened. The
    /// store's own threads may have met that one since.
    fn live(&mut self, store: Box<dyn Store>, was_due: bool) -> Result<(), String> {
        self.tally.lives += 1;
        self.is_crowded = false;
        let mut was_armed = was_due;
        match self.settle(&*store) {
            Ok(()) => {
                let is_over = self.forced.is_some() && self.tally.lives == 2;
                // After a fault, all that fails later has its reason in it: no second one.
                if !is_over && (!was_due || self.world.supply.spare()) {
                    self.arm(FailurePhase::Run, &[4, 10, 40, 200, 1000, 5000]);
                }
                was_armed |= self.world.supply.is_fault_due();
                self.work(&*store)?;
                self.fill_the_disk(&*store)?;
            }
            Err(Stop::Down) => self.note("the power failed while everything was read".into()),
            Err(Stop::Wrong(what)) => return Err(what),
        }
        let has_struck = was_armed && !self.world.supply.is_fault_due();
        self.is_done |=
            self.is_forced_at(FailurePhase::Run) && (self.world.supply.is_off() || has_struck);
        let may_close = self.plan.kind != Kind::Faults && self.forced.is_none();
        if !self.world.supply.is_off() && may_close && self.random.u8(..4) == 0 {
            return self.end_by_closing(store);
        }
        self.tally.faults += u64::from(has_struck);
        self.world.supply.cut();
        drop(store);
        let may_die = self.forced.is_none() && self.subject.may_die();
        let dies = self.random.u8(..3) < if has_struck { 2 } else { 1 };
        if may_die && dies && self.world.supply.resume() {
            self.note("the process dies".into());
            self.tally.deaths += 1;
            return Ok(());
        }
        self.crash()
    }

    fn work(&mut self, store: &dyn Store) -> Result<(), String> {
        let has_faults = self.plan.kind == Kind::Faults;
        let (supply, common) = (&self.world.supply, &self.common);
        let has_extras = self.subject.has_extras();
        let life = Life { store, supply, common, has_extras, has_faults };
        let steps = self.random.u32(1..=self.plan.steps);
        let ends: Vec<Result<(), Stop>> = if let [worker] = &mut self.workers[..] {
            vec![worker.live(life, steps)]
        } else {
            std::thread::scope(|scope| {
                let workers = self.workers.iter_mut();
                let threads: Vec<_> =
                    workers.map(|worker| scope.spawn(move || worker.live(life, steps))).collect();
                let panicked = || Err(Stop::Wrong("a thread panicked".into()));
                threads.into_iter().map(|t| t.join().unwrap_or_else(|_| panicked())).collect()
            })
        };
        for end in ends {
            if let Err(Stop::Wrong(what)) = end {
                return Err(what);
            }
        }
        self.common.judge()
    }

    fn end_by_closing(&mut self, store: Box<dyn Store>) -> Result<(), String> {
        self.note("close".into());
        match store.close() {
            Ok(is_at_rest) => {
                self.flushed();
                if self.world.supply.is_off() {
                    // Something failed that closing did not need.
                    return self.crash();
                }
                self.world.supply.spare();
                self.tally.closes += 1;
                if !is_at_rest {
                    return Ok(());
                }
                self.tally.checks += 1;
                let checked = self.subject.check(&self.world.devices);
                checked.map_err(|failure| format!("the check after closing: {}", failure.text))
            }
            Err(_) if self.world.supply.is_off() => self.crash(),
            Err(failure) if self.is_crowded && !failure.is_violation => {
                self.note(format!("-> {}", failure.text));
                self.world.supply.cut();
                self.crash()
            }
            Err(failure) => Err(format!("closing failed: {}", failure.text)),
        }
    }
}
