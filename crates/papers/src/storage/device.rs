//! Interface of a device.

use super::request::{Nanos, Request};

/// A device in virtual time, which completes submitted requests some time later.
pub trait Device {
    /// Submits a request at `now`, which never decreases.
    fn submit(&mut self, now: Nanos, request: Request);

    /// Returns the time of the device's next action; `None` if it is idle.
    fn next(&self) -> Option<Nanos>;

    /// Performs the actions due at `now`, and appends the ids of completed requests to
    /// `done`.
    fn advance(&mut self, now: Nanos, done: &mut Vec<u64>);
}
