//! Figure 4.5: physical writes of a program that syncs some writes at once and others later.

use millpond_base::sync_list::SyncList;
use millpond_base::{Lsn, PageId, Seed};
use millpond_workload::generate::generate;
use millpond_workload::trace::{BATCH_LEN, Batch, Source};

use crate::experiment::{About, Cell, Fields, Figure, FigureError, Grid, Need, Scale, Watch};
use crate::storage::FileCache;
use millpond_lab::report::{Claim, Line, LinePlot, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{Named, above, below, claim_named};

const ABOUT: About = About {
    id: "4.5",
    title: "Physical writes, by how many syncs are deferred and for how long",
    asks: "Does a file cache consolidate writes whose sync is deferred?",
    says: "The more writes are deferred, and the longer, the fewer are done: under a third of them \
           with 10 % synced at once and a deferral of 200K writes. With 90 % it is of no account.",
};

const PAGES: u64 = 1_000_000;
const WRITES: u64 = 2_000_000;
/// 200 MB in pages of 4 KiB.
const CACHE: u64 = 51_200;
/// Share of the cache that may be dirty, and pages per background write of the kernel.
const DIRTY: f64 = 0.9;
const BATCH: usize = 1024;

const SHARES: [&str; 3] = ["10", "50", "90"];
const DELAYS: [&str; 6] = ["5", "10", "20", "50", "100", "200"];

/// The figure.
pub(in super::super) struct Writes {
    pub scale: Scale,
}

/// Way in which the program remembers the pages to sync later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Program {
    /// Each deferred write has its own dsync, as in the text.
    Each,
    /// A page that waits for its dsync is not listed again, as in the sync list of 4.3.2.
    Listed,
}

/// Runs, by name: the program, the length of the file in units of the distribution, and the shares
/// of writes that are synced at once.
const PROGRAMS: [(&str, Program, u64, &[&str]); 3] = [
    ("each", Program::Each, 40, &SHARES),
    ("listed", Program::Listed, 40, &["10"]),
    ("listed, 80", Program::Listed, 80, &["10"]),
];

/// A run of the program.
struct Run {
    program: Program,
    /// Length of the file in units of the distribution.
    span: u64,
    /// Share of the writes that are synced at once.
    share: f64,
    /// Number of writes after which the other writes are synced.
    delay: u64,
    /// Divisor of all sizes.
    part: u64,
    seed: u64,
}

impl Run {
    /// Returns the generator's writes. A write that is synced at once is followed by its dsync
    /// request. The requests of the others come after the delay, or never if the program lists
    /// them.
    fn source(&self) -> Result<Box<dyn Source>, FigureError> {
        let delay = match self.program {
            Program::Each => self.delay / self.part,
            Program::Listed => WRITES,
        };
        let params = [
            ("pages", (PAGES / self.part).to_string()),
            ("writes", (WRITES / self.part).to_string()),
            ("sync", self.share.to_string()),
            ("delay", delay.to_string()),
            ("span", self.span.to_string()),
        ];
        let params = params.map(|(name, value)| (name.to_string(), value));
        generate("exponential", &params, Seed(self.seed)).map_err(FigureError::of)
    }

    /// Counts all physical writes, including those that the kernel makes for lack of room.
    fn physical(&self) -> Result<u64, FigureError> {
        let mut source = self.source()?;
        let capacity = (CACHE / self.part) as usize;
        let limit = (capacity as f64 * DIRTY) as usize;
        let mut cache = FileCache::new(capacity, limit, (BATCH / self.part as usize).max(1));
        let (mut batch, mut written, mut list) = (Batch::default(), 0, SyncList::default());
        let (mut count, mut last) = (0, None);
        loop {
            batch.clear();
            if source.fill(&mut batch, BATCH_LEN).map_err(FigureError::of)? == 0 {
                break;
            }
            for (page, mark) in batch.pages.iter().zip(&batch.marks) {
                if mark.is_dsync() {
                    let is_at_once = last.take() == Some(*page);
                    if is_at_once || self.program == Program::Each {
                        written += cache.sync(&[*page]).len();
                    }
                    continue;
                }
                if let Some(deferred) = last.replace(*page)
                    && self.program == Program::Listed
                {
                    list.add(PageId(deferred), Lsn(count));
                }
                count += 1;
                cache.write(*page);
                written += cache.background().len();
                let bound = count.saturating_sub(self.delay / self.part);
                while let Some(due) = list.take_before(Lsn(bound)) {
                    written += cache.sync(&[due.0]).len();
                }
            }
        }
        // Pages that still wait at the end are synced then.
        Ok((written + cache.dirty_pages()) as u64)
    }
}

