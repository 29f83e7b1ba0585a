//! Events besides the power: the disk of a store is full for a while, its data file is missing, a
//! file has some bytes too many.

use millpond_device::{Device, FaultyDevice, MemoryDevice, PowerSupply};

use crate::plan::Kind;
use crate::story::Story;
use crate::subject::{Devices, Durability, Failure, Store};
use crate::worker::SHARED;

/// No worker has this number, and none has such keys.
const NOBODY: u8 = 255;

/// Rows that a transaction puts before there is no room, and until it gives up.
const ROWS: u16 = 40;
const ROWS_MAX: u16 = 3000;

fn bytes_of(device: &FaultyDevice) -> Vec<u8> {
    let mut bytes = vec![0; device.length() as usize];
    device.read(0, &mut bytes).expect("the power is on");
    bytes
}

impl Story<'_> {
    /// Returns whether something that happens once in `once_in` times is to happen now.
    fn is_time(&mut self, once_in: u8) -> bool {
        let may_be = self.forced.is_none() && self.subject.has_extras();
        may_be && self.outside.u8(..once_in) == 0
    }

    /// In one audited crash of six, appends some bytes to files, which then end inside a block.
    pub(crate) fn lengthen(&mut self) {
        if !self.is_time(6) {
            return;
        }
        let Devices { data, log, .. } = self.world.devices.clone();
        for (name, device) in [("data", data), ("log", log)] {
            let (length, more) = (device.length(), self.outside.u64(1..512));
            if self.outside.bool() && length > 0 {
                self.note(format!("{more} bytes behind the end of {name}"));
                let mut bytes = vec![0; more as usize];
                self.outside.fill(&mut bytes);
                device.grow(length + more).expect("a new device works");
                device.write(length, &bytes).expect("a new device works");
            }
        }
    }

    /// In one audited crash of twelve, opens the store without its data file: that is an error, and
    /// the log stays as it was.
    pub(crate) fn open_without_data(&mut self) -> Result<(), String> {
        // Of devices without names, a cache that writes back marks the data first.
        if self.plan.writes_back() || !self.is_time(12) {
            return Ok(());
        }
        let supply = PowerSupply::new();
        let [data, fast] = ["data", "fast"].map(|name| supply.device(name, MemoryDevice::new()));
        let log = self.world.devices.log.clone();
        let (before, devices) = (bytes_of(&log), Devices { data, log, fast });
        let start = self.start();
        self.note("opened without its data".into());
        match self.subject.open(&devices, &start) {
            Ok(_) => return Err("a store opens whose data file is missing".into()),
            Err(failure) if failure.text.contains("is missing or holds nothing") => {}
            Err(failure) => return Err(format!("without its data file: {}", failure.text)),
        }
        if bytes_of(&devices.log) != before || devices.data.length() > 0 {
            return Err("an opening without the data file changed a file".into());
        }
        self.tally.refused += 1;
        Ok(())
    }

    /// At the end of one life of four, lets a transaction meet a full disk. It can be undone there,
    /// and when there is room again nothing of it is left.
    pub(crate) fn fill_the_disk(&mut self, store: &dyn Store) -> Result<(), String> {
        if self.plan.kind == Kind::Faults || !self.is_time(4) || self.world.supply.is_off() {
            return Ok(());
        }
        let Devices { data, log, .. } = self.world.devices.clone();
        let room = [0, 4096, 200_000][self.outside.usize(..3)];
        self.note(format!("the disk has room for {room} bytes"));
        let aborted = self.meet_a_full_disk(store, || {
            data.limit_room(room);
            log.limit_room(room);
        });
        let Devices { data, log, .. } = &self.world.devices;
        [data, log].into_iter().for_each(|device| device.heal());
        if self.world.supply.is_off() {
            return Ok(());
        }
        aborted.map_err(|failure| format!("on a full disk: {}", failure.text))?;
        self.tally.crowded += 1;
        self.is_crowded = true;
        Ok(())
    }

    fn meet_a_full_disk(&mut self, store: &dyn Store, fill: impl FnOnce()) -> Result<(), Failure> {
        let mut transaction = store.begin(Durability::Sync, false)?;
        let mut value = vec![0; self.plan.page_size as usize / 5];
        let mut put = |number: u16| {
            self.outside.fill(&mut value);
            let key = [&[NOBODY][..], &number.to_be_bytes()].concat();
            transaction.put(SHARED[usize::from(number) % 3], &key, &value).map(drop)
        };
        (0..ROWS).try_for_each(&mut put)?;
        fill();
        let failed = (ROWS..ROWS_MAX).try_for_each(&mut put);
        self.note(format!("puts on a full disk: {:?}", failed.map_err(|failure| failure.text)));
        transaction.abort()
    }
}
