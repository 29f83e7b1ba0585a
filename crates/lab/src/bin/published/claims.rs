//! What a paper says in words, beside what the simulator says.

use super::markdown::table;

/// One sentence of a paper, and whether our numbers confirm it.
pub struct Claim {
    /// The paper's statement, in our words.
    pub text: &'static str,
    /// The numbers that decide it.
    pub measured: String,
    /// Whether it holds here.
    pub holds: bool,
}

impl Claim {
    /// A claim with the numbers that decide it.
    pub fn new(text: &'static str, measured: String, holds: bool) -> Claim {
        Claim { text, measured, holds }
    }
}

/// The claims as a table.
pub fn listed(claims: &[Claim]) -> String {
    let rows: Vec<Vec<String>> = claims
        .iter()
        .map(|claim| {
            let holds = if claim.holds { "yes" } else { "**no**" };
            vec![claim.text.to_string(), claim.measured.clone(), holds.to_string()]
        })
        .collect();
    table(&["the paper says", "here", "holds"], &rows)
}
