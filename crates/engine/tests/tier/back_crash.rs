//! A tier that writes back, while the power fails: the synced bytes are there, on both devices
//! together, or later writes.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;

use fastrand::Rng;
use millpond_base::rounds::rounds;
use millpond_base::{PageId, Reason};
use millpond_device::{
    Device, DeviceError, Fault, FaultyDevice, MemoryDevice, PowerSupply, ReadRequest, Tag,
    WriteRequest,
};
use millpond_tier::{BackTier, TierError, TierOptions};

use super::{PAGE, POLICIES, back_options, open_back};

const UNIT: u64 = 128;
const LENGTH: u64 = 24 * PAGE;

type Piece = [u8; UNIT as usize];

/// Possible contents of a unit after a crash: the synced bytes, and all later writes. The last one
/// is its present contents.
#[derive(Clone)]
struct Unit {
    pieces: Vec<Piece>,
    /// The unit may hold anything: it was discarded, and nothing synced since.
    is_lost: bool,
}

/// State of the oracle.
struct Model {
    units: Vec<Unit>,
}

impl Model {
    fn new() -> Model {
        let zeros = Unit { pieces: vec![[0; UNIT as usize]], is_lost: false };
        Model { units: vec![zeros; (LENGTH / UNIT) as usize] }
    }

    fn of(&mut self, range: &Range<u64>) -> &mut [Unit] {
        &mut self.units[(range.start / UNIT) as usize..(range.end / UNIT) as usize]
    }

    /// Records a write that happened, or may have.
    fn write(&mut self, range: &Range<u64>, bytes: &[u8]) {
        for (unit, piece) in self.of(range).iter_mut().zip(bytes.chunks(UNIT as usize)) {
            unit.pieces.push(piece.try_into().unwrap());
        }
    }

    fn discard(&mut self, range: &Range<u64>) {
        for unit in self.of(range) {
            *unit = Unit { pieces: Vec::new(), is_lost: true };
        }
    }

    fn synced(&mut self) {
        for unit in &mut self.units {
            if let Some(last) = unit.pieces.pop() {
                *unit = Unit { pieces: vec![last], is_lost: false };
            }
        }
    }

    fn assert_now(&mut self, range: &Range<u64>, bytes: &[u8], story: u64) {
        let units = self.of(range).iter().zip(bytes.chunks(UNIT as usize));
        for (at, (unit, piece)) in units.enumerate() {
            let place = range.start + at as u64 * UNIT;
            let is_it = unit.pieces.last().is_none_or(|last| last == piece);
            assert!(is_it, "story {story}: at {place} is not what was written last");
        }
    }

    /// After a crash: each unit is one of what it may be, and that from now on.
    fn recover(&mut self, bytes: &[u8], story: u64) {
        for (at, (unit, piece)) in
            self.units.iter_mut().zip(bytes.chunks(UNIT as usize)).enumerate()
        {
            let is_one = unit.is_lost || unit.pieces.iter().any(|candidate| candidate == piece);
            let (place, known) = (at as u64 * UNIT, unit.pieces.len());
            assert!(is_one, "story {story}: {place} has lost what was synced ({known} known)");
            *unit = Unit { pieces: vec![piece.try_into().unwrap()], is_lost: false };
        }
    }
}

struct World {
    story: u64,
    random: Rng,
    model: Model,
    supply: PowerSupply,
    devices: Vec<Arc<FaultyDevice>>,
    options: TierOptions,
    policy: &'static str,
    crashes: u64,
    destaged: u64,
    spared: u64,
}

/// The power has failed, or a planned error struck.
struct Stopped(String);

impl Stopped {
    fn by(error: impl std::fmt::Display) -> Stopped {
        Stopped(error.to_string())
    }
}

