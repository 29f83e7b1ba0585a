//! The policies that the command line offers: Millpond's and those of a user's program.

use millpond_lab::registry::PolicyError;
use millpond_policies::contract::{OpenPolicy, Policy};

use crate::cost::Meters;

/// The policies that `millpond-papers` offers: simulated, live, and measured by themselves.
pub struct Policies {
    pub(super) live: millpond_cli::Policies,
    pub(super) meters: Meters,
}

impl Policies {
    /// Returns every policy that ships with Millpond.
    pub fn builtin() -> Policies {
        Policies { live: millpond_cli::Policies::builtin(), meters: Meters::builtin() }
    }

    /// Adds `P`, which serves one thread at a time.
    ///
    /// # Errors
    /// A policy of that name exists.
    pub fn with<P: Policy>(self) -> Result<Policies, PolicyError> {
        Ok(Policies { live: self.live.with::<P>()?, meters: self.meters.with::<P>()? })
    }

    /// Adds `P`, which any number of threads use at once.
    ///
    /// # Errors
    /// A policy of that name exists.
    pub fn with_open<P: OpenPolicy>(self) -> Result<Policies, PolicyError> {
        Ok(Policies { live: self.live.with_open::<P>()?, meters: self.meters.with::<P>()? })
    }
}
