//! Limits on the shares of doc comments that do not stand alone in an index; the shares
//! may only fall.

use super::components::Components;
use super::house::Openings;
use super::violation::Violation;

const RULE: &str = "opening";

/// Reports a share above the map's limit. It is a share of the whole tree, so no single
/// comment breaks the rule.
pub fn check(openings: &Openings, components: &Components) -> Vec<Violation> {
    let Some(most) = &components.openings else { return Vec::new() };
    let shares = [
        (
            openings.noun_clause_percent(),
            most.noun_clauses_percent_max,
            "open with What, Whether, Who, Where or Whose",
            "openings",
        ),
        (
            openings.leaning_percent(),
            most.leaning_percent_max,
            "lean on the item above (The same, As, Those, It, They, So, That of)",
            "leaning",
        ),
    ];
    let mut found = Vec::new();
    for (share, most, how, sites) in shares {
        if share > most {
            let what = format!(
                "{share:.2} % of doc comments {how}, {most} % are the most: name the item \
                 (`cargo xtask tidy --table --sites={sites}` lists them)"
            );
            found.push(Violation::new(Components::FILE, 1, RULE, what));
        }
    }
    found
}

/// Formats both shares with their limits in one line.
pub fn summary(openings: &Openings, components: &Components) -> String {
    let Some(most) = &components.openings else { return String::new() };
    format!(
        "doc comments that open with a noun clause: {:.2} % of at most {} %; that lean on the item \
         above: {:.2} % of at most {} %\n",
        openings.noun_clause_percent(),
        most.noun_clauses_percent_max,
        openings.leaning_percent(),
        most.leaning_percent_max
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(noun_clauses: usize, leaning: usize) -> usize {
        let map = "unsafe_files = []\n[crates]\n[openings]\nnoun_clauses_percent_max = 2.5\n\
                   leaning_percent_max = 0.5\n";
        let components = Components::parse(map).unwrap();
        let openings = Openings { doc_comments: 200, noun_clauses, leaning, ..Openings::default() };
        assert!(summary(&openings, &components).contains("at most 2.5 %"));
        check(&openings, &components).len()
    }

    #[test]
    fn a_share_at_its_ceiling_passes_and_one_above_it_does_not() {
        assert_eq!(found(5, 1), 0);
        assert_eq!(found(6, 1), 1);
        assert_eq!(found(6, 2), 2);
    }
}
