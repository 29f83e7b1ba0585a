//! Values of policies by trace and size, and claims about them.

use crate::experiment::Grid;
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar, BarPlot, Claim, Line, LinePlot};
use millpond_lab::table::Table;
use millpond_lab::verdict::{Bounds, Named, claim_named, listed};

/// A trace and a size of the second tier, at which policies are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place<'a> {
    pub trace: &'a str,
    pub size: &'a str,
}

impl<'a> Place<'a> {
    pub const fn of(trace: &'a str, size: &'a str) -> Place<'a> {
        Place { trace, size }
    }

    /// Returns the labels of one policy's value at this place.
    fn labels(self, policy: &'a str) -> [&'a str; 3] {
        [self.trace, self.size, policy]
    }
}

/// Values of one column by trace, size and policy.
pub(super) struct Places {
    grid: Grid,
}

impl Places {
    pub fn of(rows: &Table, column: &str) -> Places {
        Places { grid: Grid::of(rows, &["trace", "size", "policy"], column) }
    }

    /// Collects the values in thousands.
    pub fn thousands(rows: &Table, column: &str) -> Places {
        let value = |row| Some(rows.get(row, column)?.number()? / 1000.0);
        Places { grid: Grid::with(rows, &["trace", "size", "policy"], value) }
    }

    pub fn traces(&self) -> Vec<&str> {
        self.grid.labels(0)
    }

    pub fn sizes(&self) -> Vec<&str> {
        self.grid.labels(1)
    }

    pub fn policies(&self) -> Vec<&str> {
        self.grid.labels(2)
    }

    pub fn value(&self, place: Place<'_>, policy: &str) -> Option<Interval> {
        self.grid.interval(&place.labels(policy))
    }

    /// Returns one policy's value over another's at one place. The ratio is zero if the first
    /// value is zero in all repetitions, and infinite if the second one is.
    pub fn ratio(&self, place: Place<'_>, above: &str, below: &str) -> Option<Interval> {
        let (above, below) = (place.labels(above), place.labels(below));
        let (of, over) = (self.grid.interval(&above)?, self.grid.interval(&below)?);
        let all = |value| Some(Interval { mean: value, low: value, high: value, runs: of.runs });
        match (of.mean == 0.0, over.mean == 0.0) {
            (true, false) => all(0.0),
            (false, true) => all(f64::INFINITY),
            _ => self.grid.ratio(&above, &below),
        }
    }

    /// Returns one policy's value at a place over its value at another place.
    pub fn moved(&self, policy: &str, above: Place<'_>, below: Place<'_>) -> Option<Interval> {
        self.grid.ratio(&above.labels(policy), &below.labels(policy))
    }

    /// Returns the difference of one policy's values at two places, for values that may be zero.
    pub fn more(&self, policy: &str, at: Place<'_>, than: Place<'_>) -> Option<Interval> {
        self.grid.difference(&at.labels(policy), &than.labels(policy))
    }

    /// Returns a ratio of two policies at one place over the same ratio at another place.
    /// Repetitions are paired throughout.
    pub fn change(
        &self,
        above: &str,
        below: &str,
        at: Place<'_>,
        over: Place<'_>,
    ) -> Option<Interval> {
        let [above_at, above_over] = [at, over].map(|place| place.labels(above).to_vec());
        let [below_at, below_over] = [at, over].map(|place| place.labels(below).to_vec());
        let pairs = [(above_at, below_at), (below_over, above_over)];
        // The geometric mean of the two ratios is the root of their product.
        let Some(root) = self.grid.ratio_over(&pairs) else {
            // Zero over something is zero.
            let ratio = self.ratio(at, above, below).filter(|ratio| ratio.mean == 0.0);
            return ratio.filter(|_| self.ratio(over, above, below).is_some_and(|r| r.mean > 0.0));
        };
        let square = |value: f64| value * value;
        let [mean, low, high] = [root.mean, root.low, root.high].map(square);
        Some(Interval { mean, low, high, runs: root.runs })
    }

    /// Returns the ratio of two policies at several places, each named by its size or its trace.
    pub fn ratios(&self, places: &[Place<'_>], above: &str, below: &str) -> Named {
        let is_one = |of: fn(&Place<'_>) -> String| {
            places.windows(2).all(|pair| of(&pair[0]) == of(&pair[1]))
        };
        let (one_trace, one_size) =
            (is_one(|at| at.trace.to_string()), is_one(|at| at.size.to_string()));
        let of = |place: &Place<'_>| {
            let name = match (one_trace, one_size) {
                (true, _) => place.size.to_string(),
                (_, true) => place.trace.to_string(),
                _ => format!("{} and {}", place.trace, place.size),
            };
            (format!("{above}/{below} at {name}"), self.ratio(*place, above, below))
        };
        places.iter().map(of).collect()
    }

    /// Returns one policy's value over those of others at a place.
    pub fn over(&self, place: Place<'_>, policy: &str, others: &[&str]) -> Named {
        let of = |other: &&str| (format!("{policy}/{other}"), self.ratio(place, policy, other));
        others.iter().map(of).collect()
    }

    /// Claims that ratios are within bounds; the policies' values are shown.
    pub fn apart(
        &self,
        says: &str,
        place: Place<'_>,
        policies: &[&str],
        others: &[&str],
        bounds: Bounds,
    ) -> Claim {
        let ratios: Named =
            policies.iter().flat_map(|policy| self.over(place, policy, others)).collect();
        let shown = |all: &[&str]| {
            let values: Vec<_> =
                all.iter().map(|policy| (*policy, self.value(place, policy))).collect();
            listed(&values)
        };
        let claim = claim_named(says, &ratios, bounds);
        Claim { here: format!("{} against {}", shown(policies), shown(others)), ..claim }
    }

