//! A database system, its file cache and its disks, as in the thesis (li 4.4).

use millpond_base::Share;
use millpond_workload::trace::Source;

use super::served::Served;
use crate::experiment::FigureError;
use crate::storage::{
    Array, ArraySpec, Device, DiskSpec, Elevator, Nanos, Single, System, SystemOptions, SystemStat,
};
use millpond_lab::tier1::{SyncRule, Tier1Options};

/// Bytes of an InnoDB page.
pub(super) const PAGE_BYTES: u64 = 16 << 10;
/// Sectors of a page.
pub(super) const PAGE: u64 = PAGE_BYTES / 512;

/// InnoDB's default for the share of the pool that may be dirty.
const POOL_DIRTY: f64 = 0.9;
/// Share of the gap that a recovery frees, which is small, as in InnoDB.
const FREED: f64 = 1.0 / 32.0;
/// Pages per background write of the kernel: 1,024 of 4 KiB, as in Linux.
const BATCH: usize = 256;

/// Set-up of a cell: the pool's work, and the storage below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub rule: SyncRule,
    /// Pages of the data.
    pub data: u64,
    /// Pages of the pool and of the file cache, as shares of the data.
    pub pool: f64,
    pub cache: f64,
    /// Logical writes that fit into the log.
    pub gap: u64,
    /// Share of the file cache that may be dirty.
    pub dirty: f64,
    /// `true` if the kernel writes the least recently used pages, `false` if it writes in disk
    /// order.
    pub by_last_use: bool,
    /// Bytes of the array's write-back cache; `None` for one disk.
    pub array: Option<u64>,
    pub disk: DiskSpec,
    /// Requests that a drive holds.
    pub tags: usize,
    pub clients: usize,
    pub think: Nanos,
    pub seed: u64,
}

impl Setting {
    /// Returns his ratios: pool and file cache of 24 % of the data, one disk. He does not state
    /// the allowed dirty share of his file cache; here the kernel writes almost nothing of its
    /// own accord.
    pub fn new(rule: SyncRule, data: u64, gap: u64, seed: u64) -> Setting {
        Setting {
            rule,
            data,
            pool: 0.24,
            cache: 0.24,
            gap,
            dirty: 0.9,
            by_last_use: false,
            array: None,
            disk: DiskSpec::default(),
            tags: 1,
            clients: 10,
            think: 5_000_000,
            seed,
        }
    }

    /// Multiplies the seek times.
    pub fn seeks(&mut self, times: f64) {
        self.disk.seeks = self.disk.seeks.map(|seek| (seek as f64 * times) as Nanos);
    }

    fn first_tier(&self) -> Tier1Options {
        let frames = (self.data as f64 * self.pool).ceil().clamp(8.0, f64::from(u32::MAX));
        let mut options = Tier1Options::new(frames as u32, self.gap);
        options.cleaning.dirty = Share(POOL_DIRTY);
        (options.sync, options.freed, options.seed) = (self.rule, Share(FREED), self.seed);
        options
    }

    fn device(&self) -> Box<dyn Device> {
        let Some(cache) = self.array else {
            return Box::new(Single::new(self.disk, Elevator::default(), self.tags));
        };
        let spec = ArraySpec { disk: self.disk, tags: self.tags, cache, ..ArraySpec::new(PAGE) };
        Box::new(Array::new(spec))
    }

    /// Runs `transactions` transactions of `per` references each, of which the first `warm` are
    /// not measured.
    ///
    /// # Errors
    /// The source's errors.
    pub fn run(
        &self,
        source: Box<dyn Source>,
        per: u64,
        warm: u64,
        transactions: u64,
    ) -> Result<SystemStat, FigureError> {
        let first_tier = self.first_tier();
        let options = SystemOptions {
            clients: self.clients,
            page_sectors: PAGE,
            think: self.think,
            backlog: first_tier.cleaning.target(first_tier.frames) as usize,
            cache: (self.data as f64 * self.cache).ceil() as usize,
            dirty: self.dirty,
            batch: BATCH,
            by_last_use: self.by_last_use,
        };
        let mut served = Served::new(&first_tier, source, per, transactions);
        let mut device = self.device();
        let mut system = System::new(options, device.as_mut(), &mut served);
        system.run(warm, transactions.saturating_sub(warm)).map_err(FigureError::of)
    }
}
