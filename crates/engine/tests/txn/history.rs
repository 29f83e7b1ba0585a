//! Recorded histories of transactions, and the check that a serial order explains them.
//!
//! Every value is written once, so a read tells whose write it saw. The versions of a key are
//! ordered by numbers that their transactions drew when they ended, before they gave their locks
//! back; a call outside transactions has no such number, but knows what it replaced. From this
//! follows the graph of dependencies (Adya's *direct serialization graph*). A transaction that
//! replaced a version comes after its writer (`ww`), and so does one that read it (`wr`). A
//! transaction that replaced a version comes after each of its readers (`rw`). A thread's
//! transactions come in their order. No serial order explains a cycle among those that committed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A tree's number and a key.
pub type Key = (u8, u8);
/// A value that is written once; `None`: no entry.
pub type Value = Option<u64>;

/// One transaction, or one call outside transactions.
#[derive(Clone, Default, Debug)]
pub struct Entry {
    pub thread: usize,
    pub committed: bool,
    /// Drawn at the end, while all locks were held; of a call, within it, or not at all.
    pub number: Option<u64>,
    /// Values that the transaction read and had not written before.
    pub reads: Vec<(Key, Value)>,
    /// Values that the transaction left when it committed, or would have left.
    pub writes: BTreeMap<Key, Value>,
    /// Values that the transaction wrote and then overwrote or rolled back itself.
    pub passing: Vec<u64>,
    /// Of a call without number: the value that its write replaced.
    pub replaced: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Anomaly {
    /// Something was read that its writer rolled back, or never committed.
    AbortedRead { reader: usize, writer: usize },
    /// Something was read that its writer overwrote itself.
    IntermediateRead { reader: usize, writer: usize },
    /// Something was read that nobody wrote.
    UnknownValue { reader: usize, value: u64 },
    /// No entry was found where there had been one all the time.
    MissedValue { reader: usize, key: Key },
    /// Two calls replaced the same version.
    LostUpdate { key: Key, value: u64 },
    /// The final value is not the one written last.
    WrongEnd { key: Key, found: Value, expected: Value },
    /// The listed entries depend on each other in a cycle.
    Circle(Vec<usize>),
}

/// Entries, and the values before and after them. The one that wrote what was there at first has
/// the number 0 and is no entry of its own: its index is [`History::FIRST`].
#[derive(Clone, Default, Debug)]
pub struct History {
    pub first: BTreeMap<Key, Value>,
    pub entries: Vec<Entry>,
    pub last: BTreeMap<Key, Value>,
}

#[derive(Clone, Copy, Debug)]
struct Version {
    writer: usize,
    value: Value,
    /// Of the writer, or of the last one before it that had any.
    number: u64,
}

/// Writer of a value, and the value's fate.
#[derive(Clone, Copy)]
struct Written {
    writer: usize,
    is_final: bool,
    committed: bool,
}

#[derive(Default)]
struct Findings {
    anomalies: BTreeSet<Anomaly>,
    edges: HashMap<usize, HashSet<usize>>,
}

impl Findings {
    fn edge(&mut self, from: usize, to: usize) {
        if from != to && from != History::FIRST && to != History::FIRST {
            self.edges.entry(from).or_default().insert(to);
        }
    }
}

impl History {
    pub const FIRST: usize = usize::MAX;

    /// All that no order of the committed entries explains.
    pub fn anomalies(&self) -> Vec<Anomaly> {
        let mut found = Findings::default();
        let written = self.written();
        let keys: BTreeSet<Key> = self.first.keys().copied().collect();
        for key in keys {
            let versions = self.versions(key, &mut found);
            for pair in versions.windows(2) {
                found.edge(pair[0].writer, pair[1].writer);
            }
            for (reader, entry) in self.entries.iter().enumerate() {
                for (_, value) in entry.reads.iter().filter(|read| read.0 == key) {
                    let read = (reader, *value);
                    if let Some(at) = self.version_read(key, read, &versions, &written, &mut found)
                        && entry.committed
                    {
                        found.edge(versions[at].writer, reader);
                        if let Some(next) = versions.get(at + 1) {
                            found.edge(reader, next.writer);
                        }
                    }
                }
            }
            let expected = versions.last().and_then(|version| version.value);
            let end = self.last.get(&key).copied().flatten();
            if end != expected {
                found.anomalies.insert(Anomaly::WrongEnd { key, found: end, expected });
            }
        }
        self.order_threads(&mut found);
        let circle = self.circle(&found.edges).map(Anomaly::Circle);
        found.anomalies.into_iter().chain(circle).collect()
    }

