//! Scans of a hash index or a heap in every context: batch by batch, a bucket or a data page at a
//! time.
//!
//! Outside transactions, a scan copies batches and returns their entries as long as no write lock
//! was held since it began. From the first batch with a concurrent writer on, it reads a snapshot
//! of its own, as a range of a tree does (`store/range.rs`).

use std::collections::VecDeque;
use std::panic::Location;
use std::sync::Arc;

use crate::api::context::Inside;
use crate::page::{Batch, BatchEntry};
use crate::store::counted::ScanCount;
use crate::store::error::Error;
use crate::store::member::{Member, bulk_modified};
use crate::txn::{Snapshot, TxnError};

/// The version of the data that a scan reads.
enum View<'t> {
    /// Pages as they are, where there are no locks.
    Plain,
    /// Pages that were copied while nobody wrote, since this token was given.
    Quiet(u64),
    /// A snapshot of its own.
    Own(Arc<Snapshot>),
    /// The user's transaction or snapshot, and the number of the transaction's writes so far.
    Inside(Inside<'t>, u64),
}

/// The entries of a hash index or a heap, from both ends; a hash index has only a front.
pub(crate) struct Scan<'t> {
    member: &'t dyn Member,
    view: View<'t>,
    /// The position at which the scan begins.
    start: u64,
    /// Positions from here on were read from neither end; `None` if all were read.
    lower: Option<u64>,
    /// Positions from here on were read from the back; `None` if none were.
    upper: Option<u64>,
    front: VecDeque<BatchEntry>,
    back: VecDeque<BatchEntry>,
    /// Set if the front, or the back, has returned an entry.
    is_used: [bool; 2],
    /// Entries at the same position before, or behind, these were returned already.
    given: [Option<BatchEntry>; 2],
    batch: Batch,
    caller: &'static Location<'static>,
    count: ScanCount<'t>,
    is_over: bool,
}

