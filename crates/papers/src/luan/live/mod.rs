//! Figures and claims made from live runs of TPC-C (luan 5.7): logical reads (figure 16 with tables
//! 2 and 6, figure 19), execution time (figures 17 and 20, table 7) and the cost of sharing (figure
//! 18).
//!
//! The caller, who has an engine, makes the runs. Rows have `policy` (the paper's name), `size`
//! (the paper's, in pages of 115,200), `repetition`, and the columns that each function names.

mod figures;
mod parts;
mod reads;
mod runs;
mod sharing;
mod times;

pub use figures::figures;
pub use reads::draw_reads;
pub use runs::{HIS_PAGES, policies};
pub use sharing::{RANDOM, draw_sharing};
pub use times::{CPU, IO, draw_times};
