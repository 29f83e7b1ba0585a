//! Several devices under one power supply, and their contents after a crash of the whole machine.
//!
//! A store and its log are on two devices, and a crash can leave the two out of step: a page
//! without its log record, or a record without the commit before it. So their operations are
//! counted together, and the power fails for all of them at one operation, at each operation in
//! turn if a test wants so. Each device is a [`FaultyDevice`] over memory, with all other faults of
//! such a device.
//!
//! **The counted operations** are every write, with each part of a batch by itself, every sync, and
//! every growth. Reads do not count, since nothing depends on their number. **The operation at
//! which the power fails** may have been done, wholly or in part. A write lands like any unsynced
//! one, the length is the old one or the new one, and any part of a sync's writes may be durable.
//! That operation and everything after it, including reads, fails with [`Errno::NO_DEVICE`].
//!
//! [`PowerSupply::images`] draws the contents of each device independently, as devices of a new
//! supply, so that a recovery can crash in turn.
//!
//! One operation can also fail while everything else works ([`PowerSupply::fail_at`]): with all
//! operations of a run in turn, every place that writes or syncs sees every error.
//!
//! [`Errno::NO_DEVICE`]: crate::error::Errno::NO_DEVICE

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::memory::MemoryDevice;
use crate::simulated::crash::Lean;
use crate::simulated::faulty::FaultyDevice;
use crate::simulated::plug::{Aim, Fault, Line, Plug};
use millpond_base::PastPoison;

/// Devices whose power fails at one moment.
#[derive(Debug, Default)]
pub struct PowerSupply {
    line: Arc<Line>,
    devices: Mutex<Vec<Arc<FaultyDevice>>>,
}

impl PowerSupply {
    /// Returns a supply with no devices yet.
    pub fn new() -> PowerSupply {
        PowerSupply::default()
    }

