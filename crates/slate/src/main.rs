//! SlateDB over a directory that is far away, with and without caches: `--help`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use millpond_slate::intervals::mean;
use millpond_slate::remote::Distance;
use millpond_slate::roster::{Entrant, entrants};
use millpond_slate::workload::{Outcome, Workload, run};

const USAGE: &str = "\
usage: millpond-slate [--seeds FROM-TO] [--operations N] [--rows N] [--cache BYTES] [--memory BYTES]
                      [--latency MS] [--part BYTES] [--csv FILE] [NAME]…

Runs SlateDB with each cache whose name has one of the words, seed by seed, and writes a row for
each run into FILE (slate.csv) at once; rows that are there already are not run again. The table
has means over seeds with 95 % intervals, and ratios to SlateDB's own cache, pair by pair.
";

struct Arguments {
    workload: Workload,
    seeds: (u64, u64),
    part: u32,
    csv: PathBuf,
    words: Vec<String>,
}

fn arguments() -> Result<Option<Arguments>> {
    let distance = Distance { latency: Duration::from_millis(20), bandwidth: 100e6 };
    let mut found = Arguments {
        workload: Workload {
            rows: 60_000,
            operations: 40_000,
            tasks: 32,
            cache: 8 << 20,
            memory: 1 << 20,
            skew: 0.9,
            distance,
            seed: 0,
        },
        seeds: (1, 5),
        part: 16 << 10,
        csv: "slate.csv".into(),
        words: Vec::new(),
    };
    let mut all = std::env::args().skip(1);
    while let Some(name) = all.next() {
        let mut number = || -> Result<u64> {
            let text = all.next().with_context(|| format!("{name} needs a value"))?;
            text.parse().with_context(|| format!("{name} {text} is no number"))
        };
        match name.as_str() {
            "--help" | "-h" => return Ok(None),
            "--operations" => found.workload.operations = number()?,
            "--rows" => found.workload.rows = number()?,
            "--cache" => found.workload.cache = number()?,
            "--memory" => found.workload.memory = number()?,
            "--latency" => found.workload.distance.latency = Duration::from_millis(number()?),
            "--part" => found.part = u32::try_from(number()?)?,
            "--seeds" => {
                let text = all.next().context("--seeds needs FROM-TO")?;
                let (from, to) = text.split_once('-').context("--seeds needs FROM-TO")?;
                found.seeds = (from.parse()?, to.parse()?);
            }
            "--csv" => found.csv = all.next().context("--csv needs a file")?.into(),
            option if option.starts_with('-') => bail!("there is no {option}\n\n{USAGE}"),
            _ => found.words.push(name),
        }
    }
    Ok(Some(found))
}

const HEADER: &str = "cache,seed,hit_ratio,table_bytes,table_gets,compaction_bytes,\
                      compaction_gets,all_bytes,all_gets,seconds\n";
/// Columns of numbers, as in the file, behind the seed.
const COLUMNS: usize = 8;

fn row(name: &str, seed: u64, found: &Outcome) -> String {
    let ratio = found.hit_ratio.map_or(String::new(), |ratio| format!("{ratio:.5}"));
    format!(
        "{name},{seed},{ratio},{},{},{},{},{},{},{:.2}\n",
        found.table.bytes,
        found.table.gets,
        found.compaction.bytes,
        found.compaction.gets,
        found.bytes(),
        found.gets(),
        found.seconds
    )
}

/// Of each cache the runs by seed.
type Runs = BTreeMap<String, BTreeMap<u64, Vec<f64>>>;

fn runs(csv: &str) -> Runs {
    let mut all = Runs::new();
    for line in csv.lines().skip(1) {
        let mut fields = line.split(',');
        let (Some(name), Some(seed)) = (fields.next(), fields.next()) else { continue };
        let Ok(seed) = seed.parse() else { continue };
        let values = fields.map(|field| field.parse().unwrap_or(f64::NAN)).collect();
        all.entry(name.to_string()).or_default().insert(seed, values);
    }
    all
}

/// A table in Markdown: bytes in MB, requests in thousands. What is asked for by the clock,
/// manifests above all, is in the file only.
fn table(all: &Runs, names: &[Entrant], base: &str) -> String {
    let mut text = format!(
        "| cache | runs | hit ratio | table requests, 1000 | to `{base}` | table MB | to `{base}` \
         | compaction MB |\n|---|---|---|---|---|---|---|---|\n"
    );
    for name in names.iter().map(|entrant| entrant.name.as_str()) {
        let Some(runs) = all.get(name) else { continue };
        let show = |values: Vec<f64>| match values.is_empty() {
            true => "–".to_string(),
            false => mean(&values).to_string(),
        };
        let of = |column: usize, unit: f64| {
            let values = runs.values().filter_map(|values| values.get(column));
            show(values.filter(|value| !value.is_nan()).map(|value| value / unit).collect())
        };
        let to_base = |column: usize| {
            let pair = |(seed, base): (&u64, &Vec<f64>)| {
                Some(runs.get(seed)?.get(column)? / base.get(column)?)
            };
            show(all.get(base).into_iter().flatten().filter_map(pair).collect())
        };
        let _ = writeln!(
            text,
            "| `{name}` | {} | {} | {} | {} | {} | {} | {} |",
            runs.len(),
            of(0, 1.0),
            of(2, 1e3),
            to_base(2),
            of(1, 1e6),
            to_base(1),
            of(3, 1e6),
        );
    }
    text
}

fn main() -> Result<()> {
    let Some(arguments) = arguments()? else {
        println!("{USAGE}");
        return Ok(());
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let entrants = entrants(arguments.part, &arguments.words);
    let mut csv = std::fs::read_to_string(&arguments.csv).unwrap_or_else(|_| HEADER.to_string());
    for seed in arguments.seeds.0..=arguments.seeds.1 {
        for entrant in &entrants {
            let is_there = |runs: &Runs| runs.get(&entrant.name)?.get(&seed).map(Vec::len);
            if is_there(&runs(&csv)) == Some(COLUMNS) {
                continue;
            }
            let workload = Workload { seed, ..arguments.workload };
            let found = runtime.block_on(run(&entrant.cache, &workload));
            let found = found.with_context(|| format!("{}, seed {seed}", entrant.name))?;
            let row = row(&entrant.name, seed, &found);
            eprint!("{row}");
            csv.push_str(&row);
            std::fs::write(&arguments.csv, &csv)?;
        }
    }
    let base = format!("slatedb {}K +flush +compaction", arguments.part >> 10);
    println!("{}", table(&runs(&csv), &entrants, &base));
    Ok(())
}
