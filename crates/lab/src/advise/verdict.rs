//! The advice: three lines, and the table that they are derived from.

use super::course::Course;
use super::shortlist::{LEAN, SHORTLIST};
use crate::interval::Interval;
use crate::table::{Table, Value};

/// How a policy compares, over all sizes.
#[derive(Clone, PartialEq, Debug)]
pub struct Standing {
    /// The policy with its parameters.
    pub policy: String,
    /// What it costs over what the best one does.
    pub over_best: Option<Interval>,
    /// What it costs over what the default does.
    pub over_default: Option<Interval>,
}

/// The outcome: who is best, and by how much.
#[derive(Clone, PartialEq, Debug)]
pub struct Advice {
    /// The trace.
    pub trace: String,
    /// Its references.
    pub references: u64,
    /// Its distinct pages.
    pub pages: u64,
    /// The share of its references that write.
    pub write_share: f64,
    /// The share of its pages that are referenced once.
    pub once_share: f64,
    /// Frames of the pools.
    pub sizes: Vec<u32>,
    /// What a page write costs, in page reads.
    pub write_weight: f64,
    /// The default policy.
    pub default: String,
    /// All policies, the cheapest first; `opt`, which knows the future, is among them.
    pub standings: Vec<Standing>,
    /// Every policy at every size.
    pub courses: Vec<Course>,
}

