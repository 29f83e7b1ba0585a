//! Reports: result directories as one self-contained page.
//!
//! All plots are SVG inside the page, with styles and without scripts. The page fetches nothing,
//! prints, and reads on a phone, in light and dark.

mod axis;
mod bars;
mod curves;
mod data;
mod heatmap;
mod html;
mod lines;
mod page;
mod plot;
mod points;
mod ranks;
mod rows;
mod section;
mod tradeoff;

pub use bars::{Bar, BarPlot};
pub use data::{ReportData, ReportError};
pub use heatmap::HeatMap;
pub use lines::{Line, LinePlot};
pub use page::{ReportOptions, render};
pub use plot::Plot;
pub use points::{Point, PointPlot};
pub use ranks::{EffectPlot, RankPlot};
pub use section::{Claim, Section};
