//! The comparison as tables and plots.

use super::outcome::Outcome;
use super::pair::{Pair, Verdict};
use super::sentence::shown;
use crate::report::{EffectPlot, Line, LinePlot, Plot, RankPlot, Section};
use crate::table::{Table, Value};

impl Outcome {
    /// Returns a row for each pair. `effect` is `first` over `second`, or their difference. `low`
    /// and `high` are the ends of its 95 % interval; the ends of the bootstrap's interval are
    /// beside them.
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            "first",
            "second",
            "verdict",
            "effect",
            "low",
            "high",
            "p",
            "p_holm",
            "p_alike",
            "wins",
            "losses",
            "p_sign",
            "replicates",
            "d",
            "bootstrap_low",
            "bootstrap_high",
        ]);
        for pair in &self.pairs {
            table.rows.push(vec![
                self.name(pair.first).into(),
                self.name(pair.second).into(),
                verdict(pair.verdict).into(),
                pair.effect.mean.into(),
                pair.effect.low.into(),
                pair.effect.high.into(),
                pair.p.into(),
                pair.p_holm.into(),
                pair.p_alike_holm.into(),
                (pair.wins.0 as u64).into(),
                (pair.wins.1 as u64).into(),
                pair.p_sign.into(),
                (pair.replicates as u64).into(),
                pair.d.into(),
                pair.bootstrap.low.into(),
                pair.bootstrap.high.into(),
            ]);
        }
        table
    }

    /// Like [`table`](Outcome::table), for people: effects with their intervals, and p-values with
    /// three digits.
    pub fn shown(&self) -> Table {
        let mut table = Table::new([
            "first",
            "second",
            "verdict",
            "effect",
            "p",
            "p alike",
            "better in",
            "p sign",
            "d",
            "bootstrap",
        ]);
        for pair in &self.pairs {
            let all = pair.replicates;
            table.rows.push(vec![
                self.name(pair.first).into(),
                self.name(pair.second).into(),
                verdict(pair.verdict).into(),
                format!("{:.4}", pair.effect).into(),
                shown(pair.p_holm).into(),
                shown(pair.p_alike_holm).into(),
                format!("{} of {all}, worse in {}", pair.wins.0, pair.wins.1).into(),
                shown(pair.p_sign).into(),
                pair.d.map(|d| format!("{d:.2}")).into(),
                format!("{:.4} to {:.4}", pair.bootstrap.low, pair.bootstrap.high).into(),
            ]);
        }
        table
    }

    /// Returns Luan's tables: marks of the t-test and of the sign test for each contestant (row)
    /// against each other one (column, by number), and the final score. `None` without two
    /// settings.
    pub fn marks(&self) -> Option<Table> {
        let luan = self.luan.as_ref()?;
        let count = self.contest.contestants.len();
        let numbers: Vec<String> = (1..=count).map(|at| at.to_string()).collect();
        let columns = ["test", "contestant"].into_iter().chain(numbers.iter().map(String::as_str));
        let mut table = Table::new(columns.chain(["score"]));
        for (test, marks) in [("t", &luan.joint.t), ("sign", &luan.joint.sign)] {
            let scores = marks.scores(self.options.weights);
            for (at, (marks, score)) in marks.0.iter().zip(scores).enumerate() {
                let name = format!("{} {}", at + 1, self.name(at));
                let mut row: Vec<Value> = vec![test.into(), name.into()];
                row.extend(marks.iter().map(|mark| Value::from(mark.to_string())));
                row.push(format!("{score}").into());
                table.rows.push(row);
            }
        }
        Some(table)
    }

    /// Returns the final scores, the best first.
    pub fn ranking(&self) -> Option<Table> {
        let luan = self.luan.as_ref()?;
        let mut table = Table::new(["contestant", "final score", "mean rank"]);
        for at in luan.joint.ranking(self.options.weights) {
            let rank = self.ranks.as_ref().map(|ranks| format!("{:.2}", ranks.mean[at]));
            let score = luan.scores[at].to_string();
            table.rows.push(vec![self.name(at).into(), score.into(), rank.into()]);
        }
        Some(table)
    }

    /// Returns the tables and plots as sections of a page.
    pub fn sections(&self) -> Vec<Section> {
        let mut plots = vec![self.effects()];
        plots.extend(self.curves());
        plots.extend(self.rank_plot());
        let mut sections = vec![Section {
            title: format!("Compared: {}", self.contest.metric),
            note: self.sentence(),
            table: self.shown(),
            plots,
            claims: Vec::new(),
        }];
        if let Some((luan, marks)) = self.luan.as_ref().zip(self.marks()) {
            let note = format!(
                "The t-test and the sign test over {} settings (traces and cache sizes, means over \
                 what was repeated), one-sided: > and < up to 0.05, >> and << up to 0.01. A score \
                 is the sum of a row's marks, ± {} and ± {}; the final one is the mean of both. \
                 Sizes of one trace depend on each other, so that these p-values are too small \
                 (luan 3.4).",
                luan.settings, self.options.weights.clear, self.options.weights.very_clear
            );
            let title = "Luan's joint method".to_string();
            sections.push(Section { title, note, table: marks, ..Section::default() });
            if let Some(table) = self.ranking() {
                let title = "Final scores".to_string();
                sections.push(Section { title, table, ..Section::default() });
            }
        }
        sections
    }

    /// Returns a plot of each pair's effect with its interval.
    fn effects(&self) -> Plot {
        let what = if self.are_ratios { "over" } else { "less" };
        let effect = |pair: &Pair| {
            (format!("{} {what} {}", self.name(pair.first), self.name(pair.second)), pair.effect)
        };
        EffectPlot {
            title: format!("{}: the first {what} the second", self.contest.metric),
            note: "95 % intervals over the replicates.".to_string(),
            none: if self.are_ratios { 1.0 } else { 0.0 },
            effects: self.pairs.iter().map(effect).collect(),
        }
        .into()
    }

    /// Returns a plot of the metric over the cache sizes.
    fn curves(&self) -> Option<Plot> {
        let line = |at: usize| Line {
            label: self.name(at).to_string(),
            points: self.contest.by_size(at),
            band: Vec::new(),
        };
        let lines: Vec<Line> = (0..self.contest.contestants.len()).map(line).collect();
        let is_curve = lines.iter().all(|line| line.points.len() > 1);
        is_curve.then(|| {
            LinePlot {
                title: format!("{} over cache size", self.contest.metric),
                note: "Means over what was repeated.".to_string(),
                x: "cache size".to_string(),
                y: self.contest.metric.to_string(),
                lines,
                ..LinePlot::default()
            }
            .into()
        })
    }

    fn rank_plot(&self) -> Option<Plot> {
        let ranks = self.ranks.as_ref()?;
        let named = |at: usize| (self.name(at).to_string(), ranks.mean[at]);
        Some(
            RankPlot {
                title: format!("Mean ranks over {} {}s", ranks.settings, self.replicate),
                note: format!(
                    "1 is the best. What a line joins differs by less than the critical difference \
                     of {:.2} (Nemenyi, 5 %); Friedman's p is {:.3}.",
                    ranks.critical, ranks.p
                ),
                critical: ranks.critical,
                ranks: (0..ranks.mean.len()).map(named).collect(),
                groups: ranks.groups(),
            }
            .into(),
        )
    }
}

fn verdict(of: Verdict) -> &'static str {
    match of {
        Verdict::First => "better",
        Verdict::Second => "worse",
        Verdict::Alike => "alike",
        Verdict::Open => "open",
    }
}
