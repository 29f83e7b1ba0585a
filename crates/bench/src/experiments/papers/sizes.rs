//! Throughput and miss rate over pool sizes, as gilbert plots them, with what is stalled named.

use millpond_lab::experiment::Grid;
use millpond_lab::interval::Interval;
use millpond_lab::report::{Line, LinePlot, Section};
use millpond_lab::table::{Table, Value};

use super::stall::stalled_rows;

/// The policy that stalls are measured by.
pub(super) const RANDOM: &str = "random";
const AXES: [&str; 2] = ["percent", "policy"];

/// Runs by pool size (`percent`) and `policy`.
pub(super) struct Sizes {
    throughput: Grid,
    miss_ratio: Grid,
    /// 1 where a run was stalled.
    stalls: Grid,
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

    pub fn percents(&self) -> Vec<&str> {
        self.stalls.labels(0)
    }

    pub fn policies(&self) -> Vec<&str> {
        self.stalls.labels(1)
    }

    /// Whether a policy was stalled there in half of its repetitions, or more.
    pub fn is_stalled(&self, percent: &str, policy: &str) -> bool {
        self.stalls.mean(&[percent, policy]).is_some_and(|share| share >= 0.5)
    }

    /// The sizes at which a policy was stalled.
    pub fn stalled_at(&self, policy: &str) -> Vec<&str> {
        self.percents().into_iter().filter(|percent| self.is_stalled(percent, policy)).collect()
    }

    /// One policy's throughput over another's.
    pub fn faster(&self, percent: &str, above: &str, below: &str) -> Option<Interval> {
        self.ratio(&self.throughput, percent, above, below)
    }

    /// One policy's miss ratio over another's.
    pub fn misses(&self, percent: &str, above: &str, below: &str) -> Option<Interval> {
        self.ratio(&self.miss_ratio, percent, above, below)
    }

    fn ratio(&self, grid: &Grid, percent: &str, above: &str, below: &str) -> Option<Interval> {
        let runs = |policy| !self.is_stalled(percent, policy);
        let both = runs(above) && runs(below);
        both.then(|| grid.ratio(&[percent, above], &[percent, below])).flatten()
    }

    /// All policies but the given one that have been run at a size.
    pub fn others(&self, but: &[&str]) -> Vec<&str> {
        self.policies().into_iter().filter(|policy| !but.contains(policy)).collect()
    }

    /// A plot of throughput and one of misses for each group, and a table of all.
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
}
