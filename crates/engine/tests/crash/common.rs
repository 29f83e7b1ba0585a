//! Transactions of several threads on shared keys, and a check of their combined effect.
//!
//! The keys of one tree are in groups; each group has a counter. A transaction that reads or writes
//! keys of a group also replaces its counter by the transaction's own *tag*, and notes the tag that
//! was there before. Locks are kept until the end. The tags of each group are therefore a chain, in
//! the order in which its transactions took place, whatever answers the threads got. The counters
//! thus name the transactions behind any state of the tree: after a crash, in a snapshot, in a
//! backup. The check repeats them one after the other. Each must read again the values it read,
//! and the result must be the state that was seen.
//!
//! A transaction that touches several groups must be in all their chains or in none. If one
//! commit had returned before another began, and the later one is there, the earlier one must be
//! there, too: a crash loses a suffix of the commits and never one in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::oracle::{Tree, Value, name_of, shown};
use millpond_base::PastPoison;

/// The tree.
pub const COMMON: &str = "c0";
/// Groups that all threads use. Besides, each thread has one of its own.
pub const GROUPS: u8 = 3;

/// The group of a thread.
pub fn own_group(thread: u8) -> u8 {
    0xf0 + thread
}

/// The key of a group's counter.
pub fn counter(group: u8) -> Vec<u8> {
    vec![group, 0]
}

/// The tag that a counter holds.
pub fn tag_of(value: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*value.first_chunk::<8>()?))
}

/// A transaction that committed, or perhaps did.
#[derive(Clone, Debug, Default)]
pub struct Deed {
    pub tag: u64,
    /// Groups of the transaction, each with its tag before.
    pub links: Vec<(u8, Option<u64>)>,
    /// Values that the transaction read and had not written itself.
    pub reads: Vec<(Vec<u8>, Option<Value>)>,
    /// Changes of the transaction, counters included; `None`: deleted.
    pub changes: Vec<(Vec<u8>, Option<Value>)>,
    /// Moments before it was asked to commit, and after it had.
    pub begun: u64,
    pub ended: Option<u64>,
    /// The commit was promised to be durable.
    pub is_durable: bool,
}

/// State of the tree that was seen at some moment between `from` and `to`.
struct Sight {
    what: &'static str,
    found: Tree,
    from: u64,
    to: u64,
}

#[derive(Default)]
struct Inner {
    /// State of the tree at the beginning of this life.
    base: Tree,
    deeds: BTreeMap<u64, Deed>,
    sights: Vec<Sight>,
    /// Transactions that had ended before this moment are durable.
    flushed: u64,
}

/// All that is known of it.
#[derive(Default)]
pub struct Common {
    clock: AtomicU64,
    inner: Mutex<Inner>,
}

impl Common {
    /// A moment later than all before.
    pub fn moment(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().past_poison()
    }

    pub fn did(&self, deed: Deed) {
        self.inner().deeds.insert(deed.tag, deed);
    }

    /// Notes that all transactions that had ended before `moment` are durable.
    pub fn flushed(&self, moment: u64) {
        let mut inner = self.inner();
        inner.flushed = inner.flushed.max(moment);
    }

    /// Notes a state that was seen at one moment between two, to be judged when all is known.
    pub fn saw(&self, what: &'static str, found: Tree, (from, to): (u64, u64)) {
        self.inner().sights.push(Sight { what, found, from, to });
    }

    /// Judges the states that were seen. To be called when nobody is at work.
    ///
    /// # Errors
    /// Why something cannot have been seen.
    pub fn judge(&self) -> Result<(), String> {
        let mut inner = self.inner();
        let sights = std::mem::take(&mut inner.sights);
        for sight in &sights {
            let judged = inner.explain(&sight.found, |deed| {
                let is_early = deed.ended.is_some_and(|ended| ended < sight.from);
                (is_early, deed.begun > sight.to)
            });
            judged.map_err(|what| format!("{}: {what}", sight.what))?;
        }
        Ok(())
    }

    /// Verifies that `found` may be there after a crash.
    ///
    /// # Errors
    /// The reason why it must not be there.
    pub fn allows(&self, found: &Tree) -> Result<(), String> {
        let inner = self.inner();
        let judged = inner.explain(found, |deed| {
            let is_flushed = deed.ended.is_some_and(|ended| ended < inner.flushed);
            (deed.is_durable || is_flushed, false)
        });
        judged.map_err(|what| format!("{COMMON} after a crash: {what}"))
    }

