//! References of a cell, and the counts taken of them.

use std::collections::HashMap;

use millpond_base::Seed;
use millpond_policies::config::Spec;
use millpond_workload::generate::{generate, parse_params};
use millpond_workload::trace::{BATCH_LEN, Batch};

use crate::experiment::{Fields, FigureError};
use crate::simulated::{Victim, Watched};
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::sim::{Counts, Future, Renumber, SimOptions};

/// First page of the references before the pattern, which share no page with it.
const ELSEWHERE: u64 = 1 << 40;

/// References before a pattern, and those of the pattern, in separately counted parts.
pub(super) struct Work {
    before: Batch,
    parts: Vec<Batch>,
    distinct: u64,
}

impl Work {
    /// Creates parts for a clean pool.
    pub fn clean(parts: Vec<Batch>) -> Work {
        Work::after(Batch::default(), parts)
    }

    /// Creates parts for a pool that `before` has used.
    pub fn after(mut before: Batch, mut parts: Vec<Batch>) -> Work {
        let mut renumber = Renumber::new();
        before.pages.iter_mut().for_each(|page| *page += ELSEWHERE);
        renumber.apply(&mut before);
        parts.iter_mut().for_each(|part| renumber.apply(part));
        Work { before, parts, distinct: renumber.distinct() }
    }

    fn future(&self) -> Future {
        let mut whole = Batch::default();
        for part in std::iter::once(&self.before).chain(&self.parts) {
            let references = part.pages.iter().zip(&part.marks);
            references.for_each(|(page, mark)| whole.push(*page, *mark));
        }
        Future::of(&whole, self.distinct)
    }
}

/// Returns a generator's trace.
pub(super) fn made(id: &str, params: &str, seed: u64) -> Result<Batch, FigureError> {
    let params = parse_params(params).map_err(FigureError::of)?;
    let mut source = generate(id, &params, Seed(seed)).map_err(FigureError::of)?;
    let mut batch = Batch::default();
    while source.fill(&mut batch, BATCH_LEN).map_err(FigureError::of)? > 0 {}
    Ok(batch)
}

/// Returns earlier references that fill a pool of `frames` frames: five times that many pages,
/// each referenced ten times on average, with Zipf's exponent `theta`. The paper does not
/// describe its own.
pub(super) fn used(frames: u32, theta: &str, seed: u64) -> Result<Batch, FigureError> {
    let (pages, refs) = (u64::from(frames) * 5, u64::from(frames) * 50);
    made("probabilistic", &format!("pages={pages},refs={refs},theta={theta}"), seed)
}

/// Victims of a part.
#[derive(Default)]
pub(super) struct Victims {
    /// Number of victims of each recency.
    recencies: HashMap<u64, u64>,
    all: u64,
    again: u64,
    again_ever: u64,
    /// Victims whose recency differs from the size of the pool, and those among them
    /// referenced twice.
    others: u64,
    others_twice: u64,
}

impl Victims {
    fn see(&mut self, victim: Victim, frames: u32) {
        *self.recencies.entry(victim.recency).or_default() += 1;
        self.all += 1;
        self.again += u64::from(victim.count > 1);
        self.again_ever += u64::from(victim.count_ever > 1);
        if victim.recency != u64::from(frames) {
            self.others += 1;
            self.others_twice += u64::from(victim.count == 2);
        }
    }

    /// Returns the columns of the victims; shares are in percent.
    fn fields(&self, frames: u32) -> Fields {
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64 * 100.0);
        let of_size = self.recencies.get(&u64::from(frames)).copied().unwrap_or(0);
        let sum: u64 = self.recencies.iter().map(|(recency, times)| recency * times).sum();
        // Among equally frequent recencies, the least one.
        let most = self.recencies.iter().max_by_key(|(r, times)| (**times, u64::MAX - **r));
        let fields = [
            ("victims", self.all.into()),
            ("recency_mean", (self.all > 0).then(|| sum as f64 / self.all as f64).into()),
            ("recency_least", self.recencies.keys().min().copied().into()),
            ("recency_most", self.recencies.keys().max().copied().into()),
            ("recency_usual", most.map(|(recency, _)| *recency).into()),
            ("recency_usual_share", most.and_then(|(_, times)| share(*times, self.all)).into()),
            ("recency_is_size", share(of_size, self.all).into()),
            ("others_twice", share(self.others_twice, self.others).into()),
            ("referenced_again", share(self.again, self.all).into()),
            ("referenced_again_ever", share(self.again_ever, self.all).into()),
        ];
        fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }
}

