//! Loads a workload into the engine that a setup describes, or puts loaded data under it.

use crate::parameters::{DEVICE, FAST_WARM_UP, LOCKS, LOG, RECORD};
use millpond::internals::pool::{Optimistic, PoolStrategy, Unlatched};
use millpond::internals::store::LatchingMode;
use millpond::internals::store::combinations::{Combination, Visit};

use super::image::Image;
use super::interface::Instance;
use super::plan::plan;
use super::pool_instance::PoolInstance;
use super::setup::{DeviceSpec, Engine, Setup};
use super::twin_instance::TwinInstance;
use super::txn_instance::TxnInstance;
use crate::error::BenchError;
use crate::run::client::Workload;
use crate::run::runner::Observer;

/// Loads `workload` into an engine.
///
/// # Errors
/// Options that cannot be, or what loading reports.
pub fn prepare(
    setup: &Setup,
    workload: &Workload,
    observer: &mut dyn Observer,
) -> Result<Box<dyn Instance>, BenchError> {
    observer.begin(&format!("loading {} into {}", workload.name(), setup.engine));
    let latching = setup.options.lab.latching;
    let has_transactions = setup.options.lab.log || setup.options.lab.locks;
    let is_slow = matches!(setup.device, DeviceSpec::Slow(_)) && setup.engine == Engine::Pool;
    if setup.warms_up_fast && (!is_slow || has_transactions) {
        return Err(BenchError::Usage(format!(
            "a fast warm-up is for pools without log and locks on a slow device: {FAST_WARM_UP} \
             goes with {}, for instance",
            DEVICE.set_to("slow:nvme")
        )));
    }
    if setup.options.second_tier.is_some() && (!has_transactions || setup.engine == Engine::Twin) {
        return Err(BenchError::Usage(format!(
            "a second tier is below a store with transactions: add {}",
            LOG.set_to("on")
        )));
    }
    if setup.engine == Engine::Twin {
        if has_transactions {
            return Err(BenchError::Usage("the twin has neither log nor locks".to_string()));
        }
        return match latching {
            LatchingMode::Optimistic => {
                Ok(Box::new(TwinInstance::<Optimistic>::new(setup, workload)?))
            }
            LatchingMode::None => Ok(Box::new(TwinInstance::<Unlatched>::new(setup, workload)?)),
            LatchingMode::Latched => Err(BenchError::Usage(
                "the twin is compiled with latching = optimistic or none".to_string(),
            )),
        };
    }
    let plan = plan(setup, Some(64))?;
    let translation = setup.options.lab.translation;
    let combination = Combination::choose(translation, latching, &plan.policy, setup.records)?;
    if has_transactions {
        return combination.visit(PrepareTxn { setup, workload });
    }
    combination.visit(Prepare { setup, workload })
}

/// Checks that an engine so set up can run at all, apart from faults that only loading finds.
///
/// # Errors
/// The reason why the engine cannot run.
pub fn check(setup: &Setup) -> Result<(), BenchError> {
    let (plan, lab) = (plan(setup, Some(64))?, &setup.options.lab);
    Combination::choose(lab.translation, lab.latching, &plan.policy, setup.records)?;
    Ok(())
}

/// Puts a copy of data that were loaded once under an engine, with an empty pool: the same data for
/// every policy, in a fraction of the time that loading takes.
///
/// # Errors
/// Impossible options: an image is for a pool without transactions, with pages as large as when it
/// was created, on memory that may be slowed down.
pub fn prepare_on(
    image: &Image,
    setup: &Setup,
    workload: &Workload,
) -> Result<Box<dyn Instance>, BenchError> {
    let is_file = matches!(setup.device, DeviceSpec::File(_) | DeviceSpec::Nbd(_));
    if setup.engine == Engine::Twin || setup.options.lab.log || setup.options.lab.locks || is_file {
        return Err(BenchError::Usage(
            "an image is for a pool in memory, without log and locks".to_string(),
        ));
    }
    let plan = plan(setup, Some(64))?;
    let lab = &setup.options.lab;
    let combination =
        Combination::choose(lab.translation, lab.latching, &plan.policy, setup.records)?;
    combination.visit(PrepareOn { image, setup, workload })
}

struct PrepareOn<'a> {
    image: &'a Image,
    setup: &'a Setup,
    workload: &'a Workload,
}

impl Visit for PrepareOn<'_> {
    type Output = Result<Box<dyn Instance>, BenchError>;

    fn visit<M: PoolStrategy>(self) -> Self::Output {
        Ok(Box::new(PoolInstance::<M>::on_image(self.image, self.setup, self.workload)?))
    }
}

struct PrepareTxn<'a> {
    setup: &'a Setup,
    workload: &'a Workload,
}

impl Visit for PrepareTxn<'_> {
    type Output = Result<Box<dyn Instance>, BenchError>;

    fn visit<M: PoolStrategy>(self) -> Self::Output {
        // Here, so that none is compiled where there are no transactions.
        if M::TREES_ONLY {
            return Err(BenchError::Usage(format!(
                "there are no transactions with these strategies: {LOG} and {LOCKS} are for \
                 translation swizzled with latching optimistic, and hashed or swizzled-table with \
                 latched, without {RECORD}"
            )));
        }
        Ok(Box::new(TxnInstance::<M>::new(self.setup, self.workload)?))
    }
}

struct Prepare<'a> {
    setup: &'a Setup,
    workload: &'a Workload,
}

impl Visit for Prepare<'_> {
    type Output = Result<Box<dyn Instance>, BenchError>;

    fn visit<M: PoolStrategy>(self) -> Self::Output {
        Ok(Box::new(PoolInstance::<M>::new(self.setup, self.workload)?))
    }
}
