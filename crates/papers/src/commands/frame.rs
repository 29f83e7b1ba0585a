//! Common parts of all experiments: flags, progress, output.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::experiment::{
    Experiment, ExperimentError, Options, Plan, Ran, Room, Scale, Watch, judge, run,
};
use clap::ValueEnum;
use millpond_lab::table::Table;

use millpond_cli::program::Failure;
use millpond_cli::program::Progress;
use millpond_cli::program::asked;
use millpond_cli::program::{complain, print};

/// How much is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ScaleArg {
    /// Seconds: shows that everything works, and nothing else
    Quick,
    /// The whole grid in miniature, 40 minutes at most
    Standard,
    /// The size of the paper; refused if the machine is too small
    Paper,
}

/// Flags of every experiment.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct FrameArgs {
    /// Scale of the experiment
    #[arg(long, value_enum, default_value = "standard", value_name = "SCALE")]
    scale: ScaleArg,
    /// Only these figures, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "IDS")]
    figure: Vec<String>,
    /// Take the cells that an earlier run of this build finished, and run only the others
    #[arg(long)]
    resume: bool,
    /// Folder for the result directory
    #[arg(long, default_value = "results", value_name = "DIR")]
    out: PathBuf,
    /// Time limit in minutes. Last repetitions are left out to keep to it; with --scale paper a
    /// longer run is refused; 0 is no limit [default: 40 for standard]
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,
    /// Maximum number of repetitions of each cell [default: 1, 3 or 5, by scale]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: Option<u32>,
    /// Print the figures and their needs, and run nothing
    #[arg(long)]
    plan: bool,
    /// Judge the rows of an earlier run of any build anew, rewrite its page, and run nothing
    #[arg(long, value_name = "DIR")]
    #[arg(conflicts_with_all = ["plan", "resume", "minutes", "repetitions"])]
    judge: Option<PathBuf>,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
    /// Flags of one paper's own that decide what is run, as they are typed.
    #[arg(skip)]
    own: String,
}

impl FrameArgs {
    pub(super) fn scale(&self) -> Scale {
        match self.scale {
            ScaleArg::Quick => Scale::Quick,
            ScaleArg::Standard => Scale::Standard,
            ScaleArg::Paper => Scale::Paper,
        }
    }

    /// Returns the directory of the results, and of files that a run needs.
    pub(super) fn out(&self) -> &Path {
        &self.out
    }

    /// Returns these flags together with a paper's own flag that selects runs.
    pub(super) fn with(&self, flag: &str, value: &str) -> FrameArgs {
        FrameArgs { own: format!("{} {flag} {value}", self.own), ..self.clone() }
    }

    fn options(&self, paper: &str) -> Result<Options, Failure> {
        let scale = self.scale();
        let budget = match self.minutes {
            None => scale.budget(),
            Some(0.0) => None,
            Some(minutes) => Some(
                Duration::try_from_secs_f64(minutes * 60.0)
                    .map_err(|_| Failure::Usage(format!("--minutes {minutes} is no time")))?,
            ),
        };
        let mut room = Room::here(&self.out);
        if scale == Scale::Paper {
            room.seconds = budget.map(|budget| budget.as_secs_f64());
        }
        let mut command_line = format!("millpond-papers {paper} --scale {scale}");
        if !self.figure.is_empty() {
            command_line += &format!(" --figure {}", self.figure.join(","));
        }
        if let Some(repetitions) = self.repetitions {
            command_line += &format!(" --repetitions {repetitions}");
        }
        command_line += &self.own;
        Ok(Options {
            root: self.out.clone(),
            figures: self.figure.clone(),
            resume: self.resume,
            repetitions: self.repetitions.unwrap_or(scale.repetitions()),
            budget,
            room,
            command_line,
            ..Options::of(scale)
        })
    }
}

/// Runs an experiment with the flags.
pub(super) fn play(experiment: &mut Experiment, args: &FrameArgs) -> Result<(), Failure> {
    play_as(experiment.paper, experiment, args)
}