    /// Returns a table of the means: a row for each trace and size, a column for each policy.
    pub fn table(&self) -> Table {
        let mut table = Table::new(["trace", "size"].into_iter().chain(self.policies()));
        for trace in self.traces() {
            for size in self.sizes() {
                let of = |policy: &&str| self.value(Place::of(trace, size), policy).map(|v| v.mean);
                let means: Vec<Option<f64>> = self.policies().iter().map(of).collect();
                if means.iter().any(Option::is_some) {
                    let mut row = vec![trace.into(), size.into()];
                    row.extend(means.into_iter().map(Into::into));
                    table.rows.push(row);
                }
            }
        }
        table
    }

    /// Plots a line for each policy over sizes, on one trace.
    pub fn over_sizes(&self, trace: &str, title: &str, y: &str) -> LinePlot {
        let line = |policy: &&str| {
            let mut line = Line { label: (*policy).to_string(), ..Line::default() };
            for size in self.sizes() {
                let value = self.value(Place::of(trace, size), policy);
                let Some((x, y)) = size.parse().ok().zip(value) else { continue };
                line.points.push((x, y.mean));
                line.band.push((y.low, y.high));
            }
            line
        };
        LinePlot {
            title: title.to_string(),
            x: "second tier, thousand pages of his".to_string(),
            y: y.to_string(),
            lines: self.policies().iter().map(line).collect(),
            ..LinePlot::default()
        }
    }

    /// Plots bars of policies by trace.
    pub fn by_trace(&self, title: &str, y: &str) -> BarPlot {
        let mut bars = Vec::new();
        for trace in self.traces() {
            for size in self.sizes() {
                for policy in self.policies() {
                    let Some(value) = self.value(Place::of(trace, size), policy) else { continue };
                    bars.push(Bar { group: trace.into(), series: policy.into(), value });
                }
            }
        }
        BarPlot { title: title.to_string(), y: y.to_string(), bars, ..BarPlot::default() }
    }
}

/// Makes rows: policies' values at places, in three slightly different repetitions.
#[cfg(test)]
pub(super) fn made_up(column: &str, values: &[(Place<'_>, &str, f64)]) -> Table {
    let mut table = Table::new(["trace", "size", "policy", "repetition", column]);
    for (Place { trace, size }, policy, value) in values {
        for repetition in 1..=3u64 {
            // Policies vary out of step, so that ratios have an interval.
            let off = (repetition * (policy.len() as u64 + 1) % 3) as f64 * 1e-4;
            let value = (value * (1.0 + off)).into();
            let place = vec![(*trace).into(), (*size).into(), (*policy).into()];
            table.rows.push([place, vec![repetition.into(), value]].concat());
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_lab::verdict::{above, between};

    #[test]
    fn ratios_and_their_changes_are_what_they_say() {
        let (here, there) = (Place::of("a", "1"), Place::of("b", "1"));
        let rows = made_up(
            "total",
            &[(here, "x", 6.0), (here, "y", 2.0), (there, "x", 5.0), (there, "y", 5.0)],
        );
        let places = Places::of(&rows, "total");
        let near = |value: Option<Interval>, wanted: f64| {
            let value = value.unwrap();
            (value.mean - wanted).abs() < 1e-3 && value.low <= value.mean && value.runs == 3
        };
        assert!(near(places.ratio(here, "x", "y"), 3.0));
        assert!(near(places.moved("x", here, there), 1.2));
        assert!((places.more("x", here, there).unwrap().mean - 1.0).abs() < 1e-3);
        assert!(near(places.change("x", "y", here, there), 3.0));
        assert!(near(places.change("x", "y", there, here), 1.0 / 3.0));
        assert!(places.ratio(here, "x", "z").is_none());
        let names = |all: &[Place<'_>]| -> Vec<String> {
            places.ratios(all, "x", "y").into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&[here, there]), ["x/y at a", "x/y at b"]);
        assert_eq!(names(&[here, Place::of("a", "2")]), ["x/y at 1", "x/y at 2"]);
        assert_eq!(names(&[here, Place::of("b", "2")]), ["x/y at a and 1", "x/y at b and 2"]);
        let claim = places.apart("", here, &["x"], &["y"], above(2.9));
        assert_eq!(claim.holds, Some(true));
        assert!(claim.here.starts_with("x 6.0") && claim.here.contains("against y 2.0"));
        assert_eq!(places.apart("", here, &["x"], &["y"], above(3.1)).holds, Some(false));
        assert_eq!(places.apart("", here, &["x"], &["z"], above(1.0)).holds, None);
        assert_eq!(places.table().rows.len(), 2);
        let values = [(here, "x", 6.0), (here, "y", 0.0), (there, "x", 5.0), (there, "y", 5.0)];
        let places = Places::of(&made_up("total", &values), "total");
        let mean = |ratio: Option<Interval>| ratio.map(|ratio| ratio.mean);
        assert_eq!(mean(places.ratio(here, "y", "x")), Some(0.0));
        assert_eq!(mean(places.ratio(here, "x", "y")), Some(f64::INFINITY));
        assert!(places.ratio(here, "y", "y").is_none());
        assert_eq!(mean(places.change("y", "x", here, there)), Some(0.0));
        assert!(places.change("x", "y", here, there).is_none());
        let none = places.apart("", here, &["y"], &["x"], between(0.5, 2.0));
        assert_eq!(none.holds, Some(false));
        assert!(none.here.starts_with("y 0.000 against x 6.0"), "{}", none.here);
        assert_eq!(places.over_sizes("a", "", "").lines[0].points.len(), 1);
        assert_eq!(places.by_trace("", "").bars.len(), 4);
    }
}
