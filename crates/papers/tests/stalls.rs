//! Policies that stall: gilbert's definitions, in a pool that holds nothing for an operation, and
//! not the policies that ship.

use millpond::internals::store::TranslationMode;
use millpond_base::Size;
use millpond_bench::instance::image::Image;
use millpond_bench::instance::setup::Setup;
use millpond_bench::instance::{prepare, prepare_on};
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::{Length, RunSpec, Unwatched};
use millpond_papers::gilbert::stated::{self, ATTEMPTS_MAX, STATED};
use millpond_papers::live::stall::Pace;
use millpond_papers::live::{End, broken_off};
use millpond_workload::tpcc::{Config, Scale};

const TRANSACTIONS: u64 = 150;

fn workload() -> Workload {
    Workload::Tpcc(Config::standard(Scale { warehouses: 4, items: 2000, customers: 100 }, 2))
}

/// A run in a pool of 1 % of the data; `unaided`: nothing is held for an operation.
fn pace(image: &Image, policy: &str, unaided: bool, translation: TranslationMode) -> Pace {
    let mut setup = Setup { pool: Some(Size::Share(0.01)), ..Setup::new() };
    setup.options = setup.options.policy(policy).own_policies(stated::policies());
    setup.options.lab.translation = translation;
    // Else how soon pages can go depends on when the thread that writes has the processor.
    setup.options.lab.background_writer = false;
    setup.options.lab.attempts_max = unaided.then_some(ATTEMPTS_MAX);
    let mut instance = prepare_on(image, &setup, &workload()).unwrap();
    let measure = RunSpec::of(Length::Operations(TRANSACTIONS));
    let spec = RunSpec { warm_up: Length::NONE, ..measure };
    let outcome = match instance.run(&spec, &mut |_| Ok(()), &mut Unwatched) {
        Ok(outcome) => outcome,
        Err(error) => {
            let end = broken_off(&error);
            assert!(unaided && matches!(end, Some(End::Starved)), "{policy}: {error}");
            return Pace { was_broken_off: true, ..Pace::default() };
        }
    };
    assert!(instance.check_at_rest().unwrap().unwrap().is_consistent(), "{policy}");
    let counts = outcome.counts.unwrap();
    Pace {
        was_broken_off: false,
        transactions: outcome.transactions as f64,
        // All alike: how fast a test is says nothing.
        throughput_per_s: 1.0,
        misses_per_tx: counts.misses as f64 / outcome.transactions as f64,
    }
}

#[test]
fn definitions_stall_in_a_pool_of_one_percent_where_nothing_is_held_and_what_ships_does_not() {
    let image = prepare(&Setup::new(), &workload(), &mut Unwatched).unwrap().image().unwrap();
    let random = pace(&image, "random", false, TranslationMode::Hashed);
    for policy in ["random", "lru", "clock", "sorting-lru", "watt"] {
        let unaided = pace(&image, policy, true, TranslationMode::Hashed);
        assert!(!unaided.is_stalled(Some(&random)), "{policy} gets on by its choices: {unaided:?}");
    }
    for policy in STATED {
        let stated = pace(&image, policy, true, TranslationMode::Hashed);
        assert!(stated.is_stalled(Some(&random)), "{policy}: {stated:?}");
    }
    let random = pace(&image, "random", false, TranslationMode::Swizzled);
    for policy in ["mru", "filo", "lru-k", "lru-k(k=3)", "lru-k(k=4)"] {
        let shipped = pace(&image, policy, false, TranslationMode::Swizzled);
        assert!(!shipped.is_stalled(Some(&random)), "{policy}: {shipped:?} beside {random:?}");
    }
}