impl Figure for Writes {
    fn about(&self) -> About {
        ABOUT
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let seconds = self.scale.pick(0.1, 1.0, 1.0);
        let need = Need { seconds, memory: 256 << 20, disk: 1 << 20 };
        let mut cells = Vec::new();
        for (name, _, _, shares) in PROGRAMS {
            for share in shares {
                let cell = Cell::new(ABOUT.id, repetition, need);
                let cell = cell.with("program", name).with("share", *share);
                cells.extend(DELAYS.map(|delay| cell.clone().with("delay", delay)));
            }
        }
        cells
    }

    fn run(&mut self, cells: &[&Cell], _: &mut dyn Watch) -> Result<Vec<Vec<Fields>>, FigureError> {
        let part = self.scale.pick(100, 1, 1);
        let one = |cell: &&Cell| {
            let number = |axis: &str| cell.text(axis).parse::<f64>().unwrap_or(0.0);
            let (share, delay) = (number("share") / 100.0, number("delay") * 1000.0);
            let name = cell.text("program");
            let known = PROGRAMS.iter().find(|(known, ..)| *known == name);
            let unknown = || FigureError::Failed(format!("no program is called '{name}'").into());
            let (_, program, span, _) = *known.ok_or_else(unknown)?;
            let (delay, seed) = (delay as u64, u64::from(cell.repetition));
            let written = Run { program, span, share, delay, part, seed }.physical()?;
            let logical = WRITES / part;
            let fields: [(&str, Value); 3] = [
                ("logical", logical.into()),
                ("physical", written.into()),
                ("of_logical", (written as f64 / logical as f64).into()),
            ];
            Ok(vec![fields.map(|(name, value)| (name.to_string(), value)).to_vec()])
        };
        cells.iter().map(one).collect()
    }

    fn section(&self, rows: &Table) -> Section {
        draw(rows)
    }
}

const AXES: [&str; 3] = ["program", "share", "delay"];

fn draw(rows: &Table) -> Section {
    let grid = Grid::of(rows, &AXES, "of_logical");
    let mut table = Table::new(["program", "synced at once, %"].into_iter().chain(DELAYS));
    let mut lines = Vec::new();
    for (program, _, _, shares) in PROGRAMS {
        for share in shares {
            let mut row: Vec<Value> = vec![program.into(), (*share).into()];
            let mut line = Line { label: format!("{program}, {share} %"), ..Line::default() };
            for delay in DELAYS {
                let value = grid.interval(&[program, share, delay]);
                row.push(value.map(|value| value.mean).into());
                let Some((x, y)) = delay.parse().ok().zip(value) else { continue };
                line.points.push((x, y.mean));
                line.band.push((y.low, y.high));
            }
            table.rows.push(row);
            lines.push(line);
        }
    }
    let plot = LinePlot {
        title: "Physical writes, of two million".to_string(),
        x: "deferral, thousand writes".to_string(),
        y: "physical writes over logical ones".to_string(),
        lines,
        ..LinePlot::default()
    };
    let note = "Physical over logical writes, by the deferral in thousands of writes. A million \
                pages of 4 KiB, a file cache of 200 MB. How long the file is in units of the \
                distribution he does not say: 40, the generator's default. The values between 10K \
                and 200K are ours. \"each\" is his program by its text: each deferred write has a \
                dsync of its own. \"listed\" is ours: a page that waits for its dsync is not listed \
                again, as in the sync list of 4.3.2; \"listed, 80\" has a file of 80 units.";
    Section {
        note: note.to_string(),
        table,
        plots: vec![plot.into()],
        claims: claims(&grid),
        ..Section::default()
    }
}

/// Two shares and delays of a program whose values are divided, one by the other.
type Pair<'a> = ([&'a str; 2], [&'a str; 2]);

fn ratios(grid: &Grid, pairs: impl IntoIterator<Item = Pair<'static>>) -> Named {
    let of = |(of, over): Pair<'static>| {
        let name = format!("{} % after {}K over {} % after {}K", of[0], of[1], over[0], over[1]);
        (name, grid.ratio(&["each", of[0], of[1]], &["each", over[0], over[1]]))
    };
    pairs.into_iter().map(of).collect()
}

