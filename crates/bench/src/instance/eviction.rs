//! Eviction while nothing else runs: filling a pool, and evicting a part of it with some threads.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::parameters::LOG;
use millpond::internals::pool::{Evicted, Pool, PoolError, PoolStrategy};
use millpond_base::Reason;

use crate::error::BenchError;

/// Set-up of an eviction run: the threads that evict, and the pages.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Evict {
    /// Threads that evict.
    pub threads: u32,
    /// Share of the pool to evict.
    pub share: f64,
    /// State of the pages.
    pub pages: Pages,
}

/// State of a pool's pages before eviction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pages {
    /// All are clean.
    Clean,
    /// All are dirty.
    Dirty,
    /// The workload's written pages are dirty.
    AsLeft,
}

impl Pages {
    /// Returns *clean*, *dirty* or *as left*.
    pub fn name(self) -> &'static str {
        match self {
            Pages::Clean => "clean",
            Pages::Dirty => "dirty",
            Pages::AsLeft => "as left",
        }
    }
}

/// The result of one eviction run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Out {
    /// Seconds from the first thread's start to the last one's end.
    pub seconds: f64,
    /// Sum over all threads.
    pub evicted: Evicted,
}

impl Out {
    /// Returns evictions per second.
    pub fn per_s(&self) -> f64 {
        self.evicted.pages as f64 / self.seconds.max(1e-9)
    }
}

/// Runs the workload, a number of operations at a time, until almost no frame is free.
pub(crate) fn fill<M: PoolStrategy>(
    pool: &Pool<M>,
    mut run: impl FnMut(u64) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    /// Maximum consecutive rounds in which the workload loads no new page.
    const FRUITLESS_MAX: u32 = 8;
    let frames = pool.frames();
    // Batch eviction always leaves some frames free.
    let full = frames / 50 + 3 * (frames / 64).clamp(1, 64);
    let (mut free, mut fruitless) = (pool.frames_free(), 0);
    while fruitless < FRUITLESS_MAX {
        if free <= full {
            return Ok(());
        }
        run(u64::from(frames).max(1_000))?;
        let now = pool.frames_free();
        fruitless = if now < free { 0 } else { fruitless + 1 };
        free = now;
    }
    Err(BenchError::Usage(format!(
        "the workload does not fill the pool: {free} of {frames} frames are still free. More rows \
         or a smaller pool will do"
    )))
}

/// Evicts a part of a pool that no other thread uses.
pub(crate) fn evict<M: PoolStrategy>(pool: &Pool<M>, what: &Evict) -> Result<Out, BenchError> {
    if what.pages != Pages::AsLeft {
        pool.flush(Reason::Recov)?;
    }
    if what.pages == Pages::Dirty && pool.make_dirty() == 0 {
        let log = LOG.set_to("on");
        let text = format!("no page of a store with a log ({log}) can be made dirty");
        return Err(BenchError::Usage(text));
    }
    let (free, frames) = (pool.frames_free(), pool.frames());
    let target = (free + (f64::from(frames) * what.share) as u32).min(frames);
    let start_line = Barrier::new(what.threads as usize + 1);
    let work = || {
        start_line.wait();
        let start = Instant::now();
        (start, pool.evict_until(target), Instant::now())
    };
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..what.threads).map(|_| scope.spawn(work)).collect();
        start_line.wait();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Result<Vec<_>, _>>()
    });
    let all = all.map_err(|_| BenchError::Drive("an evicting thread panicked".into()))?;
    let first = all.iter().map(|(start, ..)| *start).min();
    let last = all.iter().map(|(.., end)| *end).max();
    let seconds = first.zip(last).map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    let parts: Result<Vec<Evicted>, PoolError> = all.into_iter().map(|(_, part, _)| part).collect();
    let evicted = parts?.into_iter().fold(Evicted::default(), |all, part| all + part);
    if pool.frames_free() < target {
        let text = format!("only {} of {target} frames could be freed", pool.frames_free());
        return Err(BenchError::Drive(text.into()));
    }
    Ok(Out { seconds, evicted })
}
