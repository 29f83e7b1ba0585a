//! One story: a store is filled, reads go wrong while it is used, and in the end, when they do not
//! any more, it is looked at from end to end.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};

use millpond::internals::admin::check::{CATALOG, CheckOptions, Fault, Problem, check_store};
use millpond::internals::btree::BulkOptions;
use millpond::internals::io::PageStore;
use millpond::internals::page::PageHeader;
use millpond::{Db, Error};
use millpond_base::PageId;
use millpond_device::{Device, MemoryDevice, PowerSupply, ReadFault, ReadFaultDevice, ReadFaults};

use crate::model::{Model, Wrong};
use crate::plan::{Deed, FaultyPages, Plan};
use crate::worker::{Worker, compare, draw_value, key_of, scan_all};
use crate::world::{Devices, Handle, Item, Tally, World, handle, options, slots, tier};

struct Story {
    world: World,
    supply: PowerSupply,
    tally: Tally,
    random: fastrand::Rng,
}

fn must<T>(what: &str, result: Result<T, impl std::fmt::Display>) -> Result<T, String> {
    result.map_err(|error| format!("{what}, when no read went wrong: {error}"))
}

pub fn tell(seed: u64) -> Result<Tally, String> {
    let plan = Plan::of(seed);
    let shown = format!("{plan:?}");
    told(plan).map_err(|what| format!("{what}\n  {shown}"))
}

fn told(plan: Plan) -> Result<Tally, String> {
    let (mut story, db) = Story::begin(plan)?;
    match story.go_on(db) {
        // What comes of that is anything but a panic or a hang.
        Err(_) if story.world.is_entangled() => {
            Ok(Tally { stories: 1, entangled_stories: 1, ..Tally::default() })
        }
        Err(what) => Err(what + &story.world.older_versions()),
        Ok(()) => Ok(story.tally),
    }
}

impl Story {
    /// All that happens in a store that was made.
    fn go_on(&mut self, mut db: Db) -> Result<(), String> {
        let story = self;
        if story.world.plan.is_cold {
            must("closing", db.close())?;
            story.set_faults(story.world.plan.opens_under_faults);
            db = story.open("open")?;
        }
        story.set_faults(true);
        story.work(&db)?;
        story.world.phase = "in a deed";
        for deed in story.world.plan.deeds.clone() {
            story.deed(&db, deed)?;
        }
        if story.world.plan.crashes {
            db = story.crash(db)?;
        }
        story.end(db)
    }
}

/// Makes a tree of about `bytes`, whose values hardly get shorter by compression.
fn load(db: &Db, name: &str, bytes: u64) -> Result<(), Error> {
    let mut value = vec![0; (bytes / 4000).max(200) as usize];
    fastrand::Rng::with_seed(bytes).fill(&mut value);
    let rows = (0..bytes as u32 / value.len() as u32).map(|number| {
        value.rotate_right(1);
        (number.to_be_bytes().to_vec(), value.clone())
    });
    db.raw_tree(name)?.bulk_load(rows, BulkOptions::default()).map(drop)
}

impl Story {
    /// Makes the store and fills it; no read goes wrong yet.
    fn begin(plan: Plan) -> Result<(Story, Db), String> {
        let supply = PowerSupply::new();
        let [below, log] = ["store", "log"].map(|name| supply.device(name, MemoryDevice::new()));
        let fast = supply.device("fast", MemoryDevice::new());
        let store = Arc::new(ReadFaultDevice::new(below.clone(), plan.page_size as usize));
        let log = Arc::new(ReadFaultDevice::new(log, 4096));
        let fast = Arc::new(ReadFaultDevice::new(fast, plan.page_size as usize));
        let devices = Devices { store, log, fast, below };
        let db = devices.open(options(&plan));
        let db = must("making the store", db)?;
        let threads = plan.threads;
        let items = plan.structures.iter().enumerate().map(|(at, (kind, rows))| Item {
            name: format!("{kind:?}-{at}"),
            kind: *kind,
            owner: 0,
            space: 2 * *rows as u64,
            writer: (at % 3 > 0).then_some(at % threads),
            model: RwLock::new(Model::default()),
        });
        let items = items.collect();
        let random = fastrand::Rng::with_seed(plan.seed);
        let world = World {
            plan,
            devices,
            items,
            phase: "at work",
            stale: Default::default(),
            answers: Default::default(),
            errors: Default::default(),
            stale_answers: Default::default(),
            copy_errors: Default::default(),
            entangled: Default::default(),
        };
        let mut story = Story { world, supply, tally: Tally::default(), random };
        must("filling the store", story.fill(&db))?;
        Ok((story, db))
    }

