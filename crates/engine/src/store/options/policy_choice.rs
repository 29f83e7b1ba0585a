//! A replacement policy of the pool, Millpond's or the program's own, with its hosts.

#[cfg(feature = "lab")]
use std::any::Any;
use std::fmt;

use millpond_policies::any_hook::AnyHook;
use millpond_policies::chosen::ChosenPolicy;
pub use millpond_policies::chosen::PolicyError;
use millpond_policies::config::Spec;
#[cfg(feature = "lab")]
use millpond_policies::contract::PolicySpec;
use millpond_policies::contract::{OpenPolicy, Policy, Shape};
use millpond_policies::info::Tier;
#[cfg(feature = "lab")]
use millpond_policies::policy::Watt;
use millpond_policies::registry::{Visitor, visit_all};

use crate::pool::{HitDelivery, HostedPolicy, HostingError};

/// A policy that can run in a pool.
#[derive(Clone)]
pub struct PolicyChoice {
    /// The policy with its parameters.
    pub chosen: ChosenPolicy,
    host: Hosting,
}

/// Hosts a policy.
type Host<H> = fn(&Spec, &Shape, HitDelivery) -> Result<H, HostingError>;

/// Hosting of a policy.
#[derive(Clone, Copy)]
struct Hosting {
    /// Host for any hot half.
    any: Host<HostedPolicy<AnyHook>>,
    /// Host for its own hot half, if a combination is compiled for that.
    #[cfg(feature = "lab")]
    own: Option<Host<Box<dyn Any>>>,
}

impl fmt::Debug for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PolicyChoice({})", self.chosen.spec)
    }
}

impl PolicyChoice {
    /// Parses and checks a policy.
    ///
    /// # Errors
    /// [`PolicyError`]: no policy has that name, it cannot run in a store, or a parameter is wrong.
    pub fn parse(text: &str) -> Result<PolicyChoice, PolicyError> {
        PolicyChoice::of_spec(Spec::parse(text)?, Vec::new())
    }

    /// Returns the shipped policy that `spec` names. `others` are further names for the hint, which
    /// a user may have meant.
    pub(in crate::store) fn of_spec(
        spec: Spec,
        others: Vec<&'static str>,
    ) -> Result<PolicyChoice, PolicyError> {
        let chosen = ChosenPolicy::find(spec, Tier::First, others)?;
        let mut search = Search { id: chosen.info.id, found: None };
        visit_all(&mut search);
        let unknown = || PolicyError::Unknown { id: search.id.to_string(), hint: String::new() };
        #[cfg_attr(not(feature = "lab"), expect(unused_mut))]
        let mut host = search.found.ok_or_else(unknown)?;
        #[cfg(feature = "lab")]
        if chosen.info.id == <Watt as PolicySpec>::INFO.id {
            host.own = Some(own_watt);
        }
        Ok(PolicyChoice { chosen, host })
    }

    /// Returns `P` with the parameters of `spec`.
    pub(crate) fn of<P: Policy>(spec: &Spec) -> Result<PolicyChoice, PolicyError> {
        let chosen = ChosenPolicy::of::<P>(spec, Tier::First)?;
        Ok(PolicyChoice { chosen, host: Hosting::closed::<P>() })
    }

    /// Returns `P`, a policy that all threads use at once, with the parameters of `spec`.
    pub(crate) fn of_open<P: OpenPolicy>(spec: &Spec) -> Result<PolicyChoice, PolicyError> {
        let chosen = ChosenPolicy::of::<P>(spec, Tier::First)?;
        Ok(PolicyChoice { chosen, host: Hosting::open::<P>() })
    }

    /// Creates the policy with its host, for a pool that finds the hot half at run time.
    pub(crate) fn host(
        &self,
        shape: &Shape,
        mode: HitDelivery,
    ) -> Result<HostedPolicy<AnyHook>, HostingError> {
        (self.host.any)(&self.chosen.spec, shape, mode)
    }

    /// Creates the policy with its host, a [`HostedPolicy`] for its own hot half. `None` if no
    /// combination is compiled for that: for all policies but `watt`.
    ///
    /// # Errors
    /// [`HostingError`].
    #[cfg(feature = "lab")]
    pub(crate) fn host_own(
        &self,
        shape: &Shape,
        mode: HitDelivery,
    ) -> Result<Option<Box<dyn Any>>, HostingError> {
        self.host.own.map(|own| own(&self.chosen.spec, shape, mode)).transpose()
    }
}

/// Finds the hosts of the policy with that name.
struct Search {
    id: &'static str,
    found: Option<Hosting>,
}

impl Visitor for Search {
    fn visit<P: Policy>(&mut self) {
        if P::INFO.id == self.id {
            self.found = Some(Hosting::closed::<P>());
        }
    }

    fn visit_open<P: OpenPolicy>(&mut self) {
        if P::INFO.id == self.id {
            self.found = Some(Hosting::open::<P>());
        }
    }
}

impl Hosting {
    /// Returns the hosting of a policy under a mutex.
    fn closed<P: Policy>() -> Hosting {
        Hosting {
            any: HostedPolicy::any::<P>,
            #[cfg(feature = "lab")]
            own: None,
        }
    }

    /// Returns hosting open to all threads, unless each hit is to be delivered at once.
    fn open<P: OpenPolicy>() -> Hosting {
        Hosting {
            any: |spec, shape, mode| match mode {
                HitDelivery::Exact => HostedPolicy::any::<P>(spec, shape, mode),
                HitDelivery::Auto | HitDelivery::Batched => {
                    HostedPolicy::any_open::<P>(spec, shape)
                }
            },
            #[cfg(feature = "lab")]
            own: None,
        }
    }
}

/// Hosts `watt` for a pool that is compiled for its hot half.
#[cfg(feature = "lab")]
fn own_watt(spec: &Spec, shape: &Shape, mode: HitDelivery) -> Result<Box<dyn Any>, HostingError> {
    type Hosted = HostedPolicy<<Watt as PolicySpec>::Hook>;
    Ok(Box::new(match mode {
        HitDelivery::Exact => Hosted::closed::<Watt>(spec, shape, mode)?,
        HitDelivery::Auto | HitDelivery::Batched => Hosted::open::<Watt>(spec, shape)?,
    }))
}
