//! The unit of an experiment that is run and kept.

use super::need::Need;
use millpond_lab::table::Value;

/// A row under construction: names and values, in order.
pub type Fields = Vec<(String, Value)>;

/// The smallest unit of an experiment, such as one policy at one size in one repetition. A cell
/// runs completely or not at all. It gives any number of rows, which all begin with `figure`, the
/// axes and `repetition`.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// The figure's id.
    pub figure: &'static str,
    /// Axis values that distinguish the cell from the figure's others of the same repetition.
    pub axes: Vec<(&'static str, Value)>,
    /// Number of the repetition, from 1; also the seed of all random choices.
    pub repetition: u32,
    /// Resources that the cell needs.
    pub need: Need,
}

impl Cell {
    /// Creates a cell without axes.
    pub fn new(figure: &'static str, repetition: u32, need: Need) -> Cell {
        Cell { figure, axes: Vec::new(), repetition, need }
    }

    /// Adds an axis.
    #[must_use]
    pub fn with(mut self, axis: &'static str, value: impl Into<Value>) -> Cell {
        self.axes.push((axis, value.into()));
        self
    }

    /// Returns the cell's value on `axis` as text, or an empty string if it has no such axis.
    pub fn text(&self, axis: &str) -> String {
        self.value(axis).map(ToString::to_string).unwrap_or_default()
    }

    /// Returns the cell's value on `axis` as a number.
    pub fn number(&self, axis: &str) -> Option<f64> {
        self.value(axis)?.number()
    }

    fn value(&self, axis: &str) -> Option<&Value> {
        self.axes.iter().find(|(name, _)| *name == axis).map(|(_, value)| value)
    }

    /// Returns the key that identifies the cell within its experiment.
    pub fn key(&self) -> String {
        let axes: Vec<String> =
            self.axes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}|{}|{}", self.figure, axes.join("|"), self.repetition)
    }

    /// Returns the cell's name for people.
    pub fn name(&self) -> String {
        let values: Vec<String> = self.axes.iter().map(|(_, value)| value.to_string()).collect();
        format!("figure {}, {}, repetition {}", self.figure, values.join(" "), self.repetition)
    }

    /// Returns a row of the cell: figure, axes and repetition, then the measured values.
    pub(super) fn row(&self, measured: Fields) -> Fields {
        let mut row: Fields = vec![("figure".to_string(), self.figure.into())];
        row.extend(self.axes.iter().map(|(name, value)| ((*name).to_string(), value.clone())));
        row.push(("repetition".to_string(), self.repetition.into()));
        row.extend(measured);
        row
    }
}
