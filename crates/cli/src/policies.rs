//! `millpond policies`: the catalog.

use millpond_lab::registry::{Entry, Registry, hit_reaches};
use millpond_lab::table::{Table, Value};
use millpond_policies::info::Tier;
use serde_json::json;

use crate::error::Failure;
use crate::output::{Form, Output, print};

const EXAMPLES: &str = "Examples:
  millpond policies                   all of them, one line each
  millpond policies watt clock        two of them, with every parameter
  millpond policies --format json     for programs";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only these policies, with every parameter and its default
    #[arg(value_name = "POLICY")]
    policies: Vec<String>,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    args.output.check([])?;
    let mut chosen: Vec<&Entry> = Vec::new();
    for id in &args.policies {
        chosen.push(registry.find(id)?);
    }
    let detail = !chosen.is_empty();
    if !detail {
        chosen = registry.entries().iter().collect();
    }
    if detail && args.output.format == Form::Table && args.output.out.is_none() {
        return print(&chosen.iter().map(|e| described(e)).collect::<String>());
    }
    args.output.write("policies", &json!({}), &listed(&chosen))
}

fn defaults(entry: &Entry) -> String {
    let pairs: Vec<String> =
        entry.params.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
    pairs.join(",")
}

fn listed(entries: &[&Entry]) -> Table {
    let mut table = Table::new([
        "id",
        "tier",
        "class",
        "age",
        "references",
        "family",
        "hit",
        "frame_bytes",
        "ghost_bytes",
        "live",
        "defaults",
        "source",
    ]);
    for entry in entries {
        let info = &entry.info;
        table.rows.push(vec![
            info.id.into(),
            Value::Int(if info.tier == Tier::First { 1 } else { 2 }),
            info.class.name().into(),
            info.age.name().into(),
            info.references.name().into(),
            info.family.name().into(),
            hit_reaches(entry.hit).into(),
            f64::from(info.frame_bytes).into(),
            f64::from(info.ghost_bytes).into(),
            if info.live { "yes" } else { "no" }.into(),
            defaults(entry).into(),
            info.source.into(),
        ]);
    }
    table
}

fn described(entry: &Entry) -> String {
    let info = &entry.info;
    let mut text = format!(
        "{}: {}\n  family {}, Bélády class {}, age {}, references {}\n  \
         a hit costs: {}; bytes per frame {}, per ghost {}; live: {}\n  source: {}\n",
        info.id,
        info.summary,
        info.family.name(),
        info.class.name(),
        info.age.name(),
        info.references.name(),
        hit_reaches(entry.hit),
        info.frame_bytes,
        info.ghost_bytes,
        if info.live { "yes" } else { "no" },
        info.source,
    );
    if entry.params.is_empty() {
        text.push_str("  no parameters\n");
    }
    for param in &entry.params {
        text.push_str(&format!(
            "  {}={}  {} ({})\n",
            param.name, param.default, param.help, param.takes
        ));
    }
    text.push('\n');
    text
}