    fn devices(&self) -> MutexGuard<'_, Vec<Arc<FaultyDevice>>> {
        self.devices.lock().past_poison()
    }

    /// Adds a device. The bytes of `content` count as durable; `name` is its path in messages.
    pub fn device(&self, name: &str, content: MemoryDevice) -> Arc<FaultyDevice> {
        let mut devices = self.devices();
        let number = devices.len();
        let plug = Plug { line: self.line.clone(), name: PathBuf::from(name), device: number };
        let device = Arc::new(FaultyDevice::plugged_in(content, number as u64, plug));
        devices.push(device.clone());
        device
    }

    /// Returns the number of operations so far, on all devices together.
    pub fn operations(&self) -> u64 {
        self.line.schedule().operations
    }

    /// Cuts the power at the `nth` operation from now; 1, and 0 too, is the next.
    pub fn cut_at(&self, nth: u64) {
        let mut schedule = self.line.schedule();
        schedule.cut = Some(schedule.operations.saturating_add(nth));
    }

    /// Cuts the power at the `nth` operation from now of those in `aim`, 1 being the next.
    pub fn cut_at_aim(&self, aim: Aim, nth: u64) {
        self.aim(aim, nth, None);
    }

    /// Lets the `nth` operation from now of those in `aim` fail with `fault`, 1 being the next.
    pub fn fail_at_aim(&self, aim: Aim, nth: u64, fault: Fault) {
        self.aim(aim, nth, Some(fault));
    }

    fn aim(&self, aim: Aim, nth: u64, fault: Option<Fault>) {
        let mut schedule = self.line.schedule();
        (schedule.aim, schedule.aimed, schedule.is_near) = (Some((aim, nth)), fault, false);
    }

    /// Cuts the power now, between two operations.
    pub fn cut(&self) {
        self.line.schedule().is_off = true;
    }

    /// Restores the power after [`PowerSupply::cut`], as if only the process that used the devices
    /// had died. All acknowledged writes are there, synced or not, as in the caches of an operating
    /// system that runs on. If the power failed at an operation, it does nothing, and returns
    /// `false`. To be called when nobody uses the devices any more.
    pub fn resume(&self) -> bool {
        let mut schedule = self.line.schedule();
        if !schedule.was_during_operation {
            (schedule.is_off, schedule.cut, schedule.fault) = (false, None, None);
            (schedule.aim, schedule.aimed) = (None, None);
        }
        !schedule.was_during_operation
    }

    /// Cancels all planned failures, of the power and of operations. Earlier failures stay. Returns
    /// `true` if a failure was still to come, like [`PowerSupply::is_fault_due`], so that nothing
    /// can fail between the question and this call.
    pub fn spare(&self) -> bool {
        let mut schedule = self.line.schedule();
        let was_due = schedule.fault.is_some() || schedule.aimed.is_some();
        (schedule.cut, schedule.aim) = (None, None);
        (schedule.fault, schedule.aimed) = (None, None);
        was_due
    }

    /// Returns `true` once the power has failed.
    pub fn is_off(&self) -> bool {
        self.line.schedule().is_off
    }

    /// Lets the `nth` operation from now, 1 being the next, fail with `fault`, and no other.
    pub fn fail_at(&self, nth: u64, fault: Fault) {
        let mut schedule = self.line.schedule();
        schedule.fault = Some((schedule.operations.saturating_add(nth), fault));
    }

    /// Returns `true` while a failure that [`PowerSupply::fail_at`] or [`PowerSupply::fail_at_aim`]
    /// planned is still to come.
    pub fn is_fault_due(&self) -> bool {
        let schedule = self.line.schedule();
        schedule.fault.is_some() || schedule.aimed.is_some()
    }

    /// Draws, from `seed`, the contents of each device after a power failure, in the order in which
    /// the devices were created. Returns the new devices and their supply. Cuts the power first if
    /// it is still on. About half of the devices get an outcome that chance would hardly produce:
    /// only one part of the writes lands, or everything else does. The part is the newest write,
    /// the one at the lowest offset (a superblock, say), a random one, the first ones, or all.
    pub fn images(&self, seed: u64) -> (PowerSupply, Vec<Arc<FaultyDevice>>) {
        // An earlier operation holds its device until the journal has it.
        self.cut();
        let supply = PowerSupply::new();
        let mut random = fastrand::Rng::with_seed(seed);
        let devices = self.devices();
        let images = devices.iter().filter_map(|device| {
            // Each device has a journal, since the supply created it.
            let lean = random.bool().then(|| Lean::draw(&mut random));
            let image = device.image(lean, &mut random)?;
            Some(supply.device(&crate::Device::path(&**device).to_string_lossy(), image))
        });
        let images = images.collect();
        (supply, images)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use std::path::Path;

    use super::*;
    use crate::{Device, DeviceError, Errno};

    fn two() -> (PowerSupply, Arc<FaultyDevice>, Arc<FaultyDevice>) {
        let supply = PowerSupply::new();
        let zeros = || MemoryDevice::from_bytes(&[0; 1024]);
        let (data, log) = (supply.device("data", zeros()), supply.device("log", zeros()));
        (supply, data, log)
    }

    fn bytes(device: &FaultyDevice) -> Vec<u8> {
        let mut bytes = vec![0; device.length() as usize];
        device.read(0, &mut bytes).unwrap();
        bytes
    }

    /// Returns the first bytes of the sectors of each device, over many draws.
    fn images(supply: &PowerSupply) -> BTreeSet<Vec<Vec<u8>>> {
        let sectors = |device: &Arc<FaultyDevice>| -> Vec<u8> {
            let bytes = bytes(device);
            assert!(bytes.chunks(512).all(|sector| sector.iter().all(|b| *b == sector[0])));
            bytes.iter().step_by(512).copied().collect()
        };
        let draw = |seed| supply.images(seed).1.iter().map(sectors).collect();
        (0..600).map(draw).collect()
    }

    fn is_gone(result: Result<(), DeviceError>) -> bool {
        matches!(result, Err(DeviceError::Io { errno: Errno::NO_DEVICE, .. }))
    }

    #[test]
    fn what_changes_a_device_counts_and_reads_do_not() {
        let (supply, data, log) = two();
        data.write(0, &[1; 512]).unwrap();
        log.write(0, &[1; 1024]).unwrap();
        bytes(&data);
        log.sync().unwrap();
        data.sync_ranges(&[0..512, 512..512]).unwrap();
        data.grow(1024).unwrap();
        assert_eq!(supply.operations(), 4, "no growth is no operation");
        data.grow(2048).unwrap();
        let (a, b) = ([2; 512], [3; 512]);
        let parts = [std::io::IoSlice::new(&a), std::io::IoSlice::new(&b)];
        let request = |offset| crate::WriteRequest::new(offset, &parts);
        data.write_batch(&mut [request(0), request(1024)]);
        assert_eq!(supply.operations(), 9);
        assert_eq!(data.path(), Path::new("data"));
    }

    #[test]
    fn devices_lose_their_writes_independently_and_what_was_synced_stays() {
        let (supply, data, log) = two();
        log.write(0, &[1; 512]).unwrap();
        log.sync().unwrap();
        data.write(0, &[2; 1024]).unwrap();
        log.write(512, &[3; 512]).unwrap();
        let expected = [0, 2].iter().flat_map(|&a| {
            [0, 2].iter().flat_map(move |&b| [0, 3].map(|c| vec![vec![a, b], vec![1, c]]))
        });
        assert_eq!(images(&supply), expected.collect());
    }

    #[test]
    fn the_write_at_which_the_power_fails_may_land_in_part_and_nothing_after_it_does() {
        let (supply, data, log) = two();
        supply.cut_at(3);
        data.write(0, &[1; 512]).unwrap();
        data.sync().unwrap();
        assert!(!supply.is_off());
        assert!(is_gone(log.write(0, &[2; 1024])));
        assert!(supply.is_off());
        assert!(is_gone(log.write(0, &[9; 512])) && is_gone(data.write(512, &[9; 512])));
        assert!(is_gone(data.sync()) && is_gone(log.sync_ranges(&[0..512, 512..512])));
        assert!(is_gone(data.grow(4096)) && is_gone(data.read(0, &mut [0; 8])));
        assert_eq!(supply.operations(), 3);
        let expected = [[0, 0], [0, 2], [2, 0], [2, 2]].map(|log| vec![vec![1, 0], log.to_vec()]);
        assert_eq!(images(&supply), BTreeSet::from(expected));
    }

    #[test]
    fn a_sync_or_growth_at_which_the_power_fails_may_be_done_or_not() {
        let (supply, data, _) = two();
        data.write(0, &[1; 512]).unwrap();
        supply.cut_at(1);
        assert!(is_gone(data.sync()));
        let expected = [0, 1].map(|a| vec![vec![a, 0], vec![0, 0]]);
        assert_eq!(images(&supply), BTreeSet::from(expected));
        let (supply, _, log) = two();
        supply.cut_at(1);
        assert!(is_gone(log.grow(1536)));
        let expected = [vec![0, 0], vec![0, 0, 0]].map(|log| vec![vec![0, 0], log]);
        assert_eq!(images(&supply), BTreeSet::from(expected));
    }

    #[test]
    fn the_world_after_a_crash_works_and_can_crash_again() {
        let (supply, data, _) = two();
        data.write(0, &[1; 512]).unwrap();
        data.sync().unwrap();
        data.write(0, &[2; 512]).unwrap();
        let (again, devices) = supply.images(7);
        let survived = bytes(&devices[0])[0];
        assert_eq!((again.operations(), again.is_off()), (0, false));
        again.cut_at(2);
        devices[1].write(0, &[3; 512]).unwrap();
        assert!(is_gone(devices[0].write(512, &[4; 512])));
        // The outcome of the first crash is durable, and does not change.
        let expected = [0, 3]
            .iter()
            .flat_map(|&log| [0, 4].map(move |second| vec![vec![survived, second], vec![log, 0]]));
        assert_eq!(images(&again), expected.collect());
    }

    #[test]
    fn what_a_process_that_died_had_written_is_there_until_the_power_fails() {
        let (supply, data, _) = two();
        data.write(0, &[1; 512]).unwrap();
        supply.fail_at(1, Fault::Error);
        data.sync().unwrap_err();
        supply.cut();
        assert!(is_gone(data.write(512, &[2; 512])));
        assert!(supply.resume() && !supply.is_off());
        assert_eq!((bytes(&data)[0], bytes(&data)[512]), (1, 0));
        // The failed sync covers nothing, and no later one covers its writes.
        data.sync().unwrap();
        supply.cut_at(1);
        assert!(is_gone(data.write(512, &[3; 512])));
        assert!(!supply.resume() && supply.is_off());
        let first = images(&supply).into_iter().map(|image| image[0][0]);
        assert_eq!(first.collect::<BTreeSet<_>>(), BTreeSet::from([0, 1]));
    }

    #[test]
    fn the_power_fails_at_the_operation_that_is_meant() {
        let run = |aim, nth| {
            let (supply, data, log) = two();
            supply.cut_at_aim(aim, nth);
            let operations: [&dyn Fn() -> Result<(), DeviceError>; 8] = [
                &|| log.write(0, &[1; 512]),
                &|| data.write(512, &[1; 512]),
                &|| data.sync(),
                &|| data.write(0, &[2; 512]),
                &|| log.sync(),
                &|| data.write(512, &[3; 512]),
                &|| data.sync(),
                &|| data.write(0, &[4; 512]),
            ];
            operations.iter().take_while(|operation| operation().is_ok()).count()
        };
        assert_eq!([1, 2, 3].map(|n| run(Aim::Write { device: 0, below: 512 }, n)), [3, 7, 8]);
        assert_eq!([1, 2, 3].map(|n| run(Aim::Write { device: 0, below: 1024 }, n)), [1, 3, 5]);
        assert_eq!([1, 2, 3].map(|n| run(Aim::Sync { device: 0 }, n)), [2, 6, 8]);
        assert_eq!([1, 2].map(|n| run(Aim::Sync { device: 1 }, n)), [4, 8]);
        assert_eq!([1, 2].map(|n| run(Aim::SyncOf { device: 0, below: 512 }, n)), [6, 8]);
        let (supply, data, _) = two();
        supply.cut_at_aim(Aim::Sync { device: 0 }, 1);
        supply.spare();
        data.sync().unwrap();
        supply.fail_at_aim(Aim::Sync { device: 0 }, 2, Fault::Error);
        data.sync().unwrap();
        assert!(supply.is_fault_due());
        assert!(!is_gone(Err(data.sync().unwrap_err())) && !supply.is_fault_due());
        data.sync().unwrap();
    }

    #[test]
    fn exactly_the_planned_operation_fails() {
        for fault in [Fault::Error, Fault::DiskFull] {
            for nth in 1..=6 {
                let (supply, data, log) = two();
                supply.fail_at(nth, fault);
                let results = [
                    data.write(0, &[1; 512]),
                    data.sync(),
                    log.grow(2048),
                    log.write(1536, &[2; 512]),
                    log.sync_ranges(&[0..512, 512..2048]),
                ];
                for (i, result) in (1..).zip(results) {
                    let (is_sync, is_full) = (i == 2 || i == 5, fault == Fault::DiskFull);
                    // A device that did not grow has no room for the write either.
                    let also = nth == 3 && i == 4;
                    assert_eq!(result.is_err(), i == nth || also, "{i} of {nth}: {result:?}");
                    if let (Err(error), false) = (result, also) {
                        assert_eq!(error.is_disk_full(), is_full && !is_sync, "{error}");
                        assert!(!is_gone(Err(error)));
                    }
                }
                assert_eq!(supply.is_fault_due(), nth == 6);
                supply.spare();
                assert!(!supply.is_fault_due() && !supply.is_off());
            }
        }
    }

    #[test]
    fn a_write_that_fails_may_have_landed_in_part() {
        let draw = |supply: &PowerSupply| {
            let data = supply.device("data", MemoryDevice::from_bytes(&[0; 1024]));
            supply.fail_at(1, Fault::Error);
            data.write(0, &[1; 1024]).unwrap_err();
            data.sync().unwrap();
            (bytes(&data)[0], bytes(&data)[512])
        };
        let supply = PowerSupply::new();
        let seen: BTreeSet<_> = (0..40).map(|_| draw(&supply)).collect();
        assert_eq!(seen, BTreeSet::from([(0, 0), (1, 0), (1, 1)]));
    }

    #[test]
    fn of_many_threads_the_cut_takes_all_at_once() {
        for round in 0..20 {
            let supply = PowerSupply::new();
            let new = |_| supply.device("d", MemoryDevice::from_bytes(&[0; 512]));
            let devices: Vec<_> = (0..4).map(new).collect();
            supply.cut_at(40 + round);
            let acknowledged: Vec<u8> = std::thread::scope(|scope| {
                let write = |device: &Arc<FaultyDevice>| {
                    let device = device.clone();
                    scope.spawn(move || {
                        let done = |n: &u8| {
                            device.write(0, &[*n; 512]).and_then(|()| device.sync()).is_ok()
                        };
                        (1..=200).take_while(done).last().unwrap_or(0)
                    })
                };
                let threads: Vec<_> = devices.iter().map(write).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(supply.operations(), 40 + round);
            let (_, images) = supply.images(round);
            for (image, acknowledged) in images.iter().zip(acknowledged) {
                let found = bytes(image)[0];
                assert!(found == acknowledged || found == acknowledged + 1, "{found}");
            }
        }
    }
}
