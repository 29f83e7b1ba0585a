//! Files of an experiment: its rows, a record of the run, and the page.

use std::io::Write;
use std::path::{Path, PathBuf};

use millpond_workload::write::WholeFile;
use serde_json::{Value as Json, json};

use super::cell::Cell;
use super::error::ExperimentError;
use super::figure::Experiment;
use super::journal::Journal;
use super::options::Options;
use super::plan::Plan;
use millpond_lab::report::{Claim, ReportData, ReportOptions, Section, render};
use millpond_lab::results::{ResultDir, RunInfo};
use millpond_lab::table::Table;
use millpond_lab::verdict::corrected;

/// Outcome of a run of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    /// The result directory.
    pub folder: PathBuf,
    /// Page in the directory.
    pub page: PathBuf,
    /// Number of cells of the plan.
    pub cells: usize,
    /// Number of cells taken from an earlier run.
    pub taken: usize,
    /// Number of cells that were run.
    pub run: usize,
    /// Cells left out for lack of time, in sentences for people.
    pub left_out: Vec<String>,
    /// Claims of the paper, figure by figure, beside our results.
    pub claims: Vec<(&'static str, Claim)>,
    /// `true` if the run was stopped from outside.
    pub was_stopped: bool,
}

impl Ran {
    /// Returns `true` if every cell of the plan is finished.
    pub fn is_complete(&self) -> bool {
        self.taken + self.run == self.cells
    }
}

/// Joins the rows of cells into one table.
fn table_of<'a>(cells: impl Iterator<Item = &'a Cell>, journal: &Journal) -> Table {
    let mut table = Table::default();
    for cell in cells {
        for measured in journal.rows(&cell.key()) {
            let row = cell.row(measured.clone());
            let mut one = Table::new(row.iter().map(|(name, _)| name.as_str()));
            one.rows.push(row.into_iter().map(|(_, value)| value).collect());
            table.append(one);
        }
    }
    table
}

/// Writes all results so far, including figures that only an earlier run has run.
pub(super) fn write(
    dir: &ResultDir,
    experiment: &Experiment,
    options: &Options,
    journal: &Journal,
    ran: &mut Ran,
) -> Result<(), ExperimentError> {
    let plan = Plan::of(experiment, &[], options.repetitions)?;
    let cells = || plan.repetitions.iter().flatten();
    let rows = table_of(cells().map(|(_, cell)| cell), journal);
    let info = RunInfo {
        command: format!("paper {}", experiment.paper),
        command_line: options.command_line.clone(),
        params: params(experiment, options, ran),
    };
    dir.write(&info, &rows, ran.is_complete())?;
    if rows.rows.is_empty() {
        return Ok(());
    }
    let of_figure = |at: usize| {
        let own = cells().filter(|(figure, _)| *figure == at).map(|(_, cell)| cell);
        table_of(own, journal)
    };
    draw(dir, experiment, &|id| options.wants(id), &of_figure, ran)
}

/// Judges the rows of a finished run again by this build's claims, and writes its page, without
/// running anything. Figures with rows are judged; the page also shows those of `figures`, by id,
/// that have none.
///
/// # Errors
/// [`ExperimentError`], if the directory belongs to another experiment or scale.
pub fn judge(
    experiment: &Experiment,
    folder: &Path,
    figures: &[String],
) -> Result<Ran, ExperimentError> {
    Plan::of(experiment, figures, 1)?;
    let dir = ResultDir::open(folder)?;
    let (run, rows) = (dir.run()?, dir.rows()?);
    let params = &run["params"];
    let (paper, scale) = (params["paper"].as_str(), params["scale"].as_str());
    let asked = (experiment.paper, experiment.scale.to_string());
    if (paper, scale) != (Some(asked.0), Some(asked.1.as_str())) {
        let is = run["command_line"].as_str().or(run["command"].as_str()).unwrap_or("something");
        return Err(ExperimentError::Other {
            path: folder.to_path_buf(),
            is: is.to_string(),
            paper: experiment.paper,
            scale: experiment.scale,
        });
    }
    let count = |name: &str| params[name].as_u64().unwrap_or(0) as usize;
    let left_out = params["left_out"].as_array().into_iter().flatten();
    let mut ran = Ran {
        folder: folder.to_path_buf(),
        page: folder.join("report.html"),
        cells: count("cells"),
        taken: count("cells_run"),
        left_out: left_out.filter_map(Json::as_str).map(str::to_string).collect(),
        ..Ran::default()
    };
    let of_figure = |at: usize| match experiment.figures.get(at) {
        Some(figure) => rows.only("figure", figure.about().id),
        None => Table::default(),
    };
    let wants = |id: &str| figures.iter().any(|figure| figure == id);
    draw(&dir, experiment, &wants, &of_figure, &mut ran)?;
    Ok(ran)
}

