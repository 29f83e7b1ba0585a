//! One unit: its parameters, its name, its rows.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::str::FromStr;

use millpond_base::{Share, Size};
use millpond_policies::config::{ParamError, Spec};
use millpond_workload::formats::{self, Format, ReadOptions};
use millpond_workload::trace::TraceError;
use serde_json::{Value as Json, json};
use xxhash_rust::xxh3::xxh3_64;

use super::content::{content_hash, sources};
use crate::registry::{PolicyError, Registry};
use crate::results::{ResultError, UNIT};
use crate::sim::Stalled;
use crate::sweep::{
    Model, Observer, Plan, Row, Shard, Sweep, SweepError, TraceInput, Warmup, rows_to_table,
};
use crate::table::{Table, TableError};

/// Maximum number of sizes times seeds in one unit: a lost machine, or another read of the trace,
/// costs little.
pub const CELLS_MAX: usize = 16;

/// Column that units leave out, because a time depends on the machine.
const TIME: &str = "ns_per_reference";

/// Returns rows as units store them, without times.
pub fn table_of(rows: &[Row]) -> Table {
    rows_to_table(rows).without(TIME)
}

/// Reason why a unit could not be created or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// The file of a trace could not be read.
    #[error("{path}: {error}", path = .path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// A description of the fault.
        error: String,
    },
    /// The simulation failed.
    #[error(transparent)]
    Sweep(Box<SweepError>),
    /// A policy does not exist, or cannot run as asked.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A run found no victim.
    #[error("{0}")]
    Stalled(String),
    /// The result could not be written.
    #[error(transparent)]
    Result(#[from] ResultError),
    /// The sweep cannot be cut into units.
    #[error("{0}")]
    Plan(String),
    /// No version wrote this description of a unit.
    #[error("not the description of a unit: {0}")]
    Description(String),
    /// The unit to run is not the requested one.
    #[error(
        "unit {wanted} is {found} here: {path} has another content on this machine, or another \
         build of millpond is installed", path = .path.display()
    )]
    Other {
        /// The requested name.
        wanted: String,
        /// The name of the unit here.
        found: String,
        /// The trace.
        path: PathBuf,
    },
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

impl From<SweepError> for UnitError {
    fn from(error: SweepError) -> UnitError {
        UnitError::Sweep(Box::new(error))
    }
}

/// A trace in a file.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceFile {
    /// The name of the trace in results.
    pub name: String,
    /// Path of the file.
    pub path: PathBuf,
    /// Format of the file, if detection fails.
    pub format: Option<String>,
    /// Meaning of the columns of a CSV file: `page=3,op=5`.
    pub columns: Option<String>,
    /// Meanings of words for operations: `gets=R,D=skip`.
    pub ops: Option<String>,
    /// `true` if an object of several pages counts as that many references.
    pub expand_sizes: bool,
    /// `true` if ids are numbered by first appearance even if they look like numbers.
    pub map_ids: bool,
}

impl TraceFile {
    /// Returns the options for reading the file.
    ///
    /// # Errors
    /// [`TraceError::Options`].
    pub fn options(&self, page_size: u64) -> Result<ReadOptions, TraceError> {
        Ok(ReadOptions {
            format: self.format.as_deref().map(Format::from_str).transpose()?,
            columns: self.columns.as_deref().map(str::parse).transpose()?,
            ops: self.ops.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
            page_size,
            expand_sizes: self.expand_sizes,
            map_ids: self.map_ids,
        })
    }

    /// Returns the reading options in the form of results.
    pub(super) fn reading(&self) -> Json {
        json!({
            "format": self.format,
            "columns": self.columns,
            "ops": self.ops,
            "expand_sizes": self.expand_sizes,
            "map_ids": self.map_ids,
        })
    }

    fn failed(&self, error: &impl ToString) -> UnitError {
        UnitError::Trace { path: self.path.clone(), error: error.to_string() }
    }
}

/// The settings that all units of a plan have in common.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Bytes per page.
    pub page_size: u64,
    /// References at the beginning that are not counted.
    pub warmup: Warmup,
    /// Blocks of a trace; 0 for none.
    pub blocks: u32,
    /// Frames evicted at a time.
    pub batch: u32,
    /// `true` if frames that only marked scans have referenced are evicted first.
    pub scan_hints: bool,
    /// The host of the policies.
    pub model: Model,
    /// Bytes charged for each ghost of an out queue.
    pub charge_ghosts: u64,
}

