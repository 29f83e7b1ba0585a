//! Recording of the requests that live pools send to storage, for simulated second tiers (li 3.4.1,
//! 5.6.2.1).
//!
//! Eviction threads and checkpoints run beside the workload's thread, so two runs of one seed do
//! not send quite the same requests.

use std::num::NonZero;
use std::sync::{Arc, Mutex};

use crate::experiment::{FigureError, Watch};
use crate::li::{Course, FirstTier, Recorded};
use millpond::internals::pool::{StorageRequest, StorageSink};
use millpond::internals::store::SyncMode;
use millpond::{EvictionMode, Placement};
use millpond_base::PastPoison;
use millpond_base::Size;
use millpond_base::cleaning::Cleaning;
use millpond_workload::tpcc;

use crate::live::watched::{Watched, failed};
use crate::recording::pages::{What, counted_references};
use millpond_bench::error::BenchError;
use millpond_bench::instance::setup::Setup;
use millpond_bench::instance::{Recorders, prepare};
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::{Length, RunSpec};

/// His DB2's replacement policy is a generalised CLOCK (5.6.1.3).
const POLICY: &str = "gclock-v1";
/// Page cleaners. He has 50, for a thousand agents; here one thread runs transactions.
const CLEANERS: NonZero<u32> = NonZero::<u32>::MIN.saturating_add(1);

/// Requests that are kept in memory.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Recorded>>);

impl StorageSink for Kept {
    fn take(&mut self, requests: &[StorageRequest]) -> Result<(), String> {
        let mut kept = self.0.lock().past_poison();
        for request in requests {
            kept.batch.push(request.page.0, request.mark);
            kept.rec_lsns.push(request.rec_lsn.0);
        }
        Ok(())
    }
}

fn workload(course: &Course) -> Workload {
    let rows = match course.is_tiny {
        true => tpcc::Scale::tiny(course.warehouses),
        false => tpcc::Scale::full(course.warehouses),
    };
    Workload::Tpcc(tpcc::Config::standard(rows, 1))
}

/// The engine of a first tier: his DB2's settings (li table 3.1).
fn setup(first_tier: &FirstTier, course: &Course, seed: u64) -> Setup {
    let options = Setup::new().options.page_size(course.page_size).policy(POLICY);
    let options = options.log_gap(first_tier.gap_bytes(course)).lab(|lab| {
        lab.log = true;
        lab.eviction = EvictionMode::Threads(CLEANERS);
        lab.cleaning = Some(Cleaning::default());
        lab.seed = seed;
        if first_tier.has_sync_list {
            lab.placement = Placement::InPlace;
            lab.sync_mode = SyncMode::Ranges;
        }
    });
    let transactions = first_tier.warm_up(course) + first_tier.transactions(course);
    let growth = workload(course).bytes_added(transactions) + (16 << 20);
    let pool = Some(Size::Share(first_tier.percent / 100.0));
    Setup { options, pool, growth, ..Setup::new() }
}

/// Records what a first tier asks of storage once it is warm, or for `None` the page references
/// of one thread in a pool that holds everything.
///
/// # Errors
/// The run failed, or `watch` asked to stop.
pub fn li(
    first_tier: Option<&FirstTier>,
    course: &Course,
    seed: u64,
    watch: &mut dyn Watch,
) -> Result<Recorded, FigureError> {
    let workload = workload(course);
    let Some(first_tier) = first_tier else {
        let operations = (course.references as u64 / 1000).clamp(200, 10_000);
        let what = What { page_size: course.page_size, operations, length: course.references };
        let (recorded, transactions) = counted_references(&workload, &what, seed, watch)?;
        let (batch, data_pages) = (recorded.batch, recorded.data_pages);
        return Ok(Recorded { batch, data_pages, transactions, ..Recorded::default() });
    };
    let mut observer = Watched(watch);
    let setup = setup(first_tier, course, seed);
    let mut instance = prepare(&setup, &workload, &mut observer).map_err(failed)?;
    let kept = Kept::default();
    let mut spec = RunSpec::of(Length::Operations(first_tier.transactions(course)));
    spec.warm_up = Length::Operations(first_tier.warm_up(course));
    let sink = kept.clone();
    let mut start = |recorders: Recorders<'_>| {
        let no_pool = || BenchError::Usage("this engine has no pool to record".to_string());
        recorders.storage.ok_or_else(no_pool)?.start(Box::new(sink.clone()));
        Ok(())
    };
    let outcome = instance.run(&spec, &mut start, &mut observer).map_err(failed)?;
    if let Some(recorder) = instance.recorders().storage {
        recorder.stop().map_err(|error| failed(BenchError::Record(error)))?;
    }
    if outcome.was_stopped {
        return Err(FigureError::Stopped);
    }
    let data_pages = instance.info().pages;
    let recorded = std::mem::take(&mut *kept.0.lock().past_poison());
    Ok(Recorded { data_pages, ..recorded })
}
