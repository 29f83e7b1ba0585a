//! The crash campaign: stores whose power fails at every operation, in recovery too, and what is
//! in them afterwards.

#![allow(clippy::print_stdout)]

mod campaign;
mod common;
#[cfg(feature = "lab")]
mod conventional;
mod draft;
mod engine;
mod killed;
mod log_store;
mod oracle;
mod outside;
mod plan;
mod story;
mod subject;
#[path = "../common/telling.rs"]
mod telling;
mod toy;
mod worker;

use std::sync::Arc;

use campaign::{Seeds, attempt};
#[cfg(feature = "lab")]
use conventional::Conventional;
use engine::Engine;
use log_store::OverLog;
#[cfg(feature = "lab")]
use millpond::internals::store::combinations::{HashedLatchedAny, TableLatchedAny};
use millpond_base::rounds::rounds;
use subject::Subject;
use telling::jobs;
use toy::{BUGS, Bug, Toy};

fn toy(bug: Bug) -> Arc<dyn Subject> {
    Arc::new(Toy(bug))
}

#[test]
fn a_simple_store_that_keeps_its_promises_passes() {
    let (tally, failures) =
        campaign::run(&toy(Bug::None), Seeds { from: 0, count: 150, sweeps: 3, jobs: jobs() });
    assert!(failures.is_empty(), "{failures:?}");
    let [run, recovery, again] = tally.crashes;
    assert!(run > 300 && recovery > 5 && again > 0, "{tally:?}");
    assert!(tally.faults > 50 && tally.commits > 2000 && tally.closes > 100, "{tally:?}");
}

#[test]
fn every_promise_that_is_broken_is_noticed() {
    for bug in BUGS {
        let noticed = (0..4000).find(|seed| attempt(&toy(bug), *seed).is_err());
        println!("{bug:?}: seed {noticed:?}");
        assert!(noticed.is_some(), "{bug:?} was not noticed");
    }
}

#[test]
fn campaign_over_a_store_that_is_nothing_but_its_log() {
    let seeds = Seeds::asked_for(Seeds { from: 0, count: rounds(25, 60), sweeps: 1, jobs: jobs() });
    let (_, failures) = campaign::run(&(Arc::new(OverLog) as Arc<dyn Subject>), seeds);
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn campaign_over_the_engine() {
    let seeds = Seeds::asked_for(Seeds { from: 0, count: rounds(25, 60), sweeps: 1, jobs: jobs() });
    let (_, failures) = campaign::run(&(Arc::new(Engine) as Arc<dyn Subject>), seeds);
    assert!(failures.is_empty(), "{failures:?}");
}

#[cfg(feature = "lab")]
#[test]
fn campaign_over_the_conventional_engines() {
    let seeds = Seeds::asked_for(Seeds { from: 0, count: rounds(15, 60), sweeps: 0, jobs: jobs() });
    let subjects: [Arc<dyn Subject>; 2] = [
        Arc::new(Conventional::<HashedLatchedAny>::new()),
        Arc::new(Conventional::<TableLatchedAny>::new()),
    ];
    for subject in subjects {
        let (_, failures) = campaign::run(&subject, seeds);
        assert!(failures.is_empty(), "{failures:?}");
    }
}
