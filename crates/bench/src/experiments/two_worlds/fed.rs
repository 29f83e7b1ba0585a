//! The simulator's host, fed with a live pool's refusals. It keeps its own page table, frames and
//! clock, asks its own copy of the policy for victims, and returns for each offer what the live
//! pool returned. If the policy offers another frame than it did there, or a reference hits here
//! and missed there, the worlds differ.

use std::cell::Cell;
use std::collections::HashMap;

use millpond_base::{FrameId, Mark, PageId};
use millpond_policies::chosen::erased_host_of;
use millpond_policies::config::{ParamError, Spec};
use millpond_policies::contract::{Access, Cooled, GhostHit, Host, OfferOutcome, PageState, Shape};
use millpond_policies::policy_host::ErasedPolicyHost;

use super::diary::Event;

/// The first difference between the worlds.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line} of the diary: the live pool has {live}, the simulator {simulated}")]
pub struct Differs {
    /// Number of the line, from 0.
    pub line: usize,
    /// Event of the live pool.
    pub live: String,
    /// Event of the simulator.
    pub simulated: String,
}

/// Counts of both worlds, which agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Agreed {
    /// References.
    pub references: u64,
    /// References that missed.
    pub misses: u64,
    /// Victims.
    pub evictions: u64,
    /// Offers that were refused.
    pub refusals: u64,
}

/// Replays the recorded results.
struct FedHost<'a> {
    events: &'a [Event],
    /// Events used up.
    at: Cell<usize>,
    parted: Cell<bool>,
    taken: Vec<(FrameId, PageId)>,
    cooled: Vec<FrameId>,
    refusals: u64,
}

impl FedHost<'_> {
    fn next(&self, fits: impl Fn(&Event) -> bool) -> Option<Event> {
        let event = self.events.get(self.at.get()).copied().filter(|event| fits(event));
        match event {
            Some(_) if !self.parted.get() => self.at.set(self.at.get() + 1),
            _ => self.parted.set(true),
        }
        event.filter(|_| !self.parted.get())
    }
}

impl Host for FedHost<'_> {
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        let same = |event: &Event| matches!(event, Event::Offered(f, _) if *f == frame);
        match self.next(same) {
            Some(Event::Offered(_, outcome)) => {
                match outcome {
                    OfferOutcome::Taken(page) => self.taken.push((frame, page)),
                    OfferOutcome::Refused(_) => self.refusals += 1,
                    OfferOutcome::EvictChildFirst(_) => {}
                }
                outcome
            }
            _ => OfferOutcome::Refused(millpond_policies::contract::RefusalReason::Changed),
        }
    }

    fn cool(&mut self, frame: FrameId) -> Cooled {
        match self.next(|event| matches!(event, Event::Cooled(f, _) if *f == frame)) {
            Some(Event::Cooled(_, cooled)) => {
                if cooled == Cooled::Yes {
                    self.cooled.push(frame);
                }
                cooled
            }
            _ => Cooled::Refused(millpond_policies::contract::RefusalReason::Changed),
        }
    }

    fn state(&self, frame: FrameId) -> PageState {
        match self.next(|event| matches!(event, Event::Looked(f, _) if *f == frame)) {
            Some(Event::Looked(_, state)) => state,
            _ => PageState::Clean,
        }
    }
}

/// The simulator's side.
struct Fed {
    policy_host: Box<dyn ErasedPolicyHost>,
    frame_of: HashMap<PageId, FrameId>,
    page_of: Vec<Option<PageId>>,
    /// Pages that missed and are not loaded yet; there are several where the parent of one went
    /// meanwhile.
    loading: HashMap<PageId, (Access, GhostHit)>,
    agreed: Agreed,
}

impl Fed {
    fn new(policy_host: Box<dyn ErasedPolicyHost>, shape: &Shape) -> Fed {
        Fed {
            policy_host,
            frame_of: HashMap::new(),
            page_of: vec![None; shape.frames as usize],
            loading: HashMap::new(),
            agreed: Agreed::default(),
        }
    }

    /// Replays one line and those that belong to it; returns how many.
    fn step(&mut self, events: &[Event]) -> Result<usize, String> {
        match events[0] {
            Event::Referenced { page, mark, hit } => self.reference(page, mark, hit)?,
            Event::Asked { wanted, incoming } => {
                return Ok(1 + self.evict(&events[1..], wanted, incoming)?);
            }
            Event::Admitted(frame, page, mark) => self.admit(frame, page, mark)?,
            Event::Cleaned(frame) => self.policy_host.cleaned(frame),
            Event::Revived(frame) => self.policy_host.revive(frame),
            Event::Forgotten(frame) => {
                self.drop_page(frame).ok_or("no page there")?;
                self.policy_host.forget(frame);
            }
            Event::Offered(..) | Event::Cooled(..) | Event::Looked(..) => {
                return Err("nothing more to ask".to_string());
            }
        }
        Ok(1)
    }

    fn reference(&mut self, page: PageId, mark: Mark, hit: bool) -> Result<(), String> {
        let access = Access { page, mark, now: self.policy_host.tick(), next: 0, next_read: 0 };
        self.agreed.references += 1;
        match (self.frame_of.get(&page), hit) {
            (Some(frame), true) => self.policy_host.hit(*frame, &access, false),
            (None, false) => {
                self.agreed.misses += 1;
                let ghost_hit = self.policy_host.miss(&access);
                self.loading.insert(page, (access, ghost_hit));
            }
            (Some(frame), false) => return Err(format!("the page in frame {}", frame.0)),
            (None, true) => return Err("a miss".to_string()),
        }
        Ok(())
    }

