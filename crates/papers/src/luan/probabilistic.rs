//! Figures 7 to 11: independent references, and the use counts of victims (luan 5.5).

use super::figure::{Axes, Patterns, axes, shrunk};
use super::policies::{NAMES, thirteen, variants};
use super::said::{At, Values, over_sizes};
use super::work::{Work, made, play};
use crate::experiment::{About, Cell, Fields, FigureError, Grid, Scale};
use millpond_lab::interval::Interval;
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{above, below, claim};

const ABOUT: About = About {
    id: "7",
    title: "Probabilistic references (figures 7 to 11)",
    asks: "What is the hit ratio of pages with fixed probabilities over the size of the pool, and \
           how many victims had been referenced more than once?",
    says: "CLOCK-Pro, LRFU with λ 0, LIRS and LRU-2 are the best and evict pages of one reference, \
           LRU and CLOCK the worst and often evict others.",
};

/// Pools of fig. 7.
const SIZES: [u32; 10] = [1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000];
/// Pages, references and Zipf exponents of our index scans, which the paper does not print. The
/// first one is the generator's default; the other one has more pages that are used once.
const TRACES: [(&str, u32, u32, &str); 2] =
    [("10k pages", 10_000, 200_000, "0.8"), ("40k pages", 40_000, 100_000, "1")];
/// Policies beside his: the optimum, LRFU with the default λ, and LFU that forgets no count.
const OTHERS: [&str; 3] = ["opt", "lrfu(lambda=0.005)", "lfu(count=perfect)"];

pub(super) fn figure(scale: Scale) -> Result<Patterns, PolicyError> {
    let mut policies = thirteen("0");
    policies.extend(variants(&OTHERS));
    let mut cells: Vec<Axes> = Vec::new();
    for (trace, ..) in TRACES {
        for size in SIZES {
            let more = || [("trace", Value::from(trace)), ("size", Value::from(size))];
            cells.extend(policies.iter().map(|p| axes(p).into_iter().chain(more()).collect()));
        }
    }
    Patterns::new(ABOUT, scale, cells, 200_000, simulate, draw)
}

fn simulate(registry: &Registry, cell: &Cell, scale: Scale) -> Result<Vec<Fields>, FigureError> {
    let frames = shrunk(cell.number("size").unwrap_or(1000.0) as u32, scale);
    let trace = TRACES.iter().find(|(name, ..)| *name == cell.text("trace")).unwrap_or(&TRACES[0]);
    let (pages, refs, theta) = (shrunk(trace.1, scale), shrunk(trace.2, scale), trace.3);
    let seed = u64::from(cell.repetition);
    let params = format!("pages={pages},refs={refs},theta={theta}");
    let work = Work::clean(vec![made("probabilistic", &params, seed)?]);
    let parts = play(registry, &cell.text("by"), frames, &work, seed)?;
    Ok(parts.iter().map(|part| part.fields(frames)).collect())
}

const AXES: [&str; 2] = ["policy", "size"];

fn draw(rows: &Table) -> Section {
    let sizes =
        TRACES.map(|(name, _, refs, theta)| format!("{name}: {refs} references, Zipf {theta}"));
    let mut section = Section {
        note: format!(
            "The paper prints no sizes of its index scans. Ours: {}. referenced_again is the \
             percentage of victims that were referenced more than once while they stayed; the rows \
             have it for all references, too (referenced_again_ever).",
            sizes.join("; ")
        ),
        table: Table::new([
            "trace",
            "policy",
            "size",
            "hit_ratio",
            "low",
            "high",
            "referenced_again",
        ]),
        ..Section::default()
    };
    for (trace, ..) in TRACES {
        let of_trace = rows.only("trace", trace);
        let hits = Grid::of(&of_trace, &AXES, "hit_ratio");
        let again = Grid::of(&of_trace, &AXES, "referenced_again");
        for policy in hits.labels(0) {
            for size in hits.labels(1) {
                let Some(hit) = hits.interval(&[policy, size]) else { continue };
                let row = [trace.into(), policy.into(), size.into(), hit.mean.into()];
                let more =
                    [hit.low.into(), hit.high.into(), Value::from(again.mean(&[policy, size]))];
                section.table.rows.push(row.into_iter().chain(more).collect());
            }
        }
        plot(&mut section, trace, &hits, &again);
        let claims = claims(&hits, &again).into_iter();
        section.claims.extend(
            claims.map(|claim| Claim { says: format!("{trace}, {}", claim.says), ..claim }),
        );
    }
    section
}

