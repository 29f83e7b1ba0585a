//! The policies that a command line offers: Millpond's, and whatever a user's program adds.

use std::sync::OnceLock;

use millpond::OwnPolicies;
use millpond_lab::registry::{PolicyError, Registry};
use millpond_policies::contract::{OpenPolicy, Policy};

/// The policies that a command line offers: simulated, and live in the engine.
pub struct Policies {
    pub(crate) registry: Registry,
    live: OwnPolicies,
}

/// The user's own policies that run live; set once, when the program begins.
static LIVE: OnceLock<OwnPolicies> = OnceLock::new();

impl Policies {
    /// Every policy that ships with Millpond.
    pub fn builtin() -> Policies {
        Policies { registry: Registry::builtin(), live: OwnPolicies::default() }
    }

    /// Adds the policy `P`, which serves one thread at a time.
    ///
    /// # Errors
    /// There is one of that name.
    pub fn with<P: Policy>(self) -> Result<Policies, PolicyError> {
        Ok(Policies { registry: self.registry.with::<P>()?, live: self.live.with::<P>() })
    }

    /// Adds the policy `P`, which any number of threads use at once.
    ///
    /// # Errors
    /// There is one of that name.
    pub fn with_open<P: OpenPolicy>(self) -> Result<Policies, PolicyError> {
        Ok(Policies { registry: self.registry.with::<P>()?, live: self.live.with_open::<P>() })
    }

    /// Lets every command that opens a store know the live ones.
    pub fn offer(&self) {
        // Set already only where a program runs two command lines, with the same policies.
        let _ = LIVE.set(self.live.clone());
    }
}

/// The user's own policies for a store.
pub fn live() -> OwnPolicies {
    LIVE.get().cloned().unwrap_or_default()
}
