//! Resolution of a setup's options: the store's plan, and the pool's frames.

use millpond::Options;
use millpond::internals::store::Plan;
use millpond::internals::store::options::memory_limit::SystemRoots;
use millpond_base::Size;

use super::setup::Setup;
use super::worker_threads::WorkerThreads;
use crate::error::BenchError;

/// Resolves the options with `frames` frames, or with the pool's own size in bytes.
pub(crate) fn plan(setup: &Setup, frames: Option<u32>) -> Result<Plan, BenchError> {
    let mut options: Options = setup.options.clone();
    options.lab.frames = frames;
    options.lab.tiny_pages = true;
    if let (None, Some(Size::Bytes(bytes))) = (frames, setup.pool) {
        options.memory = Some(bytes);
    }
    Ok(options.plan(&SystemRoots::default(), None)?)
}

/// Minimum number of frames of an operation.
const FRAMES_MIN: u64 = 8;

/// Returns the number of frames for a pool size.
pub(crate) fn frames_for(
    setup: &Setup,
    worker_threads: &WorkerThreads,
    size: Option<Size>,
) -> Result<u32, BenchError> {
    let page_size = u64::from(worker_threads.info.page_size);
    let narrow = |frames: u64| frames.clamp(FRAMES_MIN, u64::from(u32::MAX)) as u32;
    let enough = |frames: u64, of: &str| {
        if frames >= FRAMES_MIN {
            return Ok(narrow(frames));
        }
        Err(BenchError::Usage(format!(
            "a pool of {frames} frames{of} is too small: it takes at least {FRAMES_MIN}"
        )))
    };
    Ok(match size {
        Some(Size::Frames(frames)) => enough(frames, "")?,
        Some(Size::Bytes(bytes)) => {
            let setup = Setup { pool: Some(Size::Bytes(bytes)), ..setup.clone() };
            plan(&setup, None)?.budget.frames
        }
        Some(Size::Share(share)) => {
            let pages = worker_threads.info.pages;
            let of = format!(", {} % of the data's {pages} pages,", share * 100.0);
            enough((share * pages as f64) as u64, &of)?
        }
        None => {
            let known = worker_threads.info.pages * page_size;
            let data = known.max(worker_threads.workload.bytes_loaded(page_size as usize));
            let bytes = data * 5 / 4 + setup.growth + (8 << 20);
            narrow(bytes.min(memory_available()) / page_size)
        }
    })
}

/// Returns three quarters of the memory that the process may still use.
fn memory_available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    let limit = SystemRoots::default().default_memory().saturating_mul(3);
    kib.map_or(limit, |kib| limit.min((kib << 10) / 4 * 3))
}
