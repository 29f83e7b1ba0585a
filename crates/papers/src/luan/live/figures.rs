//! Luan's live figures (luan 5.7): logical reads, execution time, and the cost of sharing with
//! TPC-C, for his thirteen policies.
//!
//! His data are ten warehouses, about 900 MB, and a run takes 1,200 seconds. Here a pool is the
//! same share of the data. I/O-bound runs use memory that is slowed down to a SATA drive after
//! the warm-up. Processor times are measured over plain memory, without waits for the device's
//! clock.

use crate::experiment::{About, Figure, Need, Scale};
use crate::luan::live::{
    CPU, HIS_PAGES, IO, RANDOM, draw_reads, draw_sharing, draw_times, policies,
};
use crate::luan::warehouses;
use millpond_base::Size;
use millpond_device::SlowProfile;
use millpond_lab::table::Value;
use millpond_workload::tpcc;

use crate::live::{End, Job, LiveFigure, Loaded, cores, lengths, row};
use millpond_bench::experiments::table::Row;
use millpond_bench::instance::Instance;
use millpond_bench::instance::setup::{DeviceSpec, Setup};
use millpond_bench::run::client::Workload;

const FIG_16: About = About {
    id: "16",
    title: "TPC-C logical reads, live (figures 16 and 19, tables 2 and 6)",
    asks: "How many logical reads are there in the same span of time, by policy and pool size, and \
           do they follow the hit ratio?",
    says: "FBR is the best and LIRS the worst; logical reads grow with hit ratio, and the same \
           gain of hit ratio brings more where it is high.",
};

const FIG_17: About = About {
    id: "17",
    title: "TPC-C execution time, live (figures 17 and 20, table 7)",
    asks: "What processor time does a logical read take, and does it decide where hardly a page is \
           missed?",
    says: "FBR takes longest, CLOCK and GCLOCK the least; bound by the CPU, logical reads follow \
           hit ratio less.",
};

const FIG_18: About = About {
    id: "18",
    title: "TPC-C, what sharing the pool costs a logical read, live (figure 18)",
    asks: "How much longer does a logical read take where several workers share the policy?",
    says: "GCLOCK, CLOCK, CAR and CART spend less time on locks than the others; LRU's is very \
           high.",
};

/// Sizes of figure 16: half of those in his table 2, and all of them at the paper scale.
const SIZES: [u32; 5] = [2560, 5120, 10_240, 17_920, 25_600];
/// Sizes of figure 17, the last two those of figure 20.
const CPU_SIZES: [u32; 5] = [2560, 10_240, 25_600, 89_600, 102_400];
/// Sizes of figure 17 that wait for the device, for comparison.
const IO_SIZES: [u32; 2] = [2560, 10_240];

/// Returns the sizes of figure 16.
fn sizes(scale: Scale) -> Vec<u32> {
    match scale {
        Scale::Quick => vec![SIZES[2], SIZES[4]],
        Scale::Standard => SIZES.to_vec(),
        Scale::Paper => (1..=10).map(|at| at * 2560).collect(),
    }
}

/// Machine of a run: device, pool size, threads and time.
struct Place {
    scale: Scale,
    device: DeviceSpec,
    /// Size of the pool in pages of his data; `None` for a pool with room for everything.
    size: Option<u32>,
    threads: u32,
    seconds: f64,
}