impl World {
    fn new(story: u64) -> World {
        let mut random = Rng::with_seed(story);
        let slots = [12, 16, 30, 200][random.usize(..4)];
        let options = TierOptions { unit: UNIT as u32, ..back_options(slots) };
        let policy = POLICIES[random.usize(..POLICIES.len())];
        let supply = PowerSupply::new();
        let below = MemoryDevice::from_bytes(&vec![0; LENGTH as usize]);
        let devices =
            vec![supply.device("below", below), supply.device("fast", MemoryDevice::new())];
        let model = Model::new();
        let (crashes, destaged, spared) = (0, 0, 0);
        World { story, random, model, supply, devices, options, policy, crashes, destaged, spared }
    }

    fn open(&self) -> Result<BackTier, TierError> {
        let (below, fast) = (self.devices[0].clone(), self.devices[1].clone());
        let tier = open_back(below, fast, &self.options, self.policy)?;
        // In every other story a thread writes to storage, too.
        Ok(if self.story.is_multiple_of(2) { tier } else { tier.destaging_ahead() })
    }

    fn range(&mut self) -> Range<u64> {
        let units = self.random.u64(1..=PAGE / UNIT);
        // Few places, so that they meet again.
        let begin = self.random.u64(..(LENGTH - PAGE) / UNIT / 4) * 4 * UNIT;
        let begin = if self.random.bool() { begin } else { begin + UNIT * self.random.u64(..4) };
        begin..begin + units * UNIT
    }

    fn bytes(&mut self, range: &Range<u64>) -> Vec<u8> {
        (range.start..range.end).map(|_| self.random.u8(..)).collect()
    }

    fn step(&mut self, tier: &BackTier) -> Result<(), DeviceError> {
        match self.random.u8(..24) {
            0..7 => self.read(tier),
            7..17 => self.write_page(tier),
            17 | 18 => {
                let range = self.range();
                let bytes = self.bytes(&range);
                self.model.write(&range, &bytes);
                tier.write(range.start, &bytes)?;
                Ok(())
            }
            19 => {
                let range = self.range();
                let mut bytes = vec![0; (range.end - range.start) as usize];
                tier.read(range.start, &mut bytes)?;
                self.model.assert_now(&range, &bytes, self.story);
                Ok(())
            }
            20 => {
                let ranges = [self.range(), self.range()];
                ranges.iter().for_each(|range| self.model.discard(range));
                tier.discard(&ranges);
                Ok(())
            }
            _ => {
                tier.sync()?;
                self.model.synced();
                Ok(())
            }
        }
    }

    fn read(&mut self, tier: &BackTier) -> Result<(), DeviceError> {
        let range = self.range();
        let cut = self.random.usize(..=((range.end - range.start) / UNIT) as usize) * UNIT as usize;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let tags = [0, cut].map(|at| Tag::read(PageId(range.start + at as u64)));
        let (one, other) = bytes.split_at_mut(cut);
        let mut parts = [IoSliceMut::new(one), IoSliceMut::new(other)];
        let mut requests = [ReadRequest::new(range.start, &mut parts).tagged(&tags)];
        tier.read_batch(&mut requests);
        let [request] = requests;
        request.result?;
        self.model.assert_now(&range, &bytes, self.story);
        Ok(())
    }

    /// A page, of which there may be some, that is always at the same place or moves.
    fn write_page(&mut self, tier: &BackTier) -> Result<(), DeviceError> {
        let range = self.range();
        let bytes = self.bytes(&range);
        let page = match self.random.u8(..3) {
            0 => PageId(self.random.u64(..12)),
            _ => PageId(range.start),
        };
        let tags = [Tag { page, reason: Reason::Replace }];
        let parts = [IoSlice::new(&bytes)];
        self.model.write(&range, &bytes);
        let mut requests = [WriteRequest::new(range.start, &parts).tagged(&tags)];
        tier.write_batch(&mut requests);
        let [request] = requests;
        request.result?;
        Ok(())
    }

