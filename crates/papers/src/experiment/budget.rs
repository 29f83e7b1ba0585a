//! Time budget of an experiment: the measured pace, and the cells that are left out for it.

/// Time budget of an experiment. All times are seconds since the start. Finished cells correct the
/// estimates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    limit: Option<f64>,
    /// Planned and actual seconds of the finished cells.
    planned: f64,
    taken: f64,
}

/// Estimated seconds after which the measured pace is trusted.
const BELIEVED: f64 = 5.0;

impl Budget {
    pub fn new(limit: Option<f64>) -> Budget {
        Budget { limit, planned: 0.0, taken: 0.0 }
    }

    /// Records that cells planned at `planned` seconds took `taken` seconds.
    pub fn ran(&mut self, planned: f64, taken: f64) {
        self.planned += planned;
        self.taken += taken;
    }

    /// Returns the actual seconds per planned second. While little has run, the plan has a weight
    /// too.
    pub fn pace(&self) -> f64 {
        (self.taken + BELIEVED) / (self.planned + BELIEVED)
    }

    /// Returns the planned seconds of all finished cells.
    pub fn planned_so_far(&self) -> f64 {
        self.planned
    }

    /// Returns `true` if cells planned at `planned` seconds can be done by the end.
    pub fn has_room(&self, now: f64, planned: f64) -> bool {
        self.limit.is_none_or(|limit| now + planned * self.pace() <= limit)
    }

    /// Returns `true` once the time is over.
    pub fn is_over(&self, now: f64) -> bool {
        self.limit.is_some_and(|limit| now >= limit)
    }

    /// Returns the deadline of a figure that needs `planned` of the remaining `all` seconds;
    /// `None` if there is time for all. If time is short, each figure gets its share of the rest.
    pub fn deadline(&self, now: f64, planned: f64, all: f64) -> Option<f64> {
        let limit = self.limit?;
        if all <= 0.0 || self.has_room(now, all) {
            return None;
        }
        Some(now + (limit - now).max(0.0) * (planned / all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_machine_is_noticed_and_gets_less_to_do() {
        let mut budget = Budget::new(Some(2400.0));
        assert!(budget.has_room(0.0, 2400.0) && !budget.has_room(0.0, 2401.0));
        budget.ran(100.0, 300.0);
        assert!(budget.pace() > 2.8 && budget.pace() < 3.0);
        assert!(budget.has_room(300.0, 700.0) && !budget.has_room(300.0, 800.0));
        assert!(!budget.is_over(2399.0) && budget.is_over(2400.0));
        assert!(!Budget::new(None).is_over(1e9) && Budget::new(None).has_room(1e9, 1e9));
    }

    #[test]
    fn figures_share_what_is_too_little_for_all_of_them() {
        let budget = Budget::new(Some(1000.0));
        assert_eq!(budget.deadline(0.0, 500.0, 1000.0), None, "enough for all");
        assert_eq!(budget.deadline(0.0, 500.0, 2000.0), Some(250.0));
        assert_eq!(budget.deadline(250.0, 500.0, 1500.0), Some(500.0));
        assert_eq!(budget.deadline(2000.0, 500.0, 1500.0), Some(2000.0), "over is over");
        assert_eq!(Budget::new(None).deadline(0.0, 500.0, 2000.0), None);
    }
}
