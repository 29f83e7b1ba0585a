//! The advice: three lines, and the table behind them.

use super::course::Course;
use super::shortlist::{LEAN, SHORTLIST};
use crate::compare::Verdict;
use crate::interval::Interval;
use crate::sweep::OPTIONS;
use crate::table::{Table, Value};

/// Policy that knows the future, and is therefore the bound instead of a candidate.
pub(super) const BOUND: &str = "opt";

/// A policy's place in the comparison, over all sizes.
#[derive(Clone, PartialEq, Debug)]
pub struct Standing {
    /// The policy with its parameters.
    pub policy: String,
    /// Cost of the policy over the cost of the best policy.
    pub over_best: Option<Interval>,
    /// Cost of the policy over the cost of the default.
    pub over_default: Option<Interval>,
}

/// A policy compared with another one, part by part.
#[derive(Clone, PartialEq, Debug)]
pub struct Beside {
    /// The policy with its parameters.
    pub policy: String,
    /// Cost of the policy over the cost of the other policy.
    pub over: Interval,
    /// Two-sided p-value of a difference, after Holm's correction over all candidates.
    pub p: f64,
    /// p-value of a difference of at least the margin, by two one-sided tests and Holm's
    /// correction.
    pub p_alike: f64,
    /// The verdict: [`Verdict::First`] if `policy` is better, `Verdict::Second` if the other one
    /// is.
    pub verdict: Verdict,
}

/// The outcome of a request for advice: the best policy, and its lead.
#[derive(Clone, PartialEq, Debug)]
pub struct Advice {
    /// Name of the trace.
    pub trace: String,
    /// Number of references in the trace.
    pub references: u64,
    /// Number of distinct pages in the trace.
    pub pages: u64,
    /// Share of the references that write.
    pub write_share: f64,
    /// Share of the pages that are referenced once.
    pub once_share: f64,
    /// `true` if the trace marks scans. Marked scans are hints, as in a pool, for all policies
    /// except the bound.
    pub has_scans: bool,
    /// Sizes of the pools, in frames.
    pub sizes: Vec<u32>,
    /// Cost of a page write, in page reads.
    pub write_weight: f64,
    /// The default policy.
    pub default: String,
    /// The policy to take: the default, unless another policy is better.
    pub choice: String,
    /// The candidates, each compared with the default.
    pub beside_default: Vec<Beside>,
    /// The candidates, each compared with the choice.
    pub beside_choice: Vec<Beside>,
    /// All policies, the cheapest first, including `opt`, which knows the future.
    pub standings: Vec<Standing>,
    /// The course of every policy at every size.
    pub courses: Vec<Course>,
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// Formats a ratio as a difference: `12.3 % less (10.0 to 14.1)`.
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
    /// Returns the choice, followed by the policies that the choice was not shown to beat.
    pub fn ties(&self) -> Vec<&str> {
        let others = self.beside_choice.iter().filter(|one| one.verdict != Verdict::Second);
        let others = others.map(|one| one.policy.as_str());
        std::iter::once(self.choice.as_str()).chain(others).collect()
    }

    /// Returns the candidates that have this verdict when compared with the choice.
    pub fn with(&self, verdict: Verdict) -> Vec<&str> {
        let those = self.beside_choice.iter().filter(|one| one.verdict == verdict);
        those.map(|one| one.policy.as_str()).collect()
    }

    /// Returns the advice in three lines: the policy to take, its certainty, and the reason.
    pub fn lines(&self) -> [String; 3] {
        [self.what(), self.how_sure(), self.why()]
    }