    /// Rows in random order, in two rounds, so that pages have versions, and some split or merge.
    fn fill(&mut self, db: &Db) -> Result<(), Error> {
        let (page_size, random) = (self.world.plan.page_size, &mut self.random);
        let once_bytes = self.world.plan.once_bytes;
        if once_bytes > 0 {
            load(db, "once", once_bytes)?;
        }
        for round in 0..2 {
            if round == 1 && once_bytes > 0 {
                db.drop_tree("once")?;
                if random.bool() {
                    db.shrink()?;
                }
            }
            for item in &mut self.world.items {
                let handle = handle(db, item)?;
                let model = item.model.get_mut().unwrap();
                let mut numbers: Vec<u64> = (0..item.space).collect();
                random.shuffle(&mut numbers);
                let rows = item.space as usize / 2;
                for number in &numbers[..rows.div_ceil(2)] {
                    let value = draw_value(random, item.kind, page_size);
                    let key = key_of(item.kind, *number);
                    if let Handle::Heap(heap) = &handle {
                        let id = heap.append(&value)?;
                        model.set(&id.0.to_be_bytes(), Some(value));
                    } else {
                        handle.put(&key, value.clone())?;
                        model.set(&key, Some(value));
                    }
                }
                let keys = model.keys();
                for key in keys.iter().filter(|_| round == 1 && random.u8(0..3) == 0) {
                    handle.delete(key)?;
                    model.set(key, None);
                }
            }
            db.checkpoint()?;
        }
        let owners: Vec<(String, u32)> =
            db.trees()?.into_iter().map(|(name, entry)| (name, entry.owner)).collect();
        for item in &mut self.world.items {
            item.owner = owners.iter().find(|(name, _)| *name == item.name).map_or(0, |(_, o)| *o);
        }
        Ok(())
    }

    /// Has reads go wrong as the plan wants it, or not at all.
    fn set_faults(&mut self, go_wrong: bool) {
        if !go_wrong {
            self.world.devices.store.heal();
            self.world.devices.log.heal();
            self.world.devices.fast.heal();
            return;
        }
        let plan = &self.world.plan;
        let pages = match plan.place {
            FaultyPages::Anywhere => None,
            FaultyPages::In(at) => Some(self.pages_of(self.world.items[at].owner)),
        };
        let (kinds, persists) = (plan.faults.clone(), plan.persists);
        let faults = ReadFaults { share: plan.share, kinds, pages, persists };
        let seed = self.random.u64(..);
        self.world.devices.store.set_faults(faults, seed);
        if let Some((bytes, _)) = tier(plan) {
            let (page, all) = (u64::from(plan.page_size), ReadFault::ALL.to_vec());
            // Copies, not the directory, without which there is no tier.
            let (begin, slots) = slots(plan, bytes);
            let begin = begin.div_ceil(page);
            let pages = Some((begin..begin + slots).map(PageId).collect());
            // Errors come of it only where writes stay.
            let share = if plan.writes_back { plan.share } else { 0.2 };
            let faults = ReadFaults { share, kinds: all, pages, persists: plan.persists };
            self.world.devices.fast.set_faults(faults, seed);
        }
        if plan.log_faults {
            // That a record at the log's end is damaged and that it never got there look the same.
            let kinds = vec![ReadFault::Error, ReadFault::Short];
            let faults = ReadFaults { share: plan.share, kinds, pages: None, persists: false };
            self.world.devices.log.set_faults(faults, seed);
        }
    }

