//! CPU time of an arm: an engine variant under a workload.

use super::arms::Arm;

/// Component that logging is charged to, with its parts.
pub(super) const LOGGING: &str = "logging";
/// Component that locks are charged to; transactions are a part of it.
pub(super) const LOCKING: &str = "locking";

/// Cost of an arm in one repetition.
#[derive(Clone, PartialEq, Debug)]
pub struct Cost {
    /// The arm.
    pub arm: Arm,
    /// Microseconds of CPU time per transaction, while nothing is sampled.
    pub us: f64,
    /// Microseconds of logging and its parts; `None` where components are not measured.
    pub logging_us: Option<f64>,
    /// Microseconds of locking and its parts; `None` where components are not measured.
    pub locking_us: Option<f64>,
    /// Transactions per second.
    pub throughput_per_s: f64,
    /// Samples.
    pub samples: u64,
    /// Share of the samples that could not be assigned.
    pub unassigned: f64,
    /// Limits of the components' accuracy.
    pub caveats: Vec<String>,
}

impl Cost {
    /// Returns a cost of zero.
    pub(super) fn none(arm: Arm) -> Cost {
        Cost {
            arm,
            us: 0.0,
            logging_us: None,
            locking_us: None,
            throughput_per_s: 0.0,
            samples: 0,
            unassigned: 0.0,
            caveats: Vec::new(),
        }
    }
}

/// Costs of all arms in one repetition, in the order of [`ARMS`](super::ARMS).
#[derive(Clone, PartialEq, Debug)]
pub struct Repetition(pub Vec<Cost>);

impl Repetition {
    /// Returns the microseconds of CPU time per transaction of an arm: in total, or of
    /// [`LOGGING`] or [`LOCKING`].
    pub(super) fn us(&self, arm: &Arm, component: Option<&str>) -> Option<f64> {
        let cost = self.0.iter().find(|cost| cost.arm == *arm)?;
        match component {
            None => Some(cost.us),
            Some(LOGGING) => cost.logging_us,
            Some(LOCKING) => cost.locking_us,
            Some(_) => None,
        }
    }
}
