//! A device of a given speed, in front of a faster one, for experiments with devices that are
//! unavailable (leanstore VI-A warms up from three of them).
//!
//! A request waits for its turn under the limit of requests per second, then for a channel. Its
//! service takes a latency plus the time of its bytes on the bus, which all channels share. Flash
//! serves a request on whichever channel is free first. A disk is one channel with an arm. A
//! request that does not follow the last one adds a seek (its time grows with the square root of
//! the distance) and a wait for the platter's rotation, drawn uniformly. An array is several such
//! disks, striped.
//!
//! | profile | read | write | sync | requests/s | channels | MB/s | arm |
//! |---|---|---|---|---|---|---|---|
//! | `nvme` | 80 µs | 20 µs | 30 µs | 450,000 | 32 | 2,700 | – |
//! | `sata` | 100 µs | 60 µs | 1 ms | 35,000 | 8 | 500 | – |
//! | `disk` | 0.1 ms | 0.1 ms | 8.3 ms | – | 1 | 150 | seeks 0.5–16 ms over 1 TB, 8.3 ms a turn |
//! | `array` | 0.1 ms | 0.1 ms | 6 ms | – | 4 | 320 | each: seeks 0.4–10 ms over 146 GB, 6 ms a turn, stripes of 64 KiB |
//!
//! `nvme` is a drive like that of leanstore VI (2.7 GB/s), and `sata` a consumer drive of that
//! time. `disk` turns 7,200 times a minute. `array` is four SCSI disks at 10,000 turns as in li
//! 4.4.2. Queues are served first come, first served: a real disk that sorts its queue does better
//! under depth.
//!
//! One thread that waits for one request sleeps once for it, which costs a processor up to 40 µs.
//! So two processors cannot show more than some 50,000 single requests a second of `nvme`. A batch
//! is one sleep.
//!
//! The time of the device below counts towards the stated time, so results are right as long as it
//! is the faster one.

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::device::{Alignment, Device, ReadRequest, WriteRequest};
use crate::error::DeviceError;
use crate::simulated::pause;
use millpond_base::PastPoison;

/// The moving parts of a disk.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arm {
    /// Seek to the neighbouring track, in microseconds.
    pub seek_us_min: u32,
    /// Seek across all of `capacity_bytes`, in microseconds.
    pub seek_us_max: u32,
    /// Bytes of the disk, over which seeks are measured.
    pub capacity_bytes: u64,
    /// Time of one turn of the platter, in microseconds; a request waits for half of it on average.
    pub turn_us: u32,
    /// Bytes that lie on one disk of an array before the next disk follows.
    pub stripe_bytes: u64,
}

/// Speed of a device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlowProfile {
    /// Name of the profile.
    pub name: &'static str,
    /// Latency of a read, without seek and transfer, in microseconds.
    pub read_us: u32,
    /// Latency of a write, without seek and transfer, in microseconds.
    pub write_us: u32,
    /// Latency of a sync, once all channels are done, in microseconds.
    pub sync_us: u32,
    /// Requests per second, 0 for no limit.
    pub requests_per_s: u32,
    /// Number of requests served at once.
    pub channels: u32,
    /// Bytes per second of all channels together, 0 for no limit.
    pub bytes_per_s: u64,
    /// Moving parts, if any.
    pub arm: Option<Arm>,
}

