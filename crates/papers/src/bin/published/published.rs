//! Parts of a published table of hit ratios or hit counts.

/// A published table for one trace.
pub struct Published {
    /// The title above it.
    pub title: &'static str,
    /// Publication that prints the table.
    pub source: &'static str,
    /// The trace, by the name of its file.
    pub trace: &'static str,
    /// References of the trace, as published: a check that it is the same one.
    pub references: u64,
    /// Sizes in pages, a row each.
    pub frames: &'static [u32],
    /// One per policy.
    pub columns: &'static [Column],
    /// Unit of the cells.
    pub unit: Unit,
    /// Remarks that a reader needs to judge the differences.
    pub remarks: &'static [&'static str],
}

/// Unit of a published number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Hits in percent of the references.
    Percent,
    /// Hits.
    Hits,
}

/// One policy's published numbers, and which policies of ours correspond to it.
pub struct Column {
    /// The policy, as the source calls it.
    pub name: &'static str,
    /// Numbers of the row, in the order of the sizes.
    pub values: &'static [f64],
    /// Our policy; where the source tuned it for each size, what to choose the best from.
    pub ours: &'static [&'static str],
    /// `true` if anybody could reproduce the row; other rows are shown, but not summed up.
    pub is_reproducible: bool,
}

/// A column that corresponds to one policy of ours, or to the best of several.
pub const fn column(
    name: &'static str,
    values: &'static [f64],
    ours: &'static [&'static str],
) -> Column {
    Column { name, values, ours, is_reproducible: true }
}

/// A column that cannot be reproduced from what was published.
pub const fn doubtful(
    name: &'static str,
    values: &'static [f64],
    ours: &'static [&'static str],
) -> Column {
    Column { name, values, ours, is_reproducible: false }
}
