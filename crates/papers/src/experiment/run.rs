//! Running an experiment cell by cell within a time limit, storing each finished cell.

use std::time::Instant;

use xxhash_rust::xxh3::xxh3_64;

use super::budget::Budget;
use super::cell::Cell;
use super::directory::{Ran, write};
use super::error::ExperimentError;
use super::figure::{Experiment, FigureError, Watch};
use super::journal::Journal;
use super::options::Options;
use super::plan::Plan;
use millpond_lab::results::{ResultDir, build_id};

/// Hashes everything beside the cells on which the rows depend, so that another build gets
/// another directory.
fn hash(experiment: &Experiment, options: &Options) -> String {
    let key =
        format!("{} {} {} {}", experiment.paper, experiment.scale, options.params, build_id());
    format!("{:016x}", xxh3_64(key.as_bytes()))
}

/// Runs an experiment and writes its directory and page.
///
/// # Errors
/// [`ExperimentError`]. Finished cells are kept, and `resume` continues after them.
pub fn run(
    experiment: &mut Experiment,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<Ran, ExperimentError> {
    let plan = Plan::of(experiment, &options.figures, options.repetitions)?;
    let folder =
        options.root.join(format!("paper-{}-{}", experiment.paper, hash(experiment, options)));
    let journal = options.resume.then(|| Journal::open(&folder, true).ok()).flatten();
    let is_there = |cell: &Cell| journal.as_ref().is_some_and(|j| j.has(&cell.key()));
    let todo = plan.clone().without(is_there);
    // The loop below keeps to the time limit: it leaves cells out instead of refusing the
    // run.
    todo.need().check(&options.room).map_err(|short| {
        let (paper, scale) = (experiment.paper, experiment.scale);
        ExperimentError::Short { paper, scale, short }
    })?;
    drop(journal);
    let name = format!("paper-{}", experiment.paper);
    let dir = ResultDir::create(&options.root, &name, &hash(experiment, options))?;
    let io = |error| ExperimentError::Io { path: dir.path().to_path_buf(), error };
    let journal = Journal::open(dir.path(), options.resume).map_err(io)?;
    let ran = Ran {
        folder: dir.path().to_path_buf(),
        page: dir.path().join("report.html"),
        cells: plan.cells(),
        taken: plan.cells() - todo.cells(),
        ..Ran::default()
    };
    let budget = Budget::new(options.budget.map(|budget| budget.as_secs_f64()));
    let start = Instant::now();
    let mut runner = Runner { journal, ran, budget, start, planned: todo.need().seconds };
    let outcome = runner.all(experiment, &todo, watch);
    let written = write(&dir, experiment, options, &runner.journal, &mut runner.ran);
    outcome?;
    written?;
    Ok(runner.ran)
}

struct Runner {
    journal: Journal,
    ran: Ran,
    budget: Budget,
    start: Instant,
    /// Planned seconds of all cells to run.
    planned: f64,
}

fn seconds(cells: &[(usize, Cell)]) -> f64 {
    cells.iter().map(|(_, cell)| cell.need.seconds).sum()
}

impl Runner {
    fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn all(
        &mut self,
        experiment: &mut Experiment,
        plan: &Plan,
        watch: &mut dyn Watch,
    ) -> Result<(), ExperimentError> {
        let count = plan.repetitions.len();
        for (at, cells) in plan.repetitions.iter().enumerate() {
            if at > 0 && !cells.is_empty() && !self.budget.has_room(self.now(), seconds(cells)) {
                let left: usize = plan.repetitions[at..].iter().map(Vec::len).sum();
                let text = match at + 1 == count {
                    true => format!("Repetition {count} of {count} was left out ({left} cells)"),
                    false => {
                        format!("Repetitions {} to {count} were left out ({left} cells)", at + 1)
                    }
                };
                self.leave_out(format!("{text}: the time allows no more."), watch);
                break;
            }
            self.repetition(experiment, at, cells, watch)?;
            if self.ran.was_stopped {
                break;
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, text: String, watch: &mut dyn Watch) {
        watch.say(&text);
        self.ran.left_out.push(text);
    }

    /// Runs one repetition, figure by figure.
    fn repetition(
        &mut self,
        experiment: &mut Experiment,
        repetition: usize,
        cells: &[(usize, Cell)],
        watch: &mut dyn Watch,
    ) -> Result<(), ExperimentError> {
        let mut left = seconds(cells);
        for of_figure in cells.chunk_by(|a, b| a.0 == b.0) {
            let own = seconds(of_figure);
            let deadline = self.budget.deadline(self.now(), own, left);
            let done = self.figure(experiment, of_figure, deadline, watch);
            experiment.figures[of_figure[0].0].release();
            let done = done?;
            left -= own;
            if self.ran.was_stopped {
                break;
            }
            if done < of_figure.len() {
                let text = format!(
                    "Repetition {} of figure {}: {} of {} cells were left out, the time was over.",
                    repetition + 1,
                    of_figure[0].1.figure,
                    of_figure.len() - done,
                    of_figure.len()
                );
                self.leave_out(text, watch);
            }
        }
        Ok(())
    }

    /// Runs a figure's cells of one repetition, up to the deadline; returns the number of
    /// cells run.
    fn figure(
        &mut self,
        experiment: &mut Experiment,
        cells: &[(usize, Cell)],
        deadline: Option<f64>,
        watch: &mut dyn Watch,
    ) -> Result<usize, ExperimentError> {
        let figure = &mut experiment.figures[cells[0].0];
        let mut done = 0;
        for batch in cells.chunks(figure.batch().max(1)) {
            let now = self.now();
            if self.budget.is_over(now) || deadline.is_some_and(|deadline| now >= deadline) {
                break;
            }
            let share = self.budget_share();
            let finished = self.ran.taken + self.ran.run;
            watch.cell(&batch[0].1.name(), finished, self.ran.cells, share);
            if watch.stop() {
                self.ran.was_stopped = true;
                break;
            }
            let of_batch: Vec<&Cell> = batch.iter().map(|(_, cell)| cell).collect();
            match figure.run(&of_batch, watch) {
                Ok(rows) => self.keep(&of_batch, rows)?,
                Err(FigureError::Stopped) => {
                    self.ran.was_stopped = true;
                    break;
                }
                Err(source) => {
                    let cell = batch[0].1.name();
                    return Err(ExperimentError::Cell { cell, error: source });
                }
            }
            self.budget.ran(seconds(batch), self.now() - now);
            done += batch.len();
        }
        Ok(done)
    }

    fn budget_share(&self) -> f64 {
        (self.budget.planned_so_far() / self.planned.max(1e-9)).min(1.0)
    }

    fn keep(
        &mut self,
        cells: &[&Cell],
        rows: Vec<Vec<super::Fields>>,
    ) -> Result<(), ExperimentError> {
        for (cell, rows) in cells.iter().zip(rows) {
            let path = &self.ran.folder;
            let io = |error| ExperimentError::Io { path: path.clone(), error };
            self.journal.append(&cell.key(), rows).map_err(io)?;
            self.ran.run += 1;
        }
        Ok(())
    }
}
