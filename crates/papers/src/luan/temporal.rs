//! Figure 6: a table scanned forwards and backwards, twice (luan 5.4).

use super::figure::{Axes, Patterns, axes, shrunk};
use super::policies::{NAMES, thirteen, variants};
use super::said::{At, Values, over_sizes};
use super::work::{Work, made, play};
use crate::experiment::{About, Cell, Fields, FigureError, Grid, Scale};
use millpond_lab::interval::Interval;
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::report::{Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{above, below, between, claim};

const ABOUT: About = About {
    id: "6",
    title: "Temporally clustered references",
    asks: "What is the hit ratio of 5,500 pages read forwards and backwards twice, and which pages \
           are evicted?",
    says: "LRU is the best, and LRFU with λ 1 its like; CLOCK-Pro and LRU-2 are far below it in \
           small pools, the clocks, 2Q-Full, CAR and CART in large ones.",
};

/// Pools of fig. 6.
const SIZES: [u32; 6] = [1000, 2000, 3000, 4000, 5000, 6000];
/// "More than 5,000 pages": with 5,000 pages, nothing would be evicted from 5,000 frames.
const PAGES: u32 = 5500;
/// The optimum, LRFU with the default λ, and LRU-K.
const OTHERS: [&str; 3] = ["opt", "lrfu(lambda=0.005)", "lru-k"];

/// Differences of hit ratios in points: at most this is close, more than `FAR` is far.
const CLOSE: f64 = 1.0;
const FAR: f64 = 5.0;
const SAME: f64 = 0.005;

pub(super) fn figure(scale: Scale) -> Result<Patterns, PolicyError> {
    let mut policies = thirteen("1");
    policies.extend(variants(&OTHERS));
    let cell = |p, size: u32| -> Axes {
        axes(p).into_iter().chain([("size", Value::from(size))]).collect()
    };
    let cells = SIZES.iter().flat_map(|size| policies.iter().map(move |p| cell(p, *size)));
    let references = u64::from(PAGES) * 4;
    Patterns::new(ABOUT, scale, cells.collect(), references, simulate, draw)
}

fn simulate(registry: &Registry, cell: &Cell, scale: Scale) -> Result<Vec<Fields>, FigureError> {
    let frames = shrunk(cell.number("size").unwrap_or(1000.0) as u32, scale);
    let (pages, seed) = (shrunk(PAGES, scale), u64::from(cell.repetition));
    let work = Work::clean(vec![made("temporal", &format!("pages={pages}"), seed)?]);
    let parts = play(registry, &cell.text("by"), frames, &work, seed)?;
    Ok(parts.iter().map(|part| part.fields(frames)).collect())
}

const AXES: [&str; 2] = ["policy", "size"];

fn draw(rows: &Table) -> Section {
    let grid = Grid::of(rows, &AXES, "hit_ratio");
    let mut table = Table::new([
        "policy",
        "size",
        "hit_ratio",
        "recency_is_size",
        "recency_usual",
        "others_twice",
    ]);
    let more = ["recency_is_size", "recency_usual", "others_twice"]
        .map(|column| Grid::of(rows, &AXES, column));
    for policy in grid.labels(0) {
        for size in grid.labels(1) {
            let place = [policy, size];
            let row = [policy.into(), size.into(), grid.mean(&place).into()];
            let more = more.iter().map(|grid| Value::from(grid.mean(&place)));
            table.rows.push(row.into_iter().chain(more).collect());
        }
    }
    let (first, second) = (
        ["LRU", "LRFU", "FBR", "CLOCK-Pro", "LRU-2", "LIRS"],
        ["LRU", "GCLOCK", "CLOCK", "2Q-Simple", "2Q-Full", "ARC", "CAR", "CART"],
    );
    let plot = |title: &str, names: &[&str]| over_sizes(&grid, title, "hit ratio, %", names);
    Section {
        note: "Recency: references since a victim's last one (5.4); recency_is_size is the \
               percentage of victims whose recency is the number of frames, recency_usual the most \
               frequent recency, others_twice the percentage of the other victims that were \
               referenced twice while they stayed."
            .to_string(),
        table,
        plots: vec![
            plot("The best and the worst", &first).into(),
            plot("The others", &second).into(),
        ],
        claims: claims(rows, &grid),
        ..Section::default()
    }
}

/// Returns the policies except these.
fn others(without: &[&str]) -> Vec<&'static str> {
    NAMES.iter().filter(|name| !without.contains(name)).copied().collect()
}

