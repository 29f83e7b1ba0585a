//! Power failures, failing operations and full disks while pages move.

use std::collections::BTreeMap;
use std::sync::Arc;

use millpond::internals::heap::RecordId;
use millpond::{Db, Placement};
use millpond_base::rounds::rounds;
use millpond_device::{Device, Fault, FaultyDevice, MemoryDevice, PowerSupply};

use super::scene::{PLACEMENTS, build, fill, holds, is_built, is_tight, options, placed, sound};

struct Powered {
    supply: PowerSupply,
    data: Arc<FaultyDevice>,
    log: Arc<FaultyDevice>,
    db: Db,
    records: BTreeMap<RecordId, Vec<u8>>,
}

const ROWS: u32 = 500;

fn powered(placement: Placement) -> Powered {
    let supply = PowerSupply::new();
    let device = |name| -> Arc<FaultyDevice> { supply.device(name, MemoryDevice::new()) };
    let (data, log) = (device("data"), device("log"));
    // Writes in the background would be tried again, and tell nobody that they failed.
    let options = placed(80, placement).lab(|lab| lab.background_writer = false);
    let db = Db::open_on_devices(data.clone(), log.clone(), options).unwrap();
    let records = build(&db, 2500, ROWS);
    db.flush().unwrap();
    Powered { supply, data, log, db, records }
}

/// Opens a store after a power failure, in several ways.
fn survives(world: &Powered, nth: u64, what: &str) {
    for seed in 0..3 {
        let (_supply, devices) = world.supply.images(nth * 10 + seed);
        let [data, log] = [devices[0].clone(), devices[1].clone()];
        let db = Db::open_on_devices(data.clone(), log, options(80)).unwrap();
        is_built(&db, ROWS, &world.records, what);
        fill(&db, "next", 200);
        let shrunk = db.shrink().unwrap();
        is_tight(&*data, &db, &shrunk);
        is_built(&db, ROWS, &world.records, what);
        holds(&db, "next", 200, what);
        db.close().unwrap();
        sound(data, what);
    }
}

#[test]
fn a_power_failure_while_pages_move_loses_nothing() {
    for placement in PLACEMENTS {
        let cuts = cut_each(placement);
        assert!(cuts > rounds(3, 10), "{placement:?}: {cuts}");
    }
}

/// Cuts the power at operation after operation, in a store each; returns at how many.
fn cut_each(placement: Placement) -> u32 {
    let (mut cuts, mut nth) = (0, 1);
    loop {
        let what = format!("cut at {nth}");
        let world = powered(placement);
        world.supply.cut_at(nth);
        let shrunk = world.db.shrink();
        if !world.supply.is_off() {
            let shrunk = shrunk.unwrap();
            assert!(shrunk.pages_moved > 50, "{what}: {shrunk:?}");
            return cuts;
        }
        survives(&world, nth, &what);
        // Out of place there are far fewer operations.
        let step = if placement == Placement::InPlace { rounds(19, 5) } else { rounds(5, 1) };
        (cuts, nth) = (cuts + 1, nth + step);
    }
}

/// Lets every `step`th operation fail, from `first` on, in a store each; returns how many of them
/// failed the shrinking.
fn fail_each(placement: Placement, first: u64, step: u64) -> u32 {
    let faults = [Fault::Error, Fault::DiskFull];
    let (mut failed, mut nth) = (0, first);
    loop {
        let fault = faults[nth as usize % faults.len()];
        let what = format!("{fault:?} at {nth}");
        let world = powered(placement);
        world.supply.fail_at(nth, fault);
        let shrunk = world.db.shrink();
        if world.supply.is_fault_due() {
            let shrunk = shrunk.unwrap();
            assert!(shrunk.pages_moved > 50, "{what}: {shrunk:?}");
            return failed;
        }
        failed += u32::from(shrunk.is_err());
        // What is in memory is right, as is what a crash leaves.
        is_built(&world.db, ROWS, &world.records, &what);
        survives(&world, nth, &what);
        nth += step;
    }
}

#[test]
fn an_operation_that_fails_while_pages_move_loses_nothing() {
    // A thread of the store's may meet the fault instead, and try again.
    for placement in PLACEMENTS {
        let step = if placement == Placement::InPlace { rounds(37, 11) } else { rounds(9, 3) };
        let failed = (0..8).any(|pass| fail_each(placement, 1 + 4 * pass, step) > 0);
        assert!(failed, "{placement:?}: shrinking failed at no operation");
    }
}

#[test]
fn pages_move_though_no_file_can_grow() {
    PLACEMENTS.into_iter().for_each(moves_without_room);
}

fn moves_without_room(placement: Placement) {
    let world = powered(placement);
    for device in [&world.data, &world.log] {
        device.limit_room(0);
    }
    let lengths = (world.data.length(), world.log.length());
    let shrunk = world.db.shrink().unwrap();
    assert!(shrunk.pages_moved > 50, "{shrunk:?}");
    is_tight(&*world.data, &world.db, &shrunk);
    assert!(world.data.length() < lengths.0 && world.log.length() <= lengths.1);
    is_built(&world.db, ROWS, &world.records, "no room");
    world.db.close().unwrap();
    sound(world.data, "no room");
}
