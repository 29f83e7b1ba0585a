//! States that a store may have after a crash.
//!
//! Changes become visible commit by commit. A crash must leave a prefix of that list, with no
//! commit missing and none half done. The prefix reaches at least to the last commit that was
//! promised to be durable. A commit that returned an error, or did not return, is in doubt: it
//! is there or not, as a whole.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

pub type Value = Arc<[u8]>;
pub type Tree = BTreeMap<Vec<u8>, Value>;
/// Trees by name.
pub type State = BTreeMap<String, Tree>;

#[derive(Clone, Debug)]
pub enum Change {
    Put {
        tree: String,
        key: Vec<u8>,
        value: Value,
    },
    Delete {
        tree: String,
        key: Vec<u8>,
    },
    Create {
        tree: String,
    },
    Drop {
        tree: String,
    },
    /// A record that a heap got under an id that nobody was told.
    Append {
        tree: String,
        value: Value,
    },
    /// The keys of a range go, little by little.
    Remove {
        tree: String,
        lower: Vec<u8>,
        upper: Option<Vec<u8>>,
    },
    /// An empty tree is filled, little by little.
    Load {
        tree: String,
        entries: Tree,
    },
}

impl Change {
    pub fn apply(&self, state: &mut State) {
        match self {
            Change::Put { tree, key, value } => {
                if let Some(tree) = state.get_mut(tree) {
                    tree.insert(key.clone(), value.clone());
                }
            }
            Change::Delete { tree, key } => {
                if let Some(tree) = state.get_mut(tree) {
                    tree.remove(key);
                }
            }
            Change::Create { tree } => {
                state.entry(tree.clone()).or_default();
            }
            Change::Drop { tree } => {
                state.remove(tree);
            }
            Change::Append { .. } => {}
            Change::Remove { tree, lower, upper } => {
                let is_out =
                    |key: &Vec<u8>| key < lower || upper.as_ref().is_some_and(|upper| key >= upper);
                if let Some(tree) = state.get_mut(tree) {
                    tree.retain(|key, _| is_out(key));
                }
            }
            Change::Load { tree, entries } => {
                if let Some(tree) = state.get_mut(tree) {
                    tree.extend(entries.clone());
                }
            }
        }
    }

    /// The key under which an append may have put its record, if this was found.
    fn key_in(&self, state: &State, found: &State, later: &[Commit]) -> Option<Vec<u8>> {
        let Change::Append { tree: name, value } = self else { return None };
        let (before, after) = (state.get(name)?, found.get(name)?);
        let is_later = |key: &Vec<u8>| {
            let changes = later.iter().flat_map(|commit| &commit.changes);
            let mut puts = changes.filter_map(|change| match change {
                Change::Put { tree, key, .. } => Some((tree, key)),
                _ => None,
            });
            puts.any(|put| put == (name, key))
        };
        let new = after.iter().filter(|(key, found)| *found == value && !before.contains_key(*key));
        new.map(|(key, _)| key).find(|key| !is_later(key)).cloned()
    }
}

/// One transaction.
#[derive(Debug)]
struct Commit {
    changes: Vec<Change>,
    /// Nobody knows whether it took place.
    in_doubt: bool,
}

impl Commit {
    fn apply(&self, state: &mut State) {
        self.changes.iter().for_each(|change| change.apply(state));
    }

    /// Like `apply`, with the keys of appends deduced from `found` and the `later` commits.
    fn apply_to(&self, state: &mut State, found: &State, later: &[Commit]) {
        for change in &self.changes {
            if let (Change::Append { tree, value }, Some(key)) =
                (change, change.key_in(state, found, later))
                && let Some(tree) = state.get_mut(tree)
            {
                tree.insert(key, value.clone());
            }
            change.apply(state);
        }
    }

