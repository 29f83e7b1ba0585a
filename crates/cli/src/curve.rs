//! `millpond sim --curve`: miss-ratio curves.

use millpond_lab::curve::{CurveRow, CurveTask, Curves};
use millpond_lab::registry::Registry;
use millpond_lab::results::{ResultDir, RunInfo};
use millpond_lab::sweep::{CONTENT, OPTIONS, Plan};
use millpond_lab::table::{Table, Value};
use millpond_policies::config::Spec;

use crate::error::Failure;
use crate::interrupt;
use crate::output::{Form, Output};
use crate::progress::Progress;

const COLUMNS: [&str; 11] = [
    "trace",
    "policy",
    "params",
    "size",
    "seed",
    "miss_ratio",
    "hit_ratio",
    "method",
    "rate",
    CONTENT,
    OPTIONS,
];

/// Traces and policies of the curves, and the destination of the output.
pub(crate) struct Request<'a> {
    pub registry: &'a Registry,
    pub plan: &'a Plan,
    pub check: bool,
    pub quiet: bool,
    pub output: &'a Output,
    pub dir: Option<&'a ResultDir>,
    pub info: &'a RunInfo,
}

pub(crate) fn run(request: &Request<'_>) -> Result<(), Failure> {
    let plan = request.plan;
    plan.check(request.registry)?;
    let progress = Progress::new(request.quiet);
    let mut table = Table::new(COLUMNS);
    if request.check {
        table.columns.extend(["exact_miss_ratio", "absolute_error"].map(str::to_string));
    }
    for trace in &plan.traces {
        for (turn, &seed) in plan.seeds.iter().enumerate() {
            let task = CurveTask {
                registry: request.registry,
                policies: &plan.policies,
                sizes: &plan.sizes,
                page_size: plan.page_size,
                seed,
                check: request.check,
            };
            let Curves { rows, content, notes } = task.run(trace, &mut |what, share, done| {
                progress.show(&format!("{}: {what}", trace.name), share, done, "references");
                interrupt::asked()
            })?;
            if turn == 0 {
                notes.iter().for_each(|note| progress.say(&format!("{}: {note}", trace.name)));
            }
            for row in &rows {
                table.rows.push(values(&trace.name, content, plan, seed, row));
            }
            if request.check {
                errors(&rows, &plan.policies).iter().for_each(|line| progress.say(line));
            }
        }
    }
    progress.finish();
    let complete = !interrupt::asked();
    if let Some(dir) = request.dir {
        dir.write(request.info, &table, complete)?;
    }
    if request.output.format == Form::Table {
        table = table.without(CONTENT).without(OPTIONS);
    }
    request.output.write("sim --curve", &request.info.params, &table)?;
    if complete { Ok(()) } else { Err(Failure::Interrupted) }
}

fn values(trace: &str, content: u64, plan: &Plan, seed: u64, row: &CurveRow) -> Vec<Value> {
    let spec = &plan.policies[row.point.policy];
    let params: Vec<String> = spec.params.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let mut values: Vec<Value> = vec![
        trace.into(),
        spec.id.as_str().into(),
        params.join(",").into(),
        row.point.size.into(),
        seed.into(),
        row.point.miss_ratio.into(),
        (1.0 - row.point.miss_ratio).into(),
        row.point.method.name().into(),
        row.point.rate.into(),
        format!("{content:016x}").into(),
        plan.options().into(),
    ];
    if let Some(exact) = row.exact {
        values.push(exact.into());
        values.push((exact - row.point.miss_ratio).abs().into());
    }
    values
}

/// Returns the mean absolute error of each policy's points.
fn errors(rows: &[CurveRow], policies: &[Spec]) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, spec) in policies.iter().enumerate() {
        let errors: Vec<f64> = rows
            .iter()
            .filter(|r| r.point.policy == index)
            .filter_map(|r| Some((r.exact? - r.point.miss_ratio).abs()))
            .collect();
        let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        let worst = errors.iter().copied().fold(0.0, f64::max);
        lines.push(format!(
            "{spec}: mean absolute error {mean:.5}, largest {worst:.5}, over {} points",
            errors.len()
        ));
    }
    lines
}
