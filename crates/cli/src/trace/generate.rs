//! `millpond trace gen`.

use std::path::PathBuf;

use millpond_base::{Seed, Share, Size};
use millpond_lab::registry::Registry;
use millpond_lab::tier1::Tier1Options;
use millpond_policies::config::Spec;
use millpond_workload::formats;
use millpond_workload::generate::{GENERATORS, generate, parse_params};
use millpond_workload::trace::Source;

use super::write_out::write_trace;
use crate::error::Failure;
use crate::output::{complain, print};
use crate::reading::Reading;

const EXAMPLES: &str = "Examples:
  millpond trace gen                             list the generators
  millpond trace gen dynzipf-rw --out t.parquet
  millpond trace gen zipf-ro refs=20M pages=1M theta=0.9 --seed 7 \\
      --out zipf.oracleGeneral
  millpond trace gen tier2 --from pages.parquet --pool 20000 --policy lru \\
      --dirty 50% --lsn-gap 100000 --out storage.parquet
        what a buffer pool would send to storage";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The generator; without one, all generators are listed
    generator: Option<String>,
    /// Parameters of the generator: name=value
    params: Vec<String>,
    /// The file to write: .parquet, .csv, .txt or oracleGeneral, all but Parquet with .gz or .zst
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Format to write, if the name does not tell it
    #[arg(long, value_name = "FORMAT")]
    to_format: Option<String>,
    /// Seed: equal seeds give equal traces
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    tier1: Tier1Args,
    #[command(flatten)]
    reading: Reading,
}

/// The simulated first tier of `gen tier2`.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "For the generator tier2: a simulated first tier (li 2, 4)")]
struct Tier1Args {
    /// The trace of page references; - is standard input
    #[arg(long, value_name = "TRACE")]
    from: Option<PathBuf>,
    /// Size of the buffer pool: frames, or bytes
    #[arg(long, value_name = "SIZE", requires = "from")]
    pool: Option<String>,
    /// Replacement policy of the buffer pool
    #[arg(long, default_value = "lru", value_name = "POLICY", requires = "from")]
    policy: String,
    /// Dirty share above which page cleaners write (REPLACE)
    #[arg(long, default_value = "50%", value_name = "SHARE", requires = "from")]
    dirty: Share,
    /// Maximum number of logical writes between the oldest update that is not durable and the
    /// newest (RECOV)
    #[arg(long, value_name = "WRITES", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(requires = "from")]
    lsn_gap: Option<u64>,
    /// Read ahead of sequential readers, as MySQL does
    #[arg(long, requires = "from")]
    readahead: bool,
    /// Write dirty neighbours together, as MySQL does
    #[arg(long, requires = "from")]
    flush_neighbours: bool,
}

const TIER2: &str = "tier2";

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let Some(id) = &args.generator else { return print(&listed()) };
    let params = parse_params(&args.params.join(","))?;
    let mut source = if id == TIER2 {
        tier2(args, registry)?
    } else if args.tier1.from.is_some() {
        return Err(Failure::Usage(format!("--from belongs to the generator {TIER2}")));
    } else if let Some(option) = args.reading.given() {
        return Err(Failure::Usage(format!(
            "{option} is about a trace that is read, and only the generator {TIER2} reads one"
        )));
    } else {
        generate(id, &params, Seed(args.seed))?
    };
    let out = args.out.as_ref().ok_or_else(|| {
        Failure::Usage("name the file to write with --out (- is standard output)".to_string())
    })?;
    let format = args.to_format.as_deref();
    let references = write_trace(source.as_mut(), out, format, args.quiet)?;
    complain(&format!("{}: {references} references, seed {}", out.display(), args.seed));
    Ok(())
}

/// Returns the storage requests of a buffer pool that serves the trace named by `--from`.
fn tier2(args: &Args, registry: &Registry) -> Result<Box<dyn Source>, Failure> {
    let tier1 = &args.tier1;
    let missing = |what: &str| Failure::Usage(format!("the generator {TIER2} needs {what}"));
    let from = tier1.from.as_ref().ok_or_else(|| missing("--from TRACE"))?;
    let pool = tier1.pool.as_ref().ok_or_else(|| missing("--pool SIZE"))?;
    let gap = tier1.lsn_gap.ok_or_else(|| missing("--lsn-gap WRITES"))?;
    if !args.params.is_empty() {
        return Err(Failure::Usage(format!("the generator {TIER2} takes options, no parameters")));
    }
    let page_size = args.reading.page_bytes()?;
    let frames = match pool.parse::<Size>().map_err(|e| Failure::Usage(e.to_string()))? {
        Size::Share(_) => {
            return Err(Failure::Usage("--pool takes frames or bytes, no share".to_string()));
        }
        size => u32::try_from(size.frames(page_size, 0))
            .map_err(|_| Failure::Usage(format!("a pool of {pool} is too large")))?,
    };
    let mut options = Tier1Options::new(frames, gap);
    options.cleaning.dirty = tier1.dirty;
    options.readahead = tier1.readahead;
    options.cleaning.neighbours = tier1.flush_neighbours;
    options.seed = args.seed;
    let spec = Spec::parse(&tier1.policy)?;
    let source = formats::open(from, &args.reading.options()?)?;
    Ok(registry.find(&spec.id)?.tier1(&spec, &options, source)?)
}

fn listed() -> String {
    let mut text = String::new();
    for generator in GENERATORS {
        text.push_str(&format!("{}: {}\n", generator.id, generator.summary));
        for param in generator.params {
            text.push_str(&format!("    {}={}  {}\n", param.name, param.default, param.help));
        }
        text.push_str(&format!("    source: {}\n", generator.source));
    }
    text.push_str(
        "tier2: what a buffer pool sends to storage while it serves a page trace\n    \
         takes options instead of parameters: --from, --pool, --policy, --dirty, --lsn-gap, \
         --readahead, --flush-neighbours\n    source: li 2, 4.3.2\n",
    );
    text
}
