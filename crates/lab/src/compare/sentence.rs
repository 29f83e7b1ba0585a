//! The verdict in a sentence.

use super::contest::Replicate;
use super::outcome::Outcome;
use super::pair::{Pair, Verdict};
use crate::method::Better;

impl Outcome {
    /// Returns the comparison and its outcome in a sentence or two.
    pub fn sentence(&self) -> String {
        let said = match self.pairs.as_slice() {
            [pair] => self.of_two(pair),
            _ => self.of_many(),
        };
        format!("{said} {}", self.basis())
    }

    /// Returns a sentence on the basis of the tests.
    pub fn basis(&self) -> String {
        let counts = self.pairs.iter().map(|pair| pair.replicates);
        let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
        let many = if least == most { format!("{most}") } else { format!("{least} to {most}") };
        let replicate = self.replicate;
        let over = match replicate {
            Replicate::Repetition => "on one machine".to_string(),
            Replicate::Seed => "of the draws, which say nothing of other traces".to_string(),
            Replicate::Trace => "taken as independent".to_string(),
            Replicate::Size => {
                "as Luan has it; those of one trace depend on each other".to_string()
            }
            Replicate::Block => {
                let len = self.pairs.iter().map(|pair| pair.block).max().unwrap_or(1);
                format!("of the traces, by a block bootstrap with {len} of them together")
            }
        };
        let pairs = match self.pairs.len() {
            1 => String::new(),
            n => format!(", by Holm over {n} pairs"),
        };
        let (level, margin) = (self.options.level * 100.0, self.options.margin * 100.0);
        let lacking = match self.contest.settings() {
            (_, 0) => String::new(),
            (all, some) => format!(
                " {some} of {all} settings were not run with all of them: each pair is compared in \
                 those that both have."
            ),
        };
        let twins: Vec<String> = self
            .contest
            .twins
            .iter()
            .map(|(twin, name)| {
                format!(" {twin} holds the references of {name}: both are one trace.")
            })
            .collect();
        let twins = twins.concat();
        format!(
            "({} over {many} {replicate}s, {over}; at {level} %{pairs}; a difference below {margin} % \
             is none.){lacking}{twins}",
            self.contest.metric
        )
    }

    fn of_two(&self, pair: &Pair) -> String {
        let (first, second) = (self.name(pair.first), self.name(pair.second));
        let (effect, p) = (self.effect(pair), shown(pair.p_holm));
        let little = match pair.p_alike_holm <= self.options.level {
            true => ", by less than the margin",
            false => "",
        };
        match pair.verdict {
            Verdict::First => format!("{first} is better than {second}{little}: {effect}, p {p}."),
            Verdict::Second => format!("{first} is worse than {second}{little}: {effect}, p {p}."),
            Verdict::Alike => format!(
                "{first} and {second} are alike: {effect}; that they differ by less than the \
                 margin has p {}.",
                shown(pair.p_alike_holm)
            ),
            Verdict::Open => format!(
                "Between {first} and {second} nothing was decided: {effect}, p {p}; neither a \
                 difference nor its absence was shown."
            ),
        }
    }

    /// Formats a pair's effect: `misses × 0.958 (0.950 to 0.966)`.
    fn effect(&self, pair: &Pair) -> String {
        let times = if self.are_ratios { "×" } else { "differ by" };
        format!("{} {times} {:.3}", self.contest.metric, pair.effect)
    }

    fn of_many(&self) -> String {
        let names = |all: Vec<usize>| {
            all.into_iter().map(|at| self.name(at).to_string()).collect::<Vec<_>>().join(", ")
        };
        if let Some(to) = &self.options.to {
            let with = |verdict| -> Vec<usize> {
                let those = self.pairs.iter().filter(|pair| pair.verdict == verdict);
                those.map(|pair| pair.first).collect()
            };
            let parts = [
                (with(Verdict::First), "better than"),
                (with(Verdict::Second), "worse than"),
                (with(Verdict::Alike), "like"),
                (with(Verdict::Open), "not told apart from"),
            ];
            let said = parts.into_iter().filter(|(those, _)| !those.is_empty());
            let said = said.map(|(those, how)| format!("{how} {to}: {}", names(those)));
            return sentence(said.collect());
        }
        let order = self.order();
        let Some(&best) = order.first() else { return String::new() };
        let against = |other: usize| {
            let is_it = |pair: &&Pair| {
                (pair.first, pair.second) == (best, other)
                    || (pair.first, pair.second) == (other, best)
            };
            self.pairs.iter().find(is_it).map_or(Verdict::Open, |pair| pair.verdict)
        };
        let with = |wanted: &dyn Fn(Verdict) -> bool| {
            order[1..].iter().copied().filter(|at| wanted(against(*at))).collect::<Vec<_>>()
        };
        let is_behind = |v| v == Verdict::First || v == Verdict::Second;
        let (behind, alike) = (with(&is_behind), with(&|v| v == Verdict::Alike));
        let open = with(&|v| v == Verdict::Open);
        let most = match self.contest.metric.better {
            Better::Larger => "most",
            Better::Smaller => "least",
        };
        let mut parts = vec![format!("{} has the {most}", self.name(best))];
        for (those, how) in
            [(behind, "clearly behind it"), (alike, "like it"), (open, "not told apart from it")]
        {
            if !those.is_empty() {
                parts.push(format!("{how}: {}", names(those)));
            }
        }
        sentence(parts)
    }
}

fn sentence(parts: Vec<String>) -> String {
    let mut text = parts.join("; ") + ".";
    if let Some(first) = text.get(..1).map(str::to_uppercase)
        && text.starts_with(|c: char| "bwln".contains(c))
        && ["better", "worse", "like", "not told"].iter().any(|word| text.starts_with(word))
    {
        text.replace_range(..1, &first);
    }
    text
}

/// Formats a p-value for sentences.
pub(super) fn shown(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_string() } else { format!("{p:.3}") }
}
