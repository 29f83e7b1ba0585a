//! Interface of a device.

use super::request::{Nanos, Request};

/// A device in virtual time: requests go in, and are done some time later.
pub trait Device {
    /// A request comes at `now`, which never goes back.
    fn submit(&mut self, now: Nanos, request: Request);

    /// Returns the time at which the device next has something to do; `None` where it is idle.
    fn next(&self) -> Option<Nanos>;

    /// Does what is due at `now`; the ids of requests that are done are appended to `done`.
    fn advance(&mut self, now: Nanos, done: &mut Vec<u64>);
}