    /// Returns `true` if this commit, under way after `state`, may have led to `found`.
    fn is_amid(&self, state: &State, found: &State) -> bool {
        let [change @ (Change::Remove { tree: name, .. } | Change::Load { tree: name, .. })] =
            &self.changes[..]
        else {
            return false;
        };
        let mut after = state.clone();
        change.apply(&mut after);
        let all = [state, &after, found].map(|state| state.get(name));
        let [Some(before), Some(after), Some(part)] = all else { return false };
        let mut others = found.clone();
        others.insert(name.clone(), before.clone());
        let has = |tree: &Tree, (key, value): (&Vec<u8>, &Value)| tree.get(key) == Some(value);
        others == *state
            && part.iter().all(|entry| has(before, entry) || has(after, entry))
            && before.iter().all(|entry| !has(after, entry) || has(part, entry))
    }
}

/// Everything that happened since a state that was durable.
#[derive(Debug, Default)]
pub struct Oracle {
    base: State,
    history: Vec<Commit>,
    /// The first commits of the history up to this number are durable, as far as they took place.
    durable: usize,
    /// The visible state, unless a commit is in doubt.
    now: State,
    /// Another oracle that records the same commits for a while.
    pub shadow: Option<Box<Oracle>>,
}

impl Oracle {
    /// An oracle that begins with a state.
    pub fn at(state: State) -> Oracle {
        Oracle { base: state.clone(), now: state, ..Oracle::default() }
    }

    pub fn now(&self) -> &State {
        &self.now
    }

    pub fn committed(&mut self, changes: Vec<Change>, is_durable: bool) {
        if let Some(shadow) = &mut self.shadow {
            shadow.committed(changes.clone(), false);
        }
        changes.iter().for_each(|change| change.apply(&mut self.now));
        self.history.push(Commit { changes, in_doubt: false });
        if is_durable {
            self.flushed();
        }
    }

    pub fn in_doubt(&mut self, changes: Vec<Change>) {
        if let Some(shadow) = &mut self.shadow {
            shadow.in_doubt(changes.clone());
        }
        self.history.push(Commit { changes, in_doubt: true });
    }

    /// Everything so far is durable.
    pub fn flushed(&mut self) {
        self.durable = self.history.len();
        let settled = self.history.iter().take_while(|commit| !commit.in_doubt).count();
        for commit in self.history.drain(..settled) {
            commit.apply(&mut self.base);
        }
        self.durable -= settled;
    }

    /// Verifies that `found` may be there after a crash.
    ///
    /// # Errors
    /// An explanation, if it must not be there.
    pub fn allows(&self, found: &State) -> Result<(), String> {
        if matches(self.base.clone(), &self.history, self.durable, found) {
            return Ok(());
        }
        Err(self.explain(found))
    }

    /// Takes the state found after a crash as the present state.
    ///
    /// # Errors
    /// The same as those of [`Oracle::allows`].
    pub fn settle(&mut self, found: State) -> Result<(), String> {
        self.allows(&found)?;
        *self = Oracle::at(found);
        Ok(())
    }

    fn explain(&self, found: &State) -> String {
        let (mut state, mut closest) = (self.base.clone(), (usize::MAX, 0, State::new()));
        for at in 0..=self.history.len() {
            let count = differences(&state, found).len();
            if count < closest.0 {
                closest = (count, at, state.clone());
            }
            if let Some(commit) = self.history.get(at) {
                commit.apply(&mut state);
            }
        }
        let (_, at, expected) = closest;
        let (all, durable) = (self.history.len(), self.durable);
        let mut text = format!(
            "what is there is no state that may be there: of {all} commits since the last known \
             state the first {durable} are durable; closest is the state after {at}, with these \
             differences:"
        );
        for line in differences(&expected, found).iter().take(8) {
            let _ = write!(text, "\n    {line}");
        }
        let rest = &self.history[at.saturating_sub(1)..(at + 2).min(all)];
        for (i, commit) in (at.saturating_sub(1)..).zip(rest) {
            let changes: Vec<String> = commit.changes.iter().map(brief).collect();
            let doubt = if commit.in_doubt { " (in doubt)" } else { "" };
            let _ = write!(text, "\n  commit {}{doubt}: {}", i + 1, changes.join(", "));
        }
        text
    }
}