impl Settings {
    /// Returns the settings of a plan.
    pub fn of(plan: &Plan) -> Settings {
        Settings {
            page_size: plan.page_size,
            warmup: plan.warmup,
            blocks: plan.blocks,
            batch: plan.batch,
            scan_hints: plan.scan_hints,
            model: plan.model,
            charge_ghosts: plan.charge_ghosts,
        }
    }

    /// Returns the settings in their written form.
    pub fn json(&self) -> Json {
        json!({
            "page_size": self.page_size,
            "warmup": match self.warmup {
                Warmup::References(n) => n.to_string(),
                Warmup::Share(share) => Share(share).to_string(),
            },
            "blocks": self.blocks,
            "batch": self.batch,
            "scan_hints": self.scan_hints,
            "model": self.model.to_string(),
            "charge_ghosts": self.charge_ghosts,
        })
    }

    fn read(json: &Json) -> Result<Settings, UnitError> {
        let warmup = text(json, "warmup")?.parse().map_err(UnitError::Description)?;
        let model = text(json, "model")?;
        let models = [Model::Pool, Model::Read, Model::Rw];
        let model = models.into_iter().find(|known| known.to_string() == model);
        Ok(Settings {
            page_size: number(json, "page_size")?,
            warmup,
            blocks: small(json, "blocks")?,
            batch: small(json, "batch")?,
            scan_hints: truth(json, "scan_hints")?,
            model: model.ok_or_else(|| UnitError::Description("no model".to_string()))?,
            charge_ghosts: number(json, "charge_ghosts")?,
        })
    }
}

/// One trace and one policy at some sizes, with some seeds.
#[derive(Clone, PartialEq, Debug)]
pub struct Unit {
    /// The trace.
    pub trace: TraceFile,
    /// The policy, with its parameters.
    pub policy: String,
    /// The sizes.
    pub sizes: Vec<String>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The settings shared with other units.
    pub settings: Settings,
}

/// Returns the units of a sweep, or of one part of them, over traces in files. The traces of the
/// plan itself are ignored.
///
/// Each trace begins with another policy, so that parts do not have the same policies of all
/// traces. Units with the most [`Unit::work`] are first.
///
/// # Errors
/// [`UnitError`] for faults that are visible before anything runs.
pub fn units(
    traces: &[TraceFile],
    plan: &Plan,
    registry: &Registry,
) -> Result<Vec<Unit>, UnitError> {
    let settings = Settings::of(plan);
    plan.check_numbers().map_err(UnitError::Plan)?;
    for (at, trace) in traces.iter().enumerate() {
        if let Some(twin) = traces[..at].iter().find(|other| other.name == trace.name) {
            let what = if twin.path == trace.path { "given twice" } else { "two different files" };
            let text = format!("the trace {} is {what}: rows are told apart by it", trace.name);
            return Err(UnitError::Plan(text));
        }
        if formats::is_read_once(&trace.path) {
            let name = &trace.name;
            let text = format!("{name} can be read only once: store it in a file for a sweep");
            return Err(UnitError::Plan(text));
        }
    }
    let mut all = Vec::new();
    for (turn, trace) in traces.iter().enumerate() {
        for at in 0..plan.policies.len() {
            let spec = &plan.policies[(at + turn) % plan.policies.len()];
            // A policy that draws nothing runs with the first seed only, as in a plan.
            let is_random = registry.find(&spec.id)?.is_random;
            let seeds =
                if is_random { &plan.seeds[..] } else { &plan.seeds[..plan.seeds.len().min(1)] };
            for seeds in seeds.chunks(CELLS_MAX) {
                for sizes in plan.sizes.chunks(CELLS_MAX / seeds.len()) {
                    all.push(Unit {
                        trace: trace.clone(),
                        policy: spec.to_string(),
                        sizes: sizes.iter().map(Size::to_string).collect(),
                        seeds: seeds.to_vec(),
                        settings: settings.clone(),
                    });
                }
            }
        }
    }
    if let (Some(first), Some(trace)) = (all.first(), traces.first()) {
        // A fault of the settings, or of any policy, is a fault of the whole sweep.
        let mut whole = first.plan()?;
        whole.policies = plan.policies.clone();
        whole.traces =
            vec![first.input(trace.options(plan.page_size).map_err(|e| trace.failed(&e))?)];
        Sweep::new(&whole, registry)?;
    } else {
        return Err(UnitError::Plan(
            "nothing to run: a sweep has traces, policies, sizes and seeds".to_string(),
        ));
    }
    if let Some(Shard { index, count }) = plan.shard {
        let (index, count) = (index as usize - 1, count as usize);
        let mut at = 0;
        all.retain(|_| {
            at += 1;
            (at - 1) % count == index
        });
    }
    // A long unit that began last would run alone. Units of one trace stay together.
    all.sort_by_cached_key(|unit| Reverse(unit.work()));
    Ok(all)
}

