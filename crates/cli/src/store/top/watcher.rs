//! Polls the statistics that a store publishes.

use std::path::Path;
use std::time::{Duration, Instant};

use millpond::internals::store::stats::stat_file::StatFileError;
use millpond::{Freshness, Published};

use super::sampler::{Interval, Sampler};
use crate::error::Failure;

/// State of the watched store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// A process has the store open.
    Running,
    /// It cannot be checked from here if a process has the store open.
    Unknown,
    /// The store was closed.
    Closed,
    /// The process ended without having closed the store.
    Gone,
}

impl State {
    /// Returns `true` if numbers may still come.
    pub(super) fn is_open(self) -> bool {
        matches!(self, State::Running | State::Unknown)
    }

    /// Returns the state of the store and the age of a version's numbers.
    fn of(published: &Published) -> (State, Duration) {
        match published.freshness() {
            Freshness::Live { age } => (State::Running, age),
            Freshness::Unknown { age } => (State::Unknown, age),
            Freshness::Closed => (State::Closed, Duration::ZERO),
            Freshness::Gone => (State::Gone, Duration::ZERO),
        }
    }
}

/// Watches a store.
pub(super) struct Watcher<'f> {
    file: &'f Path,
    begun: Instant,
    sampler: Sampler,
    pub(super) state: State,
    /// Age of the newest version.
    pub(super) age: Duration,
}

impl<'f> Watcher<'f> {
    /// Starts with the present version, which must belong to an open store.
    pub(super) fn new(file: &'f Path) -> Result<Watcher<'f>, Failure> {
        let first = Published::read(file).map_err(|error| match error {
            StatFileError::Missing { .. } if !file.exists() => {
                Failure::Store(format!("there is no store at {}", file.display()))
            }
            other => Failure::Store(other.to_string()),
        })?;
        let (state, age) = State::of(&first);
        let name = file.display();
        match state {
            State::Running | State::Unknown => {}
            State::Closed => {
                let text = format!("{name} is not in use: `millpond stat {name}` describes it");
                return Err(Failure::Store(text));
            }
            State::Gone => {
                let pid = first.process.pid;
                let text = format!("{name} is not in use: process {pid} ended without closing it");
                return Err(Failure::Store(text));
            }
        }
        let sampler = Sampler::new(first, Duration::ZERO);
        Ok(Watcher { file, begun: Instant::now(), sampler, state, age })
    }

    /// Returns the newest version.
    pub(super) fn newest(&self) -> &Published {
        self.sampler.newest()
    }

    /// Returns the reason that the numbers shown so far are out of date: the store restarted, and
    /// no interval has ended since.
    pub(super) fn restart(&self) -> Option<&str> {
        self.sampler.restart()
    }

    /// Reads the statistics; returns the interval that ended, if one did. A store's last interval
    /// ends when the store is closed.
    pub(super) fn look(&mut self, length: Duration) -> Result<Option<Interval>, Failure> {
        let read = Published::read(self.file).map_err(|error| Failure::Store(error.to_string()))?;
        let now = self.begun.elapsed();
        (self.state, self.age) = State::of(&read);
        self.sampler.see(read, now);
        Ok(match self.state.is_open() {
            true => self.sampler.end(now, length),
            false => self.sampler.published(),
        })
    }

    /// Returns a notice about the state, unless the store is open.
    pub(super) fn notice(&self) -> Option<String> {
        match self.state {
            State::Running | State::Unknown => None,
            State::Closed => Some("the store was closed".to_string()),
            State::Gone => {
                let pid = self.newest().process.pid;
                Some(format!("process {pid} ended without closing the store"))
            }
        }
    }
}
