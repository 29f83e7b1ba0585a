//! The switches of `cargo xtask peers`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::cells::PAIRS;

pub const USAGE: &str = "\
usage: cargo xtask peers [--quick] [--repetitions N] [--policy P]… [--trace T]… [--out DIR]
                         [--default-table] [--millpond FILE]

  --quick           prefixes of 2 M references, 3 repetitions
  --repetitions N   interleaved pairs of runs per cell (5)
  --policy P        only the pairs whose policy starts so (all)
  --trace T         only this trace: P12 or zipf (both)
  --default-table   libCacheSim with the hash table its classes choose, not the best of three
  --out DIR         where peers.json and peers.md go (target/peers)
  --millpond FILE   a release build to measure (built otherwise)
";

/// References of a trace under `--quick`.
const QUICK_REFERENCES: u64 = 2_000_000;

/// Options of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub repetitions: usize,
    /// References per trace; `None` for all.
    pub limit: Option<u64>,
    /// Set if libCacheSim keeps the hash table's size that its Python classes choose.
    pub is_default_table: bool,
    pub policies: Vec<String>,
    pub traces: Vec<String>,
    pub out: Option<PathBuf>,
    pub millpond: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments; `None` if they ask for help.
    pub fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let mut options = Options {
            repetitions: 5,
            limit: None,
            is_default_table: false,
            policies: Vec::new(),
            traces: Vec::new(),
            out: None,
            millpond: None,
        };
        let mut repetitions = None;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--help" | "-h" => return Ok(None),
                "--quick" => {
                    options.limit = Some(QUICK_REFERENCES);
                    options.repetitions = 3;
                }
                "--default-table" => options.is_default_table = true,
                "--repetitions" => {
                    let count = value()?.parse().ok().filter(|&n: &usize| n >= 2);
                    repetitions = Some(count.context("--repetitions takes a number from 2 up")?);
                }
                "--policy" => options.policies.push(value()?.clone()),
                "--trace" => options.traces.push(value()?.clone()),
                "--out" => options.out = Some(value()?.into()),
                "--millpond" => options.millpond = Some(value()?.into()),
                other => bail!("peers does not know `{other}`\n\n{USAGE}"),
            }
        }
        options.repetitions = repetitions.unwrap_or(options.repetitions);
        for policy in &options.policies {
            if !PAIRS.iter().any(|pair| pair.ours.starts_with(policy.as_str())) {
                let names: Vec<_> = PAIRS.iter().map(|pair| pair.ours).collect();
                bail!("no pair starts with `{policy}`; there are {}", names.join(", "));
            }
        }
        Ok(Some(options))
    }

    /// Returns `true` if the options select this pair of policies.
    pub fn takes_policy(&self, ours: &str) -> bool {
        self.policies.is_empty() || self.policies.iter().any(|p| ours.starts_with(p.as_str()))
    }

    /// Returns `true` if the options select this trace.
    pub fn takes_trace(&self, name: &str) -> bool {
        self.traces.is_empty() || self.traces.iter().any(|t| t.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Option<Options>> {
        Options::parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn quick_is_short_and_repetitions_win() {
        let quick = parse(&["--repetitions", "7", "--quick"]).unwrap().unwrap();
        assert_eq!((quick.limit, quick.repetitions), (Some(QUICK_REFERENCES), 7));
        assert_eq!(parse(&[]).unwrap().unwrap().repetitions, 5);
        assert_eq!(parse(&["--help"]).unwrap(), None);
    }

    #[test]
    fn a_filter_takes_what_starts_so() {
        let options = parse(&["--policy", "hyper", "--trace", "p12"]).unwrap().unwrap();
        assert!(options.takes_policy("hyperbolic(sample=64)") && !options.takes_policy("lru"));
        assert!(options.takes_trace("P12") && !options.takes_trace("zipf"));
    }

    #[test]
    fn nonsense_is_refused() {
        for words in [&["--policy", "nope"][..], &["--repetitions", "1"], &["--out"], &["x"]] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
