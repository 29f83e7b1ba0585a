//! Operations of threads while reads go wrong. Each answer is judged at once.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use millpond::internals::admin::dump::{DumpReader, DumpWriter, Form, Item as Dumped};
use millpond::internals::heap::RecordId;
use millpond::{Db, Error, RawTree};

use crate::model::{Row, Wrong};
use crate::plan::Kind;
use crate::world::{Handle, Item, World, handle};

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

const ALL: Bounds = (Bound::Unbounded, Bound::Unbounded);

/// The key that stands for a number.
pub fn key_of(kind: Kind, number: u64) -> Vec<u8> {
    match kind {
        Kind::Typed => number.to_be_bytes().to_vec(),
        Kind::Heap => RecordId(number).0.to_be_bytes().to_vec(),
        _ => {
            let mut key = (number as u32).wrapping_mul(2_654_435_761).to_be_bytes().to_vec();
            key.extend(vec![b'k'; (number % 9) as usize]);
            key
        }
    }
}

pub fn draw_value(random: &mut fastrand::Rng, kind: Kind, page_size: u32) -> Vec<u8> {
    let most = match kind {
        Kind::Large => page_size as usize * 5,
        _ => 40,
    };
    let length = random.usize(0..most);
    let letter = random.u8(b'a'..=b'z');
    let mut value = vec![letter; length];
    for byte in value.iter_mut().step_by(7) {
        *byte = random.u8(b'A'..=b'Z');
    }
    value
}

fn number(key: &[u8]) -> u64 {
    key.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn text(value: Vec<u8>) -> String {
    String::from_utf8(value).unwrap()
}

fn record(key: &[u8]) -> RecordId {
    RecordId(number(key))
}

impl Handle {
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        match self {
            Handle::Tree(tree) => tree.get(key),
            Handle::Typed(tree) => Ok(tree.get(&number(key))?.map(String::into_bytes)),
            Handle::Hash(index) => index.get(key),
            Handle::Heap(heap) => heap.get(record(key)),
        }
    }

    /// Returns `true` if the key was there. A heap's must have been.
    pub fn put(&self, key: &[u8], value: Vec<u8>) -> Result<bool, Error> {
        match self {
            Handle::Tree(tree) => tree.put(key, &value),
            Handle::Typed(tree) => tree.put(&number(key), &text(value)),
            Handle::Hash(index) => index.put(key, &value),
            Handle::Heap(heap) => heap.update(record(key), &value),
        }
    }

    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        match self {
            Handle::Tree(tree) => tree.delete(key),
            Handle::Typed(tree) => tree.delete(&number(key)),
            Handle::Hash(index) => index.delete(key),
            Handle::Heap(heap) => heap.delete(record(key)),
        }
    }

    pub fn len(&self) -> Result<u64, Error> {
        match self {
            Handle::Tree(tree) => tree.len(),
            Handle::Typed(tree) => tree.len(),
            Handle::Hash(index) => index.len(),
            Handle::Heap(heap) => heap.len(),
        }
    }

    pub fn raw(&self) -> Option<RawTree> {
        match self {
            Handle::Tree(tree) => Some(tree.clone()),
            Handle::Typed(tree) => Some(tree.raw()),
            Handle::Hash(_) | Handle::Heap(_) => None,
        }
    }

    /// Rows up to the end or to an error. A hash index has no order: its rows are sorted.
    pub fn scan(&self, bounds: &Bounds, backwards: bool) -> (Vec<Row>, Option<Error>) {
        let borrowed = (bounds.0.as_ref().map(|k| &k[..]), bounds.1.as_ref().map(|k| &k[..]));
        match self {
            Handle::Tree(tree) => gather(directed(tree.range(borrowed), backwards)),
            Handle::Typed(tree) => {
                let range = tree.range((
                    bounds.0.as_ref().map(|key| number(key)),
                    bounds.1.as_ref().map(|key| number(key)),
                ));
                let row = |row: Result<(u64, String), Error>| {
                    row.map(|(key, value)| (key.to_be_bytes().to_vec(), value.into_bytes()))
                };
                gather(directed(range, backwards).map(row))
            }
            Handle::Hash(index) => {
                let (mut rows, error) = gather(index.iter());
                rows.sort();
                (rows, error)
            }
            Handle::Heap(heap) => match heap.records() {
                Ok(records) => {
                    let row = |row: Result<(RecordId, Vec<u8>), Error>| {
                        row.map(|(id, value)| (id.0.to_be_bytes().to_vec(), value))
                    };
                    gather(directed(records, backwards).map(row))
                }
                Err(error) => (Vec::new(), Some(error)),
            },
        }
    }
}

