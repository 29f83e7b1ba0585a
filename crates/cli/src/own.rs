//! Policies that a command line offers: Millpond's, and those that a user's program adds.

use std::sync::OnceLock;

use millpond::OwnPolicies;
use millpond_lab::registry::{PolicyError, Registry};
use millpond_policies::contract::{OpenPolicy, Policy};

/// Policies that a command line offers: simulated, and live in the engine.
pub struct Policies {
    pub(crate) registry: Registry,
    live: OwnPolicies,
}

/// The user's own live policies; set once, when the program starts.
static LIVE: OnceLock<OwnPolicies> = OnceLock::new();

impl Policies {
    /// Returns every policy that ships with Millpond.
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

    /// Offers the live policies to every command that opens a store.
    pub fn offer(&self) {
        // It is set already only if a program runs two command lines, with the same
        // policies.
        let _ = LIVE.set(self.live.clone());
    }
}

/// Returns the user's own policies for a store.
pub fn live() -> OwnPolicies {
    LIVE.get().cloned().unwrap_or_default()
}