impl<'t> Scan<'t> {
    #[track_caller]
    pub(crate) fn begin(member: &'t dyn Member, inside: Option<Inside<'t>>, from: u64) -> Scan<'t> {
        let view = match (inside, member.transactions().locks()) {
            (Some(inside), _) => View::Inside(inside, inside.writes()),
            (None, None) => View::Plain,
            // If a writer is active, there is no token, and no later state counts as quiet.
            (None, Some(locks)) => View::Quiet(locks.quiet().unwrap_or(u64::MAX)),
        };
        Scan {
            member,
            view,
            start: from,
            lower: Some(from),
            upper: None,
            front: VecDeque::new(),
            back: VecDeque::new(),
            is_used: [false; 2],
            given: [None, None],
            batch: Batch::default(),
            caller: Location::caller(),
            count: ScanCount::begin(member.statistics()),
            is_over: false,
        }
    }

    /// Returns the name of the structure.
    pub(crate) fn name(&self) -> &str {
        self.member.name()
    }

    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    /// Returns the next entry from an end, or nothing after an error.
    pub(crate) fn next(&mut self, forward: bool) -> Option<Result<BatchEntry, Error>> {
        if self.is_over {
            return None;
        }
        let next = self.step(forward);
        match &next {
            Ok(Some(_)) => self.count.rows += 1,
            Ok(None) | Err(_) => self.is_over = true,
        }
        next.transpose()
    }

    fn step(&mut self, forward: bool) -> Result<Option<BatchEntry>, Error> {
        self.member.may_read()?;
        self.refresh();
        loop {
            let ready = if forward { &mut self.front } else { &mut self.back };
            let next = if forward { ready.pop_front() } else { ready.pop_back() };
            if next.is_none() && self.lower.is_some() {
                self.fill(forward)?;
                continue;
            }
            self.is_used[usize::from(!forward)] = true;
            let other = if forward { &mut self.back } else { &mut self.front };
            return Ok(next.or_else(|| if forward { other.pop_front() } else { other.pop_back() }));
        }
    }

    /// Discards what was read ahead if the transaction has written since.
    fn refresh(&mut self) {
        let View::Inside(inside, writes) = &mut self.view else { return };
        let now = inside.writes();
        if std::mem::replace(writes, now) == now {
            return;
        }
        let (front, back) = (&self.front, &self.back);
        let rest = self.lower.is_none();
        let first = front.front().or(back.front().filter(|_| rest)).cloned();
        let last = back.back().or(front.back().filter(|_| rest)).cloned();
        if rest && first.is_none() {
            return;
        }
        let [is_front_used, is_back_used] = self.is_used;
        match first {
            Some(first) if is_front_used => {
                self.lower = Some(first.position);
                self.given[0] = Some(first);
            }
            _ if is_front_used => {}
            _ => self.lower = Some(self.start),
        }
        match last {
            Some(last) if is_back_used => {
                self.upper = last.position.checked_add(1);
                self.given[1] = Some(last);
            }
            _ if is_back_used => {}
            _ => self.upper = None,
        }
        self.front.clear();
        self.back.clear();
    }

    /// Reads the next batch at an end.
    fn fill(&mut self, forward: bool) -> Result<(), Error> {
        let Some(lower) = self.lower else { return Ok(()) };
        let from = if forward { lower } else { self.upper.unwrap_or(u64::MAX) };
        let end = self.read(from, forward)?;
        let entries = &mut self.batch.entries;
        let upper = self.upper;
        entries.retain(|e| e.position >= lower && upper.is_none_or(|upper| e.position < upper));
        let [before, behind] = &self.given;
        entries.retain(|e| {
            let is_given = |given: &Option<BatchEntry>, less: bool| {
                given.as_ref().is_some_and(|given| {
                    given.position == e.position
                        && given.key != e.key
                        && (e.key < given.key) == less
                })
            };
            !is_given(before, true) && !is_given(behind, false)
        });
        if forward {
            self.front.extend(entries.drain(..));
            self.lower = end;
        } else {
            self.back.extend(entries.drain(..));
            self.upper = Some(end.unwrap_or(0));
        }
        // Both ends have met.
        if self.upper.is_some_and(|upper| self.lower.is_none_or(|lower| lower >= upper)) {
            self.lower = None;
        }
        Ok(())
    }

    /// Reads the entries that share a position; returns the end of the positions read.
    fn read(&mut self, from: u64, forward: bool) -> Result<Option<u64>, Error> {
        let (member, batch) = (self.member, &mut self.batch);
        loop {
            let snapshot = match &self.view {
                View::Plain => return Ok(member.as_structure().batch(from, forward, batch)?),
                View::Quiet(token) => {
                    let end = member.as_structure().batch(from, forward, batch)?;
                    if member.transactions().locks().is_some_and(|l| l.still_quiet(*token)) {
                        return Ok(end);
                    }
                    None
                }
                View::Inside(Inside::Snapshot(snapshot), _) => {
                    return snapshot.batch_of(member, from, forward, batch);
                }
                View::Inside(Inside::Txn(txn), _) => {
                    let end = txn.call(|txn| txn.batch_of(member, from, forward, batch))?;
                    batch.entries.sort_unstable();
                    return Ok(end);
                }
                View::Own(snapshot) => Some(snapshot),
            };
            if let Some(snapshot) = snapshot {
                match snapshot.batch(member.as_structure(), from, forward, batch) {
                    Ok(end) => return Ok(end),
                    Err(error) => wait_for(member, error)?,
                }
            }
            // Drop the old snapshot first: it would keep its epoch.
            self.view = View::Plain;
            self.view = View::Own(member.begin_snapshot(self.caller)?);
        }
    }
}

/// Waits for a structure that was being emptied when a snapshot began. Fails if the read failed for
/// another reason.
fn wait_for(member: &dyn Member, error: TxnError) -> Result<(), Error> {
    match bulk_modified(&error) {
        Some(owner) => Ok(member.transactions().wait_for_tree(owner)?),
        None => Err(error.into()),
    }
}

/// Counts the entries that a scan of the structure returns.
#[track_caller]
pub(crate) fn count(member: &dyn Member, inside: Option<Inside<'_>>) -> Result<u64, Error> {
    let (mut scan, mut count) = (Scan::begin(member, inside, 0), 0);
    while let Some(entry) = scan.next(true) {
        entry?;
        count += 1;
    }
    Ok(count)
}
