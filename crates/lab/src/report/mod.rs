//! Reports: result directories as one self-contained page.
//!
//! Everything is drawn here as SVG inside the page, with style and no script: nothing is fetched,
//! it prints, and it reads on a phone, in light and dark.

mod axis;
mod curves;
mod data;
mod heatmap;
mod html;
mod lines;
mod page;
mod section;
mod tradeoff;

pub use data::{ReportData, ReportError};
pub use lines::{Line, LinePlot};
pub use page::{ReportOptions, render};
pub use section::Section;
