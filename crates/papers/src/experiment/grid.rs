//! Values of a table by some of its columns, with all their repetitions.

use std::collections::BTreeMap;

use millpond_lab::interval::Interval;
use millpond_lab::table::{Table, Value};

/// Values of one column, by the values of other columns, each with its repetitions.
pub struct Grid {
    /// Places in the order of first appearance in the table, each sorted by repetition.
    places: Vec<(Vec<String>, BTreeMap<u64, f64>)>,
}

impl Grid {
    /// Collects the values of `column` by the columns `axes`. Rows that lack one of them do not
    /// count. Of two rows of one place and repetition, the last one counts.
    pub fn of(table: &Table, axes: &[&str], column: &str) -> Grid {
        Grid::with(table, axes, |row| table.get(row, column)?.number())
    }

    /// Like [`Grid::of`], for values that are computed from several columns of a row.
    pub fn with(table: &Table, axes: &[&str], value: impl Fn(usize) -> Option<f64>) -> Grid {
        let mut grid = Grid { places: Vec::new() };
        let mut index: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for row in 0..table.rows.len() {
            let axis = |name: &&str| match table.get(row, name)? {
                Value::Empty => None,
                value => Some(value.to_string()),
            };
            let place: Option<Vec<String>> = axes.iter().map(axis).collect();
            let Some((place, value)) = place.zip(value(row)) else { continue };
            let repetition = table.get(row, "repetition").and_then(Value::number).unwrap_or(1.0);
            let at = *index.entry(place.clone()).or_insert_with(|| {
                grid.places.push((place, BTreeMap::new()));
                grid.places.len() - 1
            });
            grid.places[at].1.insert(repetition as u64, value);
        }
        grid
    }

    /// Returns the distinct values on axis number `axis`, in the order of first appearance.
    pub fn labels(&self, axis: usize) -> Vec<&str> {
        let mut labels: Vec<&str> = Vec::new();
        for (place, _) in &self.places {
            if let Some(label) = place.get(axis).filter(|label| !labels.contains(&label.as_str())) {
                labels.push(label);
            }
        }
        labels
    }

    fn values(&self, place: &[&str]) -> Option<&BTreeMap<u64, f64>> {
        let is_there =
            |there: &[String]| there.iter().map(String::as_str).eq(place.iter().copied());
        self.places.iter().find(|(there, _)| is_there(there)).map(|(_, values)| values)
    }

    /// Returns the mean of a place over its repetitions, with its interval.
    pub fn interval(&self, place: &[&str]) -> Option<Interval> {
        Interval::of_rates(&self.values(place)?.values().copied().collect::<Vec<_>>())
    }

    /// Returns the mean of a place over its repetitions.
    pub fn mean(&self, place: &[&str]) -> Option<f64> {
        self.interval(place).map(|interval| interval.mean)
    }

    /// Returns the ratio of two places over their common repetitions, paired by repetition.
    pub fn ratio(&self, above: &[&str], below: &[&str]) -> Option<Interval> {
        let (above, below) = (self.values(above)?, self.values(below)?);
        let pairs = above.iter().filter_map(|(at, a)| Some((*a, *below.get(at)?)));
        let (above, below): (Vec<f64>, Vec<f64>) = pairs.unzip();
        Interval::of_ratios(&above, &below)
    }

    /// Returns the difference of two places over their common repetitions, paired by repetition,
    /// for values that may be zero, such as hit ratios.
    pub fn difference(&self, of: &[&str], less: &[&str]) -> Option<Interval> {
        let (of, less) = (self.values(of)?, self.values(less)?);
        let pairs = of.iter().filter_map(|(at, a)| Some(a - less.get(at)?));
        Interval::of(&pairs.collect::<Vec<f64>>())
    }

    /// Returns the geometric mean of the ratios of several pairs of places. The mean over the
    /// pairs is taken in each repetition, and the interval over the repetitions. Missing pairs do
    /// not count, nor do repetitions that lack a pair.
    pub fn ratio_over(&self, pairs: &[(Vec<&str>, Vec<&str>)]) -> Option<Interval> {
        let there: Vec<_> = pairs
            .iter()
            .filter_map(|(above, below)| Some((self.values(above)?, self.values(below)?)))
            .collect();
        let repetitions = there.first()?.0.keys();
        let mean = |repetition: &u64| {
            let logs: Option<Vec<f64>> = there
                .iter()
                .map(|(above, below)| {
                    let (a, b) = (*above.get(repetition)?, *below.get(repetition)?);
                    (a > 0.0 && b > 0.0).then(|| (a / b).ln())
                })
                .collect();
            let logs = logs?;
            Some((logs.iter().sum::<f64>() / logs.len() as f64).exp())
        };
        let means: Vec<f64> = repetitions.filter_map(mean).collect();
        let ones = vec![1.0; means.len()];
        Interval::of_ratios(&means, &ones)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["policy", "size", "repetition", "misses"]);
        for (policy, size, repetition, misses) in [
            ("lru", 10u64, 1u64, 200u64),
            ("watt", 10, 1, 100),
            ("watt", 10, 2, 50),
            ("lru", 10, 2, 100),
            ("lru", 20, 1, 60),
            ("watt", 20, 1, 60),
            ("watt", 20, 3, 7),
        ] {
            table.rows.push(vec![policy.into(), size.into(), repetition.into(), misses.into()]);
        }
        table
    }

    #[test]
    fn ratios_are_paired_by_repetition_whatever_the_order_of_the_rows() {
        let grid = Grid::of(&table(), &["policy", "size"], "misses");
        assert_eq!(grid.labels(0), ["lru", "watt"]);
        assert_eq!(grid.labels(1), ["10", "20"]);
        assert_eq!(grid.mean(&["lru", "10"]), Some(150.0));
        let ratio = grid.ratio(&["lru", "10"], &["watt", "10"]).unwrap();
        assert!((ratio.mean - 2.0).abs() < 1e-12 && (ratio.high - 2.0).abs() < 1e-12);
        assert_eq!(grid.ratio(&["lru", "20"], &["watt", "20"]).map(|r| r.mean), Some(1.0));
        assert!(grid.ratio(&["fifo", "10"], &["watt", "10"]).is_none());
        assert_eq!(grid.mean(&["lru"]), None, "a place has all axes");
        let more = grid.difference(&["lru", "10"], &["watt", "10"]).unwrap();
        assert!(more.mean == 75.0 && more.low < 0.0, "100 and 50: {more}");
        let none = grid.difference(&["lru", "20"], &["watt", "20"]).unwrap();
        assert_eq!((none.mean, none.high), (0.0, 0.0));
    }

    #[test]
    fn the_mean_over_several_places_takes_only_whole_repetitions() {
        let grid = Grid::of(&table(), &["policy", "size"], "misses");
        let pair = |size| (vec!["lru", size], vec!["watt", size]);
        let both = grid.ratio_over(&[pair("10"), pair("20"), pair("30")]).unwrap();
        assert!((both.mean - 2f64.sqrt()).abs() < 1e-12, "{both:?}");
        assert_eq!(both.low, both.high, "one repetition has both sizes");
    }
}
