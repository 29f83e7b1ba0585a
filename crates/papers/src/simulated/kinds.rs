//! Hits of leaves, separate from those of all other pages, for leanstore VI-B's table. An inner
//! page of a tree hardly ever misses, and would dilute the effect of a policy.

use millpond_base::PageKind;
use millpond_workload::trace::Batch;

use millpond_lab::sim::{Future, Simulation, Stalled};

/// References and hits of one kind of pages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Hits {
    /// References.
    pub references: u64,
    /// References that hit.
    pub hits: u64,
}

impl Hits {
    /// Returns hits over references; 0 without references.
    pub fn ratio(&self) -> f64 {
        if self.references == 0 { 0.0 } else { self.hits as f64 / self.references as f64 }
    }
}

/// Counts of a simulation, with leaves separate.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KindHits {
    /// Leaves of B-trees.
    pub leaves: Hits,
    /// All other pages.
    pub others: Hits,
}

impl KindHits {
    /// Returns the hits of all pages.
    pub fn all(&self) -> Hits {
        Hits {
            references: self.leaves.references + self.others.references,
            hits: self.leaves.hits + self.others.hits,
        }
    }
}

/// Simulates `trace`, and counts leaves and other pages separately from position `from` on.
/// `simulation` must be new and count from its start.
///
/// # Errors
/// [`Stalled`].
pub fn hits_by_kind(
    simulation: &mut dyn Simulation,
    trace: &Batch,
    future: Option<&Future>,
    from: usize,
) -> Result<KindHits, Stalled> {
    let is_leaf = |at: usize| trace.marks[at].kind() == PageKind::BTREE_LEAF;
    let mut counted = KindHits::default();
    let (mut part, mut hits_before) = (Batch::default(), 0);
    let mut at = 0;
    while at < trace.len() {
        // Before the first counted reference, kinds need not be distinguished.
        let end = match at < from {
            true => from.min(trace.len()),
            false => (at..trace.len()).find(|i| is_leaf(*i) != is_leaf(at)).unwrap_or(trace.len()),
        };
        part.clear();
        part.pages.extend_from_slice(&trace.pages[at..end]);
        part.marks.extend_from_slice(&trace.marks[at..end]);
        simulation.run(&part, future)?;
        let hits = simulation.counts().hits;
        if at >= from {
            let sort = if is_leaf(at) { &mut counted.leaves } else { &mut counted.others };
            sort.references += (end - at) as u64;
            sort.hits += hits - hits_before;
        }
        hits_before = hits;
        at = end;
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;
    use millpond_policies::config::Spec;

    use super::*;
    use millpond_lab::registry::Registry;
    use millpond_lab::sim::SimOptions;

    /// Makes references to a root and one of `leaves` leaves, in turn.
    fn lookups(count: u64, leaves: u64) -> Batch {
        let mut trace = Batch::default();
        for i in 0..count {
            trace.push(0, Mark::READ.with_kind(PageKind::BTREE_INNER, 0));
            let leaf = 1 + i * i % leaves;
            trace.push(leaf, Mark::READ.with_kind(PageKind::BTREE_LEAF, 1));
        }
        trace
    }

    #[test]
    fn kinds_add_up_to_what_one_run_counts() {
        let (registry, trace) = (Registry::builtin(), lookups(5000, 97));
        let future = Future::of(&trace, 98);
        for policy in ["lru", "opt", "random", "lean-evict", "2q"] {
            let spec = &Spec::parse_list(policy).unwrap()[0];
            let entry = registry.find(policy).unwrap();
            let options = SimOptions { warmup: 1000, ..SimOptions::new(9, Some(98)) };
            let mut whole = entry.simulation(spec, &options).unwrap();
            whole.run(&trace, Some(&future)).unwrap();
            let options = SimOptions { warmup: 0, ..options };
            let mut parts = entry.simulation(spec, &options).unwrap();
            let kinds = hits_by_kind(parts.as_mut(), &trace, Some(&future), 1000).unwrap();
            assert_eq!(kinds.all().hits, whole.counts().hits, "{policy}");
            assert_eq!(kinds.all().references, 9000, "{policy}");
            assert_eq!(kinds.leaves.references, 4500, "{policy}");
            assert!(kinds.leaves.ratio() < kinds.others.ratio(), "{policy}: {kinds:?}");
        }
    }
}
