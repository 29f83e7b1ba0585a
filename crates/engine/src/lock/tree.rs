//! The locks on one tree as a whole: intentions, tree locks, and ranges of keys (rules 4 to 6).
//!
//! Every transaction announces its intention at every tree that it touches, so these announcements
//! must not contend. Intentions are kept in *stripes*, and an owner uses one of them. That is all,
//! as long as no owner has locked the tree as a whole or wants to. An owner that wants more than an
//! intention first announces that where every new owner looks, and then goes through the stripes,
//! one mutex after the other. So of two owners that come at the same time, one sees the other.
//! Either the intention is in its stripe when that is looked at, or its owner, which locks the
//! stripe later, sees the announcement.
//!
//! There are three places for the announcement, so that it holds up only the owners concerned.
//! `whole` concerns every new owner, a range's place in the [`RangeFilter`] concerns writers of
//! similar keys, and `waiting` concerns owners that leave.

use std::collections::HashSet;
use std::sync::Arc;

use millpond_base::sync::atomic::{AtomicU32, Ordering};

use super::mode::LockMode;
use super::near::{Prefix, PrefixLengths, RangeFilter};
use super::range::Range;
use super::spinlock::Guard;
use super::spinlock::Spinlock;
use super::waiter::Waiter;
use super::writes::Writes;

/// An owner's writes in a tree; owners that want a range of the tree look through them.
pub(super) type SharedWrites = Arc<Spinlock<Writes>>;

/// An owner's intention at a tree.
#[derive(Clone)]
struct Member {
    id: u64,
    mode: LockMode,
    writes: SharedWrites,
}

#[repr(align(128))]
struct Stripe(Spinlock<Vec<Member>>);

/// A request for a lock on a tree.
#[derive(Clone, Debug)]
pub(super) enum Want {
    /// `IS` or `IX`.
    Intention(LockMode),
    /// `S` or `X`.
    Whole(LockMode),
    /// A guarantee that no other owner writes a key in the range.
    Range(Range),
    /// A write of this key, which is locked in `X` and is the last of its owner's writes.
    Write(Vec<u8>),
}

struct Waiting {
    id: u64,
    /// Number in the order of arrival.
    ticket: u64,
    want: Want,
    /// Owners that blocked the request when it was last checked. It is checked again when one of
    /// them leaves.
    awaits: Vec<u64>,
    waiter: Arc<Waiter>,
}

/// A range that is held.
struct HeldRange {
    id: u64,
    range: Range,
    /// Prefixes under which the range counts. A range that grew has one for each requested part, up
    /// to a limit.
    prefixes: Vec<Prefix>,
}

/// Maximum number of parts of a growing range that count separately. With one more, the range
/// counts as if it could contain any key.
const PARTS_MAX: usize = 8;

#[derive(Default)]
struct Core {
    /// Locks on the whole tree, in `S` or `X`.
    whole: Vec<(u64, LockMode)>,
    ranges: Vec<HeldRange>,
    waiting: Vec<Waiting>,
    tickets: u64,
}

/// The owner that makes a request.
pub(super) struct Asking<'a> {
    pub id: u64,
    pub stripe: usize,
    pub waiter: &'a Arc<Waiter>,
    pub writes: &'a SharedWrites,
}

/// The locks on one tree.
pub(super) struct Tree {
    pub id: u32,
    /// Number of locks on the whole tree, and of requests that wait for one or for an intention;
    /// one more while a request for one is checked.
    whole: AtomicU32,
    /// Number of requests that wait; one more while a request that may have to wait is checked
    /// again.
    waiting: AtomicU32,
    lengths: PrefixLengths,
    filter: Arc<RangeFilter>,
    stripes: Box<[Stripe]>,
    core: AlignedCore,
}

/// Rarely used state, away from the fields that every transaction reads.
#[repr(align(128))]
struct AlignedCore(Spinlock<Core>);

impl Tree {
    pub fn new(id: u32, stripes: usize, filter: &Arc<RangeFilter>) -> Tree {
        let stripe = |_| Stripe(Spinlock::new(Vec::new()));
        Tree {
            id,
            whole: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            lengths: PrefixLengths::default(),
            filter: Arc::clone(filter),
            stripes: (0..stripes.max(1)).map(stripe).collect(),
            core: AlignedCore(Spinlock::new(Core::default())),
        }
    }

