//! The smallest thing that is run, and kept.

use super::need::Need;
use millpond_lab::table::Value;

/// One row being made: names and values, in order.
pub type Fields = Vec<(String, Value)>;

/// The smallest thing that is run: one policy at one size in one repetition, say. It is run
/// wholly or not at all, and gives any number of rows, which all begin with `figure`, the axes and
/// `repetition`.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// The figure's id.
    pub figure: &'static str,
    /// Axis values that distinguish the cell from the figure's others of the same repetition.
    pub axes: Vec<(&'static str, Value)>,
    /// Number of the repetition, from 1: also the seed of all chance.
    pub repetition: u32,
    /// Resources that the cell needs.
    pub need: Need,
}

impl Cell {
    /// A cell without axes yet.
    pub fn new(figure: &'static str, repetition: u32, need: Need) -> Cell {
        Cell { figure, axes: Vec::new(), repetition, need }
    }

    /// The cell with one axis more.
    #[must_use]
    pub fn with(mut self, axis: &'static str, value: impl Into<Value>) -> Cell {
        self.axes.push((axis, value.into()));
        self
    }

    /// Returns the cell's value on `axis` as text, or an empty string where the cell has no such
    /// axis.
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

    /// Returns the key that names the cell among all cells of an experiment.
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

    /// One of its rows: figure, axes and repetition before what was measured.
    pub(super) fn row(&self, measured: Fields) -> Fields {
        let mut row: Fields = vec![("figure".to_string(), self.figure.into())];
        row.extend(self.axes.iter().map(|(name, value)| ((*name).to_string(), value.clone())));
        row.push(("repetition".to_string(), self.repetition.into()));
        row.extend(measured);
        row
    }
}
