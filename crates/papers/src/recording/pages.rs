//! Traces of the engine for simulated experiments: the page references of one thread, with a
//! pool that holds everything.
//!
//! One thread and a pool without misses make the references depend on the seed alone: the same
//! seed gives the same trace on every machine.

use crate::experiment::{FigureError, Scale, Watch};
use crate::luan::{self, Tpcc};
use crate::watt::{RECORDED, TPCC, YCSB};
use millpond_base::Seed;
use millpond_workload::trace::Batch;
use millpond_workload::ycsb::{self, LoadOrder};
use millpond_workload::{tpcc, trace};

use crate::live::watched::{Watched, failed};
use millpond_bench::error::BenchError;
use millpond_bench::instance::prepare;
use millpond_bench::instance::setup::Setup;
use millpond_bench::run::client::Workload;
use millpond_bench::run::record::Kept;
use millpond_bench::run::runner::{Length, RunSpec};

/// Returns the workload of a trace, and the number of operations per run until the trace is long
/// enough.
fn workload(name: &str, scale: Scale) -> Option<(Workload, u64)> {
    let is_quick = scale == Scale::Quick;
    match name {
        TPCC => {
            let rows = if is_quick { tpcc::Scale::tiny(1) } else { tpcc::Scale::full(1) };
            let operations = if is_quick { 200 } else { 10_000 };
            Some((Workload::Tpcc(tpcc::Config::standard(rows, 1)), operations))
        }
        YCSB => {
            let rows = if is_quick { 5_000 } else { 400_000 };
            let config =
                ycsb::Config { load_order: LoadOrder::Ascending, ..ycsb::Config::watt(rows, 10) };
            Some((Workload::Ycsb(config), RECORDED[usize::from(!is_quick)] as u64 / 2))
        }
        _ => None,
    }
}

/// Records the trace called `name` with `length` references, in pages of 4 KiB.
///
/// # Errors
/// The trace is unknown, the run failed, or `watch` asked to stop.
pub fn recorded(
    name: &str,
    scale: Scale,
    seed: u64,
    watch: &mut dyn Watch,
) -> Result<Batch, FigureError> {
    let (workload, operations) = workload(name, scale)
        .ok_or_else(|| failed(BenchError::Usage(format!("no trace is called '{name}'"))))?;
    let length = RECORDED[usize::from(scale != Scale::Quick)];
    let what = What { page_size: 4096, operations, length };
    Ok(references(&workload, &what, seed, watch)?.batch)
}

/// Records Luan's TPC-C with pages of 8 KiB and the scale's number of warehouses.
///
/// # Errors
/// The run failed, or `watch` asked to stop.
pub fn luan_tpcc(scale: Scale, seed: u64, watch: &mut dyn Watch) -> Result<Tpcc, FigureError> {
    let warehouses = luan::warehouses(scale);
    let rows = match scale {
        Scale::Quick => tpcc::Scale::tiny(warehouses),
        _ => tpcc::Scale::full(warehouses),
    };
    let workload = Workload::Tpcc(tpcc::Config::standard(rows, 1));
    let operations = scale.pick(200, 10_000, 10_000);
    let length = luan::references(scale);
    references(&workload, &What { page_size: 8192, operations, length }, seed, watch)
}

/// Options of a recording.
pub(crate) struct What {
    /// Bytes of a page.
    pub page_size: u32,
    /// Operations per run, until the trace is long enough.
    pub operations: u64,
    /// References.
    pub length: usize,
}

/// Returns the page references of one thread.
///
/// # Errors
/// The run failed, or `watch` asked to stop.
pub(crate) fn references(
    workload: &Workload,
    what: &What,
    seed: u64,
    watch: &mut dyn Watch,
) -> Result<Tpcc, FigureError> {
    Ok(counted_references(workload, what, seed, watch)?.0)
}

/// Returns the page references of one thread, and the approximate number of their operations.
///
/// # Errors
/// The run failed, or `watch` asked to stop.
pub(crate) fn counted_references(
    workload: &Workload,
    what: &What,
    seed: u64,
    watch: &mut dyn Watch,
) -> Result<(Tpcc, u64), FigureError> {
    let options = Setup::new().options.page_size(what.page_size).lab(|lab| lab.seed = Seed(seed).0);
    let setup = Setup { options, records: true, growth: 256 << 20, ..Setup::new() };
    let mut observer = Watched(watch);
    let mut instance = prepare(&setup, workload, &mut observer).map_err(failed)?;
    let data_pages = instance.data_pages().map_err(failed)?;
    let (kept, mut batch) = (Kept::default(), Batch::with_capacity(what.length));
    let recorder = instance.recorders().pages;
    let no_recorder = || failed(BenchError::Usage("this pool cannot record".to_string()));
    recorder.ok_or_else(no_recorder)?.start(Box::new(kept.clone()), false);
    let length = Length::Operations(what.operations);
    let spec = RunSpec { warm_up: Length::NONE, ..RunSpec::of(length) };
    let (mut operations, mut recorded) = (0, 0);
    while batch.len() < what.length {
        let outcome = instance.run(&spec, &mut |_| Ok(()), &mut observer).map_err(failed)?;
        if outcome.was_stopped {
            return Err(FigureError::Stopped);
        }
        let taken = kept.take();
        (operations, recorded) = (operations + what.operations, recorded + taken.len());
        append(&mut batch, &taken, what.length);
    }
    let operations = (operations as f64 * batch.len() as f64 / recorded.max(1) as f64) as u64;
    Ok((Tpcc { batch, data_pages }, operations))
}

/// Appends references up to a length.
fn append(to: &mut trace::Batch, from: &trace::Batch, length: usize) {
    let references = from.pages.iter().zip(&from.marks);
    let room = length.saturating_sub(to.len());
    references.take(room).for_each(|(page, mark)| to.push(*page, *mark));
}