fn directed<'a, T: 'a>(
    rows: impl DoubleEndedIterator<Item = T> + 'a,
    backwards: bool,
) -> Box<dyn Iterator<Item = T> + 'a> {
    if backwards { Box::new(rows.rev()) } else { Box::new(rows) }
}

/// No structure has as many rows: a scan that comes so far does not end.
const ROWS_MAX: usize = 100_000;

fn gather(rows: impl Iterator<Item = Result<Row, Error>>) -> (Vec<Row>, Option<Error>) {
    let mut found = Vec::new();
    for row in rows.take(ROWS_MAX) {
        match row {
            Ok(row) => found.push(row),
            Err(error) => return (found, Some(error)),
        }
    }
    (found, None)
}

/// A thread at work on the items that are its own, and those that all read.
pub struct Worker<'w> {
    world: &'w World,
    db: &'w Db,
    items: Vec<(&'w Item, Handle)>,
    random: fastrand::Rng,
}

impl<'w> Worker<'w> {
    /// # Errors
    /// An item could not be opened, for a reason that is none.
    pub fn new(world: &'w World, db: &'w Db, thread: usize) -> Result<Worker<'w>, String> {
        let mut items = Vec::new();
        for item in world.items.iter().filter(|i| i.writer.is_none_or(|writer| writer == thread)) {
            // The catalog may be what cannot be read.
            match handle(db, item) {
                Ok(handle) => items.push((item, handle)),
                Err(error) => world.error(None, "open", &error)?,
            }
        }
        let random = fastrand::Rng::with_seed(world.plan.seed ^ (thread as u64 + 1) << 48);
        Ok(Worker { world, db, items, random })
    }

    pub fn work(&mut self) -> Result<(), String> {
        if self.items.is_empty() {
            return Ok(());
        }
        for _ in 0..self.world.plan.operations {
            let at = self.random.usize(0..self.items.len());
            let may_write = self.items[at].0.writer.is_some();
            if may_write && self.random.u32(0..self.world.plan.write_every) == 0 {
                self.write(at)?;
            } else {
                self.read(at)?;
            }
        }
        Ok(())
    }

    fn draw_key(&mut self, item: &Item) -> Vec<u8> {
        let key = key_of(item.kind, self.random.u64(0..item.space));
        // A heap's ids are those that it gave; of others, half the keys drawn are there.
        let is_near = item.kind == Kind::Heap || self.random.bool();
        let near = if is_near { item.model.read().unwrap().key_near(&key) } else { None };
        near.unwrap_or(key)
    }

    fn draw_bounds(&mut self, item: &Item) -> Bounds {
        if matches!(item.kind, Kind::Hash | Kind::Heap) || self.random.u8(0..3) == 0 {
            return ALL;
        }
        let (low, high) = (self.draw_key(item), self.draw_key(item));
        let (low, high) = if low <= high { (low, high) } else { (high, low) };
        match self.random.u8(0..4) {
            0 => (Bound::Included(low), Bound::Unbounded),
            1 => (Bound::Unbounded, Bound::Excluded(high)),
            2 => (Bound::Excluded(low), Bound::Included(high)),
            _ => (Bound::Included(low), Bound::Excluded(high)),
        }
    }

    fn read(&mut self, at: usize) -> Result<(), String> {
        let world = self.world;
        let item = self.items[at].0;
        let key = self.draw_key(item);
        let backwards = self.random.bool();
        let bounds = self.draw_bounds(item);
        let way = self.random.u8(0..13);
        let handle = &self.items[at].1;
        match way {
            0..=4 => match handle.get(&key) {
                Ok(found) => {
                    let judged = item.model.read().unwrap().may_hold(&key, found.as_deref());
                    world.answer(item, "get", judged)
                }
                Err(error) => world.error(Some(item), "get", &error),
            },
            5 => match handle.len() {
                Ok(count) => {
                    let (least, most) = item.model.read().unwrap().counts();
                    let wrong = || Wrong(format!("{count} rows, not {least} to {most}"));
                    let judged = (least..=most).contains(&count).then_some(()).ok_or_else(wrong);
                    world.answer(item, "count", judged)
                }
                Err(error) => world.error(Some(item), "count", &error),
            },
            6 => check_tree(world, item, handle),
            7 => dump(world, item, handle),
            8 => self.prefix(at, &key[..key.len().min(1)]),
            9 => self.many(at),
            _ => scan(world, item, handle, bounds, backwards),
        }
    }

    /// Looks several keys up at once.
    fn many(&mut self, at: usize) -> Result<(), String> {
        let item = self.items[at].0;
        let keys: Vec<_> = (0..self.random.usize(0..40)).map(|_| self.draw_key(item)).collect();
        let Some(tree) = self.items[at].1.raw() else { return Ok(()) };
        match tree.get_many(keys.iter().map(Vec::as_slice)) {
            Ok(found) => {
                let model = item.model.read().unwrap();
                let mut pairs = keys.iter().zip(&found);
                let judged = pairs.try_for_each(|(key, f)| model.may_hold(key, f.as_deref()));
                drop(model);
                self.world.answer(item, "get many", judged)
            }
            Err(error) => self.world.error(Some(item), "get many", &error),
        }
    }

    fn prefix(&self, at: usize, prefix: &[u8]) -> Result<(), String> {
        let (item, handle) = &self.items[at];
        let Some(tree) = handle.raw() else { return Ok(()) };
        let (rows, error) = gather(tree.prefix(prefix));
        let end = prefix[0].checked_add(1).map_or(Bound::Unbounded, |b| Bound::Excluded(vec![b]));
        let bounds = (Bound::Included(prefix.to_vec()), end);
        judge_rows(self.world, item, "prefix", bounds, &rows, false, error)
    }

    fn write(&mut self, at: usize) -> Result<(), String> {
        let world = self.world;
        let item = self.items[at].0;
        let key = self.draw_key(item);
        let value = draw_value(&mut self.random, item.kind, world.plan.page_size);
        let deletes = self.random.u8(0..4) == 0;
        let is_transaction = self.random.u8(0..4) == 0;
        let handle = &self.items[at].1;
        if let (Some(_), true) = (handle.raw(), is_transaction) {
            return self.transact(at);
        }
        if let (Kind::Heap, true, Handle::Heap(heap)) = (item.kind, self.random.bool(), handle) {
            return match heap.append(&value) {
                Ok(id) => {
                    let key = id.0.to_be_bytes();
                    let mut model = item.model.write().unwrap();
                    let judged = model.may_hold(&key, None);
                    model.set(&key, Some(value));
                    drop(model);
                    world.answer(item, "append", judged)
                }
                // Perhaps it is there: nobody knows where.
                Err(error) => world.error(Some(item), "append", &error),
            };
        }
        if item.kind == Kind::Heap && item.model.read().unwrap().may_hold(&key, None).is_ok() {
            return Ok(());
        }
        let new = (!deletes).then_some(value);
        let done = match new.clone() {
            Some(value) => handle.put(&key, value),
            None => handle.delete(&key),
        };
        let mut model = item.model.write().unwrap();
        match done {
            Ok(was_there) => {
                let judged = model.may_have_had(&key, was_there);
                model.set(&key, new);
                drop(model);
                world.answer(item, "write", judged)
            }
            Err(error) => {
                model.may_be(&key, new);
                drop(model);
                world.error(Some(item), "write", &error)
            }
        }
    }

    fn transact(&mut self, at: usize) -> Result<(), String> {
        let world = self.world;
        let item = self.items[at].0;
        let changes: Vec<(Vec<u8>, Option<Vec<u8>>)> = (0..self.random.usize(1..8))
            .map(|_| {
                let value = draw_value(&mut self.random, item.kind, world.plan.page_size);
                (self.draw_key(item), (self.random.u8(0..4) > 0).then_some(value))
            })
            .collect();
        let commits = self.random.u8(0..3) > 0;
        let Some(tree) = self.items[at].1.raw() else { return Ok(()) };
        let tx = match self.db.begin() {
            Ok(tx) => tx,
            Err(error) => return world.error(Some(item), "begin", &error),
        };
        let mut done = Ok(());
        for (key, value) in &changes {
            let change = match value {
                Some(value) => tx.tree(&tree).put(key, value),
                None => tx.tree(&tree).delete(key),
            };
            if let Err(error) = change {
                done = Err(error);
                break;
            }
        }
        let is_whole = done.is_ok();
        if let Err(error) = done {
            world.error(Some(item), "change in a transaction", &error)?;
        }
        let commits = commits && is_whole;
        let ended = if commits { tx.commit() } else { tx.abort() };
        let mut model = item.model.write().unwrap();
        match &ended {
            Ok(()) if commits => changes.into_iter().for_each(|(key, new)| model.set(&key, new)),
            Ok(()) => {}
            Err(_) => changes.into_iter().for_each(|(key, new)| model.may_be(&key, new)),
        }
        drop(model);
        let what = if commits { "commit" } else { "abort" };
        ended.or_else(|error| world.error(Some(item), what, &error).map(Ok)?)
    }
}

