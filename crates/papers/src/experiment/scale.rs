//! Scale of an experiment.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Scale of an experiment: the amount of work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Scale {
    /// Seconds, to see that everything works. Nothing can be concluded, so plots are marked
    /// *smoke*.
    Quick,
    /// The whole grid in miniature, in 40 minutes at most.
    #[default]
    Standard,
    /// The paper's own extent, on a machine that is large enough for it.
    Paper,
}

impl Scale {
    /// All scales.
    pub const ALL: [Scale; 3] = [Scale::Quick, Scale::Standard, Scale::Paper];

    /// Returns the repetitions of every cell, unless time is short.
    pub fn repetitions(self) -> u32 {
        match self {
            Scale::Quick => 1,
            Scale::Standard => 3,
            Scale::Paper => 5,
        }
    }

    /// Returns the time limit of an experiment; `None` for no limit.
    pub fn budget(self) -> Option<Duration> {
        match self {
            Scale::Quick | Scale::Paper => None,
            Scale::Standard => Some(Duration::from_secs(40 * 60)),
        }
    }

    /// Returns the words written across the plots, if the plots prove nothing.
    pub fn mark(self) -> Option<&'static str> {
        (self == Scale::Quick).then_some("smoke")
    }

    /// Returns one of three values, by scale.
    pub fn pick<T>(self, quick: T, standard: T, paper: T) -> T {
        match self {
            Scale::Quick => quick,
            Scale::Standard => standard,
            Scale::Paper => paper,
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.pick("quick", "standard", "paper"))
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Scale, String> {
        let known = Scale::ALL.into_iter().find(|scale| scale.to_string() == text);
        known.ok_or_else(|| format!("'{text}' is no scale: quick, standard or paper"))
    }
}