impl Place {
    fn job(&self, axes: Vec<(&'static str, Value)>, by: &str) -> Job {
        let scale = self.scale;
        let of_data = warehouses(scale);
        let rows = match scale {
            Scale::Quick => tpcc::Scale::tiny(of_data * 2),
            _ => tpcc::Scale::full(of_data),
        };
        let workload = Workload::Tpcc(tpcc::Config::standard(rows, self.threads));
        let (warm_up, measure) = lengths(scale, &workload, self.seconds, 0.5);
        let setup = Setup::new();
        let options = setup.options.page_size(8192).policy(by);
        let pool = self.size.map(|size| Size::Share(f64::from(size) / HIS_PAGES));
        // The data twice, a pool with room for everything, and its growth.
        let memory = scale.pick(256 << 20, 3 << 30, 64 << 30);
        Job {
            axes,
            setup: Setup {
                options,
                pool,
                device: self.device.clone(),
                warms_up_fast: true,
                growth: scale.pick(64 << 20, 512 << 20, 32 << 30),
                ..setup
            },
            workload,
            warm_up,
            measure,
            need: Need { seconds: self.seconds * 1.5 + 0.7, memory, disk: 0 },
        }
    }
}

/// Returns a run's row: time and replaced pages per logical read.
fn rows(job: &Job, end: &End, instance: &dyn Instance) -> Vec<Row> {
    let of_run = row(job, end, instance).with("by", instance.info().policy.as_str());
    let End::Ran(outcome) = end else { return vec![of_run] };
    let counts = outcome.counts.unwrap_or_default();
    let reads = counts.references.max(1) as f64;
    let worker_s = outcome.seconds * f64::from(outcome.threads);
    let of_run = of_run
        .with("logical_reads", counts.references)
        .with("logical_reads_per_s", reads / outcome.seconds.max(1e-9))
        .with("execution_us", outcome.cpu_s * 1e6 / reads)
        .with("worker_us", worker_s * 1e6 / reads)
        .with("evictions_per_read", counts.evictions as f64 / reads)
        .with("latch_conflicts_per_read", counts.latch_conflicts as f64 / reads)
        .with("latch_ns_per_read", counts.latch_ns as f64 / reads)
        .with("read_share", counts.read_ns as f64 / 1e9 / worker_s.max(1e-9));
    vec![of_run]
}

fn sata(scale: Scale) -> DeviceSpec {
    match scale {
        Scale::Quick => DeviceSpec::Memory,
        _ => DeviceSpec::Slow(SlowProfile::SATA),
    }
}

fn figure_16(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let mut jobs = Vec::new();
    for size in sizes(scale) {
        let seconds = scale.pick(0.05, 0.8, 1200.0);
        let threads = cores();
        let place = Place { scale, device: sata(scale), size: Some(size), threads, seconds };
        jobs.extend(policies().iter().map(|(name, by)| {
            place.job(vec![("size", size.into()), ("policy", (*name).into())], by)
        }));
    }
    LiveFigure::new(FIG_16, jobs, loaded, draw_reads).with_rows(rows)
}

fn figure_17(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let io = IO_SIZES.into_iter().map(|size| (IO, sata(scale), size));
    let cpu = CPU_SIZES.into_iter().map(|size| (CPU, DeviceSpec::Memory, size));
    let mut jobs = Vec::new();
    // The smallest pools are too small for the data of the quick scale.
    for (bound, device, size) in io.chain(cpu).filter(|at| scale != Scale::Quick || at.2 > 10_000) {
        let seconds = scale.pick(0.05, 0.5, 1200.0);
        let place = Place { scale, device, size: Some(size), threads: cores(), seconds };
        jobs.extend(policies().iter().map(|(name, by)| {
            let axes = [("bound", bound.into()), ("size", size.into()), ("policy", (*name).into())];
            place.job(axes.to_vec(), by)
        }));
    }
    LiveFigure::new(FIG_17, jobs, loaded, draw_times).with_rows(rows)
}

fn figure_18(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let mut all = policies();
    all.push((RANDOM, "random".to_string()));
    let mut jobs = Vec::new();
    for threads in [1, cores().max(2)] {
        let seconds = scale.pick(0.05, 0.5, 60.0);
        let place = Place { scale, device: DeviceSpec::Memory, size: None, threads, seconds };
        jobs.extend(all.iter().map(|(name, by)| {
            place.job(vec![("workers", threads.into()), ("policy", (*name).into())], by)
        }));
    }
    LiveFigure::new(FIG_18, jobs, loaded, draw_sharing).with_rows(rows)
}

/// Returns the live figures for one scale.
pub fn figures(scale: Scale) -> Vec<Box<dyn Figure>> {
    let loaded = Loaded::default();
    let all = [figure_16(scale, &loaded), figure_17(scale, &loaded), figure_18(scale, &loaded)];
    all.into_iter().map(|figure| Box::new(figure) as Box<dyn Figure>).collect()
}