    fn evict(
        &mut self,
        events: &[Event],
        wanted: u32,
        incoming: Option<PageId>,
    ) -> Result<usize, String> {
        let (taken, cooled) = (Vec::new(), Vec::new());
        let (at, parted) = (Cell::new(0), Cell::new(false));
        let mut host = FedHost { events, at, parted, taken, cooled, refusals: 0 };
        let incoming = incoming.and_then(|page| Some((page, self.loading.get(&page)?.1)));
        self.policy_host.evict(&mut host, wanted, incoming);
        if host.parted.get() {
            return Err("another victim, or question".to_string());
        }
        let (used, refusals) = (host.at.get(), host.refusals);
        for (frame, page) in host.taken {
            if self.drop_page(frame) != Some(page) {
                return Err(format!("another page in frame {}", frame.0));
            }
            self.agreed.evictions += 1;
        }
        self.agreed.refusals += refusals;
        Ok(used)
    }

    fn admit(&mut self, frame: FrameId, page: PageId, mark: Mark) -> Result<(), String> {
        let known = self.loading.remove(&page);
        let (access, ghost_hit) =
            known.unwrap_or((Access { page, mark, now: 0, next: 0, next_read: 0 }, GhostHit::NONE));
        match self.page_of.get_mut(frame.index()) {
            Some(place @ None) => *place = Some(page),
            _ => return Err("no free frame of that number".to_string()),
        }
        self.frame_of.insert(page, frame);
        self.policy_host.admit(frame, &access, ghost_hit);
        Ok(())
    }

    fn drop_page(&mut self, frame: FrameId) -> Option<PageId> {
        let page = self.page_of.get_mut(frame.index())?.take()?;
        self.frame_of.remove(&page);
        Some(page)
    }

    fn play(mut self, events: &[Event]) -> Result<Agreed, Differs> {
        let mut line = 0;
        while line < events.len() {
            line += self.step(&events[line..]).map_err(|simulated| Differs {
                line,
                live: format!("{:?}", events[line]),
                simulated,
            })?;
        }
        Ok(self.agreed)
    }
}

/// Plays `events`, recorded in a live pool of `frames` frames, to the policy `spec` in the
/// simulator, and returns the counts if it does the same. `None` if there is no such policy.
///
/// # Errors
/// The parameters cannot be; or, inside, the point where the worlds part.
pub fn play(
    spec: &Spec,
    shape: &Shape,
    events: &[Event],
) -> Option<Result<Result<Agreed, Differs>, ParamError>> {
    let host = erased_host_of(&spec.id)?;
    Some(host(spec, shape).map(|host| Fed::new(host, shape).play(events)))
}

#[cfg(test)]
mod tests {
    use millpond_policies::contract::RefusalReason;

    use super::*;

    const READ: Mark = Mark::READ;

    fn miss(page: u64, frame: u32) -> [Event; 2] {
        let page = PageId(page);
        [
            Event::Referenced { page, mark: READ, hit: false },
            Event::Admitted(FrameId(frame), page, READ),
        ]
    }

    fn hit(page: u64) -> Event {
        Event::Referenced { page: PageId(page), mark: READ, hit: true }
    }

    fn lru(events: &[Event]) -> Result<Agreed, Differs> {
        let shape = Shape { frames: 2, pages_dense: None, seed: 1 };
        play(&Spec::parse("lru").unwrap(), &shape, events).unwrap().unwrap()
    }

    /// Pages 1 and 2 are loaded, 1 is referenced again, and 3 takes the place of one of them.
    fn story(offers: &[(u32, OfferOutcome)], frame: u32) -> Vec<Event> {
        let mut events = [miss(1, 0), miss(2, 1)].concat();
        events.push(hit(1));
        let [referenced, admitted] = miss(3, frame);
        events.push(referenced);
        events.push(Event::Asked { wanted: 1, incoming: Some(PageId(3)) });
        events.extend(offers.iter().map(|(f, outcome)| Event::Offered(FrameId(*f), *outcome)));
        events.push(admitted);
        events
    }

    #[test]
    fn worlds_that_agree_are_told_so_refusals_included() {
        let plain = lru(&story(&[(1, OfferOutcome::Taken(PageId(2)))], 1)).unwrap();
        assert_eq!(plain, Agreed { references: 4, misses: 3, evictions: 1, refusals: 0 });
        let refused =
            [(1, OfferOutcome::Refused(RefusalReason::Dirty)), (0, OfferOutcome::Taken(PageId(1)))];
        assert_eq!(lru(&story(&refused, 0)).unwrap().refusals, 1);
    }

    #[test]
    fn another_victim_another_frame_and_another_outcome_are_each_noticed() {
        let differs = |events: &[Event]| lru(events).unwrap_err();
        assert_eq!(differs(&story(&[(0, OfferOutcome::Taken(PageId(1)))], 0)).line, 6);
        assert_eq!(differs(&story(&[(1, OfferOutcome::Taken(PageId(2)))], 0)).line, 8);
        assert_eq!(differs(&story(&[(1, OfferOutcome::Taken(PageId(9)))], 1)).line, 6);
        assert!(differs(&[hit(1)]).to_string().contains("the simulator a miss"));
        let twice = [miss(1, 0), miss(1, 1)].concat();
        assert_eq!(differs(&twice).line, 2);
        let unasked = [Event::Offered(FrameId(0), OfferOutcome::Refused(RefusalReason::Dirty))];
        assert_eq!(differs(&unasked).line, 0);
    }
}