fn judge_rows(
    world: &World,
    item: &Item,
    what: &str,
    bounds: Bounds,
    rows: &[Row],
    backwards: bool,
    error: Option<Error>,
) -> Result<(), String> {
    let model = item.model.read().unwrap();
    let judged = if item.kind == Kind::Hash && error.is_some() {
        // In any order: each must be there.
        rows.iter().try_for_each(|(key, value)| model.may_hold(key, Some(value)))
    } else {
        model.may_be_rows(bounds, rows, backwards, error.is_none())
    };
    drop(model);
    world.answer(item, what, judged)?;
    error.map_or(Ok(()), |error| world.error(Some(item), what, &error))
}

fn scan(
    world: &World,
    item: &Item,
    handle: &Handle,
    bounds: Bounds,
    backwards: bool,
) -> Result<(), String> {
    let backwards = backwards && item.kind != Kind::Hash;
    let what = if backwards { "scan backwards" } else { "scan" };
    let (rows, error) = handle.scan(&bounds, backwards);
    judge_rows(world, item, what, bounds, &rows, backwards, error)
}

/// All rows: right, or an error; whether all were there.
pub fn scan_all(world: &World, item: &Item, what: &str, handle: &Handle) -> Result<bool, String> {
    let (rows, error) = handle.scan(&ALL, false);
    let is_whole = error.is_none();
    judge_rows(world, item, what, ALL, &rows, false, error).map(|()| is_whole)
}