    fn pages_of(&self, owner: u32) -> BTreeSet<PageId> {
        let below = &self.world.devices.below;
        let mut bytes = vec![0; self.world.plan.page_size as usize];
        let pages = below.length() / bytes.len() as u64;
        let mut found = BTreeSet::new();
        for page in (1..pages).map(PageId) {
            let is_read = below.read(page.0 * bytes.len() as u64, &mut bytes).is_ok();
            if is_read
                && PageHeader::read(&bytes).owner == owner
                && PageHeader::is_sound(page, &bytes)
            {
                found.insert(page);
            }
        }
        found
    }

    /// Opens the store while reads go wrong, if they do; in the end when they do not.
    fn open(&mut self, what: &str) -> Result<Db, String> {
        for _ in 0..3 {
            match self.world.devices.open(options(&self.world.plan)) {
                Ok(db) => return Ok(db),
                Err(error) => self.world.error(None, what, &error)?,
            }
            self.tally.opens_failed += 1;
        }
        self.set_faults(false);
        let opened = self.world.devices.open(options(&self.world.plan));
        must(what, opened)
    }

    /// All threads at work, each on structures of its own, and all reading the others.
    fn work(&mut self, db: &Db) -> Result<(), String> {
        let world = &self.world;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..world.plan.threads)
                .map(|thread| scope.spawn(move || Worker::new(world, db, thread)?.work()))
                .collect();
            let done = threads.into_iter().map(|thread| thread.join());
            done.collect::<Vec<_>>()
                .into_iter()
                .try_for_each(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn deed(&mut self, db: &Db, deed: Deed) -> Result<(), String> {
        match deed {
            Deed::Checkpoint => self.judge("checkpoint", db.checkpoint()),
            Deed::Shrink => self.judge("shrink", db.shrink().map(drop)),
            Deed::Backup => self.backup(db),
            // When the store is closed.
            Deed::Check => Ok(()),
        }
    }

    fn judge(&self, what: &str, done: Result<(), Error>) -> Result<(), String> {
        done.or_else(|error| self.world.error(None, what, &error))
    }

    /// A backup of what reads wrongly: right in everything, or an error.
    fn backup(&mut self, db: &Db) -> Result<(), String> {
        let supply = PowerSupply::new();
        let [data, log] = ["copy", "copy-log"].map(|name| supply.device(name, MemoryDevice::new()));
        let targets: [Arc<dyn Device>; 2] = [data, log];
        let mut watch = |_| ControlFlow::Continue(());
        if let Err(error) = db.backup_to_devices(&targets[0], &targets[1], &mut watch) {
            return self.world.error(None, "backup", &error);
        }
        self.tally.backups += 1;
        let [data, log] = targets;
        // Its second tier's cache would be in a file, which other stories' backups have open.
        let mut options = options(&self.world.plan);
        options.second_tier = None;
        let opened = Db::open_on_devices(data, log, options);
        let copy = match opened {
            Ok(copy) => copy,
            Err(error) => return self.world.error(None, "opening a backup", &error),
        };
        for item in &self.world.items {
            match handle(&copy, item) {
                Ok(handle) => drop(scan_all(&self.world, item, "a backup", &handle)?),
                Err(error) => self.world.error(Some(item), "a backup", &error)?,
            }
        }
        copy.close().or_else(|error| self.world.error(None, "closing a backup", &error))
    }

    /// An error where no read goes wrong any more.
    fn at_end(&self, item: Option<&Item>, what: &str, error: &Error) -> Result<(), String> {
        self.world.wrong(item, what, &Wrong(error.to_string()))
    }

    /// The power fails, and reads go wrong in recovery.
    fn crash(&mut self, db: Db) -> Result<Db, String> {
        // What was acknowledged is to be there.
        if let Err(error) = db.flush() {
            self.world.error(None, "flush", &error)?;
            self.set_faults(false);
            db.flush().or_else(|error| self.at_end(None, "flush", &error))?;
        }
        self.supply.cut();
        drop(db);
        let (supply, devices) = self.supply.images(self.random.u64(..));
        let [below, log, fast] = &devices[..] else { return Err("three devices".to_string()) };
        self.count_misreads();
        self.world.is_entangled();
        let store = Arc::new(self.world.devices.store.succeeded_by(below.clone()));
        let log = Arc::new(self.world.devices.log.succeeded_by(log.clone()));
        let fast = Arc::new(self.world.devices.fast.succeeded_by(fast.clone()));
        self.world.devices = Devices { store, log, fast, below: below.clone() };
        self.supply = supply;
        self.set_faults(true);
        self.tally.recoveries += 1;
        self.world.phase = "after a crash";
        if let Some(seed) = self.world.plan.older_superblock {
            self.world.devices.store.damage(PageId(0), ReadFault::OlderVersion, seed);
        }
        let db = self.open("recovery")?;
        self.work(&db)?;
        Ok(db)
    }

    fn count_misreads(&mut self) {
        if self.world.plan.writes_back {
            self.tally.copies_misread += self.world.devices.fast.struck() as u64;
        }
        for device in [&self.world.devices.store, &self.world.devices.log] {
            let ledger = device.ledger();
            self.tally.misreads += ledger.len() as u64;
            self.tally.changed += ledger.iter().filter(|misread| misread.changed).count() as u64;
        }
    }

    /// No read goes wrong any more: everything is there, and nothing else.
    fn end(&mut self, db: Db) -> Result<(), String> {
        self.world.phase = "in the end";
        self.set_faults(false);
        // Pages that were read wrongly ahead of need may wait still: who comes for one has the
        // error, and the next one reads it anew.
        for item in &self.world.items {
            for _ in 0..self.world.plan.frames {
                if let Ok(handle) = handle(&db, item)
                    && scan_all(&self.world, item, "a first look at the end", &handle)?
                {
                    break;
                }
            }
        }
        let compared = self.compare_all(&db);
        let mut closed = db.close();
        let is_unfinished = matches!(closed, Err(Error::Unfinished { .. }));
        // A transaction that could not be undone keeps its locks: what it changed has no answer.
        let is_kept = |what: &String| is_unfinished && what.contains("could not be rolled back");
        compared.or_else(|what| if is_kept(&what) { Ok(()) } else { Err(what) })?;
        if is_unfinished {
            // What could not be undone while reads failed is undone now.
            let db = self.open("opening again")?;
            self.compare_all(&db)?;
            closed = db.close();
        }
        closed.or_else(|error| self.at_end(None, "closing", &error))?;
        self.part()?;
        self.check(false)?;
        if self.world.plan.deeds.contains(&Deed::Check) {
            self.set_faults(true);
            self.check(true)?;
            self.set_faults(false);
        }
        let db = self.open("opening at the end")?;
        self.compare_all(&db)?;
        self.close_beside_handles(db)?;
        self.part()?;
        self.check_for_leaks()?;
        self.count_misreads();
        let world = &self.world;
        self.tally.stories += 1;
        self.tally.answers += world.answers.load(Ordering::Relaxed);
        self.tally.errors += world.errors.load(Ordering::Relaxed);
        self.tally.copy_errors += world.copy_errors.load(Ordering::Relaxed);
        self.tally.stale_answers += world.stale_answers.load(Ordering::Relaxed);
        self.tally.stale_stories += u64::from(self.tally.stale_answers > 0);
        Ok(())
    }

    /// Closes the store; in one story of three with handles left, one of them a transaction that
    /// changed something. The next opening undoes it, and the handles do nothing any more.
    fn close_beside_handles(&mut self, db: Db) -> Result<(), String> {
        let mut left = None;
        if self.world.plan.seed.is_multiple_of(3) {
            let tree = must("a tree at the end", db.raw_tree("left"))?;
            let (begun, snapshot) = (db.begin(), must("snapshot", db.snapshot())?);
            let txn = must("begin", begun)?;
            must("a put at the end", txn.tree(&tree).put(b"k", &[7; 100]))?;
            left = Some((tree, txn, snapshot));
        }
        db.close().or_else(|error| self.at_end(None, "closing at the end", &error))?;
        let Some((tree, txn, snapshot)) = left else { return Ok(()) };
        let done =
            [tree.get(b"k").is_ok(), snapshot.tree(&tree).get(b"k").is_ok(), txn.commit().is_ok()];
        if done.contains(&true) {
            return Err(format!("handles of a closed store do something: {done:?}"));
        }
        // The change was never committed, so this opening undoes it.
        let db = self.open("opening what was closed beside handles")?;
        let again = must("the tree at the end", db.raw_tree("left"))?;
        if must("a get at the end", again.get(b"k"))?.is_some() {
            return Err("a transaction that was left by a close is committed".into());
        }
        drop(again);
        db.close().or_else(|error| self.at_end(None, "closing at the end", &error))
    }

    /// A store whose tier writes back gets what only the cache has, so that it is whole by itself.
    fn part(&mut self) -> Result<(), String> {
        if !self.world.plan.writes_back {
            return Ok(());
        }
        let through = options(&self.world.plan).write_back(false);
        let db = self.world.devices.open(through);
        let db = db.or_else(|error| {
            self.at_end(None, "parting store and tier", &error)?;
            Err(error.to_string())
        })?;
        db.close().or_else(|error| self.at_end(None, "closing without write-back", &error))
    }

    fn compare_all(&self, db: &Db) -> Result<(), String> {
        for item in &self.world.items {
            match handle(db, item) {
                Ok(handle) => compare(&self.world, item, &handle)?,
                Err(error) => self.at_end(Some(item), "opening it at the end", &error)?,
            }
        }
        Ok(())
    }

    /// Verifies that no page is lost. Pages that could not be freed while reads failed must have
    /// been freed by the opening without faults.
    fn check_for_leaks(&self) -> Result<(), String> {
        let store = must("check", PageStore::salvage_on(self.world.devices.store.clone(), None))?;
        let report = must("check", check_store(&store, CATALOG, &mut CheckOptions::default()))?;
        if report.counts.lost == 0 || self.world.may_have_lost_a_value() {
            return Ok(());
        }
        let wrong = Wrong(format!("{} pages that nothing refers to", report.counts.lost));
        self.world.wrong(None, "the last check", &wrong)
    }

    /// The check of the file. Under faults it finds what is wrong, and only then something.
    fn check(&mut self, under_faults: bool) -> Result<(), String> {
        self.tally.checks += 1;
        let device = self.world.devices.store.clone();
        let struck = device.struck();
        let store = match PageStore::salvage_on(device.clone(), None) {
            Ok(store) => store,
            Err(error) if under_faults => {
                return self.world.judge_error(None, "check", &error.to_string());
            }
            Err(error) => return Err(format!("check: {error}")),
        };
        let report = check_store(&store, CATALOG, &mut CheckOptions::default());
        let report = must("check", report)?;
        // What could not be freed while reads failed is freed when the store is opened.
        let is_leak = |problem: &Problem| problem.fault == Fault::Leaked;
        if report.problems.iter().all(is_leak) && report.problems_left_out == 0 {
            self.tally.lost_pages += u64::from(!under_faults) * report.counts.lost;
            return Ok(());
        }
        let problems: Vec<String> =
            report.problems.iter().take(4).map(ToString::to_string).collect();
        let wrong = Wrong(format!("{} lost pages; {problems:?}", report.counts.lost));
        if under_faults && device.struck() > struck {
            return Ok(());
        }
        self.world.wrong(None, "check", &wrong)
    }
}
