//! Comparison of courses, part by part, with the tests of `compare`.

use super::course::Course;
use super::options::AdviseOptions;
use super::verdict::{Advice, BOUND, Beside, Standing};
use crate::compare::{
    CompareError, CompareOptions, Contest, Metric, Outcome, Pair, Replicate, Run, Verdict,
};
use crate::interval::Interval;
use crate::sim::Recorded;
use crate::table::Table;

/// Returns the cost of a course in each part from the second on, because the first part is warm-up.
/// Each cost includes half a read, so that a part without I/O still has ratios.
fn costs(course: &Course, weight: f64) -> impl Iterator<Item = f64> {
    course.parts[1..].iter().map(move |[reads, writes]| reads + weight * writes + 0.5)
}

/// Returns the policies in the order of their first appearance, each with its mean logarithmic
/// cost.
fn means(courses: &[Course], weight: f64) -> Vec<(String, f64)> {
    let mut all: Vec<(String, f64, usize)> = Vec::new();
    for course in courses {
        let logs: Vec<f64> = costs(course, weight).map(f64::ln).collect();
        let (sum, count) = (logs.iter().sum::<f64>(), logs.len());
        match all.iter_mut().find(|(policy, ..)| *policy == course.policy) {
            Some(known) => (known.1, known.2) = (known.1 + sum, known.2 + count),
            None => all.push((course.policy.clone(), sum, count)),
        }
    }
    all.into_iter().map(|(policy, sum, count)| (policy, sum / count.max(1) as f64)).collect()
}

/// Returns the costs as rows of a run, for all policies except the bound.
fn rows(courses: &[Course], weight: f64, has_bound: bool) -> Table {
    let mut table = Table::new(["policy", "size", "block", "cost"]);
    for course in courses.iter().filter(|course| has_bound || course.policy != BOUND) {
        for (block, cost) in costs(course, weight).enumerate() {
            let place = [course.policy.as_str().into(), course.size.into()];
            table
                .rows
                .push(place.into_iter().chain([(block as u64).into(), cost.into()]).collect());
        }
    }
    table
}

/// Compares all policies with the policy `to`, with Holm's correction over them.
fn beside(rows: &Table, to: &str) -> Result<Vec<Beside>, CompareError> {
    let run = Run { name: "advise".to_string(), rows: rows.clone() };
    let contest = Contest::of(&[run], Some(Metric::parse("cost")?), &[])?;
    let options = CompareOptions {
        replicate: Some(Replicate::Block),
        to: Some(to.to_string()),
        ..CompareOptions::default()
    };
    let outcome = Outcome::of(contest, options)?;
    let name = |at: usize| outcome.contest.contestants[at].clone();
    let of = |pair: &Pair| Beside {
        policy: name(pair.first),
        over: pair.effect,
        p: pair.p_holm,
        p_alike: pair.p_alike_holm,
        verdict: pair.verdict,
    };
    Ok(outcome.pairs.iter().map(of).collect())
}

/// Returns the cheapest policy that is better than the default after Holm's correction over all
/// candidates, or the default if there is none.
fn choice(order: &[(String, f64)], default: &str, beside: &[Beside]) -> String {
    let is_better = |policy: &String| {
        beside.iter().any(|one| one.policy == *policy && one.verdict == Verdict::First)
    };
    let found = order.iter().map(|(policy, _)| policy).find(|policy| is_better(policy));
    found.map_or(default, String::as_str).to_string()
}

