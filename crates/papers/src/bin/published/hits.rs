//! Published hit ratios and hit counts on real traces, beside ours.

use std::fmt::Write as _;
use std::time::Instant;

use millpond_lab::sim::Counts;

use super::arena::{Arena, Failure};
use super::markdown::{code, grouped, table};
use super::published::{Column, Published, Unit};
use super::{tables_arc, tables_other};

/// Returns every table, grouped by trace, so that each trace is read once.
pub fn section(is_quick: bool) -> Result<String, Failure> {
    let mut all = vec![&tables_arc::OLTP, &tables_other::BITFASTER];
    if !is_quick {
        all.push(&tables_arc::P12);
        all.extend(&tables_arc::AT_32768);
        all.extend(&tables_other::COUNTS);
    }
    all.sort_by_key(|published| (published.trace != "arc_OLTP", published.trace));
    let mut text = String::from("## Hit ratios and hit counts on real traces\n");
    for tables in all.chunk_by(|a, b| a.trace == b.trace) {
        let start = Instant::now();
        let arena = Arena::of_file(tables[0].trace)?;
        for published in tables {
            writeln!(text, "\n### {} ({})\n", published.title, published.source)?;
            match &arena {
                Some(arena) => text.push_str(&compare(published, arena)?),
                None => writeln!(text, "Skipped: there is no trace `{}` here.", published.trace)?,
            }
        }
        eprintln!("{}: {:.0} s", tables[0].trace, start.elapsed().as_secs_f64());
    }
    Ok(text)
}

/// Our result for one cell: the winning policy, and its counts.
struct Best {
    policy: &'static str,
    counts: Counts,
}

fn compare(published: &Published, arena: &Arena) -> Result<String, Failure> {
    if arena.references() != published.references {
        let (theirs, ours) = (published.references, arena.references());
        let trace = published.trace;
        return Err(format!("{trace} has {ours} references, and {theirs} were published").into());
    }
    let mut rows = Vec::new();
    let mut differences = Vec::new();
    for (row, &frames) in published.frames.iter().enumerate() {
        for column in published.columns.iter().filter(|column| !column.values[row].is_nan()) {
            let best = best(column, frames, arena)?;
            let (theirs, ours) = (column.values[row], value(published.unit, &best.counts));
            if column.is_reproducible {
                differences.push(ours - theirs);
            }
            let mark = if column.is_reproducible { "" } else { " *" };
            rows.push(vec![
                grouped(frames.into()),
                format!("{}{mark}", column.name),
                shown(published.unit, theirs),
                shown(published.unit, ours),
                difference(published.unit, ours - theirs),
                code(best.policy),
            ]);
        }
    }
    let header = ["pages", "policy", "published", "ours", "difference", "by"];
    let mut text = table(&header, &rows);
    write!(text, "\n{}\n", summary(published.unit, &differences))?;
    for remark in published.remarks {
        write!(text, "\n{remark}\n")?;
    }
    Ok(text)
}

/// Returns the policy with the most hits. If the source did not tune, there is only one.
fn best(column: &Column, frames: u32, arena: &Arena) -> Result<Best, Failure> {
    let cells: Vec<(&str, u32)> = column.ours.iter().map(|policy| (*policy, frames)).collect();
    let counts = arena.run_all(&cells)?;
    let found = column.ours.iter().zip(counts).max_by_key(|(_, counts)| counts.hits);
    let (policy, counts) = found.ok_or("a column without a policy")?;
    Ok(Best { policy, counts })
}

fn value(unit: Unit, counts: &Counts) -> f64 {
    match unit {
        Unit::Percent => counts.hit_ratio() * 100.0,
        Unit::Hits => counts.hits as f64,
    }
}

fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Percent => format!("{value:.2}"),
        Unit::Hits => grouped(value as u64),
    }
}

fn difference(unit: Unit, value: f64) -> String {
    match unit {
        _ if is_same(unit, value) => "0".to_string(),
        Unit::Percent => format!("{value:+.2}"),
        Unit::Hits => format!("{value:+.0}"),
    }
}

/// Returns `true` for a difference that is smaller than two printed digits can show.
fn is_same(unit: Unit, value: f64) -> bool {
    match unit {
        Unit::Percent => value.abs() < 0.005,
        Unit::Hits => value == 0.0,
    }
}

fn summary(unit: Unit, differences: &[f64]) -> String {
    let same = differences.iter().filter(|d| is_same(unit, **d)).count();
    let largest = differences.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let cells = differences.len();
    match (unit, largest) {
        (_, None) => "Nothing to compare.".to_string(),
        (_, Some(_)) if same == cells => format!("All {cells} cells are the same."),
        (Unit::Hits, Some(largest)) => {
            format!("{same} of {cells} cells are the same; the largest difference is {largest:+}.")
        }
        (Unit::Percent, Some(largest)) => {
            let near = |limit: f64| differences.iter().filter(|d| d.abs() < limit).count();
            format!(
                "Of {cells} cells {same} are the same, {} within 0.05 points, {} within 0.5; the \
                 largest difference is {largest:+.2} points.",
                near(0.05),
                near(0.5)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<&'static Published> {
        let mut all = vec![&tables_arc::OLTP, &tables_arc::P12, &tables_other::BITFASTER];
        all.extend(&tables_arc::AT_32768);
        all.extend(&tables_other::COUNTS);
        all
    }

    #[test]
    fn every_column_has_a_number_per_size_and_a_policy_that_exists() {
        let registry = millpond_lab::registry::Registry::builtin();
        for published in all() {
            for column in published.columns {
                let what = format!("{} {}", published.title, column.name);
                assert_eq!(column.values.len(), published.frames.len(), "{what}");
                assert!(!column.ours.is_empty(), "{what}");
                for policy in column.ours {
                    let spec = millpond_policies::config::Spec::parse(policy).unwrap();
                    registry.find(&spec.id).unwrap().values(&spec).expect(&what);
                }
            }
        }
    }

    #[test]
    fn tables_of_the_same_trace_agree_on_its_length_and_on_what_both_print() {
        for one in all() {
            for other in all().into_iter().filter(|o| o.trace == one.trace) {
                assert_eq!(one.references, other.references);
                for (a, b) in shared_cells(one, other) {
                    assert!((a - b).abs() < 0.0101, "{}/{}: {a} {b}", one.title, other.title);
                }
            }
        }
    }

    /// Cells of LRU that both tables print, in percent. Two digits are printed, and the paper's
    /// last one is not always the rounded one.
    fn shared_cells(one: &Published, other: &Published) -> Vec<(f64, f64)> {
        let percent = |published: &Published, frames: u32| {
            let at = published.frames.iter().position(|f| *f == frames)?;
            let value = published.columns.iter().find(|c| c.name == "LRU")?.values[at];
            Some(match published.unit {
                Unit::Percent => value,
                Unit::Hits => value * 100.0 / published.references as f64,
            })
        };
        let both = |f: &u32| Some((percent(one, *f)?, percent(other, *f)?));
        one.frames.iter().filter_map(both).collect()
    }

    #[test]
    fn a_summary_counts_what_is_the_same() {
        assert_eq!(summary(Unit::Hits, &[0.0, 0.0]), "All 2 cells are the same.");
        assert!(summary(Unit::Hits, &[0.0, -7.0]).contains("1 of 2 cells"));
        assert!(summary(Unit::Percent, &[0.001, 0.3]).contains("+0.30 points"));
    }
}