/// Like [`play`], for an experiment with its own name in `millpond-papers`.
pub(super) fn play_as(
    name: &str,
    experiment: &mut Experiment,
    args: &FrameArgs,
) -> Result<(), Failure> {
    if let Some(folder) = &args.judge {
        return finish(&judge(experiment, folder, &args.figure)?);
    }
    let options = args.options(name)?;
    let plan = Plan::of(experiment, &options.figures, options.repetitions)
        .map_err(ExperimentError::from)?;
    if args.plan {
        return print(&planned(experiment, &plan));
    }
    complain(&format!("{} cells, {}", plan.cells(), plan.need()));
    let mut bar = Bar { progress: Progress::new(args.quiet), name: String::new() };
    let ran = run(experiment, &options, &mut bar);
    bar.progress.finish();
    let ran = ran?;
    if options.resume && ran.taken == 0 {
        complain("nothing to resume from: rows of another build, scale or place do not count");
    }
    finish(&ran)
}

/// Describes the figures, their cells and their needs.
fn planned(experiment: &Experiment, plan: &Plan) -> String {
    let mut table = Table::new(["figure", "title", "cells", "repetitions", "need"]);
    for (at, figure) in experiment.figures.iter().enumerate() {
        let of_figure = |cells: &Vec<(usize, crate::experiment::Cell)>| {
            cells.iter().filter(|(figure, _)| *figure == at).map(|(_, cell)| cell.clone()).collect()
        };
        let repetitions: Vec<Vec<_>> = plan.repetitions.iter().map(of_figure).collect();
        let cells = repetitions.iter().map(Vec::len).sum::<usize>() as u64;
        if cells == 0 {
            continue;
        }
        let need = repetitions
            .iter()
            .flatten()
            .fold(Default::default(), |need, cell| crate::experiment::Need::then(need, cell.need));
        let times = repetitions.iter().filter(|cells| !cells.is_empty()).count() as u64;
        let about = figure.about();
        let row = [about.id.into(), about.title.into(), cells.into(), times.into()];
        table.rows.push(row.into_iter().chain([need.to_string().into()]).collect());
    }
    format!("{}\nAll: {} cells, {}\n", table.to_text(), plan.cells(), plan.need())
}

/// Prints the outcome: claims, cells left out, and the place of the results.
fn finish(ran: &Ran) -> Result<(), Failure> {
    let mut table = Table::new(["figure", "holds", "p", "the paper says", "here"]);
    for (figure, claim) in &ran.claims {
        let p = claim.shown_p().into();
        let (says, here) = (claim.says.as_str().into(), claim.here.as_str().into());
        table.rows.push(vec![(*figure).into(), claim.verdict().into(), p, says, here]);
    }
    if !table.rows.is_empty() {
        print(&format!("{}\n", table.to_text()))?;
    }
    let done = ran.taken + ran.run;
    print(&format!("{done} of {} cells, {} of them run now.\n", ran.cells, ran.run))?;
    for left_out in &ran.left_out {
        print(&format!("{left_out}\n"))?;
    }
    print(&format!("Rows: {}\nPage: {}\n", ran.folder.display(), ran.page.display()))?;
    match (ran.was_stopped, ran.is_complete()) {
        (true, _) => Err(Failure::Interrupted),
        (false, true) => Ok(()),
        (false, false) => {
            complain("what was left out can be run with --resume");
            Ok(())
        }
    }
}

/// Shows each cell while it runs.
struct Bar {
    progress: Progress,
    name: String,
}

impl Watch for Bar {
    fn stop(&self) -> bool {
        asked()
    }

    fn cell(&mut self, name: &str, done: usize, of: usize, share: f64) {
        self.name = format!("{name} ({done} of {of} cells)");
        self.progress.show(&self.name, Some(share), 0, "");
    }

    fn detail(&mut self, what: &str) {
        self.progress.show(&format!("{}: {what}", self.name), None, 0, "");
    }

    fn say(&mut self, line: &str) {
        self.progress.say(line);
    }
}