/// Ranks the policies, each compared with the best one and with the default.
pub(super) fn judge(
    trace: &Recorded,
    courses: Vec<Course>,
    sizes: &[u32],
    options: &AdviseOptions,
) -> Result<Advice, CompareError> {
    let weight = options.write_weight;
    let mut order = means(&courses, weight);
    let default = order.first().map(|(policy, _)| policy.clone()).unwrap_or_default();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let best = order.iter().find(|(policy, _)| policy != BOUND).map(|(policy, _)| policy.clone());
    let best = best.unwrap_or_else(|| default.clone());
    let (all, candidates) = (rows(&courses, weight, true), rows(&courses, weight, false));
    let beside_default = beside(&candidates, &default)?;
    let choice = choice(&order, &default, &beside_default);
    let beside_choice = beside(&candidates, &choice)?;
    let over = |policy: &str, other: &str, all: &[Beside]| match policy == other {
        true => Some(Interval::exact(1.0)),
        false => all.iter().find(|one| one.policy == policy).map(|one| one.over),
    };
    let (to_best, to_default) = (beside(&all, &best)?, beside(&all, &default)?);
    let standing = |(policy, _): &(String, f64)| Standing {
        policy: policy.clone(),
        over_best: over(policy, &best, &to_best),
        over_default: over(policy, &default, &to_default),
    };
    let standings: Vec<Standing> = order.iter().map(standing).collect();
    let count = |of: fn(&millpond_base::Mark) -> bool| {
        trace.batch.marks.iter().filter(|mark| of(mark)).count() as f64
    };
    let mut times = vec![0u32; trace.distinct as usize];
    for page in &trace.batch.pages {
        if let Some(times) = times.get_mut(*page as usize) {
            *times = times.saturating_add(1);
        }
    }
    let once = times.iter().filter(|times| **times == 1).count() as f64;
    Ok(Advice {
        trace: trace.name.clone(),
        references: trace.batch.len() as u64,
        pages: trace.distinct,
        write_share: count(|mark| mark.is_write()) / trace.batch.len().max(1) as f64,
        once_share: once / trace.distinct.max(1) as f64,
        has_scans: trace.batch.marks.iter().any(|mark| mark.is_scan()),
        sizes: sizes.to_vec(),
        write_weight: options.write_weight,
        default,
        choice,
        beside_default,
        beside_choice,
        standings,
        courses,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Counts;

    /// Returns a course whose parts cost a common base times `factor`, with a little noise in each.
    fn course(policy: &str, factor: f64, noise: f64, seed: u64) -> Course {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut part = |at: usize| {
            let level = 1000.0 + 300.0 * (at as f64 / 5.0).sin();
            [level * factor * (1.0 + noise * (random.f64() - 0.5)), 0.0]
        };
        let parts = (0..31).map(&mut part).collect();
        Course { policy: policy.to_string(), size: 10, counts: Counts::default(), parts }
    }

    fn judged(others: &[(&str, f64, f64)]) -> (String, Vec<Beside>) {
        let mut courses = vec![course("watt", 1.0, 0.0, 0)];
        let each = others.iter().zip(1..);
        courses.extend(each.map(|((policy, by, noise), seed)| course(policy, *by, *noise, seed)));
        let beside = beside(&rows(&courses, 1.0, false), "watt").unwrap();
        (choice(&means(&courses, 1.0), "watt", &beside), beside)
    }

    #[test]
    fn a_policy_that_is_better_is_found_an_equal_one_alike_and_noise_open() {
        let (choice, all) = judged(&[("arc", 0.9, 0.02), ("lru", 1.0, 0.0), ("2q", 1.0, 0.6)]);
        let verdicts: Vec<Verdict> = all.iter().map(|one| one.verdict).collect();
        assert_eq!(verdicts, [Verdict::First, Verdict::Alike, Verdict::Open], "{all:?}");
        assert_eq!(choice, "arc");
        let (choice, all) = judged(&[("arc", 1.1, 0.02), ("2q", 0.99, 0.6)]);
        assert_eq!(all.iter().map(|one| one.verdict).next(), Some(Verdict::Second));
        assert_eq!(choice, "watt", "cheaper, but not shown to be: {all:?}");
        // The bound is not a candidate.
        assert_eq!(judged(&[("opt", 0.5, 0.0), ("arc", 0.9, 0.02)]).0, "arc");
    }

    #[test]
    fn a_default_among_equal_candidates_is_left_no_more_often_than_the_level_has_it() {
        let noisy = |round: u64| {
            let of =
                |at: u64| course(["watt", "a", "b", "c"][at as usize], 1.0, 0.2, round * 4 + at);
            let courses: Vec<Course> = (0..4).map(of).collect();
            let all = beside(&rows(&courses, 1.0, false), "watt").unwrap();
            choice(&means(&courses, 1.0), "watt", &all) != "watt"
        };
        let left = (0..60).filter(|round| noisy(*round)).count();
        // Chance alone would give 1.5 of 60 (2.5 %): six would be far beyond that.
        assert!(left <= 5, "{left} of 60");
    }
}
