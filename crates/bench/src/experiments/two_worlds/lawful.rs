//! Checks that a live pool keeps the rules of the policy contract with any number of threads.
//!
//! A diary is written under the policy's mutex, so even many threads write it in one order. The
//! rules are those of `millpond_policies::contract`; the rules about the policy alone (6, 9, 10)
//! are checked elsewhere.

use std::collections::{HashMap, HashSet};

use millpond_base::{FrameId, PageId};
use millpond_policies::contract::{OfferOutcome, RefusalReason};

use super::diary::Event;

/// A broken rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line} of the diary, {event}, breaks rule {rule}: {what}")]
pub struct Unlawful {
    /// Number of the line, from 0.
    pub line: usize,
    /// The event.
    pub event: String,
    /// Number of the rule.
    pub rule: u32,
    /// The fault.
    pub what: &'static str,
}

/// Counts of a lawful diary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lawful {
    /// Pages that were admitted.
    pub admitted: u64,
    /// Victims.
    pub evicted: u64,
    /// Pages dropped without eviction.
    pub forgotten: u64,
    /// Offers that were refused.
    pub refused: u64,
    /// Offers to which the pool replied with a child to evict first.
    pub children_first: u64,
    /// Hits.
    pub hits: u64,
}

#[derive(Default)]
struct Checker {
    resident: HashMap<FrameId, PageId>,
    frame_of: HashMap<PageId, FrameId>,
    /// First frame that was never used.
    fresh: u32,
    /// Frames taken in the current or the last eviction.
    taken: HashSet<FrameId>,
    permanent: HashSet<FrameId>,
    seen: Lawful,
}

type Broken = (u32, &'static str);

fn expect(holds: bool, rule: u32, what: &'static str) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err((rule, what)) }
}

impl Checker {
    fn check(&mut self, event: &Event) -> Result<(), Broken> {
        match *event {
            Event::Referenced { page, hit: true, .. } => {
                self.seen.hits += 1;
                expect(self.frame_of.contains_key(&page), 4, "a hit of a page that is not in")
            }
            Event::Referenced { page, hit: false, .. } => {
                expect(!self.frame_of.contains_key(&page), 5, "a miss of a page that is in")
            }
            Event::Asked { .. } => {
                self.taken.clear();
                Ok(())
            }
            Event::Offered(frame, outcome) => self.offered(frame, outcome),
            Event::Admitted(frame, page, _) => self.admitted(frame, page),
            Event::Forgotten(frame) => {
                self.seen.forgotten += 1;
                self.leave(frame).map(drop).ok_or((1, "a drop of a frame that is not resident"))
            }
            Event::Cooled(..) | Event::Looked(..) => Ok(()),
            Event::Cleaned(frame) | Event::Revived(frame) => {
                expect(self.resident.contains_key(&frame), 12, "notified of an absent page")
            }
        }
    }

    fn leave(&mut self, frame: FrameId) -> Option<PageId> {
        self.permanent.remove(&frame);
        let page = self.resident.remove(&frame)?;
        self.frame_of.remove(&page);
        Some(page)
    }

    fn offered(&mut self, frame: FrameId, outcome: OfferOutcome) -> Result<(), Broken> {
        expect(!self.permanent.contains(&frame), 3, "refused for good, and offered again")?;
        let is_in = self.resident.contains_key(&frame);
        match outcome {
            OfferOutcome::Taken(page) => {
                self.seen.evicted += 1;
                self.taken.insert(frame);
                expect(self.leave(frame) == Some(page), 1, "taken, and was not resident")
            }
            OfferOutcome::Refused(why) => {
                self.seen.refused += 1;
                if why == RefusalReason::Permanent {
                    self.permanent.insert(frame);
                }
                expect(
                    is_in || why == RefusalReason::Absent,
                    3,
                    "a frame that is not in was looked at",
                )
            }
            OfferOutcome::EvictChildFirst(child) => {
                self.seen.children_first += 1;
                expect(is_in && child != frame, 3, "a child of no page, or of itself")
            }
        }
    }

    fn admitted(&mut self, frame: FrameId, page: PageId) -> Result<(), Broken> {
        self.seen.admitted += 1;
        expect(!self.resident.contains_key(&frame), 1, "admitted into a frame in use")?;
        expect(!self.frame_of.contains_key(&page), 1, "admitted, and in already")?;
        if frame.0 >= self.fresh {
            // With concurrent loads, later frames may be admitted first, but not by more than the
            // number of threads.
            expect(frame.0 < self.fresh + 64, 7, "not handed out in ascending order")?;
            self.fresh = frame.0 + 1;
        }
        self.resident.insert(frame, page);
        self.frame_of.insert(page, frame);
        Ok(())
    }
}

/// Checks that the recorded calls keep the rules of the contract, and returns their counts.
///
/// # Errors
/// The first rule that is broken.
pub fn judge(events: &[Event]) -> Result<Lawful, Unlawful> {
    let mut checker = Checker::default();
    for (line, event) in events.iter().enumerate() {
        checker.check(event).map_err(|(rule, what)| Unlawful {
            line,
            event: format!("{event:?}"),
            rule,
            what,
        })?;
    }
    Ok(checker.seen)
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;

    use super::*;

    fn admitted(frame: u32, page: u64) -> Event {
        Event::Admitted(FrameId(frame), PageId(page), Mark::READ)
    }

    fn taken(frame: u32, page: u64) -> Event {
        Event::Offered(FrameId(frame), OfferOutcome::Taken(PageId(page)))
    }

    fn refused(frame: u32, why: RefusalReason) -> Event {
        Event::Offered(FrameId(frame), OfferOutcome::Refused(why))
    }

    #[test]
    fn a_lawful_life_is_counted() {
        let events = [
            admitted(0, 7),
            refused(0, RefusalReason::Dirty),
            taken(0, 7),
            admitted(0, 8),
            admitted(1, 7),
        ];
        let seen = judge(&events).unwrap();
        assert_eq!((seen.admitted, seen.evicted, seen.refused), (3, 1, 1));
    }

    #[test]
    fn each_rule_is_known_by_its_number() {
        let hit = Event::Referenced { page: PageId(7), mark: Mark::READ, hit: true };
        let miss = Event::Referenced { page: PageId(7), mark: Mark::READ, hit: false };
        let broken = |events: &[Event]| judge(events).unwrap_err().rule;
        assert_eq!(broken(&[admitted(0, 7), admitted(0, 8)]), 1);
        assert_eq!(broken(&[admitted(0, 7), admitted(1, 7)]), 1);
        assert_eq!(broken(&[taken(0, 7)]), 1);
        assert_eq!(broken(&[admitted(0, 7), taken(0, 8)]), 1);
        assert_eq!(broken(&[Event::Forgotten(FrameId(0))]), 1);
        assert_eq!(broken(&[admitted(0, 7), refused(0, RefusalReason::Permanent), taken(0, 7)]), 3);
        assert_eq!(broken(&[refused(3, RefusalReason::Dirty)]), 3);
        assert_eq!(broken(&[hit]), 4);
        assert_eq!(broken(&[admitted(0, 7), miss]), 5);
        assert_eq!(broken(&[admitted(99, 7)]), 7);
        assert_eq!(broken(&[Event::Cleaned(FrameId(0))]), 12);
    }
}
