//! How fast the device is: `cargo run --release -p millpond --example device -- [FOLDER] [GiB]`.
//!
//! Random reads and writes per second of a file of GIB gibibytes (default 1) in FOLDER (default the
//! system's temporary one), at depths 1, 8 and 32. `pread` has one thread per request under way,
//! `io_uring` one thread for all. Both engines take turns, the median of the rounds is printed.
//! Below, what the slow profiles make of the same, over memory; 0 GiB shows these alone.

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use millpond_device::{
    AlignedBuffer, Device, FileDevice, FileOptions, MemoryDevice, ReadRequest, SlowDevice,
    SlowProfile, Submission, WriteRequest,
};

const DEPTHS: [u32; 3] = [1, 8, 32];
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_millis(1500);
/// Requests of one call, so that the queue is full for nearly all of the time.
const BATCH: usize = 256;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Read,
    Write,
}

/// Operations per second by `depth` threads, one request each at a time.
fn by_threads(device: &dyn Device, way: Way, page: usize, depth: u32, seed: u64) -> f64 {
    let count = AtomicU64::new(0);
    let begin = Instant::now();
    thread::scope(|scope| {
        for at in 0..depth {
            let count = &count;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed + u64::from(at));
                let mut bytes = AlignedBuffer::new(page);
                while begin.elapsed() < ROUND {
                    let offset = random.u64(0..device.length() / page as u64) * page as u64;
                    let answer = match way {
                        Way::Read => device.read(offset, &mut bytes),
                        Way::Write => device.write(offset, &bytes),
                    };
                    if answer.is_ok() {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    count.into_inner() as f64 / begin.elapsed().as_secs_f64()
}

/// Operations per second by one thread in batches, with the device's own depth.
fn by_batches(device: &dyn Device, way: Way, page: usize, seed: u64) -> f64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut pages: Vec<AlignedBuffer> = (0..BATCH).map(|_| AlignedBuffer::new(page)).collect();
    let mut count = 0;
    let begin = Instant::now();
    while begin.elapsed() < ROUND {
        let mut offset = || random.u64(0..device.length() / page as u64) * page as u64;
        count += match way {
            Way::Read => {
                let mut parts: Vec<_> = pages.iter_mut().map(|p| IoSliceMut::new(p)).collect();
                let mut requests: Vec<_> =
                    parts.chunks_mut(1).map(|parts| ReadRequest::new(offset(), parts)).collect();
                device.read_batch(&mut requests);
                requests.iter().filter(|r| r.result.is_ok()).count()
            }
            Way::Write => {
                let parts: Vec<_> = pages.iter().map(|p| IoSlice::new(p)).collect();
                let mut requests: Vec<_> =
                    parts.chunks(1).map(|parts| WriteRequest::new(offset(), parts)).collect();
                device.write_batch(&mut requests);
                requests.iter().filter(|r| r.result.is_ok()).count()
            }
        };
    }
    count as f64 / begin.elapsed().as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn open(path: &Path, submission: Submission, depth: u32) -> io::Result<FileDevice> {
    let options = FileOptions { submission, depth, ..FileOptions::default() };
    FileDevice::open(path, &options).map_err(io::Error::other)
}

fn measure_file(path: &Path, out: &mut impl Write) -> io::Result<()> {
    let direct = open(path, Submission::Sync, 1)?.is_direct();
    writeln!(out, "{} ({})", path.display(), if direct { "direct" } else { "page cache" })?;
    writeln!(out, "{:>6} {:>6} {:>6} {:>12} {:>12}", "", "page", "depth", "pread/s", "io_uring/s")?;
    for way in [Way::Read, Way::Write] {
        for page in [4096, 16384] {
            for depth in DEPTHS {
                let mut rates = [Vec::new(), Vec::new()];
                for round in 0..ROUNDS as u64 {
                    let device = open(path, Submission::Sync, 1)?;
                    rates[0].push(by_threads(&device, way, page, depth, round));
                    drop(device);
                    let device = open(path, Submission::Uring, depth)?;
                    rates[1].push(by_batches(&device, way, page, round));
                }
                let name = if way == Way::Read { "read" } else { "write" };
                let [pread, uring] = rates.map(median);
                let page = format!("{} KiB", page >> 10);
                writeln!(out, "{name:>6} {page:>6} {depth:>6} {pread:>12.0} {uring:>12.0}")?;
            }
        }
    }
    Ok(())
}

fn measure_profiles(out: &mut impl Write) -> io::Result<()> {
    let memory = Arc::new(MemoryDevice::new());
    memory.grow(1 << 28).map_err(io::Error::other)?;
    writeln!(
        out,
        "\nslow profiles, 4 KiB reads per second by threads, and CPU seconds per second"
    )?;
    for profile in SlowProfile::ALL {
        write!(out, "{:>6}", profile.name)?;
        for depth in DEPTHS {
            let device = SlowDevice::new(memory.clone(), profile, 1);
            let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
            let begin = Instant::now();
            let rate = by_threads(&device, Way::Read, 4096, depth, 1);
            let end = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
            let used = (end.tv_sec - cpu.tv_sec) as f64 + (end.tv_nsec - cpu.tv_nsec) as f64 / 1e9;
            let share = used / begin.elapsed().as_secs_f64();
            write!(out, "  depth {depth:>2}: {rate:>8.0} ({share:.2})")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let gib: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut out = io::stdout().lock();
    if gib == 0 {
        return measure_profiles(&mut out);
    }
    let folder = tempfile::tempdir_in(folder)?;
    let path = folder.path().join("device");
    let device = FileDevice::create(&path, &FileOptions::default()).map_err(io::Error::other)?;
    let begin = Instant::now();
    device.grow(gib << 30).map_err(io::Error::other)?;
    device.sync().map_err(io::Error::other)?;
    drop(device);
    let rate = (gib << 30) as f64 / begin.elapsed().as_secs_f64() / 1e6;
    writeln!(out, "growth in zeros: {rate:.0} MB/s")?;
    measure_file(&path, &mut out)?;
    measure_profiles(&mut out)
}