/// Returns the change of the policies' distance below LRU from one size to another.
fn departs(grid: &Grid, policies: &[&'static str], at: &str, than: &str) -> Values<'static> {
    let gap = |policy: &str, size: &str| At::new(grid, &[size]).gap("LRU", policy);
    let more = |policy: &&'static str| {
        let more = gap(policy, at).zip(gap(policy, than)).map(|(a, b)| Interval {
            mean: a.mean - b.mean,
            low: a.low - b.high,
            high: a.high - b.low,
            runs: a.runs.min(b.runs),
        });
        (*policy, more)
    };
    policies.iter().map(more).collect()
}

fn claims(rows: &Table, grid: &Grid) -> Vec<Claim> {
    [hits(grid), victims(rows, grid)].into_iter().flatten().collect()
}

fn hits(grid: &Grid) -> Vec<Claim> {
    let at = |size: &'static str| -> &'static [&'static str] {
        SIZE_LABELS.iter().find(|label| label[0] == size).map_or(&[], |label| label)
    };
    let gaps = |size, policies: &[&'static str]| At::new(grid, at(size)).gaps("LRU", policies);
    let over_all = |policy: &'static str| -> Values<'static> {
        SIZE_LABELS.iter().map(|size| (size[0], At::new(grid, size).gap("LRU", policy))).collect()
    };
    let per_frame: Values = SIZE_LABELS[..5]
        .iter()
        .map(|size| {
            let ratio = grid.ratio(&["LRU", size[0]], &["LRU", "1000"]);
            (size[0], ratio.map(|ratio| ratio.times(1000.0 / size[0].parse().unwrap_or(1000.0))))
        })
        .collect();
    let mut claims = vec![
        claim(
            "LRU is the optimum: LRU's hit ratio less Bélády's",
            &over_all("opt"),
            between(-SAME, SAME),
        ),
        claim(
            "LRU's is proportional to the pool: per frame, over that of 1,000",
            &per_frame,
            between(0.99, 1.01),
        ),
        claim("LRFU with λ 1 equals LRU at all sizes", &over_all("LRFU"), between(-SAME, SAME)),
        claim(
            "FBR equals LRU at 4,000 and 5,000",
            &[gaps("4000", &["FBR"]), gaps("5000", &["FBR"])].concat(),
            between(-SAME, SAME),
        ),
    ];
    claims.extend(small(grid));
    claims.extend(large(grid));
    claims
}

/// Judges his sentences on pools of 1,000 frames.
fn small(grid: &Grid) -> [Claim; 3] {
    let worst = ["CLOCK-Pro", "LRU-2"];
    let at = At::new(grid, &SIZE_LABELS[0]);
    [
        claim(
            "1,000: GCLOCK and CLOCK are very close to LRU: LRU less them",
            &at.gaps("LRU", &["GCLOCK", "CLOCK"]),
            between(-CLOSE, CLOSE),
        ),
        claim(
            "1,000: there is a large gap between LRU and CLOCK-Pro and LRU-2: LRU over them, \
             large being a third more",
            &worst.map(|policy| (policy, grid.ratio(&["LRU", "1000"], &[policy, "1000"]))),
            above(4.0 / 3.0),
        ),
        at.apart("1,000: those of all others are smaller", &others(&worst), &worst),
    ]
}

/// Judges his sentences on larger pools.
fn large(grid: &Grid) -> [Claim; 6] {
    let gaps = |at: usize, policies: &[&'static str]| {
        At::new(grid, &SIZE_LABELS[at]).gaps("LRU", policies)
    };
    let large = ["GCLOCK", "CLOCK", "2Q-Full", "CAR", "CART"];
    [
        claim(
            "GCLOCK, CLOCK, 2Q-Full, CAR and CART depart from LRU: the gap at 5,000 less that \
             at 1,000",
            &departs(grid, &large, "5000", "1000"),
            above(0.0),
        ),
        claim(
            "3,000: 2Q-Simple and LIRS are clearly below LRU",
            &gaps(2, &["2Q-Simple", "LIRS"]),
            above(CLOSE),
        ),
        claim(
            "5,000: 2Q-Simple, ARC and FBR almost overlap with LRU",
            &gaps(4, &["2Q-Simple", "ARC", "FBR"]),
            between(-CLOSE, CLOSE),
        ),
        claim(
            "CLOCK-Pro, LRU-2 and LIRS approach LRU: the gap at 5,000 less that at 3,000",
            &departs(grid, &["CLOCK-Pro", "LRU-2", "LIRS"], "5000", "3000"),
            below(0.0),
        ),
        claim(
            "5,000: GCLOCK, CLOCK, 2Q-Full, CAR and CART are far below LRU",
            &gaps(4, &large),
            above(FAR),
        ),
        claim("6,000: all are equal", &gaps(5, &others(&["LRU"])), between(-SAME, SAME)),
    ]
}

/// Sizes as places.
const SIZE_LABELS: [[&str; 1]; 6] = [["1000"], ["2000"], ["3000"], ["4000"], ["5000"], ["6000"]];

fn victims(rows: &Table, hit_ratio: &Grid) -> Vec<Claim> {
    let column = |name: &str| Grid::of(rows, &AXES, name);
    let (is_size, usual, share) =
        (column("recency_is_size"), column("recency_usual"), column("recency_usual_share"));
    let (least, most, twice) =
        (column("recency_least"), column("recency_most"), column("others_twice"));
    let at = |grid: &Grid, policy: &str, size: &str| grid.interval(&[policy, size]);
    let sizes = |grid: &Grid, policy: &str, sizes: &[[&'static str; 1]]| -> Values<'static> {
        sizes.iter().map(|size| (size[0], at(grid, policy, size[0]))).collect()
    };
    let all = between(99.995, 100.005);
    let queue: Values = ["1000", "2000"]
        .into_iter()
        .map(|size| {
            let part = 100.0 / size.parse().unwrap_or(1000.0);
            (size, at(&usual, "LIRS", size).map(|recency| recency.times(part)))
        })
        .collect();
    let mut claims = vec![
        claim(
            "the recency of LRU's victims is the size: % of them",
            &sizes(&is_size, "LRU", &SIZE_LABELS[..5]),
            all,
        ),
        claim("so is that of LRFU's", &sizes(&is_size, "LRFU", &SIZE_LABELS[..5]), all),
        claim("and of FBR's at 4,000 and 5,000", &sizes(&is_size, "FBR", &SIZE_LABELS[3..5]), all),
        claim(
            "1,000: of CLOCK's it is for some: % of them",
            &[("", at(&is_size, "CLOCK", "1000"))],
            between(0.0, 99.995),
        ),
        claim(
            "1,000: that of the others is 1 at least",
            &[("", at(&least, "CLOCK", "1000"))],
            between(0.5, 1.5),
        ),
        claim(
            "1,000: and 1,999 at most",
            &[("", at(&most, "CLOCK", "1000"))],
            between(1998.5, 1999.5),
        ),
        claim(
            "1,000: and these were referenced twice: % of them",
            &[("", at(&twice, "CLOCK", "1000"))],
            all,
        ),
        claim(
            "LIRS' victims at 1,000 and 2,000 have a recency of 1 % of the pool",
            &queue,
            between(0.95, 1.05),
        ),
        claim(
            "more than half of them do: %",
            &sizes(&share, "LIRS", &SIZE_LABELS[..2]),
            above(50.0),
        ),
    ];
    let lirs: Values = ["1000", "2000"]
        .map(|size| (size, hit_ratio.difference(&["LIRS", size], &["CLOCK-Pro", size])))
        .to_vec();
    claims.push(claim("LIRS is higher there than CLOCK-Pro", &lirs, above(0.0)));
    claims
}

#[cfg(test)]
mod tests {
    use super::super::said::twice;
    use super::*;

    type Made<'a> = &'a dyn Fn(&str, u32, &str) -> f64;
    const COLUMNS: [&str; 7] = [
        "hit_ratio",
        "recency_is_size",
        "recency_usual",
        "recency_usual_share",
        "recency_least",
        "recency_most",
        "others_twice",
    ];

    fn all(made: Made) -> Vec<Claim> {
        let mut table = Table::new(["policy", "size"].into_iter().chain(COLUMNS));
        for policy in NAMES.iter().chain(&["opt"]) {
            for size in SIZES {
                let mut row: Vec<Value> = vec![(*policy).into(), size.into()];
                row.extend(COLUMNS.map(|column| Value::from(made(policy, size, column))));
                table.rows.push(row);
            }
        }
        let table = twice(&table);
        claims(&table, &Grid::of(&table, &AXES, "hit_ratio"))
    }

    /// Returns the hit ratio of a run that behaves like the paper's.
    fn his(policy: &str, size: u32, column: &str) -> f64 {
        let lru = f64::from(size) * 0.014;
        let below = match (policy, size) {
            (_, 6000) | ("LRU" | "LRFU" | "opt", _) | ("FBR" | "2Q-Simple", 4000..) => 0.0,
            ("CLOCK-Pro" | "LRU-2", ..=3000) => 12.0,
            ("LIRS" | "2Q-Simple", ..=3000) => 3.0,
            ("CLOCK-Pro" | "LRU-2", _) => 6.0,
            ("LIRS", _) => 1.5,
            ("GCLOCK" | "CLOCK" | "2Q-Full" | "CAR" | "CART", 5000) => 20.0,
            _ => 0.5,
        };
        match column {
            "hit_ratio" => lru - below,
            "recency_is_size" if policy == "CLOCK" => 40.0,
            "recency_usual" => f64::from(size) / 100.0,
            "recency_usual_share" | "recency_is_size" | "others_twice" => 100.0,
            "recency_least" => 1.0,
            _ => 1999.0,
        }
    }

    #[test]
    fn each_sentence_can_hold_and_fail() {
        let claims = all(&his);
        for claim in &claims {
            assert_eq!(claim.holds, Some(true), "{}: {}", claim.says, claim.here);
        }
        let reversed = all(&|policy, size, column| match column {
            "hit_ratio" if policy == "LRU" => 50.0 + f64::from(size * size) * 1e-6,
            "hit_ratio" if ["CLOCK-Pro", "LRU-2"].contains(&policy) => {
                let below = f64::from(size) / 1000.0 - 0.5;
                50.0 + f64::from(size * size) * 1e-6 - below
            }
            "hit_ratio" if policy == "LIRS" => 44.0 + f64::from(size) * 1e-3,
            "hit_ratio" if ["GCLOCK", "CLOCK", "2Q-Full", "CAR", "CART"].contains(&policy) => {
                let up = if size == 1000 { -6.0 } else { 3.0 };
                50.0 + f64::from(size * size) * 1e-6 + up
            }
            "hit_ratio" if policy == "2Q-Simple" && size == 3000 => 60.0,
            "hit_ratio" => 40.0,
            "recency_is_size" if policy == "CLOCK" => 100.0,
            _ => 7.0,
        });
        for claim in &reversed {
            assert_eq!(claim.holds, Some(false), "{}: {}", claim.says, claim.here);
        }
    }
}
