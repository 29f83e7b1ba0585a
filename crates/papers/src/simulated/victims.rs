//! Victims of a policy: the time since their last use, and the number of uses (luan 5.4, 5.5).

use millpond_base::PageId;
use millpond_workload::trace::Batch;

use millpond_lab::sim::{Simulation, Stalled};

/// An evicted page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    /// Recency: number of references from the page's last one to the one that needed its frame. A
    /// page read just before has 1.
    pub recency: u64,
    /// References to the page since it was loaded, including the loading one.
    pub count: u32,
    /// References to the page since the start of the trace.
    pub count_ever: u32,
}

/// Content of a frame.
#[derive(Clone, Copy, Default)]
struct Held {
    page: Option<PageId>,
    count: u32,
}

/// A simulation that examines its victims, one by one.
///
/// The simulation must be new, with dense page numbers, and evict on demand. A page that the policy
/// refused to admit is no victim.
pub struct Watched {
    simulation: Box<dyn Simulation>,
    frames: Vec<Held>,
    /// By page: the time of its last reference, from 1, and the number of its references.
    last: Vec<(u64, u32)>,
    now: u64,
    part: Batch,
}

impl Watched {
    /// Wraps a new simulation of `frames` frames.
    pub fn new(simulation: Box<dyn Simulation>, frames: u32, distinct: u64) -> Watched {
        Watched {
            simulation,
            frames: vec![Held::default(); frames as usize],
            last: vec![(0, 0); distinct as usize],
            now: 0,
            part: Batch::default(),
        }
    }

    /// Returns the simulation.
    pub fn simulation(&self) -> &dyn Simulation {
        self.simulation.as_ref()
    }

    /// Simulates more references, passes each victim to `seen`, and returns the hits. Pages with
    /// numbers from `distinct` on are simulated but not examined.
    ///
    /// # Errors
    /// [`Stalled`].
    pub fn run(&mut self, batch: &Batch, mut seen: impl FnMut(Victim)) -> Result<u64, Stalled> {
        let before = self.simulation.counts().hits;
        for (page, mark) in batch.pages.iter().zip(&batch.marks) {
            let page = PageId(*page);
            let was_there = self.simulation.frame_of(page).is_some();
            self.part.clear();
            self.part.push(page.0, *mark);
            self.simulation.run(&self.part, None)?;
            self.now += 1;
            let frame = self.simulation.frame_of(page);
            if let Some(held) = frame.and_then(|frame| self.frames.get_mut(frame.index())) {
                if was_there {
                    held.count += 1;
                } else {
                    let victim = std::mem::replace(held, Held { page: Some(page), count: 1 });
                    let last = victim.page.and_then(|page| self.last.get(page.0 as usize));
                    if let Some((at, count_ever)) = last {
                        let recency = self.now - at;
                        seen(Victim { recency, count: victim.count, count_ever: *count_ever });
                    }
                }
            }
            if let Some((at, count)) = self.last.get_mut(page.0 as usize) {
                (*at, *count) = (self.now, *count + 1);
            }
        }
        Ok(self.simulation.counts().hits - before)
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;
    use millpond_policies::config::Spec;

    use super::*;
    use millpond_lab::registry::Registry;
    use millpond_lab::sim::SimOptions;

    fn victims(policy: &str, frames: u32, pages: &[u64]) -> (u64, Vec<(u64, u32, u32)>) {
        let (registry, spec) = (Registry::builtin(), Spec::parse(policy).unwrap());
        let options = SimOptions::new(frames, Some(10));
        let made = registry.find(&spec.id).unwrap().simulation(&spec, &options).unwrap();
        let (mut watched, mut all) = (Watched::new(made, frames, 10), Vec::new());
        let mut batch = Batch::default();
        pages.iter().for_each(|page| batch.push(*page, Mark::READ));
        let hits = watched.run(&batch, |v| all.push((v.recency, v.count, v.count_ever))).unwrap();
        assert_eq!(watched.simulation().counts().evictions, all.len() as u64);
        (hits, all)
    }

    #[test]
    fn a_victim_s_recency_and_counts_are_those_of_its_stay() {
        // 0 1 2 | 3 evicts 0, last read three references ago; 0 comes back for 1.
        let (hits, all) = victims("lru", 3, &[0, 1, 2, 3, 0, 0, 3, 4]);
        assert_eq!(hits, 2);
        assert_eq!(all, [(3, 1, 1), (3, 1, 1), (5, 1, 1)]);
        let (_, all) = victims("lru", 2, &[0, 0, 1, 2, 0, 3, 4]);
        // 0 is evicted with two references; when it is evicted again it has one, and three in all.
        assert_eq!(all, [(2, 2, 2), (2, 1, 1), (2, 1, 1), (2, 1, 3)]);
        let (_, all) = victims("mru", 2, &[0, 1, 2]);
        assert_eq!(all, [(1, 1, 1)], "the page read just before");
    }
}
