//! A thread that uses a store, and knows the expected results.
//!
//! Its keys begin with its number, and some trees are its own: no other thread changes what it
//! sees, so it can say of each read what must be read.

mod large;
mod share;

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use fastrand::Rng;
use millpond_device::PowerSupply;

use crate::common::Common;
use crate::oracle::{Change, Oracle, State, Tree, Value, name_of, shown};
use crate::plan::{Plan, pick};
use crate::subject::{Answer, Durability, Entries, Failure, Store, Transaction, View};

/// Trees that all threads use, and that are there from the beginning.
pub const SHARED: [&str; 3] = ["s0", "s1", "s2"];

/// Events that are kept for a report.
const EVENTS: usize = 40;
/// Commits in doubt after which a life ends.
const DOUBTS_MAX: u32 = 4;

/// Why a worker does not go on.
#[derive(Debug)]
pub enum Stop {
    /// The power failed, or enough else.
    Down,
    /// The store broke its contract.
    Wrong(String),
}

/// Counts of a worker's operations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    pub commits: u64,
    pub aborts: u64,
    pub reads: u64,
    pub backups: u64,
}

/// A snapshot, and its expected contents.
struct Snapshot<'a> {
    view: Box<dyn View + 'a>,
    state: State,
    /// Moments before and after it was begun.
    between: (u64, u64),
}

/// Snapshots that a worker has at a time.
const SNAPSHOTS_MAX: usize = 3;

/// A store while it is open, and its possible faults.
#[derive(Clone, Copy)]
pub struct Life<'a> {
    pub store: &'a dyn Store,
    pub supply: &'a PowerSupply,
    /// The record of keys that all threads write.
    pub common: &'a Common,
    /// The store has heaps and the like.
    pub has_extras: bool,
    /// Single operations fail.
    pub has_faults: bool,
}

impl Life<'_> {
    /// Something failed that had to fail some time.
    fn is_faulty(&self) -> bool {
        self.has_faults && !self.supply.is_fault_due()
    }
}

pub struct Worker {
    pub id: u8,
    random: Rng,
    keys: u16,
    key_max: usize,
    page_size: usize,
    checkpoints: u8,
    extras: u8,
    shares: bool,
    /// Bytes that the store had once.
    once_bytes: u64,
    /// Of its transactions over keys that all threads write.
    serial: u64,
    pub oracle: Oracle,
    pub done: Done,
    events: VecDeque<String>,
    trees_made: u32,
    /// In this life.
    doubts: u32,
}

impl Worker {
    pub fn new(id: u8, plan: &Plan) -> Worker {
        let page_size = plan.page_size as usize;
        Worker {
            id,
            random: Rng::with_seed(plan.seed.wrapping_mul(31).wrapping_add(u64::from(id))),
            keys: plan.keys,
            key_max: (page_size / 5).min(800),
            page_size,
            checkpoints: plan.checkpoints,
            extras: plan.extras,
            shares: plan.shares,
            once_bytes: plan.once_bytes(),
            serial: 0,
            oracle: Oracle::default(),
            done: Done::default(),
            events: VecDeque::new(),
            trees_made: 0,
            doubts: 0,
        }
    }

    pub fn note(&mut self, event: String) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub fn events(&self) -> String {
        let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
        events.join("\n    ")
    }

    /// Returns the worker's part of a store's contents.
    pub fn part_of(&self, all: &State) -> State {
        let mut part = State::new();
        for (name, tree) in all {
            if SHARED.contains(&name.as_str()) {
                let own = tree.iter().filter(|(key, _)| key.first() == Some(&self.id));
                let own: Tree = own.map(|(key, value)| (key.clone(), value.clone())).collect();
                part.insert(name.clone(), own);
            } else if name.get(1..).is_some_and(|rest| rest.starts_with(&format!("{}-", self.id))) {
                part.insert(name.clone(), tree.clone());
            }
        }
        part
    }

    /// The trees that are there from the beginning are.
    pub fn begin_with_shared_trees(&mut self) {
        let create = |tree: &str| Change::Create { tree: tree.to_string() };
        self.oracle.committed(SHARED.map(create).to_vec(), true);
    }

    /// Does `steps` steps, if nothing fails.
    pub fn live(&mut self, life: Life<'_>, steps: u32) -> Result<(), Stop> {
        self.doubts = 0;
        let mut snapshots = Vec::new();
        for _ in 0..steps {
            if life.supply.is_off() || self.doubts >= DOUBTS_MAX {
                return Err(Stop::Down);
            }
            self.step(life, &mut snapshots)?;
        }
        Ok(())
    }

