//! Critical sections, counted by the source file that enters them: only with the feature
//! `critical-sections`.
//!
//! A critical section is entered when a mutex, a reader-writer lock or a latch has been acquired.
//! The code that acquires one reports it to [`note`] and passes on its caller's location
//! (`#[track_caller]`), so a section belongs to the file that asked for it and not to the mutex's
//! own. An optimistic read enters none, since it excludes nobody, and is counted apart. Work done
//! by atomics alone is not counted, nor is the mutex that a thread gets back at the end of a wait
//! for a condition.
//!
//! Without the feature [`note`] is empty, and locks are the standard library's.
//!
//! Each thread counts in a table of its own. Only a caller that asks for the sum contends for its
//! mutex.

/// Kind of an acquisition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Section {
    /// A mutex or a spinlock.
    Mutex,
    /// A reader-writer lock, for reading.
    ReadLock,
    /// A reader-writer lock, for writing.
    WriteLock,
    /// A latch, in shared mode.
    Shared,
    /// A latch, exclusively.
    Exclusive,
    /// Nothing: the version of a latch was read.
    Optimistic,
}

impl Section {
    /// All of them, in the order of [`Tally`].
    pub const ALL: [Section; 6] = [
        Section::Mutex,
        Section::ReadLock,
        Section::WriteLock,
        Section::Shared,
        Section::Exclusive,
        Section::Optimistic,
    ];

    /// Returns the name of the section in tables.
    pub fn name(self) -> &'static str {
        match self {
            Section::Mutex => "mutex",
            Section::ReadLock => "read lock",
            Section::WriteLock => "write lock",
            Section::Shared => "shared latch",
            Section::Exclusive => "exclusive latch",
            Section::Optimistic => "optimistic read",
        }
    }
}

/// Number of times that each of [`Section::ALL`] was entered.
pub type Tally = [u64; Section::ALL.len()];

/// `true` if this build counts sections.
pub const ARE_COUNTED: bool = cfg!(all(feature = "critical-sections", not(feature = "model")));

#[cfg(all(feature = "critical-sections", not(feature = "model")))]
pub use counted::{note, of_all_threads, of_this_thread};
#[cfg(not(all(feature = "critical-sections", not(feature = "model"))))]
pub use uncounted::{note, of_all_threads, of_this_thread};

/// Sections by the file that entered them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sections(Vec<(&'static str, Tally)>);

impl Sections {
    /// Returns each file that entered a section, by the name that the compiler was given, with its
    /// counts.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, Tally)> {
        self.0.iter().copied()
    }

    /// Returns the sections entered since `before`, an earlier sum of the same threads.
    #[must_use]
    pub fn since(&self, before: &Sections) -> Sections {
        let mut left = self.clone();
        for (file, tally) in &mut left.0 {
            let Some((_, old)) = before.0.iter().find(|(other, _)| other == file) else { continue };
            tally.iter_mut().zip(old).for_each(|(count, old)| *count = count.saturating_sub(*old));
        }
        left.0.retain(|(_, tally)| tally.iter().any(|count| *count > 0));
        left
    }

    #[cfg(all(feature = "critical-sections", not(feature = "model")))]
    fn of_file(&mut self, file: &'static str) -> &mut Tally {
        // A file has few names, mostly one, and a name few addresses: compared first.
        let is_it = |name: &'static str| std::ptr::eq(name, file) || name == file;
        let at = self.0.iter().position(|(name, _)| is_it(name)).unwrap_or_else(|| {
            self.0.push((file, Tally::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    #[cfg(all(feature = "critical-sections", not(feature = "model")))]
    fn add(&mut self, other: &Sections) {
        for (file, tally) in other.files() {
            self.of_file(file).iter_mut().zip(tally).for_each(|(sum, count)| *sum += count);
        }
    }
}

#[cfg(not(all(feature = "critical-sections", not(feature = "model"))))]
mod uncounted {
    use super::{Section, Sections};

    /// Counts nothing in this build.
    #[inline(always)]
    pub fn note(_: Section) {}

    /// Nothing in this build.
    pub fn of_this_thread() -> Sections {
        Sections::default()
    }

    /// Nothing in this build.
    pub fn of_all_threads() -> Sections {
        Sections::default()
    }
}

#[cfg(all(feature = "critical-sections", not(feature = "model")))]
mod counted {
    use std::panic::Location;
    use std::sync::{Arc, Mutex, MutexGuard};

    use super::{Section, Sections};
    use crate::PastPoison;

    /// The tables of threads that run, and the sum of those that have ended.
    #[derive(Default)]
    struct All {
        running: Vec<Arc<Mutex<Sections>>>,
        ended: Sections,
    }

    static ALL: Mutex<All> = Mutex::new(All { running: Vec::new(), ended: Sections(Vec::new()) });

    thread_local! {
        static OWN: Arc<Mutex<Sections>> = {
            let own = Arc::<Mutex<Sections>>::default();
            locked(&ALL).running.push(own.clone());
            own
        };
    }

    fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().past_poison()
    }

    /// Counts one section for the file that called.
    #[track_caller]
    pub fn note(section: Section) {
        let file = Location::caller().file();
        // A thread that is about to end has no table any more: its last sections are not counted.
        let _ = OWN.try_with(|own| locked(own).of_file(file)[section as usize] += 1);
    }

    /// Returns the sections that this thread has entered.
    pub fn of_this_thread() -> Sections {
        OWN.try_with(|own| locked(own).clone()).unwrap_or_default()
    }

    /// Returns the sections that all threads of the process have entered, including threads that
    /// have ended.
    pub fn of_all_threads() -> Sections {
        let mut all = locked(&ALL);
        let All { running, ended } = &mut *all;
        running.retain(|table| {
            // Only this list has it: its thread has ended.
            let is_running = Arc::strong_count(table) > 1;
            if !is_running {
                ended.add(&locked(table));
            }
            is_running
        });
        let mut sum = all.ended.clone();
        all.running.iter().for_each(|table| sum.add(&locked(table)));
        sum
    }
}