/// Whether a ratio cannot be distinguished from 1: its interval includes 1, or the difference is
/// too small to matter.
fn is_tie(ratio: Option<Interval>) -> bool {
    ratio.is_none_or(|r| (r.low <= 1.0 && 1.0 <= r.high) || (r.mean - 1.0).abs() < 0.003)
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// `12.3 % less (10.0 to 14.1)`.
fn difference(ratio: Option<Interval>) -> String {
    let Some(r) = ratio else { return "as much".to_string() };
    match r.mean < 1.0 {
        true => format!("{:.1} % less ({:.1} to {:.1})", -percent(r.mean), -percent(r.high), {
            -percent(r.low)
        }),
        false => {
            format!("{:.1} % more ({:.1} to {:.1})", percent(r.mean), percent(r.low), {
                percent(r.high)
            })
        }
    }
}

impl Advice {
    /// The policies that can be had, the cheapest first.
    fn online(&self) -> impl Iterator<Item = &Standing> {
        self.standings.iter().filter(|standing| standing.policy != "opt")
    }

    /// The policy to take: the default where nothing beats it beyond noise, else the cheapest.
    pub fn choice(&self) -> &str {
        let default = self.online().find(|standing| standing.policy == self.default);
        match default {
            Some(default) if is_tie(default.over_best) => &self.default,
            _ => self.online().next().map_or(&self.default, |best| &best.policy),
        }
    }

    /// The policies that cannot be distinguished from the best one; the best one is first.
    pub fn ties(&self) -> Vec<&str> {
        let ties = self.online().filter(|standing| is_tie(standing.over_best));
        ties.map(|standing| standing.policy.as_str()).collect()
    }

    /// The advice in three lines: what to take, how sure that is, and why.
    pub fn lines(&self) -> [String; 3] {
        [self.what(), self.how_sure(), self.why()]
    }

    fn what(&self) -> String {
        let (choice, pools) = (self.choice(), self.pools());
        if choice == self.default {
            return format!(
                "Stay with {choice}, the default: nothing on the shortlist beats it beyond noise, \
                 in pools of {pools}."
            );
        }
        let over = self.online().find(|s| s.policy == choice).and_then(|s| s.over_default);
        let gain = difference(over);
        format!(
            "Take {choice}: {gain} I/O than {}, the default, in pools of {pools}.",
            self.default
        )
    }

    fn pools(&self) -> String {
        let shares = self.sizes.iter().map(|size| {
            let percent = f64::from(*size) * 100.0 / self.pages.max(1) as f64;
            format!("{size} ({percent:.0} %)")
        });
        format!("{} frames", shares.collect::<Vec<_>>().join(", "))
    }

    fn how_sure(&self) -> String {
        let choice = self.choice();
        let ties: Vec<&str> = self.ties().into_iter().filter(|policy| *policy != choice).collect();
        let behind = self.online().find(|s| s.policy != choice && !is_tie(s.over_best));
        let next = match behind {
            Some(next) => {
                format!("{} costs {} than the best", next.policy, { difference(next.over_best) })
            }
            None => "nothing on the shortlist is clearly worse".to_string(),
        };
        match ties.is_empty() {
            true => format!("The runner-up: {next}; the rest is further behind."),
            false => format!("A tie, within noise: {}. Behind them, {next}.", ties.join(", ")),
        }
    }

    fn why(&self) -> String {
        let choice = self.choice();
        let id = choice.split('(').next().unwrap_or(choice);
        let known = SHORTLIST.iter().find(|candidate| candidate.id == id);
        let strength = match known {
            Some(candidate) => candidate.strength,
            None if id == LEAN.id => LEAN.strength,
            None => "was asked for",
        };
        let (once, writes) = (self.once_share * 100.0, self.write_share * 100.0);
        let traded = match self.traded(choice) {
            _ if choice == self.default => String::new(),
            Some((reads, Some(writes))) => {
                format!(" It reads {reads:.0} % and writes {writes:.0} % of the default's pages.")
            }
            Some((reads, None)) => format!(" It reads {reads:.0} % of the default's pages."),
            None => String::new(),
        };
        format!(
            "Why: {id} {strength}. Here {once:.0} % of the pages are referenced once, and \
             {writes:.0} % of the references write.{traded}"
        )
    }

    /// Page reads and page writes over the default's, in percent, all sizes together; none where
    /// the default has none.
    fn traded(&self, policy: &str) -> Option<(f64, Option<f64>)> {
        let sum = |policy: &str, kind: usize| -> f64 {
            let own = self.courses.iter().filter(|course| course.policy == policy);
            own.flat_map(|course| course.parts[1..].iter().map(|part| part[kind])).sum()
        };
        let share = |kind| {
            let default = sum(&self.default, kind);
            (default > 0.0).then(|| sum(policy, kind) * 100.0 / default)
        };
        Some((share(0)?, share(1)))
    }

    /// A row for each policy and size, in the order of the standings.
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            "policy",
            "size",
            "references",
            "hits",
            "misses",
            "writes",
            "hit_ratio",
            "cost",
            "over_best",
            "over_best_low",
            "over_best_high",
            "over_default",
        ]);
        for standing in &self.standings {
            for course in self.courses.iter().filter(|c| c.policy == standing.policy) {
                table.rows.push(self.row(standing, course));
            }
        }
        table
    }

    fn row(&self, standing: &Standing, course: &Course) -> Vec<Value> {
        let counts = &course.counts;
        let cost = counts.misses() as f64 + self.write_weight * counts.writes() as f64;
        let end = |of: fn(&Interval) -> f64| standing.over_best.as_ref().map(of);
        vec![
            course.policy.as_str().into(),
            course.size.into(),
            counts.references.into(),
            counts.hits.into(),
            counts.misses().into(),
            counts.writes().into(),
            counts.hit_ratio().into(),
            cost.into(),
            end(|interval| interval.mean).into(),
            end(|interval| interval.low).into(),
            end(|interval| interval.high).into(),
            standing.over_default.map(|interval| interval.mean).into(),
        ]
    }

    /// A row for each policy: what it costs over the best one, reads and writes in percent of the
    /// default's, and its hits in percent at each size.
    pub fn summary(&self) -> Table {
        let sizes: Vec<String> =
            self.sizes.iter().map(|size| format!("hits % at {size}")).collect();
        let mut columns = vec!["policy", "cost over the best", "from", "to", "reads %", "writes %"];
        columns.extend(sizes.iter().map(String::as_str));
        let mut table = Table::new(columns);
        for standing in &self.standings {
            let over = standing.over_best;
            let traded = self.traded(&standing.policy);
            let mut row: Vec<Value> = vec![
                standing.policy.as_str().into(),
                over.map(|r| r.mean).into(),
                over.map(|r| r.low).into(),
                over.map(|r| r.high).into(),
                traded.map(|t| t.0.round() as u64).into(),
                traded.and_then(|t| t.1).map(|writes| writes.round() as u64).into(),
            ];
            for size in &self.sizes {
                let is_it = |c: &&Course| c.policy == standing.policy && c.size == *size;
                let hits = self.courses.iter().find(is_it).map(|c| c.counts.hit_ratio() * 100.0);
                row.push(hits.map(|hits| format!("{hits:.1}")).into());
            }
            table.rows.push(row);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(mean: f64, low: f64, high: f64) -> Option<Interval> {
        Some(Interval { mean, low, high, runs: 10 })
    }

    fn advice(standings: &[(&str, Option<Interval>, Option<Interval>)]) -> Advice {
        let standing = |(policy, over_best, over_default): &(&str, _, _)| Standing {
            policy: (*policy).to_string(),
            over_best: *over_best,
            over_default: *over_default,
        };
        Advice {
            trace: "t".to_string(),
            references: 1000,
            pages: 100,
            write_share: 0.2,
            once_share: 0.5,
            sizes: vec![10],
            write_weight: 1.0,
            default: "lean-evict".to_string(),
            standings: standings.iter().map(standing).collect(),
            courses: Vec::new(),
        }
    }

    #[test]
    fn the_cheapest_is_taken_where_the_default_is_clearly_worse() {
        let one = interval(1.0, 1.0, 1.0);
        let advice = advice(&[
            ("opt", interval(0.7, 0.6, 0.8), one),
            ("arc", one, interval(0.8, 0.75, 0.85)),
            ("lirs", interval(1.02, 0.99, 1.05), one),
            ("lean-evict", interval(1.25, 1.2, 1.3), one),
        ]);
        assert_eq!((advice.choice(), advice.ties()), ("arc", vec!["arc", "lirs"]));
        let [what, sure, why] = advice.lines();
        assert!(what.starts_with("Take arc: 20.0 % less (15.0 to 25.0) I/O"), "{what}");
        assert!(what.contains("10 (10 %) frames"), "{what}");
        assert!(
            sure.contains("within noise: lirs. Behind them, lean-evict costs 25.0 %"),
            "{sure}"
        );
        assert!(why.contains("arc balances") && why.contains("50 % of the pages"), "{why}");
    }

    #[test]
    fn the_default_stays_where_nothing_beats_it_beyond_noise() {
        let one = interval(1.0, 1.0, 1.0);
        let advice = advice(&[
            ("arc", one, interval(0.99, 0.9, 1.1)),
            ("lean-evict", interval(1.01, 0.9, 1.1), one),
            ("lru", interval(1.2, 1.1, 1.3), interval(1.2, 1.1, 1.3)),
        ]);
        assert_eq!(advice.choice(), "lean-evict");
        let [what, sure, why] = advice.lines();
        assert!(what.starts_with("Stay with lean-evict, the default"), "{what}");
        assert!(sure.contains("within noise: arc. Behind them, lru costs 20.0 % more"), "{sure}");
        assert!(why.contains("on a hit"), "{why}");
    }

    #[test]
    fn each_policy_has_reasons_of_its_own_as_the_default_too() {
        let one = interval(1.0, 1.0, 1.0);
        let mut advice = advice(&[("watt", one, one), ("lean-evict", one, one)]);
        advice.default = "watt".to_string();
        let [what, _, why] = advice.lines();
        assert!(what.starts_with("Stay with watt"), "{what}");
        assert!(why.contains("watt remembers when") && !why.contains("nothing at all"), "{why}");
        advice.default = "lean-evict".to_string();
        assert!(advice.lines()[2].contains("lean-evict does nothing at all on a hit"));
    }

    #[test]
    fn a_difference_that_nobody_would_notice_is_a_tie() {
        assert!(is_tie(interval(1.002, 1.001, 1.003)) && is_tie(None));
        assert!(!is_tie(interval(1.004, 1.001, 1.007)));
    }
}
