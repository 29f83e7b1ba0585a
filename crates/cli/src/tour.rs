//! `millpond tour`: the main job once, end to end, on traces that ship with the program.

use std::io::Cursor;
use std::path::PathBuf;
use std::time::Instant;

use millpond_base::{Seed, Size};
use millpond_lab::registry::Registry;
use millpond_lab::report::{ReportData, ReportOptions, render};
use millpond_lab::results::{ResultDir, RunInfo};
use millpond_lab::sim::Stalled;
use millpond_lab::sweep::{Observer, Plan, Row, Sweep, SweepError, TraceInput, rows_to_table};
use millpond_lab::table::{Table, Value};
use millpond_policies::config::Spec;
use millpond_workload::formats::{ReadOptions, open_reader};
use millpond_workload::generate::generate;
use millpond_workload::trace::{Source, TraceError};
use serde_json::json;

use crate::error::Failure;
use crate::interrupt;
use crate::output::{complain, print, write_whole};
use crate::progress::Progress;

const EXAMPLES: &str = "Examples:
  millpond tour                  results/tour-… and a report, in under a minute
  millpond tour --results /tmp   elsewhere";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where the result directory and the report go
    #[arg(long, default_value = "results", value_name = "DIR")]
    results: PathBuf,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// One hour of an OLTP system (released on condition that the ARC paper, Megiddo and Modha,
/// FAST'03, is cited), and page requests to web sites (CC BY 4.0, headissue GmbH, Jens Wilke).
const RECORDED: [(&str, &[u8]); 2] = [
    ("arc_OLTP", include_bytes!("../../../traces/arc_OLTP.txt.gz")),
    ("cache2k_web12", include_bytes!("../../../traces/cache2k_web12.txt.gz")),
];

const POLICIES: &str = "lru,clock,2q,arc,lirs,s3-fifo,w-tinylfu,watt,opt";
const SIZES: [&str; 6] = ["0.5%", "1%", "2%", "5%", "10%", "20%"];
const WRITE_POLICIES: &str = "lru,clock,arc,hyperbolic,lru-wsr,cflru(window=10%),\
    cflru(window=30%),cflru(window=50%),watt(write_weight=0),watt(write_weight=1),\
    watt,watt(write_weight=16),opt";
const WRITE_SIZES: [&str; 3] = ["5%", "10%", "20%"];

fn recorded() -> Vec<TraceInput> {
    let input = |(name, bytes): (&'static str, &'static [u8])| TraceInput {
        name: name.to_string(),
        open: Box::new(move || {
            open_reader(
                format!("{name}.txt.gz"),
                Box::new(Cursor::new(bytes)),
                &ReadOptions::default(),
            )
        }),
        repeatable: true,
        fingerprint: bytes.len().to_string(),
    };
    RECORDED.into_iter().map(input).collect()
}

fn synthetic() -> TraceInput {
    let open = || -> Result<Box<dyn Source>, TraceError> { generate("dynzipf-rw", &[], Seed(1)) };
    TraceInput {
        name: "dynzipf-rw (synthetic)".to_string(),
        open: Box::new(open),
        repeatable: true,
        fingerprint: "seed 1".to_string(),
    }
}

fn plan(traces: Vec<TraceInput>, policies: &str, sizes: &[&str]) -> Result<Plan, Failure> {
    let mut parsed = Vec::new();
    for size in sizes {
        parsed.push(size.parse::<Size>().map_err(|e| Failure::Usage(e.to_string()))?);
    }
    let mut plan = Plan::new(Spec::parse_list(policies)?, parsed);
    plan.traces = traces;
    Ok(plan)
}

struct Rows<'a> {
    progress: &'a Progress,
    rows: Vec<Row>,
    simulated: u64,
}

