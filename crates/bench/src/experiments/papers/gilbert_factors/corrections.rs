//! What of gilbert's first chapter measured something else than its name says, and what comes out
//! when that is measured.

use millpond::OwnPolicies;
use millpond_lab::experiment::Scale;
use millpond_lab::interval::Interval;
use millpond_lab::report::Claim;
use millpond_lab::table::Table;

use super::super::live::Job;
use super::super::sizes::{RANDOM, Sizes};
use super::live_rounds::job;
use millpond_lab::verdict::{above, below, claim};

/// LOOP as his figures have it: a counter for each thread (1.2.2.1, p. 8).
pub const LOOP: &str = "loop(counter=thread)";
/// Lean eviction as his figures have it: 2.5 % (1.2.15, p. 60), filled when half empty (algorithm
/// 1.16, p. 59).
pub const LEAN: &str = "lean-evict(cooling=2.5%,refill=half)";
const SHARED_LOOP: &str = "loop";
const CLOCK: &str = "clock";
const FIFO: &str = "fifo";
const FILO: &str = "filo";
const LFU: &str = "lfu";
const POLICIES: [&str; 8] = [RANDOM, CLOCK, SHARED_LOOP, LOOP, FIFO, FILO, LFU, LEAN];

/// His pools over his 14.3 GiB of data (fig. 1.29), in per cent.
const GB_2: f64 = 14.0;
const GB_4: f64 = 28.0;
const GB_6: f64 = 42.0;
const GB_10: f64 = 70.0;
/// What *almost twice* is at least.
const ALMOST_TWICE: f64 = 1.5;
/// What *as fast as* allows.
const ALIKE: (f64, f64) = (0.9, 1.1);

/// A figure of his, and a sentence about it, judged.
#[derive(Clone, PartialEq, Debug)]
pub struct Correction {
    /// The policy or idea.
    pub about: &'static str,
    /// Section, figure and page.
    pub place: &'static str,
    /// What he says, what came out here, and whether it holds.
    pub claim: Claim,
    /// The ratios that decide it, each with what it is of; none where it was not run.
    pub ratios: Vec<(String, Option<Interval>)>,
}

/// Sizes of the pool, in per cent of the loaded data.
fn percents(scale: Scale) -> &'static [f64] {
    let all = &[3.5, 7.0, GB_2, GB_4, GB_6, GB_10, 105.0];
    scale.pick(&[GB_2, GB_4, GB_6], all, all)
}

/// The runs that decide.
pub(super) fn jobs(scale: Scale, own: &OwnPolicies) -> Vec<Job> {
    let of = |percent: &f64| POLICIES.map(|policy| job(scale, *percent, policy, own));
    percents(scale).iter().flat_map(of).collect()
}

/// One of his sentences, and where it stands.
struct Said {
    about: &'static str,
    place: &'static str,
    says: &'static str,
}

/// The ratios `of` the policies at those sizes that `at` has.
fn ratios(
    sizes: &Sizes,
    at: impl Fn(f64) -> bool,
    pairs: &[(&str, &str)],
    of: fn(&Sizes, &str, &str, &str) -> Option<Interval>,
) -> Vec<(String, Option<Interval>)> {
    let is_there = |percent: &&str| percent.parse().is_ok_and(&at);
    let mut all = Vec::new();
    for percent in sizes.percents().into_iter().filter(is_there) {
        for (one, other) in pairs {
            let name = format!("{one} over {other} at {percent} %");
            all.push((name, of(sizes, percent, one, other)));
        }
    }
    all
}

fn judged(said: Said, ratios: Vec<(String, Option<Interval>)>, bounds: (f64, f64)) -> Correction {
    let values: Vec<(&str, Option<Interval>)> =
        ratios.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let claim = match values.iter().any(|(_, value)| value.is_some()) {
        true => claim(said.says, &values, bounds),
        // Nothing holds of nothing.
        false => Claim::open(said.says, "not run"),
    };
    Correction { about: said.about, place: said.place, claim, ratios }
}

/// His sentences, judged by runs over pool sizes.
pub(super) fn corrections(rows: &Table) -> Vec<Correction> {
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
            below(ALIKE.1),
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