/// Results of one part.
pub(super) struct Part {
    pub references: u64,
    pub hits: u64,
    victims: Victims,
    /// Counts from the start of the trace to the end of the part.
    pub counts: Counts,
}

impl Part {
    /// Returns the physical reads.
    pub fn misses(&self) -> u64 {
        self.references - self.hits
    }

    /// Returns the columns of a row; hit ratio and shares are in percent.
    pub fn fields(&self, frames: u32) -> Fields {
        let ratio = self.hits as f64 / self.references.max(1) as f64 * 100.0;
        let fields = [
            ("frames", frames.into()),
            ("references", self.references.into()),
            ("hits", self.hits.into()),
            ("misses", self.misses().into()),
            ("hit_ratio", ratio.into()),
        ];
        let fields = fields.into_iter().map(|(name, value)| (name.to_string(), value));
        fields.chain(self.victims.fields(frames)).collect()
    }
}

/// Simulates a policy, and counts each part.
pub(super) fn play(
    registry: &Registry,
    policy: &str,
    frames: u32,
    work: &Work,
    seed: u64,
) -> Result<Vec<Part>, FigureError> {
    let spec = parsed(policy).map_err(FigureError::of)?;
    let entry = registry.find(&spec.id).map_err(FigureError::of)?;
    let options = SimOptions { seed, ..SimOptions::new(frames, Some(work.distinct)) };
    let mut simulation = entry.simulation(&spec, &options).map_err(FigureError::of)?;
    let mut parts = Vec::new();
    if entry.needs_future {
        // Victims of an offline policy are not needed.
        let future = work.future();
        simulation.run(&work.before, Some(&future)).map_err(FigureError::of)?;
        for part in &work.parts {
            let before = simulation.counts().hits;
            simulation.run(part, Some(&future)).map_err(FigureError::of)?;
            let (counts, victims) = (simulation.counts(), Victims::default());
            let (references, hits) = (part.len() as u64, counts.hits - before);
            parts.push(Part { references, hits, victims, counts });
        }
        return Ok(parts);
    }
    let mut watched = Watched::new(simulation, frames, work.distinct);
    watched.run(&work.before, |_| ()).map_err(FigureError::of)?;
    for part in &work.parts {
        let mut victims = Victims::default();
        let see = |victim| victims.see(victim, frames);
        let hits = watched.run(part, see).map_err(FigureError::of)?;
        let counts = watched.simulation().counts();
        parts.push(Part { references: part.len() as u64, hits, victims, counts });
    }
    Ok(parts)
}

/// Parses a policy.
pub(super) fn parsed(policy: &str) -> Result<Spec, PolicyError> {
    let id = policy.to_string();
    Spec::parse(policy).map_err(|error| PolicyError::Param { id, error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_lab::table::Value;

    fn field(fields: &Fields, name: &str) -> Option<f64> {
        fields.iter().find(|(column, _)| column == name).and_then(|(_, value)| value.number())
    }

    #[test]
    fn parts_are_counted_apart_and_the_pages_before_are_others() {
        let part = || made("looping", "pages=4,loops=1", 1).unwrap();
        let registry = Registry::builtin();
        let clean = play(&registry, "lru", 4, &Work::clean(vec![part(), part()]), 1).unwrap();
        assert_eq!([clean[0].misses(), clean[1].misses()], [4, 0]);
        let work = Work::after(part(), vec![part(), part()]);
        let parts = play(&registry, "lru", 4, &work, 1).unwrap();
        assert_eq!([parts[0].misses(), parts[1].misses()], [4, 0]);
        let fields = parts[0].fields(4);
        assert_eq!(field(&fields, "victims"), Some(4.0), "all those of before");
        assert_eq!(field(&fields, "recency_is_size"), Some(100.0));
        assert_eq!(field(&fields, "others_twice"), None, "there are no others");
        assert_eq!(field(&parts[1].fields(4), "recency_mean"), None, "and no victims");
        let best = play(&registry, "opt", 3, &Work::clean(vec![part(), part()]), 1).unwrap();
        assert_eq!(best[1].misses(), 1, "opt keeps three of four");
        assert!(fields.iter().all(|(_, value)| !matches!(value, Value::Text(_))));
    }
}