impl Observer for Rows<'_> {
    fn stop(&self) -> bool {
        interrupt::asked()
    }

    fn progress(&mut self, what: &str, share: Option<f64>, simulated: u64) {
        self.simulated = simulated;
        self.progress.show(what, share, simulated, "references");
    }

    fn row(&mut self, row: Row) -> Result<(), SweepError> {
        self.rows.push(row);
        Ok(())
    }

    fn stalled(&mut self, stalled: &Stalled) {
        self.progress.say(&format!("millpond: {stalled}"));
    }
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let start = Instant::now();
    print(
        "A tour of Millpond: which page should go?\n\n\
         1. Nine policies on two recorded traces, six cache sizes each.\n\
         2. Reads against writes on a synthetic trace with 17 % writes.\n\
         3. A report of both.\n\n",
    )?;
    let progress = Progress::new(args.quiet);
    let mut collector = Rows { progress: &progress, rows: Vec::new(), simulated: 0 };
    let plans = [
        plan(recorded(), POLICIES, &SIZES)?,
        plan(vec![synthetic()], WRITE_POLICIES, &WRITE_SIZES)?,
    ];
    for plan in &plans {
        Sweep::new(plan, registry)?.run(&mut collector)?;
    }
    progress.finish();
    if interrupt::asked() {
        return Err(Failure::Interrupted);
    }
    let table = rows_to_table(&collector.rows);
    let dir = ResultDir::create(&args.results, "tour", &plans[0].hash())?;
    let info = RunInfo {
        command: "tour".to_string(),
        command_line: "millpond tour".to_string(),
        params: json!({"seeds": [1]}),
    };
    dir.write(&info, &table, true)?;
    let report = write_report(&dir)?;
    print(&summary(&table))?;
    complain(&format!("{:.1} s. Rows: {}", start.elapsed().as_secs_f64(), dir.path().display()));
    print(&format!("\nThe report is in {}: open it in a browser.\n", report.display()))
}

fn write_report(dir: &ResultDir) -> Result<PathBuf, Failure> {
    let data = ReportData::read(&[dir.path().to_path_buf()])?;
    let options = ReportOptions {
        title: "A tour of Millpond".to_string(),
        relative_to: Some("watt".to_string()),
        note: Some(
            "arc_OLTP: one hour of a CODASYL database, 914,145 page references (Megiddo and \
             Modha, ARC, FAST'03). cache2k_web12: 95,607 requests to a web site (CC BY 4.0, \
             headissue GmbH, Jens Wilke). dynzipf-rw: synthetic, 1.2 million references, 16.7 % \
             writes, after WATT's table 2."
                .to_string(),
        ),
    };
    let path = dir.path().join("report.html");
    let page = render(&data, &options);
    write_whole(&path, |out| Ok(out.write_all(page.as_bytes())?))?;
    std::path::absolute(&path).or(Ok(path))
}

/// Hit ratios in per cent: policies down, sizes across, and the write counts of the last part.
fn summary(table: &Table) -> String {
    let mut text = String::new();
    for (name, _) in RECORDED {
        text.push_str(&format!("{name}: hit ratio in % by cache size (frames)\n"));
        text.push_str(&pivot(table, name, "hit_ratio", |x| format!("{:.2}", x * 100.0)));
        text.push('\n');
    }
    text.push_str("dynzipf-rw (synthetic): page reads + page writes by cache size (frames)\n");
    let both = add_reads_and_writes(table);
    text.push_str(&pivot(&both, "dynzipf-rw (synthetic)", "io", |x| format!("{x:.0}")));
    text
}

fn add_reads_and_writes(table: &Table) -> Table {
    let mut both = table.clone();
    both.columns.push("io".to_string());
    for row in 0..table.rows.len() {
        let number = |name| table.get(row, name).and_then(Value::number).unwrap_or(0.0);
        both.rows[row].push((number("misses") + number("writes")).into());
    }
    both
}

fn pivot(table: &Table, trace: &str, column: &str, shown: impl Fn(f64) -> String) -> String {
    let mut sizes: Vec<String> = Vec::new();
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for row in 0..table.rows.len() {
        let text = |name| table.get(row, name).map(ToString::to_string).unwrap_or_default();
        if text("trace") != trace {
            continue;
        }
        let label = match text("params") {
            params if params.is_empty() => text("policy"),
            params => format!("{}({params})", text("policy")),
        };
        let value = table.get(row, column).and_then(Value::number).map(&shown).unwrap_or_default();
        if !sizes.contains(&text("size")) {
            sizes.push(text("size"));
        }
        match lines.iter_mut().find(|(l, _)| *l == label) {
            Some((_, values)) => values.push(value),
            None => lines.push((label, vec![value])),
        }
    }
    let width = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let mut out = format!("  {:width$}", "");
    sizes.iter().for_each(|size| out.push_str(&format!("{size:>9}")));
    for (label, values) in &lines {
        out.push_str(&format!("\n  {label:width$}"));
        values.iter().for_each(|value| out.push_str(&format!("{value:>9}")));
    }
    out + "\n"
}
