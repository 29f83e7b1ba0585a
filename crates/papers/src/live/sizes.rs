//! Throughput and miss rate over pool sizes, as gilbert plots them, with stalled policies
//! named.

use crate::experiment::Grid;
use millpond_lab::interval::Interval;
use millpond_lab::report::{Line, LinePlot, Section};
use millpond_lab::table::{Table, Value};

use crate::live::stall::stalled_rows;
use millpond_lab::verdict::Named;

/// Reference policy for stalls.
pub(crate) const RANDOM: &str = "random";
const AXES: [&str; 2] = ["percent", "policy"];

/// Ratio of a measurement of two policies in a pool of some per cent.
pub(crate) type Ratio = fn(&Sizes, &str, &str, &str) -> Option<Interval>;

/// Two policies, the first over the second.
pub(crate) type Pair<'p> = (&'p str, &'p str);

/// Runs by pool size (`percent`) and `policy`.
pub(crate) struct Sizes {
    throughput: Grid,
    miss_ratio: Grid,
    /// 1 if a run was stalled.
    stalls: Grid,
}

/// Maximum length of parameters that are named in full.
const PARAMS_MAX: usize = 40;

/// Names a pair *one over other*. Variants of one policy show only their parameters, and of
/// many only the first.
fn pair_name(one: &str, other: &str) -> String {
    let (Some((policy, these)), Some((of, those))) = (one.split_once('('), other.split_once('('))
    else {
        return format!("{one} over {other}");
    };
    if policy != of {
        return format!("{one} over {other}");
    }
    let params = |params: &str| {
        let params = params.trim_end_matches(')');
        match params.char_indices().nth(PARAMS_MAX) {
            Some((end, _)) => format!("{}…", &params[..end]),
            None => params.to_string(),
        }
    };
    format!("{} over {}", params(these), params(those))
}

impl Sizes {
    pub fn of(rows: &Table) -> Sizes {
        let stalled = stalled_rows(rows, &["percent", "repetition"], "policy", RANDOM);
        let of = |column: &str| {
            Grid::with(rows, &AXES, |row| {
                let number = rows.get(row, column).and_then(Value::number);
                number.filter(|_| !stalled[row])
            })
        };
        Sizes {
            throughput: of("throughput_per_s"),
            miss_ratio: of("miss_ratio"),
            stalls: Grid::with(rows, &AXES, |row| Some(f64::from(u8::from(stalled[row])))),
        }
    }

    /// Returns the sizes that were run, the smallest first.
    pub fn percents(&self) -> Vec<&str> {
        let number = |label: &&str| label.parse().unwrap_or(f64::INFINITY);
        let mut percents = self.stalls.labels(0);
        percents.sort_by(|a, b| number(a).total_cmp(&number(b)));
        percents
    }

    /// Returns the sizes that were run and satisfy `at`.
    pub fn percents_at(&self, at: impl Fn(f64) -> bool) -> Vec<&str> {
        let is_there = |percent: &&str| percent.parse().is_ok_and(&at);
        self.percents().into_iter().filter(is_there).collect()
    }

    pub fn policies(&self) -> Vec<&str> {
        self.stalls.labels(1)
    }

    /// Returns `true` if a policy was run at a size.
    pub fn was_run(&self, percent: &str, policy: &str) -> bool {
        self.stalls.mean(&[percent, policy]).is_some()
    }

    /// Returns `true` if a policy was stalled at a size in half of its repetitions, or more.
    pub fn is_stalled(&self, percent: &str, policy: &str) -> bool {
        self.stalls.mean(&[percent, policy]).is_some_and(|share| share >= 0.5)
    }

    /// Returns the sizes at which a policy was stalled.
    pub fn stalled_at(&self, policy: &str) -> Vec<&str> {
        self.percents().into_iter().filter(|percent| self.is_stalled(percent, policy)).collect()
    }

    /// Returns one policy's throughput over another's.
    pub fn faster(&self, percent: &str, above: &str, below: &str) -> Option<Interval> {
        self.ratio(&self.throughput, percent, above, below)
    }

    /// Returns one policy's miss ratio over another's.
    pub fn misses(&self, percent: &str, above: &str, below: &str) -> Option<Interval> {
        self.ratio(&self.miss_ratio, percent, above, below)
    }

    fn ratio(&self, grid: &Grid, percent: &str, above: &str, below: &str) -> Option<Interval> {
        self.over(grid, [percent, above], [percent, below])
    }

