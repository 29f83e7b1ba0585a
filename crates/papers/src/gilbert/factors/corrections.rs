//! Corrections of gilbert's first chapter: figures that measured something other than their name,
//! and the results of measuring the named thing.

use crate::experiment::Scale;
use millpond::OwnPolicies;
use millpond_lab::interval::Interval;
use millpond_lab::report::Claim;
use millpond_lab::table::Table;

use super::super::bounds::{ALIKE, ALMOST_TWICE, GB_2, GB_4, GB_6, GB_10};
use super::live_rounds::job;
use crate::live::Job;
use crate::live::sizes::{Pair, RANDOM, Ratio, Sizes};
use millpond_lab::verdict::{Bounds, Named, above, below, claim_named};

/// LOOP as in his figures: a counter for each thread (1.2.2.1, p. 8).
pub const LOOP: &str = "loop(counter=thread)";
/// Lean eviction as in his figures: 2.5 % (1.2.15, p. 60), filled when half empty (algorithm
/// 1.16, p. 59).
pub const LEAN: &str = "lean-evict(cooling=2.5%,refill=half)";
const SHARED_LOOP: &str = "loop";
const CLOCK: &str = "clock";
const FIFO: &str = "fifo";
const FILO: &str = "filo";
const LFU: &str = "lfu";
const POLICIES: [&str; 8] = [RANDOM, CLOCK, SHARED_LOOP, LOOP, FIFO, FILO, LFU, LEAN];

/// A figure of his, and a judged sentence about it.
#[derive(Clone, PartialEq, Debug)]
pub struct Correction {
    /// The policy or idea.
    pub about: &'static str,
    /// Section, figure and page.
    pub place: &'static str,
    /// His sentence, our result, and the verdict.
    pub claim: Claim,
    /// Deciding ratios, each with its name; none if not run.
    pub ratios: Vec<(String, Option<Interval>)>,
}

/// Returns the sizes of the pool, in per cent of the loaded data.
fn percents(scale: Scale) -> &'static [f64] {
    let all = &[3.5, 7.0, GB_2, GB_4, GB_6, GB_10, 105.0];
    scale.pick(&[GB_2, GB_4, GB_6], all, all)
}

/// Returns the deciding runs.
pub(super) fn jobs(scale: Scale, own: &OwnPolicies) -> Vec<Job> {
    let of = |percent: &f64| POLICIES.map(|policy| job(scale, *percent, policy, own));
    percents(scale).iter().flat_map(of).collect()
}

/// One of his sentences, and its place in the thesis.
struct Said {
    about: &'static str,
    place: &'static str,
    says: &'static str,
}

/// Returns the ratios `of` the policies at the sizes that satisfy `at`, if both were run.
fn ratios(sizes: &Sizes, at: impl Fn(f64) -> bool, pairs: &[Pair<'_>], of: Ratio) -> Named {
    let both = |percent: &str| {
        let were_run =
            |(one, other): &&Pair<'_>| sizes.was_run(percent, one) && sizes.was_run(percent, other);
        let there: Vec<Pair<'_>> = pairs.iter().filter(were_run).copied().collect();
        sizes.ratios(&[percent], &there, of)
    };
    sizes.percents_at(at).into_iter().flat_map(both).collect()
}

fn judged(said: Said, ratios: Named, bounds: Bounds) -> Correction {
    let claim = claim_named(said.says, &ratios, bounds);
    Correction { about: said.about, place: said.place, claim, ratios }
}

/// Judges his sentences by runs over pool sizes.
pub(in super::super) fn corrections(rows: &Table) -> Vec<Correction> {
    let sizes = &Sizes::of(rows);
    let faster = Sizes::faster;
    let misses = Sizes::misses;
    let said = |about, place, says| Said { about, place, says };
    vec![
        judged(
            said(
                "LOOP",
                "1.3.4, fig. 1.29, p. 69",
                "with a counter for each thread it is almost twice as fast as the clocks in pools \
                 of 4 and 6 GB (28 and 42 % of the data); 1.5 times here",
            ),
            ratios(sizes, |p| p == GB_4 || p == GB_6, &[(LOOP, CLOCK)], faster),
            above(ALMOST_TWICE),
        ),
        judged(
            said(
                "LOOP",
                "1.2.2.1, p. 8",
                "that is FIFO no longer: threads evict what others have just loaded, so it misses \
                 more than one counter for all threads does, in pools of 6 GB or less",
            ),
            ratios(sizes, |p| p <= GB_6, &[(LOOP, SHARED_LOOP)], misses),
            above(1.0),
        ),
        judged(
            said(
                "lean eviction, 2.5 %, refill at half empty",
                "1.3.4, fig. 1.29, p. 69",
                "up to 2 GB (14 %) it is as fast as quasi-FIFO; within 10 % here",
            ),
            ratios(sizes, |p| p <= GB_2, &[(LEAN, FIFO)], faster),
            ALIKE,
        ),
        judged(
            said(
                "lean eviction, 2.5 %, refill at half empty",
                "1.3.4, fig. 1.29, p. 70",
                "above 2 GB it is as bad as LFU; at most 10 % faster here",
            ),
            ratios(sizes, |p| p > GB_2, &[(LEAN, LFU)], faster),
            below(ALIKE.high),
        ),
        judged(
            said(
                "quasi-FIFO",
                "1.3.4, fig. 1.30, p. 70",
                "up to 10 GB (70 % of the data) it misses more than most; than RANDOM and CLOCK \
                 here",
            ),
            ratios(sizes, |p| p <= GB_10, &[(FIFO, RANDOM), (FIFO, CLOCK)], misses),
            above(1.0),
        ),
        judged(
            said(
                "quasi-FIFO",
                "1.3.4, fig. 1.30, p. 70",
                "below 4 GB (28 %) it misses even more than FILO, which misses 4 % more than most",
            ),
            ratios(sizes, |p| p < GB_4, &[(FIFO, FILO)], misses),
            above(1.0),
        ),
    ]
}
