//! Scale of an experiment: how much of it is run.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Scale of an experiment: how much of it is run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Scale {
    /// Seconds, to see that everything works. Nothing can be concluded: plots are marked *smoke*.
    Quick,
    /// The whole grid in miniature, in 40 minutes at most.
    #[default]
    Standard,
    /// The paper's own extent, on a machine that is large enough for it.
    Paper,
}

impl Scale {
    /// All of them.
    pub const ALL: [Scale; 3] = [Scale::Quick, Scale::Standard, Scale::Paper];

    /// Number of times that every cell is run, unless time is short.
    pub fn repetitions(self) -> u32 {
        match self {
            Scale::Quick => 1,
            Scale::Standard => 3,
            Scale::Paper => 5,
        }
    }

    /// The time that an experiment may take; `None` for as long as it takes.
    pub fn budget(self) -> Option<Duration> {
        match self {
            Scale::Quick | Scale::Paper => None,
            Scale::Standard => Some(Duration::from_secs(40 * 60)),
        }
    }

    /// Returns the words written across the plots, where they prove nothing.
    pub fn mark(self) -> Option<&'static str> {
        (self == Scale::Quick).then_some("smoke")
    }

    /// One of three values, by scale.
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
