//! The tour itself: the engine at work, then the policies, then a report of both.

use std::path::PathBuf;
use std::time::Instant;

use millpond::internals::store::options::POLICY_DEFAULT;
use millpond_lab::registry::Registry;
use millpond_lab::report::{ReportData, ReportOptions, Section, render};
use millpond_lab::results::{ResultDir, RunInfo};
use serde_json::json;

use super::contest::{self, Contest};
use super::live::{self, Course};
use crate::error::Failure;
use crate::output::{complain, print, write_whole};

const EXAMPLES: &str = "Examples:
  millpond tour                  results/tour-… and a report, in half a minute
  millpond tour --results /tmp   elsewhere
  millpond tour --dir /data      on that disk; the store stays there
  millpond tour --quick          a hundredth of everything, to see that it works";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Folder for the result directory and the report
    #[arg(long, default_value = "results", value_name = "DIR")]
    results: PathBuf,
    /// Create the store in this folder and leave it there, as tour.mp; by default it is in the
    /// system's temporary folder, for the time of the tour
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Use little data and few policies: shows that everything works, and measures nothing
    #[arg(long)]
    quick: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

const WELCOME: &str = "A tour of Millpond, a storage engine and a laboratory of page replacement.

1. The engine: TPC-C on data larger than memory, then with memory enough, then a check.
2. The laboratory: which page should go? Nine policies on three recorded traces.
3. Reads against writes on a synthetic trace with 17 % writes.
4. A report of all this.
";

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let start = Instant::now();
    if let Some(dir) = args.dir.as_deref().filter(|dir| !dir.is_dir()) {
        let text = format!("--dir {}: there is no such folder: make it first", dir.display());
        return Err(Failure::Usage(text));
    }
    print(WELCOME)?;
    let scratch = tempfile::Builder::new().prefix("millpond-tour-").tempdir()?;
    let store = args.dir.as_deref().unwrap_or(scratch.path()).join("tour.mp");
    if store.exists() {
        let name = store.display();
        let text = format!("{name} is there already: remove it, or name another folder");
        return Err(Failure::Usage(text));
    }
    let course = if args.quick { Course::quick() } else { Course::full() };
    let live = live::run(&store, &course, args.quiet)?;
    let contest = Contest { scratch: scratch.path(), is_quick: args.quick, is_quiet: args.quiet };
    let policies = contest.run(registry)?;
    let dir = ResultDir::create(&args.results, "tour", &policies.hash)?;
    let flags = if args.quick { " --quick" } else { "" };
    let info = RunInfo {
        command: "tour".to_string(),
        command_line: format!("millpond tour{flags}"),
        params: json!({"seeds": [1], "quick": args.quick}),
    };
    dir.write(&info, &policies.table, true)?;
    live.runs.write_parquet(&dir.path().join("live.parquet"))?;
    live.series.write_parquet(&dir.path().join("series.parquet"))?;
    print(&policies.summary)?;
    let report = write_report(&dir, live.section)?;
    complain(&format!("{:.1} s. Rows: {}", start.elapsed().as_secs_f64(), dir.path().display()));
    if args.dir.is_some() {
        let name = store.display();
        print(&format!("\nThe store is in {name}: try `millpond trees {name}`.\n"))?;
    }
    print(&format!("\nThe report is in {}: open it in a browser.\n", report.display()))
}

fn write_report(dir: &ResultDir, live: Section) -> Result<PathBuf, Failure> {
    let data = ReportData::read(&[dir.path().to_path_buf()])?;
    let options = ReportOptions {
        title: "A tour of Millpond".to_string(),
        relative_to: Some(POLICY_DEFAULT.to_string()),
        note: Some(contest::NOTE.to_string()),
        sections: vec![live],
        ..ReportOptions::default()
    };
    let path = dir.path().join("report.html");
    let page = render(&data, &options);
    write_whole(&path, |out| Ok(out.write_all(page.as_bytes())?))?;
    std::path::absolute(&path).or(Ok(path))
}