    fn step<'a>(&mut self, life: Life<'a>, snapshots: &mut Vec<Snapshot<'a>>) -> Result<(), Stop> {
        if self.random.u8(..100) < self.checkpoints {
            self.note("checkpoint".into());
            let answer = life.store.checkpoint();
            return self.tolerate(life, answer).map(drop);
        }
        if life.has_extras && self.random.u8(..100) < self.extras {
            return self.large(life, snapshots);
        }
        if life.has_extras && self.shares && self.random.u8(..5) < 2 {
            return self.share(life, snapshots);
        }
        match self.random.u8(..106) {
            0..16 => self.single(life),
            16..22 => self.look(life),
            22..27 => {
                self.note("flush".into());
                let moment = life.common.moment();
                let answer = life.store.flush();
                if self.tolerate(life, answer)?.is_some() {
                    self.oracle.flushed();
                    life.common.flushed(moment);
                }
                Ok(())
            }
            27..30 => self.create_tree(life),
            30..32 => self.drop_tree(life),
            32..35 => self.begin_snapshot(life, snapshots),
            35..42 => self.look_back(life, snapshots),
            _ => self.transaction(life, snapshots),
        }
    }

    /// The answer; `None` for a failure that had to be expected and after which life goes on.
    fn tolerate<T>(&mut self, life: Life<'_>, answer: Answer<T>) -> Result<Option<T>, Stop> {
        let failure = match answer {
            Ok(answer) => return Ok(Some(answer)),
            Err(failure) => failure,
        };
        self.note(format!("-> {}", failure.text));
        if life.supply.is_off() {
            return Err(Stop::Down);
        }
        if failure.may_retry || life.is_faulty() {
            return Ok(None);
        }
        Err(Stop::Wrong(format!("failed without a reason: {}", failure.text)))
    }

    /// Records the outcome of changes that were to be committed.
    fn outcome(
        &mut self,
        life: Life<'_>,
        answer: Answer<()>,
        changes: Vec<Change>,
        is_durable: bool,
    ) -> Result<(), Stop> {
        match answer {
            Ok(()) => {
                self.done.commits += 1;
                self.oracle.committed(changes, is_durable);
                Ok(())
            }
            Err(failure) => {
                if !failure.may_retry {
                    self.oracle.in_doubt(changes);
                    self.doubts += 1;
                }
                self.tolerate::<()>(life, Err(failure)).map(drop)
            }
        }
    }

    /// Compares a value read with the expected one; not after a failure, since a commit in doubt
    /// may be visible.
    fn expect<T: PartialEq>(
        &mut self,
        life: Life<'_>,
        (found, expected): (&T, &T),
        what: impl FnOnce(&T, &T) -> String,
    ) -> Result<(), Stop> {
        self.done.reads += 1;
        if found == expected || self.doubts > 0 || life.is_faulty() {
            return Ok(());
        }
        Err(Stop::Wrong(what(found, expected)))
    }

    fn key(&mut self) -> Vec<u8> {
        // Half of the accesses go to a tenth of the keys.
        let keys = if self.random.bool() { self.keys.div_ceil(10) } else { self.keys };
        let index = self.random.u16(..keys);
        self.key_of(index)
    }

    fn key_of(&self, index: u16) -> Vec<u8> {
        let mut key = vec![self.id];
        key.extend(index.wrapping_mul(40503).to_be_bytes());
        if index.is_multiple_of(6) {
            let length = self.key_max * (1 + usize::from(index) % 4) / 4;
            key.resize(length.max(3), b'k');
        }
        key
    }

    fn value(&mut self) -> Value {
        let length = match self.random.u8(..20) {
            0..12 => self.random.usize(..40),
            12..17 => self.random.usize(..=self.page_size / 3),
            17..19 => self.random.usize(self.page_size..=2 * self.page_size),
            _ => self.random.usize(..6 * self.page_size),
        };
        let (seed, step) = (self.random.u32(..).to_le_bytes(), self.random.u8(..) | 1);
        let byte = |i: usize| seed[i % 4].wrapping_add(step.wrapping_mul((i / 4) as u8));
        (0..length).map(byte).collect()
    }

    /// One that is a record in a page.
    fn record(&mut self) -> Value {
        let value = self.value();
        value.iter().copied().take(self.page_size / 8).collect()
    }

    fn tree(&mut self) -> String {
        let names: Vec<&String> = self.oracle.now().keys().collect();
        names[self.random.usize(..names.len())].clone()
    }

    /// Some structure, and a key that fits there.
    fn place(&mut self) -> (String, Vec<u8>) {
        let (tree, mut key) = (self.tree(), self.key());
        if is_heap(&tree) {
            let ids: Vec<Vec<u8>> = self.oracle.now()[&tree].keys().cloned().collect();
            let id = self.random.choice(ids);
            key = id.unwrap_or_else(|| self.random.u64(..1 << 20).to_be_bytes().to_vec());
        } else if !is_tree(&tree) {
            // Hash indexes have no large entries.
            key.truncate(3);
        }
        (tree, key)
    }

    fn single(&mut self, life: Life<'_>) -> Result<(), Stop> {
        let (tree, key) = self.place();
        if is_heap(&tree) {
            return self.look(life);
        }
        let was_there = self.oracle.now()[&tree].contains_key(&key);
        let (answer, change) = if self.random.u8(..4) > 0 {
            let value = if is_tree(&tree) { self.value() } else { self.record() };
            self.note(format!("put {tree}/{} {} alone", name_of(&key), shown(&value)));
            (life.store.put(&tree, &key, &value), Change::Put { tree, key, value })
        } else {
            self.note(format!("delete {tree}/{} alone", name_of(&key)));
            (life.store.delete(&tree, &key), Change::Delete { tree, key })
        };
        if let Ok(found) = &answer {
            self.expect(life, (found, &was_there), |found, _| {
                format!("a write says of its key: was there before: {found}; wrong")
            })?;
        }
        self.outcome(life, answer.map(drop), vec![change], false)
    }

    fn look(&mut self, life: Life<'_>) -> Result<(), Stop> {
        let (tree, key) = self.place();
        self.note(format!("get {tree}/{}", name_of(&key)));
        let answer = life.store.get(&tree, &key);
        let Some(found) = self.tolerate(life, answer)? else { return Ok(()) };
        let expected = self.oracle.now()[&tree].get(&key).map(|value| value.to_vec());
        self.expect(life, (&found, &expected), |a, b| wrong_read(&tree, &key, a, b))
    }

    fn begin_snapshot<'a>(
        &mut self,
        life: Life<'a>,
        snapshots: &mut Vec<Snapshot<'a>>,
    ) -> Result<(), Stop> {
        if snapshots.len() == SNAPSHOTS_MAX {
            snapshots.remove(self.random.usize(..SNAPSHOTS_MAX));
        }
        self.note("snapshot".into());
        let from = life.common.moment();
        let begun = life.store.snapshot();
        if let Some(view) = self.tolerate(life, begun)? {
            let (state, between) = (self.oracle.now().clone(), (from, life.common.moment()));
            snapshots.push(Snapshot { view, state, between });
        }
        Ok(())
    }

    /// Reads from a snapshot what must still be in it.
    fn look_back(&mut self, life: Life<'_>, snapshots: &[Snapshot<'_>]) -> Result<(), Stop> {
        let Some(snapshot) = snapshots.get(self.random.usize(..SNAPSHOTS_MAX)) else {
            return Ok(());
        };
        if life.has_extras && self.shares && self.random.bool() {
            return self.look_back_at_all(life, snapshot);
        }
        let Snapshot { view, state, .. } = snapshot;
        let tree = self.tree();
        let Some(entries) = state.get(&tree) else { return Ok(()) };
        let (mut a, b) = (self.key(), self.key());
        if is_heap(&tree) {
            let id = self.random.choice(entries.keys().cloned().collect::<Vec<_>>());
            a = id.unwrap_or_else(|| self.random.u64(..1 << 20).to_be_bytes().to_vec());
        }
        if self.random.bool() {
            self.note(format!("snapshot's {tree}/{}", name_of(&a)));
            let found = view.get(&tree, &a);
            let Some(found) = self.tolerate(life, found)? else { return Ok(()) };
            let expected = entries.get(&a).map(|value| value.to_vec());
            return self.expect(life, (&found, &expected), |f, e| wrong_read(&tree, &a, f, e));
        }
        let (lower, upper) = if a <= b { (a, b) } else { (b, a) };
        self.note(format!("snapshot's {tree}/{}..{}", name_of(&lower), name_of(&upper)));
        let found = view.range(&tree, &lower, &upper, self.random.bool());
        let Some(found) = self.tolerate(life, found)? else { return Ok(()) };
        let expected = entries_of(entries, &lower, &upper);
        self.expect(life, (&found, &expected), wrong_range)
    }

    fn create_tree(&mut self, life: Life<'_>) -> Result<(), Stop> {
        let kind = if self.random.u8(..3) == 0 { 'h' } else { 'p' };
        self.create(life, kind)
    }

    fn create(&mut self, life: Life<'_>, kind: char) -> Result<(), Stop> {
        self.trees_made += 1;
        let tree = format!("{kind}{}-{}", self.id, self.trees_made);
        self.note(format!("create {tree}"));
        let answer = life.store.create_tree(&tree);
        self.outcome(life, answer, vec![Change::Create { tree }], false)
    }

    fn drop_tree(&mut self, life: Life<'_>) -> Result<(), Stop> {
        let names = self.oracle.now().keys().filter(|name| !name.starts_with('s'));
        let names: Vec<String> = names.cloned().collect();
        if names.is_empty() {
            return Ok(());
        }
        let tree = names[self.random.usize(..names.len())].clone();
        self.note(format!("drop {tree}"));
        let answer = life.store.drop_tree(&tree);
        self.outcome(life, answer, vec![Change::Drop { tree }], false)
    }

    fn transaction<'a>(
        &mut self,
        life: Life<'a>,
        snapshots: &mut Vec<Snapshot<'a>>,
    ) -> Result<(), Stop> {
        let durability = pick(&mut self.random, &Durability::ALL);
        self.note(format!("begin {durability:?}"));
        let begun = life.store.begin(durability, self.random.u8(..4) == 0);
        let Some(transaction) = self.tolerate(life, begun)? else { return Ok(()) };
        let mut draft = Draft { transaction, changes: Vec::new(), savepoints: Vec::new() };
        let operations = if self.random.bool() { 1..=3 } else { 1..=20 };
        for _ in 0..self.random.u32(operations) {
            if self.random.u8(..30) == 0 {
                self.note("  checkpoint meanwhile".into());
                let answer = life.store.checkpoint();
                self.tolerate(life, answer)?;
            }
            match self.random.u8(..30) {
                0 | 1 => self.begin_snapshot(life, snapshots)?,
                2..5 => self.look_back(life, snapshots)?,
                _ => {}
            }
            let answer = self.operation(life, &mut draft)?;
            if self.tolerate(life, answer)?.is_none() {
                // Whatever it was, the transaction is given up.
                self.note("give up".into());
                return Ok(());
            }
        }
        let Draft { transaction, changes, .. } = draft;
        match self.random.u8(..20) {
            0..16 => {
                self.note(format!("commit {durability:?}"));
                let answer = transaction.commit();
                let is_durable = durability.is_durable() && self.has_effect(&changes);
                self.outcome(life, answer, changes, is_durable)
            }
            16..19 => {
                self.note("abort".into());
                self.done.aborts += 1;
                let answer = transaction.abort();
                self.tolerate(life, answer).map(drop)
            }
            _ => {
                self.note("drop the transaction".into());
                self.done.aborts += 1;
                Ok(())
            }
        }
    }

    /// Returns `true` if the changes certainly include one that a commit makes durable. A commit in
    /// doubt may already have removed a key that is to be deleted, or a heap's record that is to be
    /// replaced.
    fn has_effect(&self, changes: &[Change]) -> bool {
        let is_known = self.doubts == 0;
        changes.iter().any(|change| match change {
            Change::Delete { tree, key } => is_known && self.oracle.now()[tree].contains_key(key),
            Change::Put { tree, .. } => is_known || !is_heap(tree),
            _ => true,
        })
    }

    /// The outer error: a wrong value was read. The inner one: the operation failed.
    fn operation(&mut self, life: Life<'_>, draft: &mut Draft<'_>) -> Result<Answer<()>, Stop> {
        let (tree, key) = self.place();
        match self.random.u8(..20) {
            0..10 => self.put(life, draft, tree, key),
            10..13 => {
                self.note(format!("  delete {tree}/{}", name_of(&key)));
                let expected = draft.see(&self.oracle, &tree, &key).is_some();
                let found = match draft.transaction.delete(&tree, &key) {
                    Ok(found) => found,
                    Err(failure) => return Ok(Err(failure)),
                };
                draft.changes.push(Change::Delete { tree, key });
                self.expect(life, (&found, &expected), |_, _| wrong_presence("delete"))?;
                Ok(Ok(()))
            }
            13..16 => {
                self.note(format!("  get {tree}/{}", name_of(&key)));
                let expected = draft.see(&self.oracle, &tree, &key).map(|value| value.to_vec());
                let found = match draft.transaction.get(&tree, &key) {
                    Ok(found) => found,
                    Err(failure) => return Ok(Err(failure)),
                };
                self.expect(life, (&found, &expected), |a, b| wrong_read(&tree, &key, a, b))?;
                Ok(Ok(()))
            }
            16 if is_tree(&tree) => self.range(life, draft, &tree),
            16 => self.put(life, draft, tree, key),
            17 => {
                self.note(format!("  savepoint {}", draft.savepoints.len()));
                draft.savepoints.push(draft.changes.len());
                Ok(draft.transaction.savepoint())
            }
            _ if draft.savepoints.is_empty() => self.put(life, draft, tree, key),
            _ => {
                let to = self.random.usize(..draft.savepoints.len());
                self.note(format!("  roll back to {to}"));
                draft.changes.truncate(draft.savepoints[to]);
                draft.savepoints.truncate(to + 1);
                Ok(draft.transaction.rollback_to(to))
            }
        }
    }

    fn put(
        &mut self,
        life: Life<'_>,
        draft: &mut Draft<'_>,
        tree: String,
        key: Vec<u8>,
    ) -> Result<Answer<()>, Stop> {
        let value = if is_tree(&tree) { self.value() } else { self.record() };
        self.note(format!("  put {tree}/{} {}", name_of(&key), shown(&value)));
        let expected = draft.see(&self.oracle, &tree, &key).is_some();
        let found = match draft.transaction.put(&tree, &key, &value) {
            Ok(found) => found,
            Err(failure) => return Ok(Err(failure)),
        };
        // A record that is not there is not made by an update.
        if expected || !is_heap(&tree) {
            draft.changes.push(Change::Put { tree, key, value });
        }
        self.expect(life, (&found, &expected), |_, _| wrong_presence("put"))?;
        Ok(Ok(()))
    }

    fn range(
        &mut self,
        life: Life<'_>,
        draft: &mut Draft<'_>,
        tree: &str,
    ) -> Result<Answer<()>, Stop> {
        // Never beyond its own keys: others would change what is there.
        let (a, b) = (self.key(), self.key());
        let (lower, upper) = if a <= b { (a, b) } else { (b, a) };
        self.note(format!("  range {tree}/{}..{}", name_of(&lower), name_of(&upper)));
        let mut state = State::from([(tree.to_string(), self.oracle.now()[tree].clone())]);
        draft.changes.iter().for_each(|change| change.apply(&mut state));
        let expected = entries_of(&state[tree], &lower, &upper);
        let found = match draft.transaction.range(tree, &lower, &upper) {
            Ok(found) => found,
            Err(failure) => return Ok(Err(failure)),
        };
        self.expect(life, (&found, &expected), wrong_range)?;
        Ok(Ok(()))
    }
}

