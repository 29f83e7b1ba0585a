//! Transactions over keys that all threads write.

use std::sync::Arc;

use super::{Life, Snapshot, Stop, Worker};
use crate::common::{COMMON, Deed, GROUPS, counter, own_group, tag_of};
use crate::oracle::{Change, Tree, Value, name_of};
use crate::plan::pick;
use crate::subject::{Answer, Durability, Entries, Transaction};

/// Keys of a group, its counter not counted.
const KEYS: u8 = 8;

/// One of them under way.
struct Shared<'a> {
    transaction: Box<dyn Transaction + 'a>,
    deed: Deed,
    groups: Vec<u8>,
    /// The transaction sees commits of others while it runs.
    is_relaxed: bool,
    /// Changes and links that there were at its savepoint.
    savepoint: Option<(usize, usize)>,
}

pub(super) fn tree_of(entries: Entries) -> Tree {
    entries.into_iter().map(|(key, value)| (key, Arc::from(value))).collect()
}

impl Worker {
    pub(super) fn share<'a>(
        &mut self,
        life: Life<'a>,
        snapshots: &mut Vec<Snapshot<'a>>,
    ) -> Result<(), Stop> {
        if self.random.u8(..8) == 0 {
            return self.survey(life);
        }
        let durability = pick(&mut self.random, &Durability::ALL);
        let is_relaxed = self.random.u8(..4) == 0;
        self.serial += 1;
        let tag = u64::from(self.id) << 48 | self.serial;
        self.note(format!("begin {durability:?}, shared, tag {tag:x}, relaxed: {is_relaxed}"));
        let begun = life.store.begin(durability, is_relaxed);
        let Some(transaction) = self.tolerate(life, begun)? else { return Ok(()) };
        let mut groups = vec![self.random.u8(..GROUPS), self.random.u8(..GROUPS)];
        groups.truncate(self.random.usize(1..=2));
        groups.dedup();
        let deed = Deed { tag, ..Deed::default() };
        let mut shared = Shared { transaction, deed, groups, is_relaxed, savepoint: None };
        for _ in 0..self.random.u32(1..=8) {
            match self.random.u8(..20) {
                0 => self.begin_snapshot(life, snapshots)?,
                1 | 2 => self.look_back(life, snapshots)?,
                _ => {}
            }
            let answer = self.share_one(life, &mut shared)?;
            if self.tolerate(life, answer)?.is_none() {
                self.note("give up".into());
                return Ok(());
            }
        }
        shared.groups.push(own_group(self.id));
        for group in shared.groups.clone() {
            let answer = self.count(&mut shared, group);
            if self.tolerate(life, answer)?.is_none() {
                self.note("give up".into());
                return Ok(());
            }
        }
        let (tree, key, value) = ("s0".to_string(), vec![self.id], Value::from(tag.to_be_bytes()));
        let answer = shared.transaction.put(&tree, &key, &value);
        if self.tolerate(life, answer)?.is_none() {
            return Ok(());
        }
        let changes = vec![Change::Put { tree, key, value }];
        self.end_shared(life, shared, durability, changes)
    }

    fn end_shared(
        &mut self,
        life: Life<'_>,
        shared: Shared<'_>,
        durability: Durability,
        changes: Vec<Change>,
    ) -> Result<(), Stop> {
        let Shared { transaction, mut deed, .. } = shared;
        if self.random.u8(..8) == 0 {
            self.note("abort".into());
            self.done.aborts += 1;
            let answer = transaction.abort();
            return self.tolerate(life, answer).map(drop);
        }
        self.note(format!("commit {durability:?}, after {:x?}", deed.links));
        deed.begun = life.common.moment();
        let answer = transaction.commit();
        let is_durable = durability.is_durable();
        match &answer {
            Ok(()) => {
                deed.ended = Some(life.common.moment());
                deed.is_durable = is_durable;
                life.common.did(deed);
            }
            Err(failure) if !failure.may_retry => life.common.did(deed),
            Err(_) => {}
        }
        self.outcome(life, answer, changes, is_durable)
    }

    /// Puts the transaction into the chain of a group.
    fn count(&mut self, shared: &mut Shared<'_>, group: u8) -> Answer<()> {
        if shared.deed.links.iter().any(|(linked, _)| *linked == group) {
            return Ok(());
        }
        let key = counter(group);
        let found = if shared.is_relaxed || self.random.u8(..4) > 0 {
            shared.transaction.get_for_update(COMMON, &key)?
        } else {
            shared.transaction.get(COMMON, &key)?
        };
        shared.deed.links.push((group, found.as_deref().and_then(tag_of)));
        self.put_shared(shared, key)
    }

    fn put_shared(&mut self, shared: &mut Shared<'_>, key: Vec<u8>) -> Answer<()> {
        let mut value = shared.deed.tag.to_be_bytes().to_vec();
        value.extend_from_slice(&self.value());
        shared.transaction.put(COMMON, &key, &value)?;
        shared.deed.changes.push((key, Some(Value::from(value))));
        Ok(())
    }

    fn share_one(&mut self, life: Life<'_>, shared: &mut Shared<'_>) -> Result<Answer<()>, Stop> {
        let group = pick(&mut self.random, &shared.groups);
        let key = vec![group, 1, self.random.u8(..KEYS)];
        let answer = match self.random.u8(..10) {
            0 => self.count(shared, group),
            1..6 => self.put_shared(shared, key),
            6 => {
                let deleted = shared.transaction.delete(COMMON, &key).map(drop);
                shared.deed.changes.push((key, None));
                deleted
            }
            7..9 => return self.read_shared(life, shared, key),
            _ => match shared.savepoint {
                None => {
                    shared.savepoint = Some((shared.deed.changes.len(), shared.deed.links.len()));
                    shared.transaction.savepoint()
                }
                Some((changes, links)) => {
                    shared.deed.changes.truncate(changes);
                    shared.deed.links.truncate(links);
                    shared.transaction.rollback_to(0)
                }
            },
        };
        Ok(answer)
    }

    fn read_shared(
        &mut self,
        life: Life<'_>,
        shared: &mut Shared<'_>,
        key: Vec<u8>,
    ) -> Result<Answer<()>, Stop> {
        let found = match shared.transaction.get(COMMON, &key) {
            Ok(found) => found.map(Value::from),
            Err(failure) => return Ok(Err(failure)),
        };
        let own = shared.deed.changes.iter().rev().find(|(written, _)| *written == key);
        match own.map(|(_, value)| value.clone()) {
            Some(expected) => {
                let wrong = |_: &_, _: &_| format!("{} is not what it wrote", name_of(&key));
                self.expect(life, (&found, &expected), wrong)?;
            }
            None if !shared.is_relaxed => shared.deed.reads.push((key, found)),
            None => {}
        }
        Ok(Ok(()))
    }

    /// Reads all of it in one transaction.
    fn survey(&mut self, life: Life<'_>) -> Result<(), Stop> {
        self.note("survey".into());
        let from = life.common.moment();
        let read = life.store.begin(Durability::Async, false).and_then(|mut transaction| {
            let found = transaction.range(COMMON, &[0], &[0xff])?;
            let to = life.common.moment();
            transaction.commit().map(|()| (found, to))
        });
        if let Some((found, to)) = self.tolerate(life, read)? {
            self.done.reads += 1;
            life.common.saw("a transaction that reads all", tree_of(found), (from, to));
        }
        Ok(())
    }

    /// Reads all of it from a snapshot.
    pub(super) fn look_back_at_all(
        &mut self,
        life: Life<'_>,
        snapshot: &Snapshot<'_>,
    ) -> Result<(), Stop> {
        self.note("all that is shared, of a snapshot".into());
        let found = snapshot.view.range(COMMON, &[0], &[0xff], self.random.bool());
        if let Some(found) = self.tolerate(life, found)? {
            self.done.reads += 1;
            life.common.saw("a snapshot", tree_of(found), snapshot.between);
        }
        Ok(())
    }
}