    fn written(&self) -> HashMap<u64, Written> {
        let mut written = HashMap::new();
        for value in self.first.values().flatten() {
            let first = Written { writer: Self::FIRST, is_final: true, committed: true };
            written.insert(*value, first);
        }
        for (writer, entry) in self.entries.iter().enumerate() {
            let committed = entry.committed;
            for value in entry.writes.values().flatten() {
                written.insert(*value, Written { writer, is_final: true, committed });
            }
            for value in &entry.passing {
                written.insert(*value, Written { writer, is_final: false, committed });
            }
        }
        written
    }

    /// All committed versions of `key`, in order.
    fn versions(&self, key: Key, found: &mut Findings) -> Vec<Version> {
        let mut versions = vec![Version {
            writer: Self::FIRST,
            value: self.first.get(&key).copied().flatten(),
            number: 0,
        }];
        let all = self.entries.iter().enumerate().filter(|(_, entry)| entry.committed);
        let writers =
            all.filter_map(|(writer, entry)| Some((writer, entry, *entry.writes.get(&key)?)));
        let (mut numbered, mut calls): (Vec<_>, Vec<_>) =
            writers.partition(|(_, entry, _)| entry.number.is_some());
        numbered.sort_by_key(|(_, entry, _)| entry.number);
        versions.extend(numbered.iter().map(|(writer, entry, value)| Version {
            writer: *writer,
            value: *value,
            number: entry.number.unwrap_or_default(),
        }));
        // A call comes right behind what it replaced, which another call may have written.
        let mut replaced = HashSet::new();
        while !calls.is_empty() {
            let before = calls.len();
            calls.retain(|(writer, entry, value)| {
                let is_it = |version: &Version| version.value == entry.replaced;
                let Some(at) = versions.iter().position(is_it) else { return true };
                if !replaced.insert(entry.replaced) {
                    let value = entry.replaced.unwrap_or_default();
                    found.anomalies.insert(Anomaly::LostUpdate { key, value });
                }
                let number = versions[at].number;
                versions.insert(at + 1, Version { writer: *writer, value: *value, number });
                false
            });
            if calls.len() == before {
                // What they replaced was never committed.
                for (reader, entry, _) in &calls {
                    let value = entry.replaced.unwrap_or_default();
                    found.anomalies.insert(Anomaly::UnknownValue { reader: *reader, value });
                }
                break;
            }
        }
        versions
    }

    /// Returns the version that a read saw; `None` if unknown, or if it should not have been seen.
    fn version_read(
        &self,
        key: Key,
        (reader, value): (usize, Value),
        versions: &[Version],
        written: &HashMap<u64, Written>,
        found: &mut Findings,
    ) -> Option<usize> {
        let Some(value) = value else { return self.absence_read(key, reader, versions, found) };
        let anomaly = match written.get(&value) {
            None => Anomaly::UnknownValue { reader, value },
            Some(&Written { writer, committed: false, .. }) => {
                Anomaly::AbortedRead { reader, writer }
            }
            Some(&Written { writer, is_final: false, .. }) => {
                Anomaly::IntermediateRead { reader, writer }
            }
            Some(_) => return versions.iter().position(|version| version.value == Some(value)),
        };
        found.anomalies.insert(anomaly);
        None
    }

    /// No entry was found: the last such version before the reader's end is what it saw. Without a
    /// number it may be any.
    fn absence_read(
        &self,
        key: Key,
        reader: usize,
        versions: &[Version],
        found: &mut Findings,
    ) -> Option<usize> {
        let end = self.entries[reader].number.unwrap_or(u64::MAX);
        // What it read lies before what it wrote itself.
        let own = versions.iter().position(|version| version.writer == reader);
        let before = versions.get(..own.unwrap_or(versions.len())).unwrap_or(&[]);
        let is_it = |version: &Version| version.value.is_none() && version.number <= end;
        let at = before.iter().rposition(is_it);
        if at.is_none() {
            found.anomalies.insert(Anomaly::MissedValue { reader, key });
        }
        at.filter(|_| self.entries[reader].number.is_some())
    }