    /// Returns one place over another, each a size and a policy.
    fn over(&self, grid: &Grid, above: [&str; 2], below: [&str; 2]) -> Option<Interval> {
        let runs = |place: [&str; 2]| !self.is_stalled(place[0], place[1]);
        (runs(above) && runs(below)).then(|| grid.ratio(&above, &below)).flatten()
    }

    /// Returns a policy's throughput in one pool over that in another.
    pub fn growth(&self, policy: &str, to: &str, from: &str) -> Option<Interval> {
        self.over(&self.throughput, [to, policy], [from, policy])
    }

    /// Returns one pair's ratio of throughput over another pair's, each with its size.
    pub fn lead(&self, one: (&str, Pair<'_>), other: (&str, Pair<'_>)) -> Option<Interval> {
        let ((at, (a, b)), (beside, (c, d))) = (one, other);
        let places = [[at, a], [at, b], [beside, c], [beside, d]];
        if places.iter().any(|[percent, policy]| self.is_stalled(percent, policy)) {
            return None;
        }
        let grid = &self.throughput;
        // All four are needed, since a missing pair would not count.
        grid.ratio(&places[0], &places[1])?;
        grid.ratio(&places[2], &places[3])?;
        let [a, b, c, d] = places.map(|place| place.to_vec());
        // The geometric mean of a / b and d / c is the root of the result.
        let root = grid.ratio_over(&[(a, b), (d, c)])?;
        let square = |x: f64| x * x;
        let [mean, low, high] = [root.mean, root.low, root.high].map(square);
        Some(Interval { mean, low, high, runs: root.runs })
    }

    /// Returns a policy's misses per reference.
    pub fn miss_ratio(&self, percent: &str, policy: &str) -> Option<Interval> {
        let place = [percent, policy];
        (!self.is_stalled(percent, policy)).then(|| self.miss_ratio.interval(&place)).flatten()
    }

