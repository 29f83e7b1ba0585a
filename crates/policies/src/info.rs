//! A policy's row in the catalog, as `millpond policies` prints it.

/// Bélády's classes (gilbert table 1.1), and one for offline policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// No statistics.
    One,
    /// Statistics of resident pages.
    Two,
    /// Statistics of evicted pages too.
    Three,
    /// Knows the future: a bound, not a policy.
    Offline,
}

/// Effelsberg and Härder's first axis: the start of a page's age (gilbert table 1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Age {
    /// Age plays no role.
    Ignored,
    /// Since the last reference.
    Last,
    /// Since some earlier reference.
    Some,
    /// Since the first reference, that is, since the load.
    First,
}

/// Effelsberg and Härder's second axis: the references that count (gilbert table 1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum References {
    /// None.
    Ignored,
    /// The last one.
    Last,
    /// Some of them.
    Some,
    /// All of them.
    All,
}

/// The idea that a policy is built on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Chance.
    Random,
    /// Order of arrival.
    Arrival,
    /// Order of use, in lists.
    Recency,
    /// Order of use, by marks and a hand.
    Clock,
    /// Counts.
    Frequency,
    /// Recency and frequency together, by fixed rules.
    Mixed,
    /// Recency and frequency together, tuning itself.
    Adaptive,
    /// Samples and values.
    Sampled,
    /// Knows clean from dirty.
    WriteAware,
    /// Made for a cache below another one.
    SecondTier,
    /// Knows the future.
    Offline,
}

/// The tier in which a policy can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    /// In a buffer pool.
    First,
    /// In a second-tier cache only.
    Second,
}

/// A policy's row in the catalog.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The name on the command line.
    pub id: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// The idea that the policy is built on.
    pub family: Family,
    /// Bélády's class.
    pub class: Class,
    /// Effelsberg and Härder: age.
    pub age: Age,
    /// Effelsberg and Härder: references.
    pub references: References,
    /// Buffer pool or second tier.
    pub tier: Tier,
    /// `true` if the policy can run in a live pool, too; offline policies cannot.
    pub live: bool,
    /// Bytes kept for each frame: `Meta` and list nodes with the default parameters.
    pub frame_bytes: f32,
    /// Bytes kept for each ghost, 0 for none; index into dense tables included, hashing not.
    pub ghost_bytes: f32,
    /// Paper and section.
    pub source: &'static str,
}

impl Class {
    /// Returns the class as printed: 1, 2, 3 or offline.
    pub fn name(self) -> &'static str {
        match self {
            Class::One => "1",
            Class::Two => "2",
            Class::Three => "3",
            Class::Offline => "offline",
        }
    }
}

impl Age {
    /// Returns the name as printed.
    pub fn name(self) -> &'static str {
        match self {
            Age::Ignored => "none",
            Age::Last => "last",
            Age::Some => "some",
            Age::First => "first",
        }
    }
}

impl References {
    /// Returns the name as printed.
    pub fn name(self) -> &'static str {
        match self {
            References::Ignored => "none",
            References::Last => "last",
            References::Some => "some",
            References::All => "all",
        }
    }
}

impl Family {
    /// Returns the name as printed.
    pub fn name(self) -> &'static str {
        match self {
            Family::Random => "random",
            Family::Arrival => "arrival",
            Family::Recency => "recency",
            Family::Clock => "clock",
            Family::Frequency => "frequency",
            Family::Mixed => "mixed",
            Family::Adaptive => "adaptive",
            Family::Sampled => "sampled",
            Family::WriteAware => "write-aware",
            Family::SecondTier => "second tier",
            Family::Offline => "offline",
        }
    }
}
