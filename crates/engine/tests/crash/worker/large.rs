//! Operations outside transactions: heaps, changes of whole trees, backups, and giving room back.
//!
//! Such a change may be there in part after a crash, if nothing was durable behind it. A failed
//! change ends the life: all that follows would depend on its remains.

use super::{
    DOUBTS_MAX, Life, SHARED, Snapshot, Stop, Worker, entries_of, is_heap, is_tree, wrong,
};
use crate::common::COMMON;
use crate::oracle::{Change, Oracle, Tree, name_of, shown};
use crate::plan::pick;
use crate::subject::{Failure, Store};

/// Steps of its own that a worker does while it takes a backup, at most.
const AMID_MAX: u32 = 12;

impl Worker {
    pub(super) fn large<'a>(
        &mut self,
        life: Life<'a>,
        snapshots: &mut Vec<Snapshot<'a>>,
    ) -> Result<(), Stop> {
        match self.random.u8(..20) {
            0..11 => self.heap(life),
            11..13 => self.clear(life),
            13..15 => self.remove_range(life),
            15..17 => self.load(life),
            17 => {
                self.note("shrink".into());
                let answer = life.store.shrink();
                self.tolerate(life, answer).map(drop)
            }
            _ => self.backup(life, snapshots),
        }
    }

    /// A structure of its own, if there is one that `is_meant`.
    fn own(&mut self, is_meant: impl Fn(&str) -> bool) -> Option<String> {
        let names = self.oracle.now().keys().filter(|name| !name.starts_with('s'));
        let names: Vec<&String> = names.filter(|name| is_meant(name)).collect();
        self.random.choice(names).cloned()
    }

    fn heap(&mut self, life: Life<'_>) -> Result<(), Stop> {
        let Some(tree) = self.own(is_heap) else { return self.create(life, 'g') };
        let value = self.record();
        let ids: Vec<Vec<u8>> = self.oracle.now()[&tree].keys().cloned().collect();
        let id = self.random.choice(ids).filter(|_| self.random.bool());
        let Some(id) = id else {
            self.note(format!("append to {tree}: {}", shown(&value)));
            let answer = life.store.append(&tree, &value);
            let change = match &answer {
                Ok(key) => {
                    self.note(format!("-> {}", name_of(&key[5..])));
                    let was_there = self.oracle.now()[&tree].contains_key(key);
                    self.expect(life, (&was_there, &false), |_, _| "an id was in use".into())?;
                    Change::Put { tree, key: key.clone(), value }
                }
                Err(_) => Change::Append { tree, value },
            };
            return self.outcome(life, answer.map(drop), vec![change], false);
        };
        let (answer, change) = if self.random.u8(..3) > 0 {
            self.note(format!("replace {tree}/{}: {}", name_of(&id[5..]), shown(&value)));
            (life.store.put(&tree, &id, &value), Change::Put { tree, key: id, value })
        } else {
            self.note(format!("delete {tree}/{}", name_of(&id[5..])));
            (life.store.delete(&tree, &id), Change::Delete { tree, key: id })
        };
        if let Ok(found) = &answer {
            self.expect(life, (found, &true), |_, _| "a record is not there".into())?;
        }
        self.outcome(life, answer.map(drop), vec![change], false)
    }

    fn clear(&mut self, life: Life<'_>) -> Result<(), Stop> {
        let Some(tree) = self.own(|_| true) else { return Ok(()) };
        self.note(format!("clear {tree}"));
        let answer = life.store.clear(&tree);
        self.gradually(life, answer, Change::Remove { tree, lower: Vec::new(), upper: None })
    }

    fn remove_range(&mut self, life: Life<'_>) -> Result<(), Stop> {
        let Some(tree) = self.own(is_tree) else { return self.create(life, 'p') };
        let (a, b) = (self.key(), self.key());
        let (lower, upper) = if a <= b { (a, b) } else { (b, a) };
        self.note(format!("remove {tree}/{}..{}", name_of(&lower), name_of(&upper)));
        let expected = entries_of(&self.oracle.now()[&tree], &lower, &upper).len() as u64;
        let answer = life.store.remove_range(&tree, &lower, &upper);
        if let Ok(found) = &answer {
            self.expect(life, (found, &expected), |a, b| format!("{a} removed, not {b}"))?;
        }
        let change = Change::Remove { tree, lower, upper: Some(upper) };
        self.gradually(life, answer.map(drop), change)
    }

    fn load(&mut self, life: Life<'_>) -> Result<(), Stop> {
        self.create(life, 'p')?;
        let tree = format!("p{}-{}", self.id, self.trees_made);
        if !self.oracle.now().contains_key(&tree) {
            return Ok(());
        }
        let entries: Tree = if self.once_bytes > 0 && self.random.u8(..3) == 0 {
            self.large_entries(self.once_bytes / 4)
        } else {
            let count = self.random.u16(1..=self.keys.min(80));
            (0..count).map(|i| (self.key_of(i), self.value())).collect()
        };
        self.note(format!("load {} entries into {tree}", entries.len()));
        let answer = life.store.load(&tree, &entries);
        self.gradually(life, answer, Change::Load { tree, entries })
    }

    /// The name of a new tree of its own, and entries of about `bytes` for it.
    pub fn large_tree(&mut self, bytes: u64) -> (String, Tree) {
        self.trees_made += 1;
        (format!("p{}-{}", self.id, self.trees_made), self.large_entries(bytes))
    }

    /// Entries of about `bytes`, whose values hardly get shorter by compression.
    fn large_entries(&mut self, bytes: u64) -> Tree {
        let length = (bytes / 4000).max(200) as usize;
        let mut value = vec![0; length];
        self.random.fill(&mut value);
        let mut entry = |number: u32| {
            value[..4].copy_from_slice(&number.to_le_bytes());
            value.rotate_right(1);
            ([&[self.id][..], &number.to_be_bytes()].concat(), value.as_slice().into())
        };
        (0..bytes as u32 / length as u32).map(&mut entry).collect()
    }

    /// Puts some rows, before anything goes wrong.
    pub fn settle_in(&mut self, store: &dyn Store) -> Result<(), Failure> {
        for at in 0..self.keys.min(40) {
            let (tree, key, value) = (SHARED[0].to_string(), self.key_of(at), self.value());
            store.put(&tree, &key, &value)?;
            self.oracle.committed(vec![Change::Put { tree, key, value }], true);
        }
        Ok(())
    }

    fn gradually(
        &mut self,
        life: Life<'_>,
        answer: Result<(), Failure>,
        change: Change,
    ) -> Result<(), Stop> {
        if answer.as_ref().is_err_and(|failure| !failure.may_retry) {
            self.doubts = DOUBTS_MAX;
        }
        self.outcome(life, answer, vec![change], false)
    }

    /// Takes a backup while it, and others, go on. In it is what was there at some moment between.
    fn backup<'a>(
        &mut self,
        life: Life<'a>,
        snapshots: &mut Vec<Snapshot<'a>>,
    ) -> Result<(), Stop> {
        if self.oracle.shadow.is_some() {
            return Ok(());
        }
        self.note("backup".into());
        self.oracle.shadow = Some(Box::new(Oracle::at(self.oracle.now().clone())));
        let from = life.common.moment();
        let (mut left, mut stopped) = (AMID_MAX, None);
        let copied = life.store.backup(&mut || {
            let steps = pick(&mut self.random, &[0, 2, 6]).min(left);
            left -= steps;
            for _ in 0..steps {
                let is_over = life.supply.is_off() || self.doubts >= DOUBTS_MAX;
                let step = if is_over { Err(Stop::Down) } else { self.step(life, snapshots) };
                if let Err(stop) = step {
                    stopped = Some(stop);
                    return false;
                }
            }
            true
        });
        let to = life.common.moment();
        let shadow = self.oracle.shadow.take();
        if let Some(stop) = stopped {
            return Err(stop);
        }
        self.note("the backup is over".into());
        let (Some(copy), Some(shadow)) = (self.tolerate(life, copied)?, shadow) else {
            return Ok(());
        };
        self.done.backups += 1;
        let allowed = shadow.allows(&self.part_of(&copy));
        allowed.map_err(|what| wrong("a backup", &Failure::new(what)))?;
        let common = copy.get(COMMON).cloned().unwrap_or_default();
        life.common.saw("a backup", common, (from, to));
        Ok(())
    }
}
