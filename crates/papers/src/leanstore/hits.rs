//! The table of hit rates of leanstore VI-B as a figure.

use crate::experiment::{About, Cell, Fields, Figure, FigureError, Grid, Need, Scale, Watch};
use millpond_lab::registry::Registry;
use millpond_lab::report::Section;
use millpond_lab::table::Table;
use millpond_lab::verdict::{above, claim_named};

use super::course::PAGE;
use crate::leanstore::hit_table::{Experiment, HitTable, LIVE, PAPER, hit_table};
use crate::live::watched::{Watched, failed};
use millpond_bench::error::{BenchError, BesideError};
use millpond_bench::experiments::table::Row;

const ABOUT: About = About {
    id: "hits",
    title: "Hit rates of nine policies",
    asks: "What do policies make of the page references of lookups with skew 1.0 and a pool of a \
           fifth of the data?",
    says: "Random and FIFO 92.5 %, lean eviction 92.7 to 93.0 %, LRU 93.1 %, 2Q 93.8 %, the \
           optimum 96.3 %.",
};

/// The table: one cell, a row for each policy.
pub(super) struct Hits {
    scale: Scale,
}

impl Hits {
    pub fn new(scale: Scale) -> Hits {
        Hits { scale }
    }

    fn experiment(&self, seed: u64) -> Experiment {
        let paper = Experiment::paper(self.scale.pick(20_000, 80, 1));
        Experiment { seed, page_size: self.scale.pick(4096, PAGE, PAGE), ..paper }
    }
}

fn rows(result: &HitTable) -> Vec<Fields> {
    let row = |policy: &str, how: &str, paper: Option<f64>, hits: f64| {
        Row::default()
            .with("policy", policy)
            .with("how", how)
            .with("paper_percent", paper)
            .with("hits_percent", hits * 100.0)
            .with("data_pages", result.pages)
            .with("pool_frames", result.frames)
            .into_fields()
    };
    let paper_of = |policy: &str| PAPER.iter().find(|(id, _)| *id == policy).map(|(_, p)| *p);
    let live = row(LIVE, "live pool", paper_of(LIVE), result.live.hit_ratio());
    let simulated = PAPER
        .iter()
        .zip(&result.simulated)
        .map(|((policy, paper), hits)| row(policy, "simulated", Some(*paper), hits.all().ratio()));
    std::iter::once(live).chain(simulated).collect()
}

impl Figure for Hits {
    fn about(&self) -> About {
        ABOUT
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let (seconds, memory) =
            self.scale.pick((0.5, 128 << 20), (8.0, 1 << 30), (1500.0, 24 << 30));
        vec![Cell::new(ABOUT.id, repetition, Need { seconds, memory, disk: 0 })]
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let registry = Registry::builtin();
        let mut all = Vec::new();
        for cell in cells {
            let experiment = self.experiment(u64::from(cell.repetition));
            let result = hit_table(&experiment, &registry, &mut Watched(&mut *watch));
            let result = result.map_err(|error| match error {
                BesideError::Bench(BenchError::Stopped) => failed(BenchError::Stopped),
                other => FigureError::of(other),
            })?;
            all.push(rows(&result));
        }
        Ok(all)
    }

    fn section(&self, rows: &Table) -> Section {
        let grid = Grid::of(rows, &["policy", "how"], "hits_percent");
        let mean = |policy: &str| grid.mean(&[policy, "simulated"]);
        let mut table = Table::new(["policy", "paper, %", "live, %", "simulated, %"]);
        for (policy, paper) in PAPER {
            let live = grid.mean(&[policy, "live pool"]);
            table.rows.push(vec![policy.into(), paper.into(), live.into(), mean(policy).into()]);
        }
        let order = ["random", LIVE, "lru", "2q", "opt"];
        let says = "random, lean eviction, LRU, 2Q, the optimum: each has more hits than the last";
        let more = |pair: &[&str]| {
            let [less, more] = [pair[0], pair[1]];
            let more_points = grid.difference(&[more, "simulated"], &[less, "simulated"]);
            (format!("{more} less {less}"), more_points)
        };
        let claims = vec![claim_named(says, &order.windows(2).map(more).collect(), above(0.0))];
        Section {
            note: "Popular keys lie all over the tree. `paper leanstore-hits` also has them side \
                   by side, and leaves apart from inner pages."
                .to_string(),
            table,
            claims,
            ..Section::default()
        }
    }
}
