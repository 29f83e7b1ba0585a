//! Arms of the experiment: engines, workloads and numbers of threads.

use std::fmt;

use crate::instance::setup::Setup;

/// Workload of an arm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// TPC-C.
    Tpcc,
    /// Lookups, in gilbert's shape.
    YcsbRead,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Load::Tpcc => "tpcc",
            Load::YcsbRead => "ycsb-read",
        })
    }
}

/// Part of the engine that is present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The trees on plain memory.
    Twin,
    /// The trees on the pool, with neither log nor locks.
    Neither,
    /// The pool's trees with locks.
    Locks,
    /// The pool's trees with log and locks.
    Both,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Part::Twin => "twin",
            Part::Neither => "neither",
            Part::Locks => "locks",
            Part::Both => "log and locks",
        })
    }
}

/// An engine that runs a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arm {
    /// The workload.
    pub load: Load,
    /// The engine.
    pub part: Part,
    /// Threads.
    pub threads: u32,
}

/// All arms.
pub const ARMS: [Arm; 7] = [
    Arm { load: Load::Tpcc, part: Part::Twin, threads: 1 },
    Arm { load: Load::Tpcc, part: Part::Neither, threads: 1 },
    Arm { load: Load::Tpcc, part: Part::Both, threads: 1 },
    Arm { load: Load::Tpcc, part: Part::Both, threads: 2 },
    Arm { load: Load::YcsbRead, part: Part::Neither, threads: 1 },
    Arm { load: Load::YcsbRead, part: Part::Locks, threads: 1 },
    Arm { load: Load::YcsbRead, part: Part::Locks, threads: 2 },
];

impl Arm {
    /// Returns `true` if the arm's CPU time is split by component, as with a log or locks.
    pub fn is_sampled(&self) -> bool {
        matches!(self.part, Part::Locks | Part::Both)
    }

    /// Returns the setup of the arm's engine, otherwise equal to `base`.
    pub(super) fn setup(&self, base: &Setup) -> Setup {
        let mut setup = base.clone();
        let lab = &mut setup.options.lab;
        (lab.log, lab.locks) = (self.part == Part::Both, self.is_sampled());
        if self.part == Part::Twin {
            setup.to_twin();
        }
        setup
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.threads == 1 { "" } else { "s" };
        write!(f, "{}, {}, {} thread{plural}", self.load, self.part, self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::setup::Engine;

    #[test]
    fn log_and_locks_are_where_an_arm_says() {
        let base = Setup::new();
        for arm in ARMS {
            let setup = arm.setup(&base);
            let lab = &setup.options.lab;
            assert_eq!(lab.log, arm.part == Part::Both, "{arm}");
            assert_eq!(lab.locks, arm.is_sampled(), "{arm}");
            assert_eq!(setup.engine == Engine::Twin, arm.part == Part::Twin, "{arm}");
        }
        assert_eq!(ARMS[3].to_string(), "tpcc, log and locks, 2 threads");
    }
}
