//! Stand-ins for platforms without sampling.

use crate::error::ProfileError;
use crate::profile::{Options, Profile};

/// Sampling under way; only Linux on x86-64 has it.
pub struct Sampling(());

impl Sampling {
    /// Starts sampling.
    ///
    /// # Errors
    /// [`ProfileError::Unsupported`].
    pub fn start(_: &Options) -> Result<Sampling, ProfileError> {
        Err(ProfileError::Unsupported)
    }

    /// Ends the sampling.
    ///
    /// # Errors
    /// [`ProfileError::Unsupported`].
    pub fn stop(self) -> Result<Profile, ProfileError> {
        Err(ProfileError::Unsupported)
    }
}
