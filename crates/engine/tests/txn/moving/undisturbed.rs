//! Shrinking a store that nobody else uses, or that a transaction or a closure uses meanwhile.

use std::ops::ControlFlow;
use std::sync::Arc;

use millpond::{Db, Placement, Structure, report::ShrinkProgress};
use millpond_base::rounds::rounds;
use millpond_device::{Device, MemoryDevice, PowerSupply};

use super::scene::{
    Model, PLACEMENTS, all_of, build, fill, holds, is_built, is_tight, key, placed, sound,
};
use crate::byte_calls::TxnCalls;

#[test]
fn what_was_made_last_moves_to_where_the_first_was_dropped() {
    use Placement::{InPlace, OutOfPlace};
    for (log, placement) in [(true, OutOfPlace), (true, InPlace), (false, InPlace)] {
        let (data, log_device) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
        let open = || {
            let options = placed(80, placement).lab(|lab| lab.log = log);
            match log {
                true => Db::open_on_devices(data.clone(), log_device.clone(), options).unwrap(),
                false => Db::open_on(data.clone(), options).unwrap(),
            }
        };
        let db = open();
        let records = build(&db, 6000, 2000);
        let (full, root) = (data.length(), db.trees().unwrap());
        let mut told = Vec::new();
        let shrunk = db
            .shrink_with(&mut |progress| {
                told.push(progress);
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(shrunk.pages_moved > 200 && shrunk.data_bytes > full / 3, "{shrunk:?} of {full}");
        let in_place = placement == InPlace;
        assert_eq!(db.trees().unwrap() != root, in_place, "a root was at the end, and moved");
        is_tight(&*data, &db, &shrunk);
        assert!(told.len() > if log { 3 } else { 0 } && told[0].moved == 0, "{told:?}");
        assert!(told.windows(2).all(|pair| pair[0].moved <= pair[1].moved), "{told:?}");
        is_built(&db, 2000, &records, "shrunk");
        fill(&db, "again", 1000);
        holds(&db, "again", 1000, "shrunk and grown");
        let again = db.shrink().unwrap();
        assert_eq!(again.pages_left, 0);
        db.close().unwrap();
        sound(data.clone(), "closed");
        let db = open();
        is_built(&db, 2000, &records, "opened");
        db.drop_tree("again").unwrap();
        for (name, kind) in [("index", Structure::Hash), ("heap", Structure::Heap)] {
            db.drop_structure(name, kind).unwrap();
        }
        db.drop_tree("kept").unwrap();
        assert_eq!(db.shrink().unwrap().pages_left, 0);
        db.close().unwrap();
        sound(data.clone(), "empty");
        assert!(data.length() <= 3 << 20, "{}", data.length());
    }
}

#[test]
fn shrinking_stops_when_it_is_told_to_and_goes_on_another_time() {
    PLACEMENTS.into_iter().for_each(stops_and_goes_on);
}

fn stops_and_goes_on(placement: Placement) {
    let device = Arc::new(MemoryDevice::new());
    let log = Arc::new(MemoryDevice::new());
    let db = Db::open_on_devices(device.clone(), log, placed(80, placement)).unwrap();
    // Pages that are written out of place go to the front by themselves, more of them on a busy
    // machine. Enough are left for more than five calls.
    let records = build(&db, 9000, 3000);
    let (mut calls, mut moved) = (0, 0);
    loop {
        let mut steps = 0;
        let shrunk = db
            .shrink_with(&mut |ShrinkProgress { moved, .. }| {
                steps += 1;
                if moved == 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .unwrap();
        is_built(&db, 3000, &records, "between");
        (calls, moved) = (calls + 1, moved + shrunk.pages_moved);
        if shrunk.pages_left == 0 {
            is_tight(&*device, &db, &shrunk);
            break;
        }
        assert!(shrunk.pages_moved > 0 && shrunk.pages_moved < 100, "{shrunk:?}");
    }
    assert!(calls > 5 && moved > 200, "{calls}, {moved}");
    db.close().unwrap();
    sound(device, "closed");
}

#[test]
fn whatever_a_store_holds_it_holds_after_its_pages_moved() {
    let mut moved = 0;
    for seed in 0..rounds(3, 6) {
        let mut random = fastrand::Rng::with_seed(seed);
        let log = seed % 3 != 2;
        let placement = PLACEMENTS[usize::from(!log || seed % 2 == 1)];
        let (data, log_device) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
        let frames = [80, 120, 600][seed as usize % 3];
        let open = || {
            let options = placed(frames, placement).lab(|lab| lab.log = log);
            match log {
                true => Db::open_on_devices(data.clone(), log_device.clone(), options).unwrap(),
                false => Db::open_on(data.clone(), options).unwrap(),
            }
        };
        let (mut db, mut model) = (open(), Model::default());
        for round in 0..rounds(4, 8) {
            let what = format!("seed {seed}, round {round}");
            // What is made beside it lies behind it.
            fill(&db, "gone", random.u32(0..3000));
            for _ in 0..random.usize(200..1500) {
                model.change(&db, &mut random);
            }
            db.drop_tree("gone").unwrap();
            if random.bool() {
                model.thin_out(&db, &mut random);
            }
            let shrunk = db.shrink().unwrap();
            moved += shrunk.pages_moved;
            is_tight(&*data, &db, &shrunk);
            model.is_in(&db, &what);
            if random.u8(0..3) == 0 {
                db.close().unwrap();
                sound(data.clone(), &what);
                db = open();
                model.is_in(&db, &what);
            }
        }
        db.close().unwrap();
        sound(data.clone(), "at the end");
    }
    assert!(moved > rounds(100, 500), "{moved}");
}

#[test]
fn a_transaction_commits_or_aborts_whatever_moved_meanwhile() {
    for (seed, commits) in [(1, true), (2, false), (3, false), (4, true), (5, false), (6, false)] {
        let placement = PLACEMENTS[usize::from(seed > 3)];
        let supply = PowerSupply::new();
        let device = |name| supply.device(name, MemoryDevice::new());
        let (data, log) = (device("data"), device("log"));
        // What the transaction keeps of the log shall not end it.
        let options = |frames| placed(frames, placement).log_gap(4 << 20);
        let db = Db::open_on_devices(data.clone(), log, options(80)).unwrap();
        let records = build(&db, 4000, 1200);
        let kept = db.open_tree("kept").unwrap();
        let before = all_of(&kept);
        let mut after = before.clone();
        let mut tx = db.begin().unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let savepoint = tx.savepoint().unwrap();
        for _ in 0..30 {
            tx.put(&kept, &key(&mut random), &[1; 5000]).unwrap();
            tx.delete(&kept, &(40 * random.u32(0..30)).to_be_bytes()).unwrap();
        }
        tx.rollback_to(&savepoint).unwrap();
        for row in (0..1200u32).step_by(20) {
            // Each second one was large.
            let value = if row % 3 == 0 { vec![7; 7000] } else { vec![7; 70] };
            tx.put(&kept, &row.to_be_bytes(), &value).unwrap();
            after.insert(row.to_be_bytes().to_vec(), value);
            tx.delete(&kept, &(row + 7).to_be_bytes()).unwrap();
            after.remove(&(row + 7).to_be_bytes()[..]);
        }
        let shrunk = db.shrink().unwrap();
        assert!(shrunk.pages_moved > 100, "{shrunk:?}");
        db.flush().unwrap();
        if seed % 3 == 0 {
            // The power fails: recovery undoes it.
            let (_supply, devices) = supply.images(seed);
            let (data, log) = (devices[0].clone(), devices[1].clone());
            let db = Db::open_on_devices(data.clone(), log, options(80)).unwrap();
            assert_eq!(all_of(&db.open_tree("kept").unwrap()), before);
            is_built(&db, 1200, &records, "recovered");
            assert_eq!(db.shrink().unwrap().pages_left, 0);
            db.close().unwrap();
            sound(data, "recovered");
            continue;
        }
        if commits {
            tx.commit().unwrap();
            assert_eq!(all_of(&kept), after);
        } else {
            tx.abort().unwrap();
            assert_eq!(all_of(&kept), before);
        }
        drop(kept);
        let shrunk = db.shrink().unwrap();
        is_tight(&*data, &db, &shrunk);
        db.close().unwrap();
        sound(data, "closed");
    }
}

#[test]
fn a_page_that_a_closure_looks_at_stays_and_the_others_move() {
    PLACEMENTS.into_iter().for_each(moves_beside_a_closure);
}

fn moves_beside_a_closure(placement: Placement) {
    let device = Arc::new(MemoryDevice::new());
    let log = Arc::new(MemoryDevice::new());
    let db = Db::open_on_devices(device.clone(), log, placed(80, placement)).unwrap();
    let records = build(&db, 4000, 1200);
    let kept = db.open_tree("kept").unwrap();
    let shrunk = kept.read(&601u32.to_be_bytes(), |value| {
        let seen = value.to_vec();
        let shrunk = db.shrink();
        assert_eq!(seen, value);
        shrunk
    });
    let shrunk = shrunk.unwrap().unwrap().unwrap();
    // In place, the leaf stays, and a large value below it.
    let stay = if placement == Placement::InPlace { 1..5 } else { 0..1 };
    assert!(shrunk.pages_moved > 100 && stay.contains(&shrunk.pages_left), "{shrunk:?}");
    drop(kept);
    let shrunk = db.shrink().unwrap();
    is_tight(&*device, &db, &shrunk);
    is_built(&db, 1200, &records, "at the end");
    db.close().unwrap();
    sound(device, "closed");
}

#[test]
fn page_ids_move_out_of_place_where_most_of_them_are_free() {
    let (data, log) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
    let options = || placed(600, Placement::OutOfPlace).log_gap(64 << 20);
    let open = || Db::open_on_devices(data.clone(), log.clone(), options()).unwrap();
    let db = open();
    let gone = db.raw_tree("gone").unwrap();
    for row in 0..34_000u32 {
        gone.put(&row.to_be_bytes(), &[1; 4000]).unwrap();
    }
    drop(gone);
    // It drops "gone", too.
    let records = build(&db, 0, 500);
    let (root, ids) = (db.trees().unwrap(), db.stats().store_pages);
    assert!(ids > 34_000, "{ids}");
    let shrunk = db.shrink().unwrap();
    is_tight(&*data, &db, &shrunk);
    assert!(db.trees().unwrap() != root, "a root has a lower id");
    let ids = db.stats().store_pages;
    assert!(ids < 2000, "{ids}");
    is_built(&db, 500, &records, "shrunk");
    db.close().unwrap();
    sound(data.clone(), "closed");
    is_built(&open(), 500, &records, "opened");
}
