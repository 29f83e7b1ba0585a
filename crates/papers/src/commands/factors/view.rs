//! The three factors for people: one table, the cost of large pools, the corrections.

use crate::experiment::Scale;
use crate::gilbert::factors::{Correction, Factors, PolicyFactors, Result};
use millpond_lab::interval::Interval;
use millpond_lab::registry::hit_reaches;
use millpond_lab::report::{Line, LinePlot};
use millpond_lab::table::{Table, Value};

/// Number of policies in the list of growing victim costs.
const DEAREST: usize = 12;

/// Formats a mean with the wider half of its interval.
fn shown(value: Option<Interval>) -> Value {
    let Some(value) = value else { return "–".into() };
    let half = (value.high - value.mean).max(value.mean - value.low);
    let text = match value.mean {
        mean if mean < 100.0 => format!("{mean:.1} ±{half:.1}"),
        mean => format!("{mean:.0} ±{half:.0}"),
    };
    text.into()
}

/// Formats a number of frames as 1000, 100k or 1M.
fn frames_name(frames: u32) -> String {
    match frames {
        n if n >= 1_000_000 && n % 1_000_000 == 0 => format!("{}M", n / 1_000_000),
        n if n >= 10_000 && n % 1000 == 0 => format!("{}k", n / 1000),
        n => n.to_string(),
    }
}

fn row(factors: &PolicyFactors, counts: Option<(f64, f64)>) -> Vec<Value> {
    let mut row: Vec<Value> = vec![factors.policy.as_str().into()];
    row.push(shown(factors.hit_percent));
    row.push(hit_reaches(factors.hit).into());
    row.extend(factors.costs.iter().map(|cost| shown(Some(cost.hit_ns))));
    row.extend(factors.costs.iter().map(|cost| shown(Some(cost.victim_ns))));
    let count = |value: Option<f64>| value.map_or("–".into(), |n| format!("{n:.1}").into());
    row.push(count(counts.map(|(hit, _)| hit)));
    row.push(count(counts.map(|(_, victim)| victim)));
    row.push(count(factors.bytes_per_frame()));
    row.push((factors.fixed_bytes as u64).into());
    row
}

fn main_table(what: &Factors, result: &Result, counts: &[Option<(f64, f64)>]) -> Table {
    let mut columns = vec!["policy".to_string(), "hits %".to_string(), "a hit reaches".to_string()];
    for event in ["hit", "victim"] {
        let name = |frames: &u32| format!("{event} ns, {}", frames_name(*frames));
        columns.extend(what.frames.iter().map(name));
    }
    let last = ["instr/hit", "instr/victim", "bytes/frame", "fixed bytes"];
    columns.extend(last.map(str::to_string));
    let mut table = Table::new(columns.iter().map(String::as_str));
    let rows = result.policies.iter().zip(counts).map(|(factors, counts)| row(factors, *counts));
    table.rows.extend(rows);
    table
}

/// Returns the policies whose victim cost grows most from the smallest pool to the
/// largest.
fn growth(what: &Factors, result: &Result) -> Option<(String, Table)> {
    let (least, most) = (what.frames.first()?, what.frames.last()?);
    let mut all: Vec<(&str, Interval)> = result
        .policies
        .iter()
        .filter_map(|factors| Some((factors.policy.as_str(), factors.growth()?)))
        .collect();
    all.sort_by(|(_, one), (_, other)| other.mean.total_cmp(&one.mean));
    let mut table = Table::new(["policy", "victim, × the smallest pool's", "at least", "at most"]);
    for (policy, growth) in all.into_iter().take(DEAREST) {
        let [mean, low, high] = [growth.mean, growth.low, growth.high];
        let cell = |x: f64| -> Value { format!("{x:.2}").into() };
        table.rows.push(vec![policy.into(), cell(mean), cell(low), cell(high)]);
    }
    let (least, most) = (frames_name(*least), frames_name(*most));
    let text = format!(
        "Large pools (gilbert 1.4): what a victim costs with {most} frames over {least}, the dearest \
         first"
    );
    (!table.rows.is_empty()).then_some((text, table))
}

fn corrected(corrections: &[Correction], scale: Scale) -> String {
    let mut text = format!("Corrected beside his figures, scale {scale}");
    if let Some(mark) = scale.mark() {
        text += &format!(" ({mark}: nothing can be concluded)");
    }
    text += "\n";
    for one in corrections {
        let (claim, verdict) = (&one.claim, one.claim.verdict());
        text += &format!("\n{} ({})\n  he says: {}\n", one.about, one.place, claim.says);
        text += &format!("  here:    {}\n  holds:   {verdict}\n", claim.here);
    }
    text
}

/// Returns the printed parts: texts, and the table below each.
pub(crate) fn parts(
    what: &Factors,
    result: &Result,
    counts: &[Option<(f64, f64)>],
    why_uncounted: Option<&str>,
) -> Vec<(String, Table)> {
    let mut head = "The three factors of a policy (gilbert 1.3), and its bytes".to_string();
    match what.live {
        Some(live) => {
            let (scale, percent) = (live.scale, live.percent);
            head += &format!("; hits live, TPC-C, pool {percent} % of the data, scale {scale}");
        }
        None => head += "; no hit rates: --no-live",
    }
    if let Some(why) = why_uncounted {
        head += &format!("; no instructions: {why}");
    }
    let mut parts = vec![(head, main_table(what, result, counts))];
    parts.extend(growth(what, result));
    if let Some(scale) = what.corrections {
        parts.push((corrected(&result.corrections, scale), Table::default()));
    }
    parts
}

/// Plots the cost of a victim over pool sizes.
pub(crate) fn plot(result: &Result) -> LinePlot {
    let line = |factors: &PolicyFactors| {
        let costs = factors.costs.iter();
        Line {
            label: factors.policy.clone(),
            points: costs.clone().map(|c| (f64::from(c.frames), c.victim_ns.mean)).collect(),
            band: costs.map(|c| (c.victim_ns.low, c.victim_ns.high)).collect(),
        }
    };
    LinePlot {
        title: "What a victim costs".to_string(),
        x: "frames".to_string(),
        y: "ns for a victim and the page in its place".to_string(),
        lines: result.policies.iter().map(line).collect(),
        is_log: true,
        ..LinePlot::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_shown_by_their_wider_half_and_nothing_by_a_dash() {
        let of = |mean, low, high| shown(Some(Interval { mean, low, high, runs: 5 })).to_string();
        assert_eq!(of(5.0, 4.5, 5.2), "5.0 ±0.5");
        assert_eq!(of(250.0, 249.0, 254.0), "250 ±4");
        assert_eq!(of(0.0, 0.0, 0.0), "0.0 ±0.0");
        assert_eq!(shown(None).to_string(), "–");
    }

    #[test]
    fn frames_have_short_names() {
        let names = [64, 1000, 100_000, 1_000_000, 1_500_000, 1_048_576].map(frames_name);
        assert_eq!(names, ["64", "1000", "100k", "1M", "1500k", "1048576"]);
    }
}
