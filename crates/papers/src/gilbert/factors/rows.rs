//! Results as rows, for programs.

use millpond_lab::registry::hit_reaches;

use super::corrections::Correction;
use super::policy_factors::PolicyFactors;
use millpond_bench::experiments::table::Row;

/// Returns the row of a policy. `instructions` are those of a hit and of a victim, if
/// counted.
pub fn policy_row(factors: &PolicyFactors, instructions: Option<(f64, f64)>) -> Row {
    let row = Row::default()
        .with("part", "policy")
        .with("policy", factors.policy.as_str())
        .with("hit", hit_reaches(factors.hit));
    let hits = factors.hit_percent;
    let row = row
        .with("hit_percent", hits.map(|hits| hits.mean))
        .with("hit_percent_low", hits.map(|hits| hits.low))
        .with("hit_percent_high", hits.map(|hits| hits.high));
    let costs = factors.costs.iter().fold(row, |row, cost| {
        let frames = cost.frames;
        row.with_interval(&format!("hit_ns_{frames}"), &cost.hit_ns)
            .with_interval(&format!("victim_ns_{frames}"), &cost.victim_ns)
            .with(&format!("hits_{frames}"), cost.hits)
            .with(&format!("victims_{frames}"), cost.victims)
            .with(&format!("bytes_{frames}"), cost.bytes as u64)
    });
    let growth = factors.growth();
    costs
        .with("victim_growth", growth.map(|growth| growth.mean))
        .with("victim_growth_low", growth.map(|growth| growth.low))
        .with("victim_growth_high", growth.map(|growth| growth.high))
        .with("hit_instructions", instructions.map(|(hit, _)| hit))
        .with("victim_instructions", instructions.map(|(_, victim)| victim))
        .with("bytes_per_frame", factors.bytes_per_frame())
        .with("fixed_bytes", factors.fixed_bytes as u64)
}

/// Returns the rows of a correction: a verdict, and the deciding ratios.
pub fn correction_rows(correction: &Correction) -> Vec<Row> {
    let head = |part: &str| {
        Row::default()
            .with("part", part)
            .with("about", correction.about)
            .with("place", correction.place)
    };
    let verdict = head("correction")
        .with("says", correction.claim.says.as_str())
        .with("here", correction.claim.here.as_str())
        .with("holds", correction.claim.verdict());
    let ratio = |(name, value): &(String, _)| {
        let row = head("ratio").with("ratio_of", name.as_str());
        match value {
            Some(value) => row.with_interval("ratio", value),
            None => row,
        }
    };
    std::iter::once(verdict).chain(correction.ratios.iter().map(ratio)).collect()
}