    /// Takes the state found after a crash as the beginning of the next life.
    ///
    /// # Errors
    /// The same as those of [`Common::allows`].
    pub fn settle(&self, found: Tree) -> Result<(), String> {
        self.allows(&found)?;
        *self.inner() = Inner { base: found, ..Inner::default() };
        Ok(())
    }
}

fn of_group(tree: &Tree, group: u8) -> Tree {
    let own = tree.iter().filter(|(key, _)| key.first() == Some(&group));
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn counted(tree: &Tree, group: u8) -> Option<u64> {
    tree.get(&counter(group)).and_then(|value| tag_of(value))
}

impl Inner {
    /// Finds the transactions that made `found`. `must` says of each whether it has to be among
    /// them, and whether it must not be.
    fn explain(&self, found: &Tree, must: impl Fn(&Deed) -> (bool, bool)) -> Result<(), String> {
        let keys = found.keys().chain(self.base.keys());
        let groups: BTreeSet<u8> = keys.filter_map(|key| key.first().copied()).collect();
        let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
        for group in groups {
            for deed in self.chain(found, group)? {
                *seen.entry(deed.tag).or_default() += 1;
            }
        }
        let mut latest = 0;
        for (tag, chains) in &seen {
            let deed = &self.deeds[tag];
            if *chains != deed.links.len() {
                return Err(format!("transaction {tag:x} is there in part: {:?}", deed.links));
            }
            if must(deed).1 {
                return Err(format!("transaction {tag:x} had not been asked to commit yet"));
            }
            latest = latest.max(deed.begun);
        }
        for deed in self.deeds.values().filter(|deed| !seen.contains_key(&deed.tag)) {
            let tag = deed.tag;
            if must(deed).0 {
                return Err(format!("transaction {tag:x} is missing, which must be there"));
            }
            if deed.ended.is_some_and(|ended| ended < latest) {
                return Err(format!("transaction {tag:x} is missing, and a later one is there"));
            }
        }
        Ok(())
    }

    /// The transactions that made a group, the first one first.
    fn chain(&self, found: &Tree, group: u8) -> Result<Vec<&Deed>, String> {
        let (mut tag, first) = (counted(found, group), counted(&self.base, group));
        let mut chain = Vec::new();
        while tag != first {
            let deed = tag.and_then(|tag| self.deeds.get(&tag));
            let link =
                deed.and_then(|deed| Some((deed, deed.links.iter().find(|l| l.0 == group)?)));
            let Some((deed, (_, before))) = link.filter(|_| chain.len() < self.deeds.len()) else {
                let tag = tag.unwrap_or_default();
                return Err(format!("nobody committed {tag:x}, the counter of group {group:x}"));
            };
            chain.push(deed);
            tag = *before;
        }
        chain.reverse();
        let mut state = of_group(&self.base, group);
        for deed in &chain {
            for (key, value) in deed.reads.iter().filter(|(key, _)| key[0] == group) {
                if state.get(key) != value.as_ref() {
                    let (tag, key) = (deed.tag, name_of(key));
                    return Err(format!("transaction {tag:x} read {key} as it never was"));
                }
            }
            for (key, value) in deed.changes.iter().filter(|(key, _)| key[0] == group) {
                match value {
                    Some(value) => state.insert(key.clone(), value.clone()),
                    None => state.remove(key),
                };
            }
        }
        let found = of_group(found, group);
        if state == found {
            return Ok(chain);
        }
        let keys: BTreeSet<_> = state.keys().chain(found.keys()).collect();
        let wrong = keys.into_iter().find(|key| state.get(*key) != found.get(*key));
        let shown = |tree: &Tree| {
            wrong.and_then(|key| tree.get(key)).map_or("nothing".to_string(), |value| shown(value))
        };
        let (key, count) = (wrong.map(|key| name_of(key)).unwrap_or_default(), chain.len());
        let (is, should) = (shown(&found), shown(&state));
        Err(format!("after {count} transactions {key} is {is}, not {should}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tag: u64) -> Option<Value> {
        Some(Value::from(tag.to_be_bytes()))
    }

    /// Transaction `tag` in `groups`, each with the tag before, that writes one key in each.
    fn deed(tag: u64, groups: &[(u8, Option<u64>)], ended: Option<u64>) -> Deed {
        let keys = groups.iter().flat_map(|(group, _)| [counter(*group), vec![*group, 1, 0]]);
        let changes = keys.map(|key| (key, value(tag))).collect();
        let reads = groups.iter().map(|(group, before)| (counter(*group), before.and_then(value)));
        Deed {
            tag,
            links: groups.to_vec(),
            reads: reads.collect(),
            changes,
            begun: tag * 10,
            ended,
            is_durable: false,
        }
    }

    fn found(groups: &[(u8, u64)]) -> Tree {
        let entry = |(group, tag): &(u8, u64)| {
            [counter(*group), vec![*group, 1, 0]].map(|key| (key, Value::from(tag.to_be_bytes())))
        };
        groups.iter().flat_map(entry).collect()
    }

    /// 1 in groups 0 and 1, 2 in group 1, 3 in group 0; the last one in doubt.
    fn common() -> Common {
        let common = Common::default();
        common.did(deed(1, &[(0, None), (1, None)], Some(11)));
        common.did(deed(2, &[(1, Some(1))], Some(21)));
        common.did(deed(3, &[(0, Some(1))], None));
        common
    }

    #[test]
    fn what_transactions_made_in_some_order_may_be_there() {
        for groups in [&[][..], &[(0, 1), (1, 1)], &[(0, 1), (1, 2)], &[(0, 3), (1, 2)]] {
            common().allows(&found(groups)).unwrap();
        }
    }

    #[test]
    fn what_no_order_makes_is_refused() {
        let wrong = [
            (&[(0, 1)][..], "in part"),
            (&[(0, 3), (1, 1)], "a later one is there"),
            (&[(0, 1), (1, 7)], "nobody committed"),
            (&[(0, 1), (1, 3)], "nobody committed"),
        ];
        for (groups, why) in wrong {
            let error = common().allows(&found(groups)).unwrap_err();
            assert!(error.contains(why), "{groups:?}: {error}");
        }
        let mut mixed = found(&[(0, 1), (1, 2)]);
        mixed.insert(vec![1, 1, 0], Value::from(1u64.to_be_bytes()));
        assert!(common().allows(&mixed).unwrap_err().contains("is 0000"));
        // Two that read the same counter are a lost update.
        let common = common();
        common.did(deed(4, &[(1, Some(1))], Some(50)));
        let error = common.allows(&found(&[(0, 1), (1, 4)])).unwrap_err();
        assert!(error.contains("a later one is there"), "{error}");
    }

    #[test]
    fn what_was_promised_or_flushed_must_be_there() {
        let common = common();
        common.flushed(15);
        assert!(common.allows(&Tree::new()).unwrap_err().contains("must be there"));
        common.allows(&found(&[(0, 1), (1, 1)])).unwrap();
        common.did(Deed { is_durable: true, ..deed(4, &[(1, Some(2))], Some(41)) });
        assert!(common.allows(&found(&[(0, 1), (1, 2)])).is_err());
        common.settle(found(&[(0, 1), (1, 4)])).unwrap();
        common.allows(&found(&[(0, 1), (1, 4)])).unwrap();
        assert!(common.allows(&found(&[(0, 1), (1, 2)])).is_err());
    }

    #[test]
    fn what_was_seen_has_what_had_ended_and_nothing_from_later() {
        let see = |groups: &[(u8, u64)], between| {
            let common = common();
            common.saw("a look", found(groups), between);
            common.judge()
        };
        see(&[(0, 1), (1, 1)], (12, 20)).unwrap();
        assert!(see(&[(0, 1), (1, 1)], (22, 30)).unwrap_err().contains("must be there"));
        assert!(see(&[(0, 1), (1, 2)], (12, 15)).unwrap_err().contains("not been asked"));
    }

    #[test]
    fn a_read_must_be_possible_where_its_transaction_took_place() {
        let common = Common::default();
        let mut first = deed(1, &[(0, None)], Some(11));
        first.reads.push((vec![0, 1, 5], value(9)));
        common.did(first);
        assert!(common.allows(&found(&[(0, 1)])).unwrap_err().contains("never was"));
    }
}