    fn stripe(&self, stripe: usize) -> Guard<'_, Vec<Member>> {
        self.stripes[stripe % self.stripes.len()].0.lock()
    }

    fn core(&self) -> Guard<'_, Core> {
        self.core.0.lock()
    }

    /// Returns whether an owner may hold or want a range that contains `key`. The caller has
    /// recorded `key` among its writes.
    #[inline]
    pub fn may_have_range_with(&self, key: &[u8]) -> bool {
        self.lengths.may_be_around(&self.filter, self.id, key)
    }

    /// Announces an intention if there are only intentions here; returns whether it did. `spare` is
    /// the value that [`Tree::leave`] returned, if any.
    #[inline]
    pub fn try_intend(
        &self,
        asking: &Asking<'_>,
        mode: LockMode,
        spare: Option<SharedWrites>,
    ) -> bool {
        let mut stripe = self.stripe(asking.stripe);
        if self.whole.load(Ordering::Relaxed) != 0 {
            return false;
        }
        put(&mut stripe, asking, mode, spare);
        true
    }

    /// Grants `want`, or returns `false`; the request then waits here if `waits` is set.
    ///
    /// `ticket` is the number, in the order of arrival, of a request that has waited before.
    pub fn request(
        &self,
        asking: &Asking<'_>,
        want: &Want,
        ticket: &mut Option<u64>,
        waits: bool,
    ) -> bool {
        let mut core = self.core();
        // From here on no owner concerned passes by without this mutex.
        self.announce(want);
        let mut awaits = self.blockers(&core, asking.id, want, *ticket, 1);
        if waits && !awaits.is_empty() {
            // An owner that has left since the first check may have seen no waiter; an owner that
            // leaves from here on sees one.
            self.waiting.fetch_add(1, Ordering::SeqCst);
            awaits = self.blockers(&core, asking.id, want, *ticket, 1);
        }
        let granted = awaits.is_empty();
        if granted {
            let waited = self.remove_waiting(&mut core, asking.id);
            self.grant(&mut core, asking, want);
            if waited {
                // A write that waited blocks nobody as such before it is tried again.
                wake(&core, asking.id);
            }
        } else if waits {
            let ticket = *ticket.get_or_insert_with(|| {
                core.tickets += 1;
                core.tickets
            });
            debug_assert!(ticket <= core.tickets, "tickets are numbered in the order of coming");
            self.remove_waiting(&mut core, asking.id);
            let (id, want, waiter) = (asking.id, want.clone(), Arc::clone(asking.waiter));
            core.waiting.push(Waiting { id, ticket, want, awaits, waiter });
        } else if let Want::Range(range) = want {
            self.filter.lower(Prefix::of(self.id, range));
        }
        self.settle(&core);
        granted
    }

    /// Announces `want` to the owners concerned.
    fn announce(&self, want: &Want) {
        match want {
            Want::Whole(_) => {
                self.whole.fetch_add(1, Ordering::SeqCst);
            }
            Want::Range(range) => self.filter.raise(&self.lengths, Prefix::of(self.id, range)),
            Want::Intention(_) | Want::Write(_) => {}
        }
    }

    /// Removes the request of `id` from the queue. Returns whether there was one.
    fn remove_waiting(&self, core: &mut Core, id: u64) -> bool {
        let Some(at) = core.waiting.iter().position(|waiting| waiting.id == id) else {
            return false;
        };
        if let Want::Range(range) = core.waiting.remove(at).want {
            self.filter.lower(Prefix::of(self.id, &range));
        }
        true
    }

    /// Removes the ranges that `id` holds.
    fn remove_ranges(&self, core: &mut Core, id: u64) {
        let gone = core.ranges.extract_if(.., |held| held.id == id);
        gone.flat_map(|held| held.prefixes).for_each(|prefix| self.filter.lower(prefix));
    }

    /// Returns whether an owner holds or waits for a range that contains `key`.
    pub fn has_range_with(&self, key: &[u8]) -> bool {
        let core = self.core();
        core.ranges.iter().any(|held| held.range.has(key))
            || core.waiting.iter().any(|w| matches!(&w.want, Want::Range(range) if range.has(key)))
    }

    /// Returns whether a waiting write may be tried again, beginning with its key's lock. The
    /// request stays in the queue, and its key is not among the owner's writes yet.
    pub fn is_turn_of(&self, asking: &Asking<'_>, want: &Want, ticket: Option<u64>) -> bool {
        let mut core = self.core();
        let awaits = self.blockers(&core, asking.id, want, ticket, 0);
        let is_turn = awaits.is_empty();
        let waiting = core.waiting.iter_mut().find(|waiting| waiting.id == asking.id);
        debug_assert!(waiting.is_some(), "a write that waits for its turn is in the queue");
        if let Some(waiting) = waiting {
            waiting.awaits = awaits;
        }
        is_turn
    }

    fn grant(&self, core: &mut Core, asking: &Asking<'_>, want: &Want) {
        match want {
            Want::Intention(mode) => put(&mut self.stripe(asking.stripe), asking, *mode, None),
            Want::Whole(mode) => {
                core.whole.retain(|(id, _)| *id != asking.id);
                debug_assert!(
                    core.whole.iter().all(|(id, held)| *id == asking.id || held.goes_with(*mode)),
                    "tree locks that are held together are compatible"
                );
                core.whole.push((asking.id, *mode));
            }
            Want::Range(range) => {
                let prefix = Prefix::of(self.id, range);
                let mut own = core.ranges.iter_mut().filter(|held| held.id == asking.id);
                match own.find_map(|own| own.range.extend(range).then_some(own)) {
                    Some(own) => self.add_prefix(&mut own.prefixes, prefix),
                    None => {
                        let (id, range, prefixes) = (asking.id, range.clone(), vec![prefix]);
                        core.ranges.push(HeldRange { id, range, prefixes });
                    }
                }
            }
            // The key is among the owner's writes already.
            Want::Write(_) => {}
        }
    }

    /// Adds the prefix of a part that a range has grown by. The filter counts the part already, and
    /// counts each prefix of a range only once.
    fn add_prefix(&self, prefixes: &mut Vec<Prefix>, prefix: Prefix) {
        let everywhere = Prefix::everywhere(self.id);
        if prefixes.contains(&prefix) || prefixes.contains(&everywhere) {
            self.filter.lower(prefix);
            return;
        }
        prefixes.push(prefix);
        if prefixes.len() > PARTS_MAX {
            self.filter.raise(&self.lengths, everywhere);
            prefixes.drain(..).for_each(|prefix| self.filter.lower(prefix));
            prefixes.push(everywhere);
        }
    }

    /// Sets `whole` and `waiting` to their exact values.
    fn settle(&self, core: &Core) {
        let concerns = |w: &&Waiting| matches!(w.want, Want::Whole(_) | Want::Intention(_));
        let whole = core.whole.len() + core.waiting.iter().filter(concerns).count();
        // They rarely change, and a store would take the cache line from all readers.
        for (said, due) in [(&self.whole, whole), (&self.waiting, core.waiting.len())] {
            if said.load(Ordering::Relaxed) != due as u32 {
                said.store(due as u32, Ordering::SeqCst);
            }
        }
    }

    /// Calls `look` with all intentions, one stripe after the other.
    fn each_member(&self, mut look: impl FnMut(&Member)) {
        self.stripes.iter().for_each(|stripe| stripe.0.lock().iter().for_each(&mut look));
    }

    /// Returns the owners that block `want`. The owner's last `fresh` writes do not count as writes
    /// yet.
    fn blockers(
        &self,
        core: &Core,
        id: u64,
        want: &Want,
        ticket: Option<u64>,
        fresh: usize,
    ) -> Vec<u64> {
        let earlier = |w: &&Waiting| w.id != id && ticket.is_none_or(|ticket| w.ticket < ticket);
        let mut found = Vec::new();
        match want {
            Want::Intention(mode) | Want::Whole(mode) => {
                return self.blockers_of_mode(core, id, want, *mode, earlier);
            }
            Want::Range(range) => {
                self.each_member(|member| {
                    if member.mode == LockMode::IX && member.id != id && writes(member, range, 0) {
                        found.push(member.id);
                    }
                });
                let own = |key: &[u8]| core.ranges.iter().any(|r| r.id == id && r.range.has(key));
                let waiting = core.waiting.iter().filter(earlier).filter(|w| match &w.want {
                    Want::Write(key) => range.has(key) && !own(key),
                    _ => false,
                });
                found.extend(waiting.map(|w| w.id));
            }
            Want::Write(key) => {
                let holders = core.ranges.iter().filter(|r| r.id != id && r.range.has(key));
                found.extend(holders.map(|held| held.id));
                let waiting = core.waiting.iter().filter(earlier).filter(|w| match &w.want {
                    // A range that waits for an earlier write of this owner cannot go first.
                    Want::Range(range) => range.has(key) && !self.has_written(id, range, fresh),
                    _ => false,
                });
                found.extend(waiting.map(|w| w.id));
            }
        }
        found
    }

    /// Returns whether `id` has written in `range`, apart from its last `fresh` writes.
    fn has_written(&self, id: u64, range: &Range, fresh: usize) -> bool {
        let mut has = false;
        self.each_member(|member| has |= member.id == id && writes(member, range, fresh));
        has
    }

    /// Returns the owners that block `mode`, as an intention or on the whole tree.
    fn blockers_of_mode(
        &self,
        core: &Core,
        id: u64,
        want: &Want,
        mode: LockMode,
        earlier: impl Fn(&&Waiting) -> bool,
    ) -> Vec<u64> {
        let (mut found, mut inside) = (Vec::new(), HashSet::new());
        for (holder, held) in &core.whole {
            inside.insert(*holder);
            if !held.goes_with(mode) {
                found.push(*holder);
            }
        }
        self.each_member(|member| {
            inside.insert(member.id);
            if matches!(want, Want::Whole(_)) && !member.mode.goes_with(mode) {
                found.push(member.id);
            }
        });
        // An owner that is already inside goes first.
        if !inside.contains(&id) {
            let ahead = core.waiting.iter().filter(|w| earlier(w) || inside.contains(&w.id));
            found.extend(ahead.filter(|w| w.want.stops(mode)).map(|w| w.id));
        }
        found.retain(|other| *other != id);
        found
    }

    /// Returns the owners that block the waiting request of `id`.
    pub fn blockers_of(&self, id: u64) -> Vec<u64> {
        let core = self.core();
        let waiting = core.waiting.iter().find(|waiting| waiting.id == id);
        waiting.map_or_else(Vec::new, |waiting| {
            self.blockers(&core, id, &waiting.want, Some(waiting.ticket), 0)
        })
    }

    /// Removes the request of `id` from the queue.
    pub fn leave_queue(&self, id: u64) {
        self.change(id, |core| {
            self.remove_waiting(core, id);
        });
    }

    /// Releases the ranges of `id`.
    pub fn leave_ranges(&self, id: u64) {
        self.change(id, |core| self.remove_ranges(core, id));
    }

    /// Wakes the waiters that `id` blocked: it has withdrawn its last write.
    pub fn unwritten(&self, id: u64) {
        self.change(id, |_| {});
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut Core)) {
        let mut core = self.core();
        change(&mut core);
        wake(&core, id);
        self.settle(&core);
    }

    /// Releases all locks of `id` on the tree. `in_core` is set if `id` held the whole tree or a
    /// range. Its writes have been cleared. Returns the reference to them that its intention had.
    pub fn leave(&self, id: u64, stripe: usize, in_core: bool) -> Option<SharedWrites> {
        let mut members = self.stripe(stripe);
        let at = members.iter().position(|member| member.id == id);
        let gone = at.map(|at| members.swap_remove(at).writes);
        // An owner that saw this member block it in its last check had announced before that it
        // waits.
        let is_awaited = self.waiting.load(Ordering::Relaxed) != 0;
        drop(members);
        if in_core || is_awaited {
            self.change(id, |core| {
                debug_assert!(
                    in_core
                        || core.whole.iter().all(|(holder, _)| *holder != id)
                            && core.ranges.iter().all(|held| held.id != id),
                    "owner {id} knows whether it holds tree locks or ranges"
                );
                core.whole.retain(|(holder, _)| *holder != id);
                self.remove_ranges(core, id);
            });
        }
        gone
    }
}

