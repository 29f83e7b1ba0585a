//! `millpond trace gen`.

use std::path::PathBuf;

use millpond_base::Seed;
use millpond_lab::registry::Registry;
use millpond_workload::generate::{GENERATORS, generate, parse_params};

use super::command::write_trace;
use crate::error::Failure;
use crate::output::{complain, print};

const EXAMPLES: &str = "Examples:
  millpond trace gen                              list the generators and their parameters
  millpond trace gen dynzipf-rw --out t.parquet
  millpond trace gen zipf-ro refs=20M pages=1M theta=0.9 --seed 7 --out zipf.oracleGeneral";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The generator; without one they are listed
    generator: Option<String>,
    /// Its parameters: name=value
    params: Vec<String>,
    /// The file to write: .parquet, .csv, .txt or oracleGeneral, all but Parquet with .gz or .zst
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The format to write, where the name does not say it
    #[arg(long, value_name = "FORMAT")]
    to_format: Option<String>,
    /// Seed: the same one gives the same trace
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args, _registry: &Registry) -> Result<(), Failure> {
    let Some(id) = &args.generator else { return print(&listed()) };
    let params = parse_params(&args.params.join(","))?;
    let mut source = generate(id, &params, Seed(args.seed))?;
    let out = args.out.as_ref().ok_or_else(|| {
        Failure::Usage("name the file to write with --out (- is standard output)".to_string())
    })?;
    let format = args.to_format.as_deref();
    let references = write_trace(source.as_mut(), out, format, args.quiet)?;
    complain(&format!("{}: {references} references, seed {}", out.display(), args.seed));
    Ok(())
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
    text
}
