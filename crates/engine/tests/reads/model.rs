//! Expected contents of a structure.

use std::collections::BTreeMap;
use std::ops::Bound;

pub type Row = (Vec<u8>, Vec<u8>);

/// Possible values of a key: only one, unless a change of it failed.
type Slot = Vec<Option<Vec<u8>>>;

#[derive(Clone, Debug, Default)]
pub struct Model {
    rows: BTreeMap<Vec<u8>, Slot>,
}

/// An answer that cannot be.
#[derive(Debug)]
pub struct Wrong(pub String);

fn shown(bytes: &[u8]) -> String {
    let head: String = bytes.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{head}[{}]", bytes.len())
}

fn shown_slot(slot: Option<&Slot>) -> String {
    let values = slot.cloned().unwrap_or_else(|| vec![None]);
    let values = values.iter().map(|v| v.as_deref().map_or("nothing".to_string(), shown));
    values.collect::<Vec<_>>().join(" or ")
}

impl Model {
    /// The key has this, for certain.
    pub fn set(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        match value {
            None => drop(self.rows.remove(key)),
            value => drop(self.rows.insert(key.to_vec(), vec![value])),
        }
    }

    /// The key may have this value, too: the change that should have put it there failed.
    pub fn may_be(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        let slot = self.rows.entry(key.to_vec()).or_insert_with(|| vec![None]);
        if !slot.contains(&value) {
            slot.push(value);
        }
    }

    /// Any key, as near as possible behind `from`.
    pub fn key_near(&self, from: &[u8]) -> Option<Vec<u8>> {
        let mut behind = self.rows.range(from.to_vec()..);
        behind.next().or_else(|| self.rows.iter().next()).map(|(key, _)| key.clone())
    }

    pub fn may_hold(&self, key: &[u8], found: Option<&[u8]>) -> Result<(), Wrong> {
        let slot = self.rows.get(key);
        let is_right = match slot {
            None => found.is_none(),
            Some(slot) => slot.iter().any(|value| value.as_deref() == found),
        };
        is_right.then_some(()).ok_or_else(|| {
            let found = found.map_or("nothing".to_string(), shown);
            Wrong(format!("{} has {found}, not {}", shown(key), shown_slot(slot)))
        })
    }

    /// Verifies an answer that tells only that the key was there, or was not.
    pub fn may_have_had(&self, key: &[u8], was_there: bool) -> Result<(), Wrong> {
        let is_right = match self.rows.get(key) {
            None => !was_there,
            Some(slot) => slot.iter().any(|value| value.is_some() == was_there),
        };
        let wrong = || Wrong(format!("{} was there: {was_there}", shown(key)));
        is_right.then_some(()).ok_or_else(wrong)
    }

    /// Verifies that `found` are the rows in these bounds, in order. After a scan that ended with
    /// an error they must be the first of them in its direction.
    pub fn may_be_rows(
        &self,
        bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>),
        found: &[Row],
        backwards: bool,
        is_whole: bool,
    ) -> Result<(), Wrong> {
        if is_empty(&bounds) {
            let wrong = || Wrong("rows in an empty range".to_string());
            return found.is_empty().then_some(()).ok_or_else(wrong);
        }
        let mut wanted: Vec<(&Vec<u8>, &Slot)> = self.rows.range(bounds).collect();
        if backwards {
            wanted.reverse();
        }
        let mut wanted = wanted.into_iter().peekable();
        for (key, value) in found {
            loop {
                let Some((next, slot)) = wanted.next() else {
                    return Err(Wrong(format!("{} behind the last row", shown(key))));
                };
                if next == key {
                    let is_one = slot.iter().flatten().any(|one| one == value);
                    if !is_one {
                        let (found, wanted) = (shown(value), shown_slot(Some(slot)));
                        return Err(Wrong(format!("{}: {found}, not {wanted}", shown(key))));
                    }
                    break;
                }
                if !slot.contains(&None) {
                    let (found, wanted) = (shown(key), shown(next));
                    return Err(Wrong(format!("row {found} where {wanted} is the next")));
                }
            }
        }
        match wanted.find(|(_, slot)| is_whole && !slot.contains(&None)) {
            None => Ok(()),
            Some((key, _)) => Err(Wrong(format!("{} is missing at the end", shown(key)))),
        }
    }

    /// The fewest and the most rows that there may be.
    pub fn counts(&self) -> (u64, u64) {
        let least = self.rows.values().filter(|slot| !slot.contains(&None)).count();
        (least as u64, self.rows.len() as u64)
    }

    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.rows.keys().cloned().collect()
    }
}

fn is_empty(bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> bool {
    match bounds {
        (Bound::Included(low), Bound::Excluded(high)) => low >= high,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Excluded(low), Bound::Excluded(high) | Bound::Included(high)) => low >= high,
        _ => false,
    }
}
