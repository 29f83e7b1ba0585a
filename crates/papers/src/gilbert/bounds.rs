//! Numbers for gilbert's words: sizes of pools, and bounds for his comparisons.
//!
//! His data are 14.3 GiB as loaded; his pools are given in per cent of that.

use millpond_lab::verdict::{Bounds, between};

/// 100 MB, his smallest.
pub(super) const GB_01: f64 = 0.7;
/// 500 MB.
pub(super) const GB_05: f64 = 3.5;
/// 1 GB; up to here he calls pools very small.
pub(super) const GB_1: f64 = 7.0;
/// 2 GB; from here to 20 GB he calls pools medium-sized.
pub(super) const GB_2: f64 = 14.0;
/// 2.5 GB.
pub(super) const GB_2_5: f64 = 17.0;
/// 4 GB.
pub(super) const GB_4: f64 = 28.0;
/// 5 GB.
pub(super) const GB_5: f64 = 35.0;
/// 6 GB.
pub(super) const GB_6: f64 = 42.0;
/// 10 GB, a little less than the data.
pub(super) const GB_10: f64 = 70.0;
/// 20 GB.
pub(super) const GB_20: f64 = 140.0;
/// 25 GB.
pub(super) const GB_25: f64 = 175.0;
/// The data as loaded; larger pools hold all data.
pub(super) const DATA: f64 = 100.0;

/// Minimum ratio for *almost twice*.
pub(super) const ALMOST_TWICE: f64 = 1.5;
/// Bounds of *as fast as* and *very similar*.
pub(super) const ALIKE: Bounds = between(0.9, 1.1);
/// Bounds of *slight* and *small* differences.
pub(super) const SLIGHT: Bounds = between(0.95, 1.05);
/// Bounds of *negligible* and *almost identical*: 2 % in his own words (1.2.10.1).
pub(super) const NEGLIGIBLE: Bounds = between(0.98, 1.02);
/// Bounds of *identical*: he gives half a per cent (1.2.10.1).
pub(super) const IDENTICAL: Bounds = between(0.995, 1.005);
