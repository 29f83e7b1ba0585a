//! Parts of a published table of hit ratios or hit counts.

/// A published table for one trace.
pub struct Published {
    /// Title of the table.
    pub title: &'static str,
    /// Publication that prints the table.
    pub source: &'static str,
    /// The trace, by the name of its file.
    pub trace: &'static str,
    /// Published number of references, which checks that the trace is the same.
    pub references: u64,
    /// Sizes in pages, one per row.
    pub frames: &'static [u32],
    /// Columns, one per policy.
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

/// One policy's published numbers, and our corresponding policies.
pub struct Column {
    /// Name of the policy in the source.
    pub name: &'static str,
    /// Numbers of the row, in the order of the sizes.
    pub values: &'static [f64],
    /// Our policy, or the candidates for the best one if the source tuned it for each
    /// size.
    pub ours: &'static [&'static str],
    /// `true` if the publication allows reproduction; other rows are shown, but not summed
    /// up.
    pub is_reproducible: bool,
}

/// Creates a column that corresponds to one policy of ours, or to the best of several.
pub const fn column(
    name: &'static str,
    values: &'static [f64],
    ours: &'static [&'static str],
) -> Column {
    Column { name, values, ours, is_reproducible: true }
}

/// Creates a column that cannot be reproduced from the publication.
pub const fn doubtful(
    name: &'static str,
    values: &'static [f64],
    ours: &'static [&'static str],
) -> Column {
    Column { name, values, ours, is_reproducible: false }
}