impl SlowProfile {
    /// A PCIe flash drive.
    pub const NVME: SlowProfile = SlowProfile {
        name: "nvme",
        read_us: 80,
        write_us: 20,
        sync_us: 30,
        requests_per_s: 450_000,
        channels: 32,
        bytes_per_s: 2_700_000_000,
        arm: None,
    };
    /// A flash drive behind SATA.
    pub const SATA: SlowProfile = SlowProfile {
        name: "sata",
        read_us: 100,
        write_us: 60,
        sync_us: 1000,
        requests_per_s: 35_000,
        channels: 8,
        bytes_per_s: 500_000_000,
        arm: None,
    };
    /// A magnetic disk.
    pub const DISK: SlowProfile = SlowProfile {
        name: "disk",
        read_us: 100,
        write_us: 100,
        sync_us: 8333,
        requests_per_s: 0,
        channels: 1,
        bytes_per_s: 150_000_000,
        arm: Some(Arm {
            seek_us_min: 500,
            seek_us_max: 16_000,
            capacity_bytes: 1_000_000_000_000,
            turn_us: 8333,
            stripe_bytes: u64::MAX,
        }),
    };
    /// Four magnetic disks, striped.
    pub const ARRAY: SlowProfile = SlowProfile {
        name: "array",
        read_us: 100,
        write_us: 100,
        sync_us: 6000,
        requests_per_s: 0,
        channels: 4,
        bytes_per_s: 320_000_000,
        arm: Some(Arm {
            seek_us_min: 400,
            seek_us_max: 10_000,
            capacity_bytes: 146_000_000_000,
            turn_us: 6000,
            stripe_bytes: 64 << 10,
        }),
    };
    /// All profiles.
    pub const ALL: [SlowProfile; 4] = [Self::NVME, Self::SATA, Self::DISK, Self::ARRAY];
}

impl FromStr for SlowProfile {
    type Err = UnknownProfile;
    fn from_str(name: &str) -> Result<SlowProfile, UnknownProfile> {
        let found = Self::ALL.into_iter().find(|profile| profile.name == name);
        found.ok_or_else(|| UnknownProfile { name: name.to_string() })
    }
}

/// A profile that does not exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no device profile '{name}': choose nvme, sata, disk or array")]
pub struct UnknownProfile {
    /// The requested name.
    pub name: String,
}

/// Direction of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

/// One server of requests. Moments are nanoseconds since the device was created.
#[derive(Clone, Copy, Default)]
struct Channel {
    free_at: u64,
    /// Position of the arm: the end of the last request.
    head: u64,
}

/// Order and timing of the requests.
struct Schedule {
    channels: Vec<Channel>,
    /// Moment at which the limit admits the next request.
    turn_at: u64,
    bus_free_at: u64,
    random: fastrand::Rng,
}