/// A transaction, and its changes.
struct Draft<'a> {
    transaction: Box<dyn Transaction + 'a>,
    changes: Vec<Change>,
    /// Number of changes at each savepoint.
    savepoints: Vec<usize>,
}

impl Draft<'_> {
    /// Returns the value that the transaction must see.
    fn see(&self, oracle: &Oracle, tree: &str, key: &[u8]) -> Option<Value> {
        for change in self.changes.iter().rev() {
            match change {
                Change::Put { tree: t, key: k, value } if t == tree && k == key => {
                    return Some(Arc::clone(value));
                }
                Change::Delete { tree: t, key: k } if t == tree && k == key => return None,
                _ => {}
            }
        }
        oracle.now()[tree].get(key).cloned()
    }
}

/// Returns `true` if the structure has ranges, and large values.
fn is_tree(name: &str) -> bool {
    !name.starts_with(['h', 'g'])
}

fn is_heap(name: &str) -> bool {
    name.starts_with('g')
}

fn entries_of(tree: &Tree, lower: &[u8], upper: &[u8]) -> Entries {
    if lower >= upper {
        return Vec::new();
    }
    let entries = tree.range::<[u8], _>((Bound::Included(lower), Bound::Excluded(upper)));
    entries.map(|(key, value)| (key.clone(), value.to_vec())).collect()
}

fn wrong_range(found: &Entries, expected: &Entries) -> String {
    format!("a range has {} entries, not {}, or others", found.len(), expected.len())
}

fn wrong_presence(what: &str) -> String {
    format!("a {what} says the wrong thing of whether its key was there")
}

fn wrong_read(
    tree: &str,
    key: &[u8],
    found: &Option<Vec<u8>>,
    expected: &Option<Vec<u8>>,
) -> String {
    let word = |value: &Option<Vec<u8>>| {
        value.as_ref().map_or_else(|| "nothing".to_string(), |value| shown(value))
    };
    format!("{tree}/{} is read as {}, not {}", name_of(key), word(found), word(expected))
}

/// For the rest of the campaign: a failure as a reason to stop.
pub fn wrong(what: &str, failure: &Failure) -> Stop {
    Stop::Wrong(format!("{what}: {}", failure.text))
}