/// Returns `true` if `found` is `state` after a prefix of `rest` of at least `durable` commits.
fn matches(mut state: State, rest: &[Commit], durable: usize, found: &State) -> bool {
    for (at, commit) in rest.iter().enumerate() {
        if at >= durable && (state == *found || commit.is_amid(&state, found)) {
            return true;
        }
        if commit.in_doubt
            && matches(state.clone(), &rest[at + 1..], durable.saturating_sub(at + 1), found)
        {
            return true;
        }
        commit.apply_to(&mut state, found, &rest[at + 1..]);
    }
    state == *found
}

fn differences(expected: &State, found: &State) -> Vec<String> {
    let mut lines = Vec::new();
    for name in expected.keys().filter(|name| !found.contains_key(*name)) {
        lines.push(format!("tree {name} is missing"));
    }
    for (name, tree) in found {
        let Some(wanted) = expected.get(name) else {
            lines.push(format!("tree {name} should not be there"));
            continue;
        };
        for (key, value) in wanted {
            match tree.get(key) {
                None => lines.push(format!("{name}/{} is missing", name_of(key))),
                Some(other) if other != value => {
                    let (is, should) = (shown(other), shown(value));
                    lines.push(format!("{name}/{} is {is}, not {should}", name_of(key)));
                }
                Some(_) => {}
            }
        }
        for (key, value) in tree.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
            let (key, value) = (name_of(key), shown(value));
            lines.push(format!("{name}/{key} = {value} should not be there"));
        }
    }
    lines
}

/// Keys are told apart by their beginning.
pub fn name_of(key: &[u8]) -> String {
    let start: Vec<String> = key.iter().take(3).map(|byte| format!("{byte:02x}")).collect();
    if key.len() > 3 { format!("{}+{}", start.concat(), key.len() - 3) } else { start.concat() }
}

/// Values are told apart by their first bytes and their length.
pub fn shown(value: &[u8]) -> String {
    let start: Vec<String> = value.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}({} B)", start.concat(), value.len())
}

