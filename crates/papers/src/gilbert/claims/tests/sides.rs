//! Made-up runs, and the test of a claim on both sides of its bound, and open if nothing decides.

use millpond_lab::report::Claim;
use millpond_lab::table::Table;

use crate::live::sizes::Sizes;

/// A run: pool, policy, transactions per second, misses per reference.
pub(super) type Run = (f64, String, f64, f64);
/// Width of intervals that decide nothing.
pub(super) const WIDE: f64 = 300.0;
/// Function that makes claims about runs.
pub(super) type Claims = fn(&Sizes) -> Vec<Claim>;

pub(super) fn run(percent: f64, policy: &str, speed: f64, misses: f64) -> Run {
    (percent, policy.to_string(), speed, misses)
}

/// Returns noise that differs from run to run. It is as much up in odd repetitions as down in
/// even ones, so no ratio of two repetitions is certain.
fn noise(run: usize, repetition: u64) -> f64 {
    let size = fastrand::Rng::with_seed(run as u64 * 31).f64();
    if repetition % 2 == 1 { size } else { -size }
}

pub(super) fn rows(runs: &[Run], repetitions: u64, wobble: f64) -> Table {
    let columns = ["percent", "policy", "repetition", "end", "transactions", "throughput_per_s"];
    let columns = columns.into_iter().chain(["miss_ratio", "misses_per_tx"]);
    let mut table = Table::new(columns);
    for repetition in 1..=repetitions {
        for (at, (percent, policy, speed, misses)) in runs.iter().enumerate() {
            let up = (wobble * noise(at, repetition)).exp();
            table.rows.push(vec![
                (*percent).into(),
                policy.as_str().into(),
                repetition.into(),
                "ran".into(),
                100u64.into(),
                (speed * up).into(),
                (misses * up).into(),
                // Nothing stalls.
                0.5.into(),
            ]);
        }
    }
    table
}

pub(super) fn judged(
    claims: Claims,
    says: &str,
    runs: &[Run],
    repetitions: u64,
    wobble: f64,
) -> Claim {
    let all = claims(&Sizes::of(&rows(runs, repetitions, wobble)));
    let mut named = all.into_iter().filter(|claim| claim.says.starts_with(says));
    let claim = named.next().unwrap_or_else(|| panic!("no claim says '{says}'"));
    assert!(named.next().is_none(), "several say '{says}'");
    claim
}

/// Checks that a claim holds for some runs and not for others, and that it is open with wide
/// intervals, with one repetition, and without runs.
pub(super) fn sides(claims: Claims, says: &str, yes: &[Run], no: &[Run]) {
    let of = |runs: &[Run], repetitions, wobble| judged(claims, says, runs, repetitions, wobble);
    let held = of(yes, 3, 0.0);
    assert_eq!(held.holds, Some(true), "{held:?}");
    let failed = of(no, 3, 0.0);
    assert_eq!(failed.holds, Some(false), "{failed:?}");
    for runs in [yes, no] {
        let wide = of(runs, 2, WIDE);
        assert_eq!(wide.holds, None, "wide: {wide:?}");
        let one = of(runs, 1, 0.0);
        assert_eq!(one.holds, None, "one repetition: {one:?}");
    }
    let nothing = of(&[], 3, 0.0);
    assert_eq!((nothing.holds, nothing.here.as_str()), (None, "not run"), "{nothing:?}");
}

/// Makes runs of variants in one pool: name, speed, misses.
pub(super) fn pool(percent: f64, of: &[(&str, f64, f64)]) -> Vec<Run> {
    of.iter().map(|(name, speed, misses)| run(percent, name, *speed, *misses)).collect()
}