impl Schedule {
    fn new(profile: &SlowProfile, seed: u64) -> Schedule {
        Schedule {
            channels: vec![Channel::default(); profile.channels.max(1) as usize],
            turn_at: 0,
            bus_free_at: 0,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Returns the moment at which a request that comes at `now` is done.
    fn serve(&mut self, profile: &SlowProfile, now: u64, way: Way, at: u64, length: u64) -> u64 {
        let turn = self.turn_at.max(now);
        if profile.requests_per_s > 0 {
            self.turn_at = turn + 1_000_000_000 / u64::from(profile.requests_per_s);
        }
        let index = match profile.arm {
            Some(arm) => (at / arm.stripe_bytes.max(1)) as usize % self.channels.len(),
            None => (0..self.channels.len()).min_by_key(|&c| self.channels[c].free_at).unwrap_or(0),
        };
        let channel = self.channels[index];
        let begin = channel.free_at.max(turn);
        let mut latency_us =
            f64::from(if way == Way::Read { profile.read_us } else { profile.write_us });
        if let Some(arm) = profile.arm.filter(|_| channel.head != at) {
            let distance = channel.head.abs_diff(at) as f64 / arm.capacity_bytes.max(1) as f64;
            let span = f64::from(arm.seek_us_max.saturating_sub(arm.seek_us_min));
            latency_us += f64::from(arm.seek_us_min) + span * distance.min(1.0).sqrt();
            latency_us += self.random.f64() * f64::from(arm.turn_us);
        }
        let transfer = (length * 1_000_000_000).checked_div(profile.bytes_per_s).unwrap_or(0);
        let served = begin + (latency_us * 1000.0) as u64 + transfer;
        self.bus_free_at = self.bus_free_at.max(begin) + transfer;
        let done = served.max(self.bus_free_at);
        self.channels[index] = Channel { free_at: done, head: at + length };
        done
    }

    /// Returns the moment at which all channels are done, and then the drive has emptied its cache.
    fn sync(&mut self, profile: &SlowProfile, now: u64) -> u64 {
        let idle_at = self.channels.iter().map(|c| c.free_at).max().unwrap_or(0).max(now);
        let done = idle_at + u64::from(profile.sync_us) * 1000;
        for channel in &mut self.channels {
            channel.free_at = done;
        }
        done
    }
}

/// A device of stated speed.
pub struct SlowDevice {
    inner: Arc<dyn Device>,
    profile: SlowProfile,
    begin: Instant,
    /// `true` while requests take the stated time.
    is_slow: AtomicBool,
    schedule: Mutex<Schedule>,
}

impl std::fmt::Debug for SlowDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("SlowDevice");
        debug.field("path", &self.path()).field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl SlowDevice {
    /// Returns `inner`, slowed down to `profile`. `seed` decides the rotations of disks.
    pub fn new(inner: Arc<dyn Device>, profile: SlowProfile, seed: u64) -> SlowDevice {
        let schedule = Mutex::new(Schedule::new(&profile, seed));
        let is_slow = AtomicBool::new(true);
        SlowDevice { inner, profile, begin: Instant::now(), is_slow, schedule }
    }

    /// Sets whether later requests take the stated time (as they do at first), or only the time of
    /// the device below, over which a pool warms up sooner.
    pub fn set_slow(&self, is_slow: bool) {
        self.is_slow.store(is_slow, Ordering::Relaxed);
    }

    /// Returns the requested speed.
    pub fn profile(&self) -> &SlowProfile {
        &self.profile
    }

    /// Returns the moment at which work that comes now is done.
    fn plan(&self, plan: impl FnOnce(&mut Schedule, &SlowProfile, u64) -> u64) -> Instant {
        if !self.is_slow.load(Ordering::Relaxed) {
            return self.begin;
        }
        let mut schedule = self.schedule.lock().past_poison();
        let now = self.begin.elapsed().as_nanos() as u64;
        self.begin + Duration::from_nanos(plan(&mut schedule, &self.profile, now))
    }
}

impl Device for SlowDevice {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn length(&self) -> u64 {
        self.inner.length()
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let length = bytes.len() as u64;
        let done = self.plan(|s, profile, now| s.serve(profile, now, Way::Read, offset, length));
        let answer = self.inner.read(offset, bytes);
        pause::until(done);
        answer
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let length = bytes.len() as u64;
        let done = self.plan(|s, profile, now| s.serve(profile, now, Way::Write, offset, length));
        let answer = self.inner.write(offset, bytes);
        pause::until(done);
        answer
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_, '_>]) {
        let done = self.plan(|s, profile, now| {
            let serve = |r: &ReadRequest<'_, '_>| {
                s.serve(profile, now, Way::Read, r.offset, r.length() as u64)
            };
            requests.iter().map(serve).max().unwrap_or(now)
        });
        self.inner.read_batch(requests);
        pause::until(done);
    }

    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        let done = self.plan(|s, profile, now| {
            let serve = |r: &WriteRequest<'_, '_>| {
                s.serve(profile, now, Way::Write, r.offset, r.length() as u64)
            };
            requests.iter().map(serve).max().unwrap_or(now)
        });
        self.inner.write_batch(requests);
        pause::until(done);
    }

    fn sync(&self) -> Result<(), DeviceError> {
        let done = self.plan(Schedule::sync);
        let answer = self.inner.sync();
        pause::until(done);
        answer
    }

    fn sync_ranges(&self, ranges: &[Range<u64>]) -> Result<(), DeviceError> {
        let done = self.plan(Schedule::sync);
        let answer = self.inner.sync_ranges(ranges);
        pause::until(done);
        answer
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        let old = self.length();
        let more = length.saturating_sub(old);
        let done = self.plan(|s, profile, now| s.serve(profile, now, Way::Write, old, more));
        let answer = self.inner.grow(length);
        pause::until(done);
        answer
    }

    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        self.inner.shrink(length)
    }

    fn is_displaced(&self) -> bool {
        self.inner.is_displaced()
    }

