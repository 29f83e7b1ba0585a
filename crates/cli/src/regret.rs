//! `millpond regret`: the cost of each policy above the best one of each trace and pool
//! size.

use std::collections::BTreeMap;
use std::path::PathBuf;

use millpond::internals::store::options::POLICY_DEFAULT;
use millpond_base::Size;
use millpond_lab::interval::Interval;
use millpond_lab::method::{Bootstrap, CellCost, Half, Regret, Regrets, halves};
use millpond_lab::registry::Registry;
use millpond_lab::report::{Bar, BarPlot};
use millpond_lab::sim::Stalled;
use millpond_lab::sweep::{CONTENT, Observer, Plan, Row, Sweep, SweepError, Warmup};
use millpond_lab::table::{Table, Value};
use millpond_policies::config::Spec;
use millpond_policies::info::Tier;
use serde_json::{Value as Json, json};

use crate::bench::ResultArgs;
use crate::error::Failure;
use crate::interrupt;
use crate::progress::Progress;
use crate::reading::{Reading, check_traces, trace_input};
use crate::sim::ModelArg;

const EXAMPLES: &str = "Examples:
  millpond regret traces/*.parquet           every policy, at five sizes
  millpond regret *.parquet --policy all,'s3-fifo(dirty_rounds=3)' \\
      --plot regret.html
  millpond regret *.parquet --policy watt,s3-fifo,opt --write-weight 4 --json
  millpond regret *.parquet --only tuning    to choose parameters by
  millpond regret *.parquet --only held-out  to judge the choice by
  millpond regret a.parquet b.parquet --held-out none --cells --csv
  millpond regret *.parquet --model rw --write-weight 1 \\
      --policy tide-io,tq-io,lru-io,arc-io

The regret of a policy for a trace and a size is its cost over the least cost that any policy of \
the run has there, less one; cost is page reads plus page writes times --write-weight. Quantiles \
are over traces and sizes, their 95 % intervals over samples of the traces. Of the traces, \
sorted by the last part of their paths, the first, third, … are for tuning, the others are held \
out. Policies that need the future are bounds: nobody regrets what they save.";

/// Number of policies that are plotted, the best ones of each half.
const BARS_MAX: usize = 20;

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Trace files
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Policies, separated by commas; all: every first-tier policy that needs no future
    #[arg(long, short, default_value = "all", value_name = "POLICIES")]
    policy: Vec<String>,
    /// Pool sizes, separated by commas: frames, bytes (64MiB) or % of the distinct pages
    #[arg(long, short, value_delimiter = ',', default_value = "2%,5%,10%,20%,40%")]
    #[arg(value_name = "SIZES")]
    size: Vec<Size>,
    /// Cost of a page write, in page reads
    #[arg(long, default_value_t = 2.0, value_name = "W", value_parser = weight)]
    write_weight: f64,
    /// The cache: a buffer pool, or a second tier, where reads and writes of storage count
    #[arg(long, value_enum, default_value = "pool")]
    model: ModelArg,
    /// Rule for holding traces out: alternate ones, or none
    #[arg(long, value_enum, default_value = "alternate", value_name = "RULE")]
    held_out: Rule,
    /// Run only one of the halves
    #[arg(long, value_enum, value_name = "HALF")]
    only: Option<Only>,
    /// The policy with which 90th percentiles are compared, if it is among the policies
    #[arg(long, default_value = POLICY_DEFAULT, value_name = "POLICY")]
    against: String,
    /// Print rows for each trace, size and policy instead of quantiles
    #[arg(long)]
    cells: bool,
    /// Seeds of random choices, separated by commas: costs are means over them
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "SEEDS")]
    seed: Vec<u64>,
    /// References that are not counted: a number, or % of the trace
    #[arg(long, default_value = "0", value_name = "N|%")]
    warmup: String,
    /// Samples of the traces, from which intervals come
    #[arg(long, default_value_t = 2000, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=100_000))]
    draws: u32,
    /// Threads; 0 is one per core
    #[arg(long, default_value_t = 0)]
    threads: usize,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    results: ResultArgs,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Rule {
    /// Every second trace, sorted by the last part of its path, is held out
    Alternate,
    /// No trace is held out
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Only {
    /// Traces for choosing parameters
    Tuning,
    /// Held-out traces
    HeldOut,
}

impl Only {
    fn half(self) -> Half {
        match self {
            Only::Tuning => Half::Tuning,
            Only::HeldOut => Half::HeldOut,
        }
    }
}

fn weight(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(weight) if (0.0..=1e6).contains(&weight) => Ok(weight),
        _ => Err("a write costs 0 to 1000000 reads".to_string()),
    }
}

/// Returns the name of a trace's use: its half, or everything if no trace is held out.
fn name_of(half: Option<Half>) -> &'static str {
    half.map_or("all", Half::name)
}

fn specs(args: &Args, registry: &Registry) -> Result<Vec<Spec>, Failure> {
    let mut specs: Vec<Spec> = Vec::new();
    for spec in args.policy.iter().map(|list| Spec::parse_list(list)) {
        for spec in spec? {
            let all = registry.entries().iter().filter(|entry| {
                let is_candidate = entry.info.tier == Tier::First && !entry.needs_future;
                spec.id == "all" && spec.params.is_empty() && is_candidate
            });
            let all = all.map(|entry| Spec::parse(entry.info.id)).collect::<Result<Vec<_>, _>>()?;
            let given = if all.is_empty() { vec![spec] } else { all };
            given.into_iter().for_each(|s| {
                if !specs.contains(&s) {
                    specs.push(s);
                }
            });
        }
    }
    Ok(specs)
}

fn plan_of(args: &Args, registry: &Registry) -> Result<(Plan, Vec<Option<Half>>), Failure> {
    let mut plan = Plan::new(specs(args, registry)?, args.size.clone());
    let options = args.reading.options()?;
    let (mut uses, mut chosen) = (Vec::new(), Vec::new());
    let names: Vec<String> = args.traces.iter().map(|t| t.display().to_string()).collect();
    for (at, name) in names.iter().enumerate() {
        if name == "-" {
            let text = "standard input has no name to split by: name files";
            return Err(Failure::Usage(text.to_string()));
        }
        if names[..at].contains(name) {
            return Err(Failure::Usage(format!("{name} is given twice: it would count twice")));
        }
    }
    for (path, half) in args.traces.iter().zip(halves(&names)) {
        let half = (args.held_out == Rule::Alternate).then_some(half);
        if args.only.is_none_or(|only| half == Some(only.half())) {
            chosen.push(path);
            plan.traces.push(trace_input(path, &options));
            uses.push(half);
        }
    }
    check_traces(chosen, &options)?;
    if plan.traces.is_empty() {
        return Err(Failure::Usage(
            "no trace is in that half: give two or more, and leave --held-out none away"
                .to_string(),
        ));
    }
    plan.seeds.clone_from(&args.seed);
    plan.page_size = args.reading.page_bytes()?;
    plan.model = args.model.model();
    plan.warmup = args.warmup.parse::<Warmup>().map_err(Failure::Usage)?;
    plan.threads = args.threads;
    Ok((plan, uses))
}

/// Collects rows as they arrive.
struct Collector {
    progress: Progress,
    rows: Vec<Row>,
    stalled: usize,
}

impl Observer for Collector {
    fn stop(&self) -> bool {
        interrupt::asked()
    }

    fn progress(&mut self, what: &str, share: Option<f64>, simulated: u64) {
        self.progress.show(what, share, simulated, "references");
    }

    fn row(&mut self, row: Row) -> Result<(), SweepError> {
        self.rows.push(row);
        Ok(())
    }

    fn stalled(&mut self, stalled: &Stalled) {
        self.progress.say(&format!("millpond: {stalled}"));
        self.stalled += 1;
    }

    fn note(&mut self, trace: &str, note: &str) {
        self.progress.say(&format!("{trace}: {note}"));
    }
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    args.results.check()?;
    let (plan, uses) = plan_of(args, registry)?;
    let sweep = Sweep::new(&plan, registry)?;
    let mut collector =
        Collector { progress: Progress::new(args.quiet), rows: Vec::new(), stalled: 0 };
    let outcome = sweep.run(&mut collector);
    collector.progress.finish();
    outcome?;
    if interrupt::asked() {
        return Err(Failure::Interrupted);
    }
    if collector.stalled > 0 {
        let text = format!(
            "{} runs found no victim, so that their policies have no quantile: leave them out",
            collector.stalled
        );
        return Err(Failure::Partly(text));
    }
    once_each(&collector.rows)?;
    let used =
        |row: &Row| plan.traces.iter().position(|t| t.name == row.trace).and_then(|t| uses[t]);
    let bootstrap = Bootstrap { draws: args.draws as usize, ..Bootstrap::default() };
    let mut parts = Vec::new();
    for half in [None, Some(Half::Tuning), Some(Half::HeldOut)] {
        let rows: Vec<&Row> = collector.rows.iter().filter(|row| used(row) == half).collect();
        if rows.is_empty() {
            continue;
        }
        let costs: Result<Vec<CellCost>, Failure> =
            rows.iter().map(|row| cost(row, args.write_weight, registry)).collect();
        let regrets = Regrets::of(&costs?)?;
        let beside = regrets.policies().position(|policy| policy == args.against);
        let summary = regrets.summary(bootstrap, beside);
        parts.push(Part { half, rows, regrets, summary });
    }
    write(args, &plan, &uses, &parts)
}

/// Refuses a trace under two names: its cells would count twice.
fn once_each(rows: &[Row]) -> Result<(), Failure> {
    let mut traces: BTreeMap<String, &str> = BTreeMap::new();
    for row in rows {
        let content = row.extra.iter().find(|(name, _)| *name == CONTENT);
        let content = content.map_or_else(String::new, |(_, value)| value.to_string());
        let first = *traces.entry(content).or_insert(&row.trace);
        if first != row.trace {
            return Err(Failure::Usage(format!(
                "{} holds the same references as {first}: it would count twice",
                row.trace
            )));
        }
    }
    Ok(())
}

fn label(row: &Row) -> String {
    match row.params.as_str() {
        "" => row.policy.clone(),
        params => format!("{}({params})", row.policy),
    }
}

fn cost(row: &Row, write_weight: f64, registry: &Registry) -> Result<CellCost, Failure> {
    Ok(CellCost {
        trace: row.trace.clone(),
        size: row.size.to_string(),
        policy: label(row),
        cost: row.misses as f64 + write_weight * row.writes as f64,
        is_candidate: !registry.find(&row.policy)?.needs_future,
    })
}

/// Traces of one use, judged together.
struct Part<'a> {
    half: Option<Half>,
    rows: Vec<&'a Row>,
    regrets: Regrets,
    summary: Vec<Regret>,
}

fn write(
    args: &Args,
    plan: &Plan,
    uses: &[Option<Half>],
    parts: &[Part<'_>],
) -> Result<(), Failure> {
    let table = match args.cells {
        true => cells(parts, args.write_weight),
        false => summaries(parts),
    };
    let of_half = |half: Option<Half>| -> Vec<&str> {
        let both = plan.traces.iter().zip(uses);
        both.filter(|(_, of)| **of == half).map(|(t, _)| t.name.as_str()).collect()
    };
    let params: Json = json!({
        "tuning": of_half(Some(Half::Tuning)),
        "held_out": of_half(Some(Half::HeldOut)),
        "all": of_half(None),
        "policies": plan.policies.iter().map(Spec::to_string).collect::<Vec<_>>(),
        "sizes": plan.sizes.iter().map(Size::to_string).collect::<Vec<_>>(),
        "model": plan.model.to_string(),
        "write_weight": args.write_weight,
        "against": args.against,
        "seeds": plan.seeds,
        "warmup": args.warmup,
        "draws": args.draws,
    });
    args.results.draw(|| plot(parts, args.write_weight).render())?;
    let text: Vec<(String, Table)> =
        parts.iter().map(|part| said(part, args.cells, &table)).collect();
    args.results.write_parts("regret", &params, &table, &text)
}

/// Returns a part for people: a line, and its rows of the table.
fn said(part: &Part<'_>, cells: bool, table: &Table) -> (String, Table) {
    let name = name_of(part.half);
    let mut own = table.clone();
    own.rows.retain(|row| row[0] == Value::from(name));
    own.columns.remove(0);
    own.rows.iter_mut().for_each(|row| drop(row.remove(0)));
    let line = format!(
        "{name}: {} traces, {} cells of a trace and a size; regret in %{}",
        part.regrets.traces(),
        part.regrets.cells().len(),
        if part.regrets.traces() > 1 { "" } else { "; one trace has no intervals" }
    );
    (line, if cells { own } else { own.without_idle_columns(2) })
}

fn summaries(parts: &[Part<'_>]) -> Table {
    let mut table = Table::new([
        "half",
        "policy",
        "p90",
        "p90_low",
        "p90_high",
        "median",
        "median_low",
        "median_high",
        "worst",
        "worst_trace",
        "worst_size",
        "wins",
        "p90_less",
        "p90_less_low",
        "p90_less_high",
        "role",
    ]);
    for part in parts {
        for regret in &part.summary {
            let mut row: Vec<Value> =
                vec![name_of(part.half).into(), regret.policy.as_str().into()];
            row.extend(in_percent(Some(regret.p90)));
            row.extend(in_percent(Some(regret.median)));
            row.push(percent(regret.worst).into());
            row.push(regret.worst_at.0.as_str().into());
            row.push(regret.worst_at.1.as_str().into());
            row.push((regret.wins as u64).into());
            row.extend(in_percent(regret.beside));
            row.push(if regret.is_candidate { "candidate" } else { "bound" }.into());
            table.rows.push(row);
        }
    }
    table
}

/// Formats a regret to hundredths of a per cent; more digits of a simulated trace mean
/// nothing.
fn percent(regret: f64) -> f64 {
    (regret * 1e4).round() / 100.0
}

fn in_percent(interval: Option<Interval>) -> [Value; 3] {
    match interval {
        None => [Value::Empty, Value::Empty, Value::Empty],
        Some(single) if single.runs == 1 => {
            [percent(single.mean).into(), Value::Empty, Value::Empty]
        }
        Some(Interval { mean, low, high, .. }) => [mean, low, high].map(|x| percent(x).into()),
    }
}

fn cells(parts: &[Part<'_>], write_weight: f64) -> Table {
    let mut table = Table::new([
        "half", "trace", "size", "policy", "seed", "reads", "writes", "cost", "regret", "best",
    ]);
    for part in parts {
        for row in &part.rows {
            let size = row.size.to_string();
            let at = part.regrets.cells().iter().position(|c| c.0 == row.trace && c.1 == size);
            let policy = part.regrets.policies().position(|policy| policy == label(row));
            let found = at.zip(policy);
            table.rows.push(vec![
                name_of(part.half).into(),
                row.trace.as_str().into(),
                row.size.into(),
                label(row).into(),
                row.seed.into(),
                row.misses.into(),
                row.writes.into(),
                (row.misses as f64 + write_weight * row.writes as f64).into(),
                found.map(|(at, policy)| percent(part.regrets.of_policy(policy)[at])).into(),
                found.map_or(Value::Empty, |(at, _)| part.regrets.best(at).into()),
            ]);
        }
    }
    table
}

fn plot(parts: &[Part<'_>], write_weight: f64) -> BarPlot {
    let bars = parts.iter().flat_map(|part| {
        part.summary.iter().filter(|r| r.is_candidate).take(BARS_MAX).map(|regret| Bar {
            group: regret.policy.clone(),
            series: name_of(part.half).to_string(),
            value: regret.p90.times(100.0),
        })
    });
    BarPlot {
        title: "Regret at the 90th percentile".to_string(),
        note: format!(
            "Cost over the least cost of any policy in nine of ten cells of a trace and a pool size; \
             a page write costs {write_weight} page reads. Lines are 95 % intervals over samples of \
             the traces, where there are several. At most {BARS_MAX} policies of each half."
        ),
        y: "regret in %".to_string(),
        bars: bars.collect(),
    }
}
