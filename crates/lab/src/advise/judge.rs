//! Comparing courses part by part.

use super::course::Course;
use super::options::AdviseOptions;
use super::verdict::{Advice, Standing};
use crate::interval::Interval;
use crate::papers::Recorded;

/// A policy over all sizes: what it costs in each part of the trace, as the mean of logarithms
/// over the sizes.
struct Account {
    policy: String,
    logs: Vec<f64>,
}

/// What a course costs from its second part on; half a read more, so that nothing is still
/// something that ratios can be taken of.
fn costs(course: &Course, weight: f64) -> Vec<f64> {
    course.parts[1..].iter().map(|[reads, writes]| reads + weight * writes + 0.5).collect()
}

fn accounts(courses: &[Course], weight: f64) -> Vec<Account> {
    let mut all: Vec<Account> = Vec::new();
    let mut sizes: Vec<f64> = Vec::new();
    for course in courses {
        let logs: Vec<f64> = costs(course, weight).iter().map(|cost| cost.ln()).collect();
        match all.iter().position(|account| account.policy == course.policy) {
            Some(at) => {
                all[at].logs.iter_mut().zip(logs).for_each(|(sum, log)| *sum += log);
                sizes[at] += 1.0;
            }
            None => {
                all.push(Account { policy: course.policy.clone(), logs });
                sizes.push(1.0);
            }
        }
    }
    for (account, sizes) in all.iter_mut().zip(sizes) {
        account.logs.iter_mut().for_each(|log| *log /= sizes);
    }
    all
}

/// One policy's cost over another's: paired part by part.
fn ratio(above: &Account, below: &Account) -> Option<Interval> {
    let exp = |account: &Account| account.logs.iter().map(|log| log.exp()).collect::<Vec<_>>();
    Interval::of_ratios(&exp(above), &exp(below))
}

/// Puts the policies in order, each beside the best one and the default.
pub(super) fn judge(
    trace: &Recorded,
    courses: Vec<Course>,
    sizes: &[u32],
    options: &AdviseOptions,
) -> Advice {
    let accounts = accounts(&courses, options.write_weight);
    let mean = |account: &Account| account.logs.iter().sum::<f64>() / account.logs.len() as f64;
    let is_online = |account: &&Account| account.policy != "opt";
    let best = accounts
        .iter()
        .filter(is_online)
        .min_by(|a, b| mean(a).total_cmp(&mean(b)))
        .or(accounts.first());
    let standing = |account: &Account| Standing {
        policy: account.policy.clone(),
        over_best: best.and_then(|best| ratio(account, best)),
        over_default: accounts.first().and_then(|default| ratio(account, default)),
    };
    let mut standings: Vec<(f64, Standing)> =
        accounts.iter().map(|account| (mean(account), standing(account))).collect();
    standings.sort_by(|a, b| a.0.total_cmp(&b.0));
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
    Advice {
        trace: trace.name.clone(),
        references: trace.batch.len() as u64,
        pages: trace.distinct,
        write_share: count(|mark| mark.is_write()) / trace.batch.len().max(1) as f64,
        once_share: once / trace.distinct.max(1) as f64,
        sizes: sizes.to_vec(),
        write_weight: options.write_weight,
        default: accounts.first().map(|a| a.policy.clone()).unwrap_or_default(),
        standings: standings.into_iter().map(|(_, standing)| standing).collect(),
        courses,
    }
}
