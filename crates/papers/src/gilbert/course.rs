//! Set-up of gilbert's TPC-C at a scale: its data, its device, its pool, its length.

use std::time::Duration;

use crate::experiment::{Need, Scale};
use millpond::EvictionMode;
use millpond::internals::store::TranslationMode;
use millpond_device::SlowProfile;
use millpond_workload::tpcc;

use super::stated::{self, ATTEMPTS_MAX, STATED};
use crate::live::sizes::RANDOM;
use crate::live::{Job, cores, percent};
use millpond_bench::instance::setup::{DeviceSpec, Setup};
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::Length;

/// Shipped policies that run under the terms of the stated ones, to show the effect of the
/// terms alone.
pub(super) const UNAIDED: [&str; 2] = [RANDOM, "lru"];

/// Needs and set-up of a run of TPC-C at a scale.
pub(super) struct Course {
    scale: Scale,
}

impl Course {
    pub fn new(scale: Scale) -> Course {
        Course { scale }
    }

    /// Returns TPC-C with the data and threads of the scale.
    pub fn workload(&self) -> Workload {
        let miniature = tpcc::Scale { warehouses: 4, items: 10_000, customers: 300 };
        let scale = self.scale.pick(tpcc::Scale::tiny(2), miniature, tpcc::Scale::full(100));
        let threads = self.scale.pick(2, cores().min(12), 12);
        Workload::Tpcc(tpcc::Config::standard(scale, threads))
    }

    fn need(&self) -> Need {
        let (seconds, mib) = self.scale.pick((0.3, 128), (1.2, 512), (660.0, 80 << 10));
        Need { seconds, memory: mib << 20, disk: 0 }
    }

    /// Returns the job of a policy in a pool.
    pub fn job(&self, share: f64, policy: &str) -> Job {
        let setup = Setup::new();
        let page_size = self.scale.pick(4096, 4096, 8192);
        let options = setup.options.policy(policy).page_size(page_size);
        // As in his engine, the thread that misses finds the victim.
        let options = options.lab(|lab| lab.eviction = EvictionMode::Worker);
        let sata = DeviceSpec::Slow(SlowProfile::SATA);
        let device = self.scale.pick(DeviceSpec::Memory, sata.clone(), sata);
        let time = |ms| Length::Time(Duration::from_millis(ms));
        // Enough operations to reference nearly every existing page.
        let (some, warm) = (Length::Operations(50), Length::Operations(3000));
        let warm_up = self.scale.pick(some, warm, Length::NONE);
        let measure = self.scale.pick(Length::Operations(200), time(800), time(600_000));
        Job {
            axes: vec![("percent", share.into()), ("policy", policy.into())],
            setup: Setup {
                options,
                pool: Some(percent(share)),
                device,
                warms_up_fast: self.scale == Scale::Standard,
                ..setup
            },
            workload: self.workload(),
            warm_up,
            measure,
            need: self.need(),
        }
    }

    /// Returns a job called `name` with a page table and without the starvation guard, so
    /// that no page is held for a starving operation.
    pub fn unaided(&self, share: f64, policy: &str, name: &str) -> Job {
        let mut job = self.job(share, policy);
        job.setup.options.own_policies = stated::policies();
        job.setup.options.lab.attempts_max = Some(ATTEMPTS_MAX);
        // As in his engine, a page may be evicted before the pages below it.
        job.setup.options.lab.translation = TranslationMode::Hashed;
        // Otherwise the schedule of the background writer would decide when dirty pages can
        // be evicted.
        job.setup.options.lab.background_writer = false;
        job.axes = vec![("percent", share.into()), ("policy", name.into())];
        job
    }

    /// Returns the jobs of his definitions of the stalled policies, and of others under the
    /// same terms.
    pub fn stated(&self, share: f64) -> Vec<Job> {
        let all = |&policy: &&str| self.unaided(share, policy, policy);
        let mut jobs: Vec<Job> = STATED[..self.scale.pick(1, 5, 5)].iter().map(all).collect();
        jobs.extend(UNAIDED.iter().map(|policy| self.unaided(share, policy, &unaided(policy))));
        jobs
    }
}

/// Returns the name of a shipped policy under the terms of the stated ones.
pub(super) fn unaided(policy: &str) -> String {
    format!("{policy}, unaided")
}
