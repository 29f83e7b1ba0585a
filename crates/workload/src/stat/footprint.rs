//! The footprint over time: distinct pages after N references.

use serde::Serialize;

/// Distinct pages after a number of references.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct FootprintPoint {
    /// References so far.
    pub references: u64,
    /// Distinct pages among the references.
    pub pages: u64,
}

/// Maximum number of points; when there are more, every second one is dropped.
const MOST: usize = 256;

/// Collects points at equal distances over a trace of unknown length.
pub(crate) struct Footprint {
    step: u64,
    points: Vec<FootprintPoint>,
}

impl Default for Footprint {
    fn default() -> Footprint {
        Footprint { step: 1, points: Vec::new() }
    }
}

impl Footprint {
    #[inline]
    pub(crate) fn add(&mut self, references: u64, pages: u64) {
        if references.is_multiple_of(self.step) {
            self.keep(references, pages);
        }
    }

    fn keep(&mut self, references: u64, pages: u64) {
        self.points.push(FootprintPoint { references, pages });
        if self.points.len() >= MOST {
            self.step *= 2;
            self.points.retain(|p| p.references.is_multiple_of(self.step));
        }
    }

    /// Returns the points, the end of the trace last.
    pub(crate) fn points(&self, references: u64, pages: u64) -> Vec<FootprintPoint> {
        let mut points = self.points.clone();
        if references > 0 && points.last().is_none_or(|p| p.references < references) {
            points.push(FootprintPoint { references, pages });
        }
        points
    }
}
