//! `millpond compare`: ranks policies or runs, with the confidence of each verdict.

use std::path::PathBuf;

use clap::ValueEnum;
use millpond_lab::compare::{CompareOptions, Contest, Metric, Outcome, Replicate, Run};
use millpond_lab::method::Weights;
use millpond_lab::report::{ReportData, ReportOptions, render};
use millpond_lab::results::ResultDir;
use millpond_policies::config::Spec;
use serde_json::{Value as Json, json};

use crate::error::Failure;
use crate::output::{Form, Output, complain, write_whole};

const EXAMPLES: &str = "Examples:
  millpond sim traces/*.parquet -p lru,arc,s3-fifo -s 2%,10%,40%
  millpond compare results/sim-0123456789abcdef  all pairs, over the traces
  millpond compare results/sim-* --to lru --metric misses+2*writes \\
      --plot comparison.html
  millpond sim big.parquet -p lru,arc -s 5% --blocks 20
  millpond compare results/sim-* --replicate block  one trace, its blocks
  millpond compare results/before results/after  the same policies in two builds
  millpond compare DIR --replicate size          Luan's way: over sizes
  millpond compare docs/reports/gilbert --where figure=1.29 -p lru,sorting-lru

Pairs are compared over replicates: traces, seeds, repetitions of live runs, blocks of a trace, \
or cache sizes. p is of a two-sided t-test of logarithms, p_holm the same by Holm over all \
pairs; p_alike is that of two one-sided tests for a difference below the margin, by Holm, too. \
A verdict is better or worse where p_holm is at most the level, alike where p_alike is, and open \
otherwise. Below are Luan's marks and scores, over all traces and sizes.";

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Result directories
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    output: Output,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Also write a page with tables and plots to this file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// How rows are compared.
#[derive(clap::Args, Clone, Debug)]
struct How {
    /// Metric: a column, or a sum such as misses+2*writes [default: misses, or throughput]
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Only these policies, separated by commas
    #[arg(long, short, value_name = "POLICIES")]
    policy: Vec<String>,
    /// Only rows with this value in the column: --where figure=1.29
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    only_where: Vec<String>,
    /// Compare all others with this policy, instead of all pairs
    #[arg(long, value_name = "POLICY")]
    to: Option<String>,
    /// Dimension over which tests are made [default: the most informative one of the rows]
    #[arg(long, value_enum, value_name = "WHAT")]
    replicate: Option<ReplicateArg>,
    /// Differences below this share count as none
    #[arg(long, default_value = "1%", value_name = "SHARE")]
    margin: String,
    /// Probability that any verdict is wrong
    #[arg(long, default_value_t = 0.05, value_name = "P")]
    level: f64,
    /// Weights of `>`, `>>` and `=` in Luan's scores: his α, β and γ
    #[arg(long, default_value = "1,2,0", value_name = "A,B,C")]
    weights: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ReplicateArg {
    /// Repetitions of live runs
    Repetition,
    /// Traces
    Trace,
    /// Blocks of a trace (`sim --blocks`)
    Block,
    /// Seeds of draws
    Seed,
    /// Cache sizes, as in Luan's method
    Size,
}

impl From<ReplicateArg> for Replicate {
    fn from(arg: ReplicateArg) -> Replicate {
        match arg {
            ReplicateArg::Repetition => Replicate::Repetition,
            ReplicateArg::Trace => Replicate::Trace,
            ReplicateArg::Block => Replicate::Block,
            ReplicateArg::Seed => Replicate::Seed,
            ReplicateArg::Size => Replicate::Size,
        }
    }
}

impl How {
    fn options(&self) -> Result<CompareOptions, Failure> {
        let usage = Failure::Usage;
        let share = || format!("--margin {} is no share: write 1% or 0.01", self.margin);
        let margin = match self.margin.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
            None => self.margin.parse(),
        };
        let margin =
            margin.ok().filter(|m| (0.0..10.0).contains(m)).ok_or_else(|| usage(share()))?;
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(usage(format!("--level {} is no probability: 0.05 or 0.01", self.level)));
        }
        let weights: Vec<f64> =
            self.weights.split(',').filter_map(|weight| weight.trim().parse().ok()).collect();
        let [clear, very_clear, equal] = weights[..] else {
            let text = format!("--weights {} are not three numbers, as 1,2,0", self.weights);
            return Err(usage(text));
        };
        Ok(CompareOptions {
            replicate: self.replicate.map(Replicate::from),
            to: self.to.as_deref().map(canonical).transpose()?,
            margin,
            level: self.level,
            weights: Weights { clear, very_clear, equal },
        })
    }

    /// Returns the rows that the options select.
    fn rows(&self, mut runs: Vec<Run>) -> Result<Vec<Run>, Failure> {
        for condition in &self.only_where {
            let wrong = || Failure::Usage(format!("--where {condition}: write COLUMN=VALUE"));
            let (column, value) = condition.split_once('=').ok_or_else(wrong)?;
            if runs.iter().all(|run| run.rows.column(column).is_none()) {
                let text = format!("--where {condition}: no row has a column '{column}'");
                return Err(Failure::Usage(text));
            }
            runs.iter_mut().for_each(|run| run.rows = run.rows.only(column, value));
        }
        Ok(runs)
    }

    fn only(&self) -> Result<Vec<String>, Failure> {
        let mut only = Vec::new();
        for list in &self.policy {
            only.extend(Spec::parse_list(list)?.iter().map(Spec::to_string));
        }
        if let Some(to) = self.to.as_deref().map(canonical).transpose()?
            && !only.is_empty()
            && !only.contains(&to)
        {
            only.push(to);
        }
        Ok(only)
    }
}

/// Compares the rows of result directories by `metric`, or by their default metric if it is empty.
pub(crate) fn compared(dirs: &[PathBuf], metric: &str) -> Result<Outcome, Failure> {
    let metric = if metric.is_empty() { None } else { Some(Metric::parse(metric)?) };
    Ok(Outcome::of(Contest::of(&read(dirs)?, metric, &[])?, CompareOptions::default())?)
}

fn read(dirs: &[PathBuf]) -> Result<Vec<Run>, Failure> {
    let run = |path: &PathBuf| {
        let dir = ResultDir::open(path)?;
        if dir.run()?["complete"] == Json::Bool(false) {
            let path = path.display();
            complain(&format!("{path} has the rows of a run that did not end, not all of them"));
        }
        Ok(Run { name: path.display().to_string(), rows: dir.rows()? })
    };
    dirs.iter().map(run).collect()
}

/// Returns a policy as rows write it. Any other text is the name of a run.
fn canonical(text: &str) -> Result<String, Failure> {
    Ok(if text.contains('(') { Spec::parse(text)?.to_string() } else { text.to_string() })
}

fn params(args: &Args, outcome: &Outcome) -> Json {
    let texts = |items: Vec<String>| Json::from(items);
    let luan = outcome.luan.as_ref().map(|luan| {
        let scores = outcome.contest.contestants.iter().zip(&luan.scores);
        let scores = scores.map(|(name, score)| (name.clone(), Json::from(*score)));
        json!({ "settings": luan.settings, "scores": Json::Object(scores.collect()) })
    });
    json!({
        "directories": texts(args.dirs.iter().map(|dir| dir.display().to_string()).collect()),
        "metric": outcome.contest.metric.to_string(),
        "replicate": outcome.replicate.to_string(),
        "effect": if outcome.are_ratios { "ratio" } else { "difference" },
        "margin": outcome.options.margin,
        "level": outcome.options.level,
        "verdict": outcome.sentence(),
        "luan": luan,
    })
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut output = args.output.clone();
    if args.json {
        output.format = Form::Json;
    }
    output.check(&[])?;
    let metric = args.how.metric.as_deref().map(Metric::parse).transpose()?;
    let runs = args.how.rows(read(&args.dirs)?)?;
    let contest = Contest::of(&runs, metric, &args.how.only()?)?;
    let outcome = Outcome::of(contest, args.how.options()?)?;
    match output.format {
        Form::Table => {
            let mut parts = vec![(format!("{}\n", outcome.sentence()), outcome.shown())];
            if let Some((marks, ranking)) = outcome.marks().zip(outcome.ranking()) {
                let settings = outcome.luan.as_ref().map_or(0, |luan| luan.settings);
                let text = format!("Luan's marks, over {settings} settings (traces and sizes):\n");
                parts.push((text, marks));
                parts.push(("Final scores, the best first:\n".to_string(), ranking));
            }
            output.write_parts(&parts)?;
        }
        _ => output.write("compare", &params(args, &outcome), &outcome.table())?,
    }
    match &args.plot {
        Some(plot) => page(args, &outcome, plot),
        None => Ok(()),
    }
}

fn page(args: &Args, outcome: &Outcome, path: &std::path::Path) -> Result<(), Failure> {
    let data = ReportData::read(&args.dirs)?;
    let options = ReportOptions {
        title: format!("{} compared", outcome.contest.contestants.join(", ")),
        sections: outcome.sections(),
        sections_only: true,
        ..ReportOptions::default()
    };
    let page = render(&data, &options);
    write_whole(path, |out| Ok(out.write_all(page.as_bytes())?))?;
    complain(&format!("page: {}", path.display()));
    Ok(())
}