fn brief(change: &Change) -> String {
    match change {
        Change::Put { tree, key, value } => {
            format!("put {tree}/{} {}", name_of(key), shown(value))
        }
        Change::Delete { tree, key } => format!("delete {tree}/{}", name_of(key)),
        Change::Create { tree } => format!("create {tree}"),
        Change::Drop { tree } => format!("drop {tree}"),
        Change::Append { tree, value } => format!("append {} to {tree}", shown(value)),
        Change::Remove { tree, lower, upper } => {
            let upper = upper.as_ref().map_or("the end".into(), |upper| name_of(upper));
            format!("remove {tree}/{} to {upper}", name_of(lower))
        }
        Change::Load { tree, entries } => format!("load {} entries into {tree}", entries.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: u8, value: u8) -> Change {
        Change::Put { tree: "t".into(), key: vec![key], value: Arc::new([value]) }
    }

    fn state(entries: &[(u8, u8)]) -> State {
        let entries = entries.iter().map(|(k, v)| (vec![*k], Value::from([*v])));
        State::from([("t".to_string(), entries.collect())])
    }

    /// One durable commit of key 1, then three of keys 2 and 3, 4, and 5 that are not; with or
    /// without the third in doubt.
    fn oracle(in_doubt: bool) -> Oracle {
        let mut oracle = Oracle::default();
        oracle.committed(vec![Change::Create { tree: "t".into() }, put(1, 1)], true);
        oracle.committed(vec![put(2, 2), put(3, 3)], false);
        if in_doubt {
            oracle.in_doubt(vec![put(4, 4)]);
        } else {
            oracle.committed(vec![put(4, 4)], false);
        }
        oracle.committed(vec![put(5, 5)], false);
        oracle
    }

    #[test]
    fn beginnings_may_be_there_and_nothing_else() {
        let all = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)];
        for subset in 0..32u32 {
            let chosen = all.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1);
            let found: Vec<_> = chosen.map(|(_, entry)| *entry).collect();
            let may = |in_doubt| oracle(in_doubt).settle(state(&found)).is_ok();
            let is_beginning = [1, 0b111, 0b1111, 0b11111].contains(&subset);
            assert_eq!(may(false), is_beginning, "{found:?}");
            assert_eq!(may(true), is_beginning || subset == 0b10111, "{found:?}");
        }
        let error = oracle(false).settle(state(&[(1, 1), (2, 2)])).unwrap_err();
        assert!(error.contains("t/02 = 02(1 B) should not be there"), "{error}");
        assert!(oracle(false).settle(State::new()).is_err());
    }

    #[test]
    fn an_append_in_doubt_is_there_under_any_free_id_or_not() {
        let append = || Change::Append { tree: "t".into(), value: Arc::new([9]) };
        let mut oracle = Oracle::at(state(&[(1, 9)]));
        oracle.in_doubt(vec![append()]);
        oracle.committed(vec![put(2, 9)], false);
        for (found, may) in [
            (&[(1, 9)][..], true),
            (&[(1, 9), (7, 9)], true),
            (&[(1, 9), (2, 9)], true),
            (&[(1, 9), (2, 9), (7, 9)], true),
            (&[(1, 9), (7, 8)], false),
            (&[(1, 9), (7, 9), (8, 9)], false),
            (&[(7, 9)], false),
        ] {
            assert_eq!(oracle.allows(&state(found)).is_ok(), may, "{found:?}");
        }
    }

    #[test]
    fn what_goes_little_by_little_may_be_gone_in_part_if_nothing_is_behind_it() {
        let all = [(1, 1), (2, 2), (3, 3), (4, 4)];
        let (tree, lower, upper) = ("t".to_string(), vec![2], Some(vec![4]));
        let mut oracle = Oracle::at(state(&all));
        oracle.committed(vec![Change::Remove { tree, lower, upper }], false);
        let may = |oracle: &Oracle, found: &[(u8, u8)]| oracle.allows(&state(found)).is_ok();
        for found in [&all[..], &[(1, 1), (3, 3), (4, 4)], &[(1, 1), (4, 4)]] {
            assert!(may(&oracle, found), "{found:?}");
        }
        assert!(
            !may(&oracle, &[(1, 1), (2, 2), (3, 3)]) && !may(&oracle, &[(1, 1), (2, 9), (4, 4)])
        );
        oracle.committed(vec![put(5, 5)], false);
        assert!(!may(&oracle, &[(1, 1), (3, 3), (4, 4), (5, 5)]));
        assert!(may(&oracle, &[(1, 1), (4, 4), (5, 5)]));
        let entries = [1, 2].map(|key| (vec![key], Value::from([key]))).into_iter().collect();
        let mut oracle = Oracle::at(state(&[]));
        oracle.committed(vec![Change::Load { tree: "t".into(), entries }], true);
        assert!(may(&oracle, &[(1, 1), (2, 2)]) && !may(&oracle, &[(1, 1)]));
    }

    #[test]
    fn what_was_flushed_must_be_there_and_what_is_in_doubt_still_need_not() {
        let mut sure = oracle(true);
        sure.flushed();
        assert!(sure.settle(state(&[(1, 1), (2, 2), (3, 3), (5, 5)])).is_ok());
        let mut sure = oracle(true);
        sure.flushed();
        assert!(sure.settle(state(&[(1, 1), (2, 2), (3, 3)])).is_err());
        // What was found counts from then on.
        let mut sure = oracle(false);
        sure.settle(state(&[(1, 1)])).unwrap();
        sure.in_doubt(vec![put(1, 9)]);
        assert!(sure.settle(state(&[(1, 1), (2, 2), (3, 3)])).is_err());
        assert!(sure.settle(state(&[(1, 9)])).is_ok());
    }
}
