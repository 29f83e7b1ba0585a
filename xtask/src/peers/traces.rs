//! The two traces of the comparison, as oracleGeneral files that both sides read.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::options::Options;
use super::tools::Tools;
use crate::tree::root;

/// Parameters of our generator for the Zipf trace.
const ZIPF_REFERENCES: u64 = 20_000_000;

/// A trace on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trace {
    pub name: String,
    pub about: String,
    pub file: PathBuf,
    pub references: u64,
    pub pages: u64,
}

/// Makes the selected traces, or finds them from an earlier run.
pub fn prepare(tools: &Tools, options: &Options) -> Result<Vec<Trace>> {
    let mut traces = Vec::new();
    if options.takes_trace("P12") {
        let source = root().join("../shared/traces/arc_P12.extents.txt.gz");
        if source.is_file() {
            let about = "ARC's P12 (a Windows NT workstation), extents expanded to pages";
            traces.push(expanded(tools, options, "P12", about, || Ok(source))?);
        } else {
            eprintln!("P12 is left out: {} is not there", source.display());
        }
    }
    if options.takes_trace("zipf") {
        let about = "Zipf, `millpond trace gen zipf-ro refs=20M pages=1M`";
        traces.push(expanded(tools, options, "zipf", about, || generate(tools))?);
    }
    if traces.is_empty() {
        bail!("no trace is left to run: the traces are P12 and zipf");
    }
    Ok(traces)
}

/// Returns the oracleGeneral file of a trace, with its reference and page counts.
fn expanded(
    tools: &Tools,
    options: &Options,
    name: &str,
    about: &str,
    source: impl FnOnce() -> Result<PathBuf>,
) -> Result<Trace> {
    let limit = options.limit.unwrap_or(0);
    let stem = if limit == 0 { name.to_string() } else { format!("{name}-{limit}") };
    let file = tools.directory.join(format!("{stem}.oracleGeneral.bin"));
    let note = tools.directory.join(format!("{stem}.json"));
    if file.is_file()
        && let Ok(text) = std::fs::read_to_string(&note)
        && let Ok(known) = serde_json::from_str(&text)
    {
        return Ok(known);
    }
    eprintln!("writing {}", file.display());
    let source = source()?.to_string_lossy().into_owned();
    let path = file.to_string_lossy().into_owned();
    let limit = limit.to_string();
    let answer = tools.peer(&tools.directory, &["expand", &source, &path, &limit])?;
    let count = |key: &str| answer[key].as_u64().with_context(|| format!("peer.py said no {key}"));
    let trace = Trace {
        name: stem,
        about: about.to_string(),
        file,
        references: count("references")?,
        pages: count("pages")?,
    };
    std::fs::write(&note, serde_json::to_string_pretty(&trace)?)
        .with_context(|| format!("writing {}", note.display()))?;
    Ok(trace)
}

/// Generates the Zipf trace as text.
fn generate(tools: &Tools) -> Result<PathBuf> {
    let file = tools.directory.join("zipf.txt");
    if file.is_file() {
        return Ok(file);
    }
    let part = tools.directory.join("zipf-part.txt");
    let references = format!("refs={ZIPF_REFERENCES}");
    // The generator's own 10,000 pages would fit into a core's first caches.
    let pages = "pages=1M";
    let status = Command::new(&tools.millpond)
        .args(["trace", "gen", "zipf-ro", &references, pages, "--out"])
        .arg(&part)
        .current_dir(&tools.directory)
        .status()
        .with_context(|| format!("starting {}", tools.millpond.display()))?;
    if !status.success() {
        bail!("millpond trace gen zipf-ro {references} {pages} failed: {status}");
    }
    std::fs::rename(&part, &file).with_context(|| format!("naming {}", file.display()))?;
    Ok(file)
}