    /// Returns the ratios of all pairs at all sizes, each with its name.
    pub fn ratios(&self, percents: &[&str], pairs: &[Pair<'_>], of: Ratio) -> Named {
        let mut all = Vec::new();
        for percent in percents {
            for (one, other) in pairs {
                let name = format!("{} at {percent} %", pair_name(one, other));
                all.push((name, of(self, percent, one, other)));
            }
        }
        all
    }

    /// Returns all policies that were run, except the given ones.
    pub fn others(&self, but: &[&str]) -> Vec<&str> {
        self.policies().into_iter().filter(|policy| !but.contains(policy)).collect()
    }

    /// Returns a section with a plot of throughput and one of misses for each group, and a
    /// table of all.
    pub fn section(&self, groups: &[(String, Vec<&str>)]) -> Section {
        let mut section = Section { table: self.table(), ..Section::default() };
        for (name, policies) in groups {
            let plots = [
                (&self.throughput, 1.0, "transactions per second"),
                (&self.miss_ratio, 100.0, "misses, % of references"),
            ];
            for (grid, factor, y) in plots {
                let line = |policy: &&str| self.line(grid, factor, policy);
                let plot = LinePlot {
                    title: format!("{name}: {y}"),
                    x: "pool, % of the data at first".to_string(),
                    y: y.to_string(),
                    lines: policies.iter().map(line).collect(),
                    is_log: true,
                    ..LinePlot::default()
                };
                section.plots.push(plot.into());
            }
        }
        section
    }

    fn line(&self, grid: &Grid, factor: f64, policy: &str) -> Line {
        let mut line = Line { label: policy.to_string(), ..Line::default() };
        let stalled = self.stalled_at(policy);
        if !stalled.is_empty() {
            line.label += &format!(" (stalled at {} %)", stalled.join(", "));
        }
        for percent in self.percents().into_iter().filter(|percent| !stalled.contains(percent)) {
            let Some(value) = grid.interval(&[percent, policy]) else { continue };
            line.points.push((percent.parse().unwrap_or(0.0), value.mean * factor));
            line.band.push((value.low * factor, value.high * factor));
        }
        line
    }

    fn table(&self) -> Table {
        let percents = self.percents();
        let head = |what: &str| -> Vec<String> {
            percents.iter().map(|percent| format!("{what} at {percent} %")).collect()
        };
        let columns: Vec<String> =
            [vec!["policy".to_string()], head("tx/s"), head("miss %")].concat();
        let mut table = Table::new(columns.iter().map(String::as_str));
        for policy in self.policies() {
            let mut row: Vec<Value> = vec![policy.into()];
            for (grid, factor) in [(&self.throughput, 1.0), (&self.miss_ratio, 100.0)] {
                for percent in &percents {
                    row.push(match self.is_stalled(percent, policy) {
                        true => "stalled".into(),
                        false => grid.mean(&[percent, policy]).map(|mean| mean * factor).into(),
                    });
                }
            }
            table.rows.push(row);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Table {
        let columns = [
            "percent",
            "policy",
            "repetition",
            "end",
            "transactions",
            "throughput_per_s",
            "miss_ratio",
            "misses_per_tx",
        ];
        let mut table = Table::new(columns);
        for (percent, policy, speed, misses) in [
            (5.0, "random", 100.0, 5.0),
            (5.0, "mru", 1.0, 400.0),
            (20.0, "random", 200.0, 2.0),
            (20.0, "mru", 100.0, 3.0),
        ] {
            let place = [percent.into(), policy.into(), 1u64.into(), "ran".into()];
            let measured = [50.0.into(), speed.into(), (misses / 500.0).into(), misses.into()];
            table.rows.push(place.into_iter().chain(measured).collect());
        }
        table
    }

    #[test]
    fn what_is_stalled_is_called_so_in_plot_and_table_and_has_no_number() {
        let rows = rows();
        let sizes = Sizes::of(&rows);
        assert_eq!(sizes.stalled_at("mru"), ["5"]);
        assert_eq!(sizes.stalled_at("random"), Vec::<&str>::new());
        let section = sizes.section(&[("all".to_string(), sizes.policies())]);
        let cell = |row, name| section.table.get(row, name).cloned();
        assert_eq!(cell(1, "tx/s at 5 %"), Some("stalled".into()));
        assert_eq!(cell(1, "miss % at 5 %"), Some("stalled".into()));
        assert_eq!(cell(1, "tx/s at 20 %"), Some(100.0.into()));
        assert_eq!(cell(0, "miss % at 5 %"), Some(1.0.into()));
        let line = sizes.line(&sizes.throughput, 1.0, "mru");
        assert_eq!(line.label, "mru (stalled at 5 %)");
        assert_eq!(line.points, [(20.0, 100.0)]);
        assert!(sizes.faster("5", "mru", "random").is_none());
        assert_eq!(sizes.faster("20", "mru", "random").map(|ratio| ratio.mean), Some(0.5));
    }

    fn speeds(runs: &[(f64, &str, [f64; 2])]) -> Table {
        let mut table = rows();
        table.rows.clear();
        for (percent, policy, speeds) in runs {
            for (repetition, speed) in [1u64, 2].into_iter().zip(speeds) {
                let place = [(*percent).into(), (*policy).into(), repetition.into(), "ran".into()];
                let measured = [50.0.into(), (*speed).into(), 0.1.into(), 5.0.into()];
                table.rows.push(place.into_iter().chain(measured).collect());
            }
        }
        table
    }

    #[test]
    fn a_lead_is_a_ratio_of_ratios_and_needs_all_four() {
        let runs = [
            (5.0, "a", [110.0, 220.0]),
            (5.0, "b", [100.0, 200.0]),
            (70.0, "a", [150.0, 60.0]),
            (70.0, "b", [100.0, 40.0]),
        ];
        let table = speeds(&runs);
        let lead = |rows: &Table| Sizes::of(rows).lead(("5", ("a", "b")), ("70", ("a", "b")));
        let value = lead(&table).unwrap();
        assert!((value.mean - 1.1 / 1.5).abs() < 1e-12 && (value.high - value.low).abs() < 1e-9);
        assert!(lead(&speeds(&runs[..3])).is_none());
        let growth = Sizes::of(&table).growth("a", "70", "5").unwrap();
        assert!((growth.mean - (150.0f64 / 110.0 * 60.0 / 220.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn variants_of_one_policy_are_named_by_their_parameters() {
        assert_eq!(pair_name("lru", "random"), "lru over random");
        assert_eq!(pair_name("lru-k(k=3)", "lru"), "lru-k(k=3) over lru");
        assert_eq!(pair_name("clock(variant=fix)", "zclock(variant=fix)").len(), 43);
        assert_eq!(pair_name("lru-k(k=3)", "lru-k(k=4)"), "k=3 over k=4");
        let many = format!("a({})", "x".repeat(60));
        assert_eq!(pair_name("a(b=1)", &many), format!("b=1 over {}…", "x".repeat(40)));
    }

    #[test]
    fn one_repetition_has_no_interval() {
        let sizes = Sizes::of(&rows());
        let ratio = sizes.faster("20", "mru", "random").unwrap();
        assert_eq!((ratio.low, ratio.runs), (ratio.mean, 1));
        assert_eq!(sizes.miss_ratio("20", "mru").unwrap().runs, 1);
    }
}