impl Unit {
    /// Returns the trace and the policy, for people.
    pub fn label(&self) -> String {
        format!("{}, {}", self.trace.name, self.policy)
    }

    /// Returns the number of simulations in the unit.
    pub fn cells(&self) -> usize {
        self.sizes.len() * self.seeds.len()
    }

    /// Returns the whole unit except the trace's content and place.
    fn described(&self) -> Json {
        let mut all = self.trace.reading();
        all["trace"] = json!(self.trace.name);
        all["policy"] = json!(self.policy);
        all["sizes"] = json!(self.sizes);
        all["seeds"] = json!(self.seeds);
        all["settings"] = self.settings.json();
        all
    }

    /// Returns the inputs of the unit's rows: the parameters, the trace's content, and the
    /// program's sources. A policy that is not Millpond's adds the program itself.
    ///
    /// # Errors
    /// [`UnitError::Trace`] if the trace cannot be read.
    pub fn key(&self, registry: &Registry) -> Result<Json, UnitError> {
        let trace = &self.trace;
        let content = content_hash(&trace.path).map_err(|error| trace.failed(&error))?;
        let mut key = self.described();
        key["content"] = format!("{content:016x}").into();
        key["sources"] = sources().into();
        let id = self.policy.split('(').next().unwrap_or_default();
        if Registry::builtin().find(id).is_err() && registry.find(id).is_ok() {
            key["program"] = crate::results::build_id().into();
        }
        Ok(key)
    }

    /// Returns the name of the unit's file, without `.parquet`: a hash of its key.
    ///
    /// # Errors
    /// The errors of [`Unit::key`].
    pub fn name(&self, registry: &Registry) -> Result<String, UnitError> {
        Ok(name_of(&self.key(registry)?))
    }

    /// Returns a text that describes the unit to another machine.
    pub fn describe(&self) -> String {
        let mut all = self.described();
        all["path"] = self.trace.path.display().to_string().into();
        all.to_string()
    }

    /// Parses a text that `describe` returned.
    ///
    /// # Errors
    /// [`UnitError::Description`].
    pub fn read(description: &str) -> Result<Unit, UnitError> {
        let json: Json = serde_json::from_str(description)
            .map_err(|error| UnitError::Description(error.to_string()))?;
        let optional = |name: &str| json[name].as_str().map(str::to_string);
        let list = |name: &str| {
            json[name].as_array().ok_or_else(|| UnitError::Description(format!("no {name}")))
        };
        Ok(Unit {
            trace: TraceFile {
                name: text(&json, "trace")?.to_string(),
                path: text(&json, "path")?.into(),
                format: optional("format"),
                columns: optional("columns"),
                ops: optional("ops"),
                expand_sizes: truth(&json, "expand_sizes")?,
                map_ids: truth(&json, "map_ids")?,
            },
            policy: text(&json, "policy")?.to_string(),
            sizes: list("sizes")?.iter().filter_map(Json::as_str).map(str::to_string).collect(),
            seeds: list("seeds")?.iter().filter_map(Json::as_u64).collect(),
            settings: Settings::read(&json["settings"])?,
        })
    }

    fn input(&self, options: ReadOptions) -> TraceInput {
        let path = self.trace.path.clone();
        TraceInput {
            name: self.trace.name.clone(),
            open: Box::new(move || formats::open(&path, &options)),
            repeatable: true,
            fingerprint: String::new(),
        }
    }

