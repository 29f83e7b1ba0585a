//! `millpond sim --out-dir`: runs a sweep, or a part of it, with one file per unit.

use std::path::Path;

use millpond_lab::registry::Registry;
use millpond_lab::results::SweepFolder;
use millpond_lab::sweep::Plan;
use millpond_lab::units::{
    Event, Local, TraceFile, UnitError, common_settings, run_local, sources, units,
};

use crate::error::Failure;
use crate::interrupt;
use crate::output::complain;
use crate::progress::Progress;

/// A sweep and the folder of its files.
pub(crate) struct Request<'a> {
    pub registry: &'a Registry,
    pub plan: &'a Plan,
    pub traces: &'a [TraceFile],
    pub folder: &'a Path,
    pub quiet: bool,
}

/// Runs the units whose files do not exist yet.
pub(crate) fn run(request: &Request<'_>) -> Result<(), Failure> {
    let Request { registry, plan, folder: path, .. } = *request;
    let units = units(request.traces, plan, registry)?;
    let folder = SweepFolder::create(path, &common_settings(plan, request.traces), sources())?;
    let progress = Progress::new(request.quiet);
    let (all, mut done) = (units.len(), 0);
    let mut watch = |event: Event<'_>| {
        match event {
            Event::Tick => {}
            Event::Done(unit) => {
                done += 1;
                let share = done as f64 / all as f64;
                progress.show(&format!("{done} of {all}: {}", unit.label()), Some(share), 0, "");
            }
            Event::Failed(unit, error) => {
                progress.say(&format!("millpond: {}: {error}", unit.label()));
            }
        }
        !interrupt::asked()
    };
    let how = Local { threads: plan.threads, ..Local::default() };
    let outcome = run_local(&units, &folder, registry, how, &mut watch);
    progress.finish();
    let outcome = outcome?;
    outcome.notes.iter().for_each(|(trace, note)| complain(&format!("{trace}: {note}")));
    complain(&format!(
        "{}: {all} units, {} run, {} were there",
        path.display(),
        outcome.ran,
        outcome.there
    ));
    match outcome.failed.len() {
        _ if outcome.is_stopped => Err(Failure::Interrupted),
        0 => Ok(()),
        n => Err(Failure::Partly(format!("{n} of {all} units failed; the others are written"))),
    }
}

impl From<UnitError> for Failure {
    fn from(error: UnitError) -> Failure {
        match error {
            UnitError::Sweep(error) => Failure::Sweep(error),
            UnitError::Policy(error) => error.into(),
            UnitError::Result(error) => Failure::Result(error),
            UnitError::Plan(text) => Failure::Usage(text),
            other => Failure::Partly(other.to_string()),
        }
    }
}