/// The check of an open tree: sound, or an error.
fn check_tree(world: &World, item: &Item, handle: &Handle) -> Result<(), String> {
    let Some(tree) = handle.raw() else { return Ok(()) };
    match tree.check() {
        Ok(report) => {
            let bad = report.violations.first();
            let judged = bad.map_or(Ok(()), |(page, bad)| Err(Wrong(format!("{page}: {bad}"))));
            // A violation names its page as an error does.
            if let Err(wrong) = &judged {
                world.answers.fetch_add(1, Ordering::Relaxed);
                return world.judge_error(Some(item), "check", &format!("page {}", wrong.0));
            }
            world.answer(item, "check", judged)
        }
        Err(error) => world.error(Some(item), "check", &error),
    }
}

/// A dump, and its reader.
fn dump(world: &World, item: &Item, handle: &Handle) -> Result<(), String> {
    let (rows, error) = handle.scan(&ALL, false);
    if let Some(error) = error {
        return judge_rows(world, item, "dump", ALL, &rows, false, Some(error));
    }
    let mut writer = DumpWriter::new(Vec::new(), Form::Text).unwrap();
    writer.tree(&item.name).unwrap();
    rows.iter().for_each(|(key, value)| writer.entry(key, value).unwrap());
    let written = writer.finish().unwrap();
    let mut reader = DumpReader::new(&written[..]).unwrap();
    let (mut key, mut value, mut back) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        match reader.read(&mut key, &mut value).unwrap() {
            Dumped::Entry => back.push((key.clone(), value.clone())),
            Dumped::Structure(..) => {}
            Dumped::End => break,
        }
    }
    judge_rows(world, item, "dump", ALL, &back, false, None)
}

/// Verifies all rows of an item, without errors.
pub fn compare(world: &World, item: &Item, handle: &Handle) -> Result<(), String> {
    let (rows, error) = handle.scan(&ALL, false);
    if let Some(error) = error {
        // Nothing goes wrong any more, so nothing excuses it but an older version.
        return world.wrong(Some(item), "a scan at the end", &Wrong(error.to_string()));
    }
    let model = item.model.read().unwrap();
    let judged = model.may_be_rows(ALL, &rows, false, true);
    drop(model);
    world.answer(item, "a scan at the end", judged)?;
    let count = handle.len();
    let is_right = matches!(&count, Ok(count) if *count == rows.len() as u64);
    let wrong = || Wrong(format!("{count:?} rows, not {}", rows.len()));
    world.answer(item, "a count at the end", is_right.then_some(()).ok_or_else(wrong))?;
    for (key, value) in rows.iter().step_by(7) {
        let found = handle.get(key);
        let is_right = matches!(&found, Ok(Some(found)) if found == value);
        let wrong = || Wrong(format!("{found:?}"));
        world.answer(item, "a get at the end", is_right.then_some(()).ok_or_else(wrong))?;
    }
    Ok(())
}