    /// A session, until the power fails or for a while; closed, given up, or dropped.
    fn live(&mut self, steps: u64) -> Result<(), Stopped> {
        let tier = self.open().map_err(Stopped::by)?;
        self.verify(&tier)?;
        for _ in 0..steps {
            self.step(&tier).map_err(Stopped::by)?;
            tier.check().unwrap_or_else(|wrong| panic!("story {}: {wrong}", self.story));
        }
        let counts = tier.counts();
        self.destaged += counts.destaged;
        self.spared += counts.spared;
        match self.random.u8(..4) {
            0 => {
                tier.give_up().map_err(Stopped::by)?;
                self.model.synced();
                tier.release();
                let mut bytes = vec![0; LENGTH as usize];
                self.devices[0].read(0, &mut bytes).map_err(Stopped::by)?;
                self.model.assert_now(&(0..LENGTH), &bytes, self.story);
            }
            1 => {
                tier.release();
                // Closing says nothing; if it worked, everything is there.
                if !self.supply.is_off() && !tier.counts().is_off {
                    self.model.synced();
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn verify(&mut self, tier: &BackTier) -> Result<(), Stopped> {
        let mut bytes = vec![0; LENGTH as usize];
        tier.read(0, &mut bytes).map_err(Stopped::by)?;
        self.model.recover(&bytes, self.story);
        Ok(())
    }

    fn crash(&mut self) {
        let (supply, devices) = self.supply.images(self.random.u64(..));
        (self.supply, self.devices) = (supply, devices);
        self.crashes += 1;
    }
}

fn stories(numbers: Range<u64>) -> (u64, u64, u64) {
    let (mut crashes, mut destaged, mut spared) = (0, 0, 0);
    for story in numbers {
        let mut world = World::new(story);
        for _ in 0..6 {
            let span = [20, 200, 2000][world.random.usize(..3)];
            let nth = world.random.u64(1..span);
            world.supply.cut_at(nth);
            let steps = world.random.u64(..400);
            let _ = world.live(steps);
            world.crash();
        }
        world
            .live(0)
            .unwrap_or_else(|Stopped(why)| panic!("story {story} cannot be opened: {why}"));
        (crashes, destaged) = (crashes + world.crashes, destaged + world.destaged);
        spared += world.spared;
    }
    (crashes, destaged, spared)
}

#[test]
fn what_was_synced_is_there_after_each_crash() {
    let (from, count) = (seed("BACK_FROM", 0), seed("BACK_STORIES", rounds(400, 20_000)));
    let (crashes, destaged, spared) = stories(from..from + count);
    assert!(crashes > count && destaged > 5 * count && spared > 20 * count, "{destaged} {spared}");
}

fn seed(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// One operation fails, and everything after it works: what is acknowledged is right.
#[test]
fn an_error_of_either_device_loses_nothing_that_was_acknowledged() {
    let mut struck = 0;
    for story in 0..rounds(300, 5000) {
        let mut world = World::new(story ^ 0xbac);
        for _ in 0..4 {
            let nth = world.random.u64(1..300);
            let fault = if world.random.bool() { Fault::Error } else { Fault::DiskFull };
            world.supply.fail_at(nth, fault);
            let steps = world.random.u64(..300);
            let error = world.live(steps).err().map(|Stopped(why)| why);
            struck += u64::from(error.is_some());
            let has_struck = !world.supply.spare();
            // It goes on with what the devices have, or with what a crash leaves of that. What a
            // failed sync was to cover is there, and no later sync covers it: only a crash tells.
            let is_write = error.is_some_and(|why| !why.contains("syncing"));
            if (has_struck && !is_write) || !world.random.bool() || !world.goes_on() {
                world.crash();
            }
        }
        world
            .live(0)
            .unwrap_or_else(|Stopped(why)| panic!("story {story} cannot be opened: {why}"));
    }
    assert!(struck > 100, "{struck}");
}

impl World {
    fn goes_on(&mut self) -> bool {
        self.supply.cut();
        self.supply.resume()
    }
}
