//! `millpond reference`: parts of the documentation that are made from the code, as Markdown.

use clap::ValueEnum;
use millpond::{Db, Options};

use super::markdown;
use crate::error::Failure;
use crate::output::print;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Part {
    /// Every command and its options
    Commands,
    /// Metrics of a store
    Metrics,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The part
    #[arg(value_enum, value_name = "PART")]
    part: Part,
}

pub(crate) fn run(args: &Args, command: clap::Command) -> Result<(), Failure> {
    match args.part {
        Part::Commands => print(&markdown::of_commands(command)),
        Part::Metrics => print(&metrics()?),
    }
}

/// Writes a table of metrics for each kind, from a store's own statistics.
fn metrics() -> Result<String, Failure> {
    let failed = |error: millpond::Error| Failure::Store(error.to_string());
    let db = Db::in_memory(Options::new().memory(16 << 20)).map_err(failed)?;
    let text = db.stats().to_prometheus(&[]);
    let mut page = String::new();
    for (kind, title) in [
        ("counter", "Counters"),
        ("gauge", "Gauges: as of now"),
        ("histogram", "Latencies: histograms"),
    ] {
        page.push_str(&format!("## {title}\n\n| name | what | for Prometheus |\n|---|---|---|\n"));
        for (name, help) in heads(&text, kind) {
            page.push_str(&format!("| `{}` | {help} | `{name}` |\n", own_name(name)));
        }
        page.push('\n');
    }
    Ok(page)
}

/// Returns the name and help of each metric of a kind.
fn heads<'t>(text: &'t str, kind: &str) -> Vec<(&'t str, &'t str)> {
    let mut heads = Vec::new();
    let mut help = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some(rest) = line.strip_prefix("# TYPE ")
            && let Some((name, text)) = help.take()
            && rest.split_once(' ') == Some((name, kind))
        {
            heads.push((name, text));
        }
    }
    heads
}

/// Returns the name of the metric as a field of `Stats` and of JSON.
fn own_name(name: &str) -> &str {
    let name = name.strip_prefix("millpond_").unwrap_or(name);
    match name {
        "page_size_bytes" => "page_size",
        "uptime_seconds" => "uptime_s",
        _ => ["_total", "_seconds"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statistic_is_in_the_table_under_its_own_name() {
        let page = metrics().expect("a store in memory opens");
        let db = Db::in_memory(Options::new().memory(16 << 20)).expect("it opens");
        let json: serde_json::Value = serde_json::from_str(&db.stats().to_json()).expect("JSON");
        for name in json.as_object().expect("an object").keys() {
            assert!(page.contains(&format!("| `{name}` |")), "{name}: {page}");
        }
        assert!(page.contains(
            "| `misses` | references whose page was not in memory | `millpond_misses_total` |"
        ));
    }
}