    fn release(&self) {
        self.inner.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryDevice;

    const SECOND: u64 = 1_000_000_000;

    /// Returns the requests per second, and the mean latency in microseconds, of `depth` clients
    /// that each ask again as soon as they are served.
    fn closed_loop(profile: &SlowProfile, depth: usize, length: u64) -> (f64, f64) {
        let mut schedule = Schedule::new(profile, 1);
        let mut random = fastrand::Rng::with_seed(2);
        let mut clients = vec![0; depth];
        let (count, mut waited) = (20_000, 0);
        for _ in 0..count {
            let client = (0..depth).min_by_key(|&c| clients[c]).unwrap();
            let now = clients[client];
            let at = random.u64(0..(10 << 30) / length) * length;
            clients[client] = schedule.serve(profile, now, Way::Read, at, length);
            waited += clients[client] - now;
        }
        let end = *clients.iter().max().unwrap();
        (count as f64 * SECOND as f64 / end as f64, waited as f64 / count as f64 / 1000.0)
    }

    #[test]
    fn flash_reaches_its_latency_alone_and_its_limit_at_depth() {
        for (profile, alone) in [(SlowProfile::NVME, 12_000.0), (SlowProfile::SATA, 9000.0)] {
            let (rate, latency_us) = closed_loop(&profile, 1, 4096);
            assert!(rate > alone && rate < 13_000.0, "{} {rate}", profile.name);
            assert!(latency_us >= f64::from(profile.read_us));
            let (rate, _) = closed_loop(&profile, 64, 4096);
            let most = f64::from(profile.channels) * 1e6 / f64::from(profile.read_us);
            let limit = f64::from(profile.requests_per_s).min(most);
            assert!(rate <= limit * 1.01 && rate > limit * 0.85, "{} {rate}", profile.name);
            let (rate, _) = closed_loop(&profile, 64, 65536);
            assert!(rate * 65536.0 <= profile.bytes_per_s as f64 * 1.01, "{rate}");
        }
    }

    #[test]
    fn disks_take_milliseconds_at_random_and_stream_in_order() {
        let (rate, _) = closed_loop(&SlowProfile::DISK, 1, 16384);
        assert!((120.0..200.0).contains(&rate), "{rate}");
        let (one, _) = closed_loop(&SlowProfile::ARRAY, 1, 16384);
        let (four, _) = closed_loop(&SlowProfile::ARRAY, 16, 16384);
        assert!(four > 2.5 * one && four < 4.2 * one, "{one} {four}");
        let mut schedule = Schedule::new(&SlowProfile::DISK, 1);
        let mut now = 0;
        for at in 0..1000 {
            now = schedule.serve(&SlowProfile::DISK, now, Way::Read, at * 65536, 65536);
        }
        let rate = 65_536_000.0 / (now as f64 / SECOND as f64);
        assert!(rate > 0.7 * 150e6 && rate < 150e6, "{rate}");
    }

    #[test]
    fn a_slow_device_stores_the_same_bytes_and_is_no_faster_than_stated() {
        let device = SlowDevice::new(Arc::new(MemoryDevice::new()), SlowProfile::SATA, 1);
        device.grow(1 << 20).unwrap();
        let begin = Instant::now();
        for at in 0..10 {
            device.write(at * 4096, &[at as u8; 4096]).unwrap();
        }
        device.sync().unwrap();
        let mut bytes = [0; 4096];
        for at in 0..10 {
            device.read(at * 4096, &mut bytes).unwrap();
            assert_eq!(bytes, [at as u8; 4096]);
        }
        assert!(begin.elapsed() >= Duration::from_micros(10 * 60 + 1000 + 10 * 100));
    }

    #[test]
    fn it_can_be_slow_from_some_moment_on_only() {
        let device = SlowDevice::new(Arc::new(MemoryDevice::new()), SlowProfile::DISK, 1);
        device.set_slow(false);
        device.grow(1 << 20).unwrap();
        for at in 0..10 {
            device.write(at * 4096, &[at as u8; 4096]).unwrap();
        }
        device.sync().unwrap();
        assert_eq!(device.schedule.lock().unwrap().channels[0].free_at, 0);
        device.set_slow(true);
        let begin = Instant::now();
        device.sync().unwrap();
        assert!(begin.elapsed() >= Duration::from_micros(8333));
        let mut bytes = [0; 4096];
        device.read(9 * 4096, &mut bytes).unwrap();
        assert_eq!(bytes, [9; 4096]);
    }

    #[test]
    fn profiles_have_names_and_others_are_refused() {
        for profile in SlowProfile::ALL {
            assert_eq!(profile.name.parse(), Ok(profile));
        }
        assert!("tape".parse::<SlowProfile>().unwrap_err().to_string().contains("tape"));
    }
}