fn claims(grid: &Grid) -> Vec<Claim> {
    let at = |program: &str, share: &str, delay: &str| {
        (format!("{share} % after {delay}K"), grid.interval(&[program, share, delay]))
    };
    let all = SHARES.iter().flat_map(|share| DELAYS.map(|delay| at("each", share, delay)));
    let more = DELAYS.iter().flat_map(|delay| {
        SHARES.windows(2).map(move |pair| ([pair[0], *delay], [pair[1], *delay]))
    });
    let longer = SHARES.iter().flat_map(|share| {
        DELAYS.windows(2).map(move |pair| ([*share, pair[1]], [*share, pair[0]]))
    });
    fn place<'a>(share: &'a str, delay: &'a str) -> Vec<&'a str> {
        vec!["each", share, delay]
    }
    let pairs = [(place("10", "200"), place("10", "5")), (place("90", "5"), place("90", "200"))];
    // Root of one reduction over the other: below 1 if the first one is smaller.
    let reductions = ("root of one over the other".to_string(), grid.ratio_over(&pairs));
    let third = |says: &str, program: &str| {
        claim_named(says, &vec![at(program, "10", "200")], below(1.0 / 3.0))
    };
    vec![
        claim_named("4.5: deferring saves physical writes, everywhere", &all.collect(), below(1.0)),
        claim_named(
            "4.5: the more writes are deferred, the fewer are done",
            &ratios(grid, more),
            below(1.0),
        ),
        claim_named(
            "4.5: the longer they are deferred, the fewer are done",
            &ratios(grid, longer),
            below(1.0),
        ),
        claim_named(
            "4.5: from 5K to 200K more so with 10 % than with 90 % synced at once",
            &vec![reductions],
            below(1.0),
        ),
        third("4.5: with 10 % and 200K less than a third are done", "each"),
        claim_named(
            "4.5: with 90 % it is of no account (here: at least 90 % are done)",
            &vec![at("each", "90", "200")],
            above(0.9),
        ),
        third("4.5, with a sync list: with 10 % and 200K less than a third are done", "listed"),
        third("4.5, with a sync list and a file of 80 units: the same", "listed, 80"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(value: impl Fn(f64, f64) -> f64) -> Table {
        let figure = Writes { scale: Scale::Standard };
        let mut table = Table::new(["program", "share", "delay", "repetition", "of_logical"]);
        for (cell, repetition) in
            (1..=3).flat_map(|r| figure.cells(r).into_iter().map(move |c| (c, r)))
        {
            let [share, delay] = ["share", "delay"].map(|axis| cell.text(axis).parse().unwrap());
            let off = 1.0 + f64::from(repetition * 2 % 3) * 1e-8 * (1.0 + share + delay);
            let mut row: Vec<Value> = AXES.map(|axis| cell.text(axis).into()).to_vec();
            row.extend([repetition.into(), (value(share, delay) * off).into()]);
            table.rows.push(row);
        }
        table
    }

    fn verdicts(value: impl Fn(f64, f64) -> f64) -> Vec<&'static str> {
        draw(&rows(value)).claims.iter().map(Claim::verdict).collect()
    }

    #[test]
    fn each_sentence_is_decided_on_both_sides() {
        // The share that is synced at once, and a part of the rest that falls with the delay.
        let his = |share: f64, delay: f64| {
            share / 100.0 + (1.0 - share / 100.0) * (0.2 + 3.0 / (delay + 5.0))
        };
        assert_eq!(verdicts(his), ["yes"; 8]);
        let never = |share: f64, delay: f64| 1.2 - share / 150.0 + delay * (100.0 - share) / 1e5;
        assert_eq!(verdicts(never), ["no"; 8]);
        let section = draw(&rows(his));
        assert_eq!((section.table.rows.len(), section.plots.len()), (5, 1));
        assert!(draw(&Table::new(["x"])).claims.iter().all(|claim| claim.holds.is_none()));
    }

    #[test]
    fn each_write_is_done_where_all_are_synced_at_once_and_few_where_none_is() {
        let of = |program, share| {
            let run = Run { program, span: 40, share, delay: 200_000, part: 100, seed: 1 };
            run.physical().unwrap()
        };
        assert_eq!([of(Program::Each, 1.0), of(Program::Listed, 1.0)], [20_000; 2]);
        let [each, listed] = [of(Program::Each, 0.0), of(Program::Listed, 0.0)];
        assert!((8_000..12_000).contains(&each) && listed < each * 4 / 5, "{each} {listed}");
        assert_eq!(listed, of(Program::Listed, 0.0), "the same each time");
    }
}
