//! Destinations of a live run's results: the table, a plot, the time series.

use std::path::{Path, PathBuf};

use millpond_bench::experiments::table::Row;
use millpond_lab::report::Line;
use millpond_lab::table::Table;
use serde_json::Value as Json;

use crate::error::Failure;
use crate::output::{Form, Output, apart, write_whole};

/// Form and place of what a run came to.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    #[command(flatten)]
    output: Output,
    /// Short for --format json
    #[arg(long, conflicts_with_all = ["format", "csv"])]
    json: bool,
    /// Short for --format csv
    #[arg(long, conflicts_with = "format")]
    csv: bool,
    /// Draw a plot into this HTML file
    #[arg(long, visible_alias = "html", value_name = "FILE")]
    plot: Option<PathBuf>,
}

impl ResultArgs {
    fn output(&self) -> Output {
        let mut output = self.output.clone();
        if self.json {
            output.format = Form::Json;
        } else if self.csv {
            output.format = Form::Csv;
        }
        output
    }

    /// Fails before the run if the results could not be written after it.
    pub fn check(&self) -> Result<(), Failure> {
        self.output().check([])
    }

    /// Like `check`, and also refuses to overwrite the files that the command reads.
    pub(crate) fn check_beside(&self, inputs: [&PathBuf; 2]) -> Result<(), Failure> {
        apart(self.plot.as_deref(), inputs)?;
        self.output().check(inputs)
    }

    /// Writes the rows; a table for people leaves out the columns without content.
    pub fn write(&self, command: &str, params: &Json, table: &Table) -> Result<(), Failure> {
        let output = self.output();
        let table = match output.format {
            Form::Table => &table.without_idle_columns(9).with_first(answers(command)),
            _ => table,
        };
        output.write(command, params, table)
    }

    /// Writes `parts` for people, and the rows in any other form.
    pub fn write_parts(
        &self,
        command: &str,
        params: &Json,
        table: &Table,
        parts: &[(String, Table)],
    ) -> Result<(), Failure> {
        let output = self.output();
        match output.format {
            Form::Table => output.write_parts(parts),
            _ => output.write(command, params, table),
        }
    }

    /// Draws the plot, a page of HTML, if one is asked for.
    pub fn draw(&self, page: impl FnOnce() -> String) -> Result<(), Failure> {
        let Some(path) = &self.plot else { return Ok(()) };
        let html = page();
        write_whole(path, |out| Ok(out.write_all(html.as_bytes())?))
    }
}

/// Main columns of `bench phases`.
const ANSWERS_OF_PHASES: [&str; 11] = [
    "step",
    "threads",
    "rows_per_s",
    "rows_per_s_low",
    "rows_per_s_high",
    "tx_per_s",
    "p50_us",
    "p99_us",
    "cpu_us_per_row",
    "disk_mib",
    "peak_mib",
];

/// Returns the main columns of a command, which come first in its table.
fn answers(command: &str) -> &'static [&'static str] {
    match command {
        "bench scan" => &["table", "pool", "mib_per_s", "rows_per_s", "reads_per_s", "hit_ratio"],
        "bench outgrow" => &[
            "step",
            "data_over_pool",
            "throughput_per_s",
            "throughput_low",
            "throughput_high",
            "hit_ratio",
            "reads_per_tx",
            "share_of_device",
        ],
        "bench ladder" | "bench affinity" | "bench acid" => &[
            "workload",
            "step",
            "threads",
            "throughput_per_s",
            "ratio_to_first",
            "ratio_to_first_low",
            "ratio_to_first_high",
        ],
        "bench commits" => &[
            "threads",
            "durability",
            "segment_kib",
            "ratio_to_first",
            "ratio_to_first_low",
            "ratio_to_first_high",
            "commits_per_s",
            "commits_per_s_low",
            "commits_per_s_high",
            "ratio_to_probe",
            "ratio_to_probe_low",
            "ratio_to_probe_high",
        ],
        "bench phases" => &ANSWERS_OF_PHASES,
        "bench evictors" => &[
            "step",
            "policy",
            "threads",
            "evictions_per_s",
            "ratio_to_first",
            "ratio_to_first_low",
            "ratio_to_first_high",
        ],
        "bench opening" => &[
            "policy",
            "ms",
            "ms_low",
            "ms_high",
            "ratio_to_first",
            "ratio_to_first_low",
            "ratio_to_first_high",
        ],
        "bench two-worlds" => {
            &["policy", "distortion", "worlds", "miss_ratio", "vs_none", "misses", "references"]
        }
        _ => &[
            "step",
            "engine",
            "threads",
            "throughput_per_s",
            "p50_us",
            "p99_us",
            "hit_ratio",
            "tier_served",
        ],
    }
}

/// Writes rows to a file in the form that its ending names: .csv, .json or .parquet.
pub(crate) fn write_file(
    path: &Path,
    command: &str,
    params: &Json,
    rows: Vec<Row>,
) -> Result<(), Failure> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let format = match extension {
        "csv" => Form::Csv,
        "json" => Form::Json,
        "parquet" => Form::Parquet,
        _ => {
            let name = path.display();
            let text = format!("{name}: end the name in .csv, .json or .parquet");
            return Err(Failure::Usage(text));
        }
    };
    let output = Output { format, out: Some(path.to_path_buf()), wide: true };
    output.write(command, params, &millpond_bench::experiments::table::table(rows))
}

/// Makes a plot's line from two columns of rows.
pub(crate) fn line(label: &str, table: &Table, x: &str, y: &str) -> Line {
    let number = |row: usize, name: &str| table.get(row, name).and_then(|v| v.number());
    let points = (0..table.rows.len()).filter_map(|row| Some((number(row, x)?, number(row, y)?)));
    Line { label: label.to_string(), points: points.collect(), ..Line::default() }
}