fn plot(section: &mut Section, trace: &str, hits: &Grid, again: &Grid) {
    let first = ["CLOCK-Pro", "LRFU", "LIRS", "LRU-2", "2Q-Full", "CLOCK", "LRU"];
    let second = ["CLOCK-Pro", "GCLOCK", "2Q-Simple", "ARC", "CAR", "CART", "FBR"];
    let third = ["CLOCK-Pro", "FBR", "LRU", "CLOCK", "LRFU", "LIRS", "LRU-2"];
    let (ratio, share) = ("hit ratio, %", "% of the victims");
    let plots = [
        over_sizes(hits, &format!("{trace}: the best and the worst"), ratio, &first),
        over_sizes(hits, &format!("{trace}: the others"), ratio, &second),
        over_sizes(again, &format!("{trace}: victims referenced more than once"), share, &third),
    ];
    section.plots.extend(plots.map(Into::into));
}

const BEST: [&str; 4] = ["CLOCK-Pro", "LRFU", "LIRS", "LRU-2"];
const WORST: [&str; 2] = ["CLOCK", "LRU"];

/// Returns all policies except these.
fn others(without: &[&str]) -> Vec<&'static str> {
    NAMES.iter().filter(|name| !without.contains(name)).copied().collect()
}

fn claims(hits: &Grid, again: &Grid) -> Vec<Claim> {
    let mut claims = Vec::new();
    let rest = others(&BEST);
    for size in ["1000", "2000", "3000", "4000", "5000"] {
        let at = [size];
        let says = format!("{size}: CLOCK-Pro, LRFU, LIRS and LRU-2 are higher than all others");
        claims.push(At::new(hits, &at).apart(&says, &BEST, &rest));
    }
    for size in ["1000", "3000", "5000", "7000"] {
        let at = [size];
        let says = format!("{size}: CLOCK and LRU are lower than all others but GCLOCK");
        let clocks = [WORST.as_slice(), &["GCLOCK"]].concat();
        claims.push(At::new(hits, &at).apart(&says, &others(&clocks), &WORST));
    }
    for size in ["1000", "3000", "5000", "7000"] {
        let at = [size];
        let says = format!("{size}: CLOCK and LRU are lower than all others");
        claims.push(At::new(hits, &at).apart(&says, &others(&WORST), &WORST));
    }
    let gap = |policy: &str, size: &str| At::new(hits, &[size]).gap("CLOCK-Pro", policy);
    let closer = |policy: &'static str| {
        let change = gap(policy, "9000").zip(gap(policy, "2000")).map(|(a, b)| Interval {
            mean: a.mean - b.mean,
            low: a.low - b.high,
            high: a.high - b.low,
            runs: a.runs.min(b.runs),
        });
        (policy, change)
    };
    let groups: [(&str, &[&'static str]); 3] = [
        ("GCLOCK, CLOCK and LRU", &["GCLOCK", "CLOCK", "LRU"]),
        ("ARC, CAR and CART", &["ARC", "CAR", "CART"]),
        ("2Q-Simple and FBR", &["2Q-Simple", "FBR"]),
    ];
    claims.extend(groups.map(|(who, policies)| {
        let says = format!("{who} approach CLOCK-Pro: the gap at 9,000 less that at 2,000");
        let changes: Values = policies.iter().copied().map(closer).collect();
        claim(&says, &changes, below(0.0))
    }));
    let at = ["9000"];
    claims.push(At::new(hits, &at).apart(
        "9,000: but for 2Q-Full, which is below them",
        &others(&["2Q-Full"]),
        &["2Q-Full"],
    ));
    claims.extend(frequencies(again));
    claims
}

/// Sizes at which reused pages can be evicted.
const EVICTING: [&str; 9] =
    ["1000", "2000", "3000", "4000", "5000", "6000", "7000", "8000", "9000"];

fn frequencies(again: &Grid) -> Vec<Claim> {
    let most = |policy: &'static str| {
        let shares = EVICTING.iter().filter_map(|size| again.interval(&[policy, size]));
        (policy, shares.max_by(|a, b| a.mean.total_cmp(&b.mean)))
    };
    let over = |policy: &'static str, size: &'static str| {
        (policy, again.difference(&[policy, size], &["CLOCK-Pro", size]))
    };
    let others: Values =
        EVICTING.iter().flat_map(|size| ["FBR", "LRU", "CLOCK"].map(|p| over(p, size))).collect();
    vec![
        claim(
            "fig. 8: CLOCK-Pro's victims are mostly pages of one reference: 4 % at most were \
             referenced again",
            &[most("CLOCK-Pro")],
            below(4.5),
        ),
        claim(
            "LRFU's, LRU-2's and LIRS' likewise",
            &["LRFU", "LRU-2", "LIRS"].map(most),
            below(10.0),
        ),
        claim(
            "figs 9 to 11: more of FBR's, LRU's and CLOCK's, at each size: less CLOCK-Pro's",
            &others,
            above(0.0),
        ),
        claim(
            "and often: more than a quarter at some size",
            &["FBR", "LRU", "CLOCK"].map(most),
            above(25.0),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::said::twice;
    use super::*;

    fn all(hit: impl Fn(&str, u32) -> f64, again: impl Fn(&str) -> f64) -> Vec<Claim> {
        let mut table = Table::new(["policy", "size", "hit_ratio", "referenced_again"]);
        for policy in NAMES {
            for size in SIZES {
                let values = [hit(policy, size).into(), again(policy).into()];
                let row: Vec<Value> = vec![policy.into(), size.into()];
                table.rows.push(row.into_iter().chain(values).collect());
            }
        }
        let table = twice(&table);
        let grid = |column| Grid::of(&table, &AXES, column);
        claims(&grid("hit_ratio"), &grid("referenced_again"))
    }

    #[test]
    fn each_sentence_can_hold_and_fail() {
        let (best, worst) = (|p: &str| BEST.contains(&p), |p: &str| WORST.contains(&p));
        let his = all(
            |policy, size| {
                let near = f64::from(size) / 1000.0;
                match policy {
                    p if best(p) => 80.0,
                    p if worst(p) => 40.0 + near,
                    "2Q-Full" if size == 9000 => 20.0,
                    _ => 60.0 + near,
                }
            },
            |policy| if best(policy) { 2.0 } else { 40.0 },
        );
        for claim in &his {
            assert_eq!(claim.holds, Some(true), "{}: {}", claim.says, claim.here);
        }
        let other = all(
            |policy, size| {
                let far = f64::from(size) / 1000.0;
                match policy {
                    p if best(p) => 50.0,
                    p if worst(p) => 90.0 - far,
                    _ => 60.0 - far,
                }
            },
            |policy| if best(policy) { 30.0 } else { 20.0 },
        );
        for claim in other.iter().filter(|claim| !claim.says.starts_with("9,000")) {
            assert_eq!(claim.holds, Some(false), "{}: {}", claim.says, claim.here);
        }
        let kept = all(|policy, _| if policy == "2Q-Full" { 9.0 } else { 5.0 }, |_| 1.0);
        let said = kept.iter().find(|claim| claim.says.starts_with("9,000")).unwrap();
        assert_eq!(said.holds, Some(false));
    }
}