    fn order_threads(&self, found: &mut Findings) {
        let mut last = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate().filter(|(_, entry)| entry.committed) {
            if let Some(before) = last.insert(entry.thread, at) {
                found.edge(before, at);
            }
        }
    }

    /// A circle, if there is one: what is left when all that have no predecessor are taken away,
    /// again and again, and then followed back from one to the next.
    fn circle(&self, edges: &HashMap<usize, HashSet<usize>>) -> Option<Vec<usize>> {
        let mut before: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (from, to) in edges.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to)))
        {
            before.entry(*from).or_default();
            before.entry(*to).or_default().insert(*from);
        }
        loop {
            let free: Vec<usize> =
                before.iter().filter(|(_, all)| all.is_empty()).map(|(node, _)| *node).collect();
            if free.is_empty() {
                break;
            }
            for node in &free {
                before.remove(node);
            }
            for all in before.values_mut() {
                free.iter().for_each(|node| {
                    all.remove(node);
                });
            }
        }
        let mut way = vec![*before.keys().next()?];
        loop {
            let node = *before[way.last()?].iter().next()?;
            if let Some(at) = way.iter().position(|seen| *seen == node) {
                way.drain(..at);
                way.reverse();
                return Some(way);
            }
            way.push(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Key = (0, 1);
    const Y: Key = (1, 1);

    /// A committed transaction with this number, what it read, and what it wrote.
    fn entry(number: u64, reads: &[(Key, Value)], writes: &[(Key, Value)]) -> Entry {
        Entry {
            thread: number as usize,
            committed: true,
            number: Some(number),
            reads: reads.to_vec(),
            writes: writes.iter().copied().collect(),
            ..Entry::default()
        }
    }

    fn of(entries: &[Entry], x: Value, y: Value) -> Vec<Anomaly> {
        let first = BTreeMap::from([(X, Some(100)), (Y, Some(200))]);
        let last = BTreeMap::from([(X, x), (Y, y)]);
        History { first, entries: entries.to_vec(), last }.anomalies()
    }

    #[test]
    fn what_was_done_one_after_the_other_is_no_anomaly() {
        let entries = [
            entry(1, &[(X, Some(100))], &[(X, Some(1))]),
            entry(2, &[(X, Some(1)), (Y, Some(200))], &[(Y, None)]),
            entry(3, &[(Y, None), (X, Some(1))], &[(Y, Some(3))]),
            entry(4, &[(Y, Some(3))], &[]),
        ];
        assert_eq!(of(&entries, Some(1), Some(3)), []);
        // The order need not be that of the numbers: the first reader saw nothing of the writer.
        let entries =
            [entry(1, &[], &[(X, Some(1))]), entry(2, &[(X, Some(100)), (Y, Some(200))], &[])];
        assert_eq!(of(&entries, Some(1), Some(200)), []);
    }

    #[test]
    fn a_lost_update_is_a_circle() {
        let entries = [
            entry(1, &[(X, Some(100))], &[(X, Some(1))]),
            entry(2, &[(X, Some(100))], &[(X, Some(2))]),
        ];
        assert!(matches!(of(&entries, Some(2), Some(200))[..], [Anomaly::Circle(_)]));
    }

    #[test]
    fn read_skew_and_write_skew_are_circles() {
        let entries = [
            entry(1, &[], &[(X, Some(1)), (Y, Some(2))]),
            entry(2, &[(X, Some(100)), (Y, Some(2))], &[]),
        ];
        assert!(matches!(of(&entries, Some(1), Some(2))[..], [Anomaly::Circle(_)]));
        let both = [(X, Some(100)), (Y, Some(200))];
        let entries = [entry(1, &both, &[(X, Some(1))]), entry(2, &both, &[(Y, Some(2))])];
        assert!(matches!(of(&entries, Some(1), Some(2))[..], [Anomaly::Circle(_)]));
    }

    #[test]
    fn a_read_that_does_not_repeat_and_a_phantom_are_circles() {
        let entries =
            [entry(1, &[], &[(X, Some(1))]), entry(2, &[(X, Some(100)), (X, Some(1))], &[])];
        assert!(matches!(of(&entries, Some(1), Some(200))[..], [Anomaly::Circle(_)]));
        // First X was there, and then it was not: a phantom that went.
        let entries = [entry(1, &[], &[(X, None)]), entry(2, &[(X, Some(100)), (X, None)], &[])];
        assert!(matches!(of(&entries, None, Some(200))[..], [Anomaly::Circle(_)]));
    }

    #[test]
    fn the_anomaly_of_the_reader_is_a_circle_of_three() {
        let entries = [
            entry(1, &[(Y, Some(200))], &[(Y, Some(2))]),
            entry(2, &[(X, Some(100)), (Y, Some(2))], &[]),
            entry(3, &[(X, Some(100)), (Y, Some(200))], &[(X, Some(1))]),
        ];
        let found = of(&entries, Some(1), Some(2));
        assert!(matches!(&found[..], [Anomaly::Circle(all)] if all.len() == 3), "{found:?}");
    }

    #[test]
    fn what_flows_in_a_circle_is_a_circle() {
        let entries = [
            entry(1, &[(Y, Some(2))], &[(X, Some(1))]),
            entry(2, &[(X, Some(1))], &[(Y, Some(2))]),
        ];
        assert!(matches!(of(&entries, Some(1), Some(2))[..], [Anomaly::Circle(_)]));
    }

    #[test]
    fn writes_that_are_mixed_leave_a_wrong_end() {
        let entries = [
            entry(1, &[], &[(X, Some(1)), (Y, Some(2))]),
            entry(2, &[], &[(X, Some(3)), (Y, Some(4))]),
        ];
        let wrong = Anomaly::WrongEnd { key: Y, found: Some(2), expected: Some(4) };
        assert_eq!(of(&entries, Some(3), Some(2)), [wrong]);
    }

    #[test]
    fn reads_of_what_is_not_to_be_seen_are_told() {
        let reader = |value| entry(2, &[(X, value)], &[]);
        let aborted = Entry { committed: false, ..entry(1, &[], &[(X, Some(1))]) };
        let found = of(&[aborted, reader(Some(1))], Some(100), Some(200));
        assert_eq!(found, [Anomaly::AbortedRead { reader: 1, writer: 0 }]);
        let passing = Entry { passing: vec![7], ..entry(1, &[], &[(X, Some(1))]) };
        let found = of(&[passing, reader(Some(7))], Some(1), Some(200));
        assert_eq!(found, [Anomaly::IntermediateRead { reader: 1, writer: 0 }]);
        let found = of(&[reader(Some(9))], Some(100), Some(200));
        assert_eq!(found, [Anomaly::UnknownValue { reader: 0, value: 9 }]);
        let found = of(&[reader(None)], Some(100), Some(200));
        assert_eq!(found, [Anomaly::MissedValue { reader: 0, key: X }]);
    }

    #[test]
    fn calls_outside_transactions_have_their_place_behind_what_they_replaced() {
        let call = |thread, old, new| Entry {
            number: None,
            replaced: Some(old),
            thread,
            ..entry(0, &[(X, Some(old))], &[(X, Some(new))])
        };
        let entries = [call(1, 1, 2), call(2, 100, 1), entry(5, &[(X, Some(2))], &[])];
        assert_eq!(of(&entries, Some(2), Some(200)), []);
        let found = of(&[call(1, 100, 1), call(2, 100, 2)], Some(1), Some(200));
        let lost = Anomaly::LostUpdate { key: X, value: 100 };
        assert!(found.contains(&lost) && found.len() > 1, "{found:?}");
    }

    #[test]
    fn a_thread_does_not_go_back_in_time() {
        let entries = [
            entry(1, &[(X, Some(2))], &[]),
            Entry { thread: 1, ..entry(3, &[(X, Some(100))], &[]) },
            entry(2, &[], &[(X, Some(2))]),
        ];
        assert!(matches!(of(&entries, Some(2), Some(200))[..], [Anomaly::Circle(_)]));
    }
}
