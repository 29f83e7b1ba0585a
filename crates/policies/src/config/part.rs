//! Sizes relative to the pool: parts and multiples of its frames.

use millpond_base::Share;

use super::param::{Amount, Param};

/// A part of the pool: a share of its frames, a multiple of them, a number of frames, or no limit.
///
/// Written `25%`, `2x`, `100` or `all`.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub enum Part {
    /// A multiple of the pool's frames, rounded down: `0.25`, from `25%` or `0.25x`.
    Times(f64),
    /// A number of frames.
    Count(u64),
    /// No limit.
    All,
}

impl Part {
    /// Returns the part as a number, for a pool of `frames` frames; `u64::MAX` for no limit.
    pub fn of(self, frames: u32) -> u64 {
        match self {
            Part::Times(t) => {
                let exact = t * f64::from(frames);
                (exact + exact * 1e-12) as u64
            }
            Part::Count(n) => n,
            Part::All => u64::MAX,
        }
    }

    /// Returns the part as a number of frames of the pool, at most all of them.
    pub fn frames_of(self, frames: u32) -> u32 {
        self.of(frames).min(u64::from(frames)) as u32
    }
}

impl Param for Part {
    fn read(text: &str) -> Option<Self> {
        if text == "all" {
            return Some(Part::All);
        }
        let positive = |t: &f64| t.is_finite() && *t >= 0.0;
        if let Some(percent) = text.strip_suffix('%') {
            let share = percent.trim().parse::<f64>().ok().map(|p| p / 100.0);
            return share.filter(positive).map(Part::Times);
        }
        if let Some(times) = text.strip_suffix('x') {
            return times.trim().parse().ok().filter(positive).map(Part::Times);
        }
        text.parse().ok().map(Part::Count)
    }

    fn write(&self) -> String {
        match self {
            Part::Times(t) if *t > 1.0 => format!("{t}x"),
            Part::Times(t) => Share(*t).to_string(),
            Part::Count(n) => n.to_string(),
            Part::All => "all".to_string(),
        }
    }

    fn takes() -> String {
        "a part of the pool: 25%, 2x, 100 or all".to_string()
    }

    fn scaled(&self, share: f64) -> Part {
        match self {
            Part::Count(n) => Part::Count(n.times(share)),
            relative => *relative,
        }
    }
}

/// A multiple of the pool's frames; unlike in a [`Part`], a bare number is also a multiple.
///
/// Written `4`, `0.5x` or `50%`.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Multiple(pub f64);

impl Multiple {
    /// Returns the multiple as a number, for a pool of `frames` frames, rounded down.
    pub fn of(self, frames: u32) -> u64 {
        Part::Times(self.0).of(frames)
    }
}

impl Param for Multiple {
    fn read(text: &str) -> Option<Self> {
        let (number, divisor) = match (text.strip_suffix('%'), text.strip_suffix('x')) {
            (Some(percent), _) => (percent.trim(), 100.0),
            (None, Some(times)) => (times.trim(), 1.0),
            (None, None) => (text, 1.0),
        };
        let times = number.parse::<f64>().ok()? / divisor;
        (times.is_finite() && times >= 0.0).then_some(Multiple(times))
    }

    fn write(&self) -> String {
        format!("{}x", self.0)
    }

    fn takes() -> String {
        "a multiple of the pool: 4, 0.5x or 50%".to_string()
    }
}