    fn what(&self) -> String {
        let (choice, pools) = (&self.choice, self.pools());
        if *choice == self.default {
            return format!(
                "Stay with {choice}, the default: nothing on the shortlist is shown to be better, \
                 in pools of {pools}."
            );
        }
        let over = self.beside_default.iter().find(|one| one.policy == *choice);
        let gain = difference(over.map(|one| one.over));
        let p = over.map_or(1.0, |one| one.p);
        let p = if p < 0.001 { "p < 0.001".to_string() } else { format!("p {p:.3}") };
        format!(
            "Take {choice}: {gain} I/O than {}, the default ({p}), in pools of {pools}.",
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
        let choice = &self.choice;
        let behind = self.beside_choice.iter().filter(|one| one.verdict == Verdict::Second);
        let nearest = behind.min_by(|a, b| a.over.mean.total_cmp(&b.over.mean));
        let next = match nearest {
            Some(next) => {
                format!("{} costs {} than {choice}", next.policy, difference(Some(next.over)))
            }
            None => "nothing on the shortlist is clearly worse".to_string(),
        };
        let groups = [
            (Verdict::First, "better still"),
            (Verdict::Alike, "alike within 1 %"),
            (Verdict::Open, "open"),
        ];
        let named = groups.map(|(verdict, how)| (self.with(verdict), how));
        let named: Vec<String> = named
            .into_iter()
            .filter(|(those, _)| !those.is_empty())
            .map(|(those, how)| format!("{how}: {}", those.join(", ")))
            .collect();
        match named.is_empty() {
            true => format!("The runner-up: {next}; the rest is further behind."),
            false => format!("Beside {choice}, {}. Behind them, {next}.", named.join("; ")),
        }
    }

    fn why(&self) -> String {
        let choice = self.choice.as_str();
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
        let scans = match self.has_scans {
            true => " Scans that the trace marks were hints, for all policies but opt.",
            false => "",
        };
        format!(
            "Why: {id} {strength}. Here {once:.0} % of the pages are referenced once, and \
             {writes:.0} % of the references write.{traded}{scans}"
        )
    }

    /// Returns page reads and page writes in percent of the default's, over all sizes together. The
    /// result is `None` if the default reads nothing, and its second part is `None` if the default
    /// writes nothing.
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

    /// Returns a row for each policy and size, in the order of the standings.
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
            OPTIONS,
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
            match self.has_scans && course.policy != BOUND {
                true => "pool scan-hints".into(),
                false => "pool".into(),
            },
        ]
    }

    /// Returns a row for each policy: its cost over the best policy's, its reads and writes in
    /// percent of the default's, and its hits in percent at each size.
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

    fn beside(policy: &str, mean: f64, verdict: Verdict) -> Beside {
        let over = Interval { mean, low: mean - 0.05, high: mean + 0.05, runs: 7 };
        Beside { policy: policy.to_string(), over, p: 0.01, p_alike: 0.01, verdict }
    }

    fn advice(choice: &str, beside_default: &[Beside], beside_choice: &[Beside]) -> Advice {
        Advice {
            trace: "t".to_string(),
            references: 1000,
            pages: 100,
            write_share: 0.2,
            once_share: 0.5,
            has_scans: false,
            sizes: vec![10],
            write_weight: 1.0,
            default: "lean-evict".to_string(),
            choice: choice.to_string(),
            beside_default: beside_default.to_vec(),
            beside_choice: beside_choice.to_vec(),
            standings: Vec::new(),
            courses: Vec::new(),
        }
    }

    #[test]
    fn what_is_better_is_taken_and_others_are_named_by_their_verdicts() {
        let advice = advice(
            "arc",
            &[beside("arc", 0.8, Verdict::First)],
            &[
                beside("lirs", 1.0, Verdict::Alike),
                beside("2q", 1.02, Verdict::Open),
                beside("lean-evict", 1.25, Verdict::Second),
                beside("lru", 1.5, Verdict::Second),
            ],
        );
        assert_eq!(advice.ties(), ["arc", "lirs", "2q"]);
        let [what, sure, why] = advice.lines();
        assert!(what.starts_with("Take arc: 20.0 % less (15.0 to 25.0) I/O"), "{what}");
        assert!(what.contains("(p 0.010), in pools of 10 (10 %) frames"), "{what}");
        let says =
            "Beside arc, alike within 1 %: lirs; open: 2q. Behind them, lean-evict costs 25.0 %";
        assert!(sure.starts_with(says), "{sure}");
        assert!(why.contains("arc balances") && why.contains("50 % of the pages"), "{why}");
    }

    #[test]
    fn the_default_stays_where_nothing_is_better() {
        let open = [beside("arc", 0.99, Verdict::Open), beside("lru", 1.2, Verdict::Second)];
        let advice = advice("lean-evict", &open, &open);
        let [what, sure, why] = advice.lines();
        assert!(what.starts_with("Stay with lean-evict, the default"), "{what}");
        assert!(sure.contains("open: arc. Behind them, lru costs 20.0 % more"), "{sure}");
        assert!(why.contains("lean-evict does nothing at all on a hit"), "{why}");
        assert!(!why.contains("hints"), "{why}");
        let [.., why] = Advice { has_scans: true, ..advice }.lines();
        assert!(why.ends_with("marks were hints, for all policies but opt."), "{why}");
    }

    #[test]
    fn each_policy_has_reasons_of_its_own_as_the_default_too() {
        let mut advice = advice("watt", &[], &[beside("lru", 1.2, Verdict::Second)]);
        advice.default = "watt".to_string();
        let [what, sure, why] = advice.lines();
        assert!(what.starts_with("Stay with watt"), "{what}");
        assert!(sure.starts_with("The runner-up: lru costs 20.0 % more"), "{sure}");
        assert!(why.contains("watt remembers when") && !why.contains("nothing at all"), "{why}");
    }
}