    /// Returns the unit as a plan, run by one thread.
    ///
    /// # Errors
    /// [`UnitError`] if a policy, a size or an option of the trace cannot be.
    pub fn plan(&self) -> Result<Plan, UnitError> {
        let wrong = |error: String| UnitError::Plan(error);
        let spec = Spec::parse(&self.policy).map_err(|e: ParamError| wrong(e.to_string()))?;
        let sizes: Result<Vec<Size>, _> = self.sizes.iter().map(|size| size.parse()).collect();
        let sizes = sizes.map_err(|e: millpond_base::SizeError| wrong(e.to_string()))?;
        let mut plan = Plan::new(vec![spec], sizes);
        let settings = &self.settings;
        let options = self.trace.options(settings.page_size).map_err(|e| self.trace.failed(&e))?;
        plan.traces = vec![self.input(options)];
        plan.seeds = self.seeds.clone();
        plan.page_size = settings.page_size;
        plan.warmup = settings.warmup;
        plan.blocks = settings.blocks;
        plan.batch = settings.batch;
        plan.scan_hints = settings.scan_hints;
        plan.model = settings.model;
        plan.charge_ghosts = settings.charge_ghosts;
        plan.threads = 1;
        Ok(plan)
    }

    /// Runs the unit on `threads` threads, and calls `stop` often. With `wanted`, a unit with
    /// another name here is refused.
    ///
    /// # Errors
    /// [`UnitError`].
    pub fn run(
        &self,
        registry: &Registry,
        threads: usize,
        wanted: Option<&str>,
        stop: &dyn Fn() -> bool,
    ) -> Result<UnitRun, UnitError> {
        let key = self.key(registry)?;
        let found = name_of(&key);
        if let Some(wanted) = wanted.filter(|wanted| **wanted != found) {
            let path = self.trace.path.clone();
            return Err(UnitError::Other { wanted: wanted.to_string(), found, path });
        }
        let mut plan = self.plan()?;
        plan.threads = threads;
        let mut rows = Rows { rows: Vec::new(), stalled: None, notes: Vec::new(), stop };
        Sweep::new(&plan, registry)?.run(&mut rows)?;
        rows.stalled.map_or(Ok(()), |stalled| Err(UnitError::Stalled(stalled)))?;
        if stop() {
            return Err(UnitError::Stopped);
        }
        let bytes = table_of(&rows.rows).parquet_bytes(&[(UNIT, &key.to_string())]);
        let file = bytes.map_err(|error: TableError| UnitError::Result(error.into()))?;
        Ok(UnitRun { file, notes: rows.notes })
    }
}

fn name_of(key: &Json) -> String {
    format!("{:016x}", xxh3_64(key.to_string().as_bytes()))
}

/// Result of running a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitRun {
    /// The bytes of the unit's file.
    pub file: Vec<u8>,
    /// The reader's notes on the trace.
    pub notes: Vec<String>,
}

struct Rows<'a> {
    rows: Vec<Row>,
    stalled: Option<String>,
    notes: Vec<String>,
    stop: &'a dyn Fn() -> bool,
}

impl Observer for Rows<'_> {
    fn stop(&self) -> bool {
        (self.stop)()
    }

    fn row(&mut self, row: Row) -> Result<(), SweepError> {
        self.rows.push(row);
        Ok(())
    }

    fn stalled(&mut self, stalled: &Stalled) {
        self.stalled.get_or_insert_with(|| stalled.to_string());
    }

    fn note(&mut self, _trace: &str, note: &str) {
        self.notes.push(note.to_string());
    }
}

fn missing(name: &str) -> UnitError {
    UnitError::Description(format!("no {name}"))
}

fn text<'j>(json: &'j Json, name: &str) -> Result<&'j str, UnitError> {
    json[name].as_str().ok_or_else(|| missing(name))
}

fn number(json: &Json, name: &str) -> Result<u64, UnitError> {
    json[name].as_u64().ok_or_else(|| missing(name))
}

fn small(json: &Json, name: &str) -> Result<u32, UnitError> {
    number(json, name)?.try_into().map_err(|_| missing(name))
}

fn truth(json: &Json, name: &str) -> Result<bool, UnitError> {
    json[name].as_bool().ok_or_else(|| missing(name))
}
