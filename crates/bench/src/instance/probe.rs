//! Pages per second that the device below a store can read: the measure for the reads of a run.

use std::time::{Duration, Instant};

use millpond_base::Seed;
use millpond_device::{AlignedBuffer, Device, DeviceError};

/// Returns the pages per second that `depth` threads read at random among the device's first
/// `pages` pages. Each thread reads one page at a time, for about `time`.
///
/// # Errors
/// A page could not be read.
pub fn reads_per_second(
    device: &dyn Device,
    page_size: usize,
    pages: u64,
    depth: u32,
    time: Duration,
    seed: Seed,
) -> Result<f64, DeviceError> {
    let pages = pages.min(device.length() / page_size as u64).max(1);
    let start = Instant::now();
    let reader = |mut random: fastrand::Rng| {
        let mut bytes = AlignedBuffer::new(page_size);
        let mut count = 0u64;
        // Each thread reads at least one page, however late it starts.
        while count == 0 || start.elapsed() < time {
            device.read(random.u64(0..pages) * page_size as u64, &mut bytes)?;
            count += 1;
        }
        Ok(count)
    };
    let counts: Result<Vec<u64>, DeviceError> = std::thread::scope(|scope| {
        let seeds = (0..depth.max(1)).map(|thread| seed.0.wrapping_add(u64::from(thread)));
        let readers: Vec<_> =
            seeds.map(|seed| scope.spawn(move || reader(fastrand::Rng::with_seed(seed)))).collect();
        let joined = readers.into_iter().map(|reader| match reader.join() {
            Ok(count) => count,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    Ok(counts?.iter().sum::<u64>() as f64 / start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use millpond_device::{Faults, FaultyDevice, MemoryDevice};

    use super::*;

    fn probe(device: &dyn Device, pages: u64) -> Result<f64, DeviceError> {
        reads_per_second(device, 4096, pages, 2, Duration::from_millis(5), Seed(1))
    }

    #[test]
    fn it_reads_whole_pages_inside_the_device_and_says_when_one_fails() {
        let memory = MemoryDevice::new();
        memory.grow(8 * 4096).unwrap();
        // Too large a number of pages would read beyond the end, which is an error.
        assert!(probe(&memory, 1000).unwrap() > 0.0);
        let faulty = FaultyDevice::new(Arc::new(memory), 1);
        faulty.set_faults(Faults { read_error: 1.0, ..Faults::default() });
        probe(&faulty, 8).unwrap_err();
    }
}