impl Want {
    /// Returns whether this request blocks one for `mode` on the whole tree.
    fn stops(&self, mode: LockMode) -> bool {
        match self {
            Want::Intention(wanted) | Want::Whole(wanted) => !wanted.goes_with(mode),
            Want::Range(_) | Want::Write(_) => false,
        }
    }
}

/// Wakes the waiters that `id` blocked.
fn wake(core: &Core, id: u64) {
    for waiting in core.waiting.iter().filter(|waiting| waiting.awaits.contains(&id)) {
        waiting.waiter.wake();
    }
}

/// Records an intention, or raises the recorded one.
fn put(stripe: &mut Vec<Member>, asking: &Asking<'_>, mode: LockMode, spare: Option<SharedWrites>) {
    debug_assert!(matches!(mode, LockMode::IS | LockMode::IX), "an intention is IS or IX");
    match stripe.iter_mut().find(|member| member.id == asking.id) {
        Some(member) => member.mode = member.mode.with(mode),
        None => {
            let writes = spare.unwrap_or_else(|| Arc::clone(asking.writes));
            debug_assert!(Arc::ptr_eq(&writes, asking.writes), "a spare is of the same writes");
            stripe.push(Member { id: asking.id, mode, writes });
        }
    }
}

/// Returns whether `member` has written a key in `range`, apart from its last `fresh` writes.
fn writes(member: &Member, range: &Range, fresh: usize) -> bool {
    let writes = member.writes.lock();
    writes.any_in(range, writes.len().saturating_sub(fresh))
}