/// Judges each figure's rows, and writes the page. `wants` filters figures without rows by id;
/// `rows` returns the rows of a figure by its number.
fn draw(
    dir: &ResultDir,
    experiment: &Experiment,
    wants: &dyn Fn(&str) -> bool,
    rows: &dyn Fn(usize) -> Table,
    ran: &mut Ran,
) -> Result<(), ExperimentError> {
    let mut sections = Vec::new();
    for (at, figure) in experiment.figures.iter().enumerate() {
        let (rows, about) = (rows(at), figure.about());
        let mut section = match (rows.rows.is_empty(), wants(about.id)) {
            (true, false) => continue,
            (true, true) => Section { note: "No cell was run.".to_string(), ..Section::default() },
            (false, _) => figure.section(&rows),
        };
        corrected(&mut section.claims);
        if experiment.scale.mark().is_some() {
            section.claims.iter_mut().for_each(|claim| claim.holds = None);
        }
        ran.claims.extend(section.claims.iter().map(|claim| (about.id, claim.clone())));
        let title = format!("{}: {}", about.id, about.title);
        let note = format!("{} The paper: {} {}", about.asks, about.says, section.note);
        sections.push(Section { title, note, ..section });
    }
    let data = ReportData::read(&[dir.path().to_path_buf()])?;
    let page = ReportOptions {
        title: experiment.title.clone(),
        note: Some(note(experiment, ran)),
        sections,
        sections_only: true,
        mark: experiment.scale.mark().map(str::to_string),
        ..ReportOptions::default()
    };
    write_page(&ran.page, &render(&data, &page))
}

fn params(experiment: &Experiment, options: &Options, ran: &Ran) -> Json {
    let mut params = json!({
        "paper": experiment.paper,
        "scale": experiment.scale.to_string(),
        "figures": options.figures,
        "seeds": (1..=options.repetitions).collect::<Vec<_>>(),
        "cells": ran.cells,
        "cells_run": ran.run + ran.taken,
        "budget_s": options.budget.map(|budget| budget.as_secs()),
        "left_out": ran.left_out,
    });
    if let (Json::Object(all), Json::Object(own)) = (&mut params, &options.params) {
        all.extend(own.clone());
    }
    params
}

/// Returns the first lines of the page, which state the part of the plan that it shows.
fn note(experiment: &Experiment, ran: &Ran) -> String {
    let mut text = format!("{} Scale: {}.", experiment.note, experiment.scale);
    if let Some(mark) = experiment.scale.mark() {
        text +=
            &format!(" This is a {mark} test: it shows that everything runs, and nothing else.");
    }
    let done = ran.taken + ran.run;
    text += &match (ran.is_complete(), ran.was_stopped) {
        (true, _) => format!(" All {done} cells were run."),
        (false, true) => format!(" It was stopped: {done} of {} cells were run.", ran.cells),
        (false, false) => format!(" {done} of {} cells were run.", ran.cells),
    };
    for left_out in &ran.left_out {
        text += &format!(" {left_out}");
    }
    text
}

fn write_page(path: &Path, page: &str) -> Result<(), ExperimentError> {
    let io = |error| ExperimentError::Io { path: path.to_path_buf(), error };
    let mut file = WholeFile::create(path).map_err(io)?;
    file.write_all(page.as_bytes()).map_err(io)?;
    file.finish().map_err(io)
}
