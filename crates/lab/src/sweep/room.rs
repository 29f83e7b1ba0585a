//! Checks that memory has room for simulations, because a failed allocation of a table would end
//! the process.

use millpond_policies::info::Info;

use crate::results::memory_available;

/// Bytes that the simulated pool keeps for each frame: its page, its flags, its table entry.
const HOST_BYTES: f64 = 16.0;

/// Error of a cache that is too large to be simulated here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a cache of {frames} frames under {policy} takes about {} MiB to simulate, and {} MiB of \
     memory are free",
    bytes >> 20,
    available >> 20
)]
pub struct NoRoom {
    policy: &'static str,
    frames: u64,
    bytes: u64,
    available: u64,
}

/// The free memory, and the largest of the planned simulations.
pub(crate) struct Room {
    available: u64,
    largest: u64,
    all: u64,
}

impl Room {
    /// Returns the room at this moment.
    pub(crate) fn now() -> Room {
        let available = memory_available().unwrap_or(u64::MAX);
        Room { available, largest: 1, all: 0 }
    }

    /// Adds a planned simulation.
    ///
    /// # Errors
    /// [`NoRoom`] if the simulation does not fit by itself.
    pub(crate) fn add(&mut self, info: &Info, frames: u64) -> Result<(), NoRoom> {
        let per_frame = HOST_BYTES + f64::from(info.frame_bytes);
        let bytes = (frames as f64 * per_frame) as u64;
        if bytes > self.available {
            return Err(NoRoom { policy: info.id, frames, bytes, available: self.available });
        }
        self.largest = self.largest.max(bytes);
        self.all = self.all.saturating_add(bytes);
        Ok(())
    }

    /// Like [`add`](Room::add), for a simulation that runs beside all simulations added before.
    pub(crate) fn add_beside(&mut self, info: &Info, frames: u64) -> Result<(), NoRoom> {
        let before = self.all;
        self.add(info, frames)?;
        if self.all > self.available {
            let available = self.available.saturating_sub(before);
            return Err(NoRoom { policy: info.id, frames, bytes: self.all - before, available });
        }
        Ok(())
    }

    /// Returns the number of added simulations that may run at once, from 1 to `most`.
    pub(crate) fn at_once(&self, most: usize) -> usize {
        let fit = usize::try_from(self.available / self.largest).unwrap_or(usize::MAX);
        fit.clamp(1, most.max(1))
    }
}
