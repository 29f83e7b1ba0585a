//! The switches of [`Options`](crate::Options) as words: each can be read from a
//! command line and is printed as it is read.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use millpond_policies::choice;
use millpond_policies::config::Param;

/// A word that is none of those there are.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{switch} cannot be '{text}': it takes {takes}")]
pub struct ChoiceError {
    /// What was to be chosen.
    pub switch: &'static str,
    /// The word given.
    pub text: String,
    /// The words there are.
    pub takes: String,
}

impl ChoiceError {
    fn new(switch: &'static str, text: &str, takes: String) -> ChoiceError {
        ChoiceError { switch, text: text.to_string(), takes }
    }
}

macro_rules! by_word {
    ($($ty:ident $switch:literal;)*) => {$(
        impl FromStr for $ty {
            type Err = ChoiceError;
            fn from_str(text: &str) -> Result<Self, ChoiceError> {
                Self::read(text).ok_or_else(|| ChoiceError::new($switch, text, Self::takes()))
            }
        }

        impl fmt::Display for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.write())
            }
        }
    )*};
}
by_word! {
    DirectIo "direct_io";
    Submission "submission";
    TranslationMode "translation";
    LatchingMode "latching";
    ReclamationMode "reclamation";
    HitDelivery "hit_delivery";
}

choice! {
    /// Whether the store's file is read and written past the operating system's page cache.
    #[derive(Default, Hash)]
    pub enum DirectIo {
        /// Where the file system can; else through the page cache, with one warning.
        #[default]
        Auto = "auto",
        /// Or the store does not open.
        On = "on",
        /// Never: pages are then held in memory twice, and the memory number is not honest.
        Off = "off",
    }
}

choice! {
    /// How reads and writes reach the kernel.
    #[derive(Default, Hash)]
    pub enum Submission {
        /// io_uring where the kernel allows it; else calls that wait, with one warning.
        #[default]
        Auto = "auto",
        /// Calls that wait: `pread` and `pwrite`.
        Sync = "sync",
        /// io_uring, or the store does not open.
        Uring = "uring",
    }
}

choice! {
    /// Where the replacement policy sits, that is, how many threads it serves at a time.
    #[derive(Default, Hash)]
    pub enum HitDelivery {
        /// Policies made for it serve all threads at once, others sit under a mutex.
        #[default]
        Auto = "auto",
        /// Under a mutex, taken at each hit that the policy has to receive: its order is exact.
        Exact = "exact",
        /// Under a mutex that hits take by the batch, and only if it is free: they are heard late,
        /// and some not at all. Policies that do not hear hits sit as with `auto`.
        Batched = "batched",
    }
}

choice! {
    /// How a page id becomes a frame (leanstore IV-A).
    #[derive(Default, Hash)]
    pub enum TranslationMode {
        /// References to pages in memory are pointers.
        #[default]
        Swizzled = "swizzled",
        /// Each reference looks into a hash table, as in classic pools.
        Hashed = "hashed",
    }
}

choice! {
    /// How threads keep out of each other's way (leanstore IV-F).
    #[derive(Default, Hash)]
    pub enum LatchingMode {
        /// Readers validate versions and restart when one changed.
        #[default]
        Optimistic = "optimistic",
        /// Readers latch every page that they pass.
        Latched = "latched",
        /// Not at all: one thread only.
        None = "none",
    }
}

choice! {
    /// What keeps a frame from being used anew under an optimistic reader (leanstore IV-G).
    #[derive(Default, Hash)]
    pub enum ReclamationMode {
        /// Epochs: a frame is used anew when all who could see its page have moved on.
        Epoch = "epoch",
        /// The frame's version alone: its memory stays, readers find out afterwards.
        #[default]
        Version = "version",
    }
}

/// Who evicts pages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum EvictionMode {
    /// The thread that needs a frame; dirty pages are written in the background.
    #[default]
    Worker,
    /// This number of threads, which keep some frames free ahead of need; they sleep while there
    /// are enough.
    Threads(NonZeroU32),
    /// At most this number of threads, no more of them awake than demand asks for. A thread that
    /// needs a frame while all of them are at work evicts, too.
    Adaptive(NonZeroU32),
}

impl fmt::Display for EvictionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvictionMode::Worker => f.write_str("worker"),
            EvictionMode::Threads(n) => write!(f, "threads({n})"),
            EvictionMode::Adaptive(n) => write!(f, "adaptive({n})"),
        }
    }
}

impl FromStr for EvictionMode {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let wrong = || {
            let takes = "one of worker threads threads(N) adaptive adaptive(N), N at least 1";
            ChoiceError::new("eviction", text, takes.to_string())
        };
        let count_in = |name: &str| {
            let inner = text.strip_prefix(name)?;
            if inner.is_empty() {
                return Some(NonZeroU32::MIN);
            }
            inner.strip_prefix('(')?.strip_suffix(')')?.trim().parse().ok()
        };
        if text == "worker" {
            return Ok(EvictionMode::Worker);
        }
        let threads = count_in("threads").map(EvictionMode::Threads);
        threads.or_else(|| count_in("adaptive").map(EvictionMode::Adaptive)).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn assert_words<T>(words: &[&str], default: &str)
    where
        T: FromStr<Err = ChoiceError> + fmt::Display + Default + Debug + PartialEq,
    {
        for word in words {
            assert_eq!(word.parse::<T>().unwrap().to_string(), *word);
        }
        assert_eq!(T::default().to_string(), default);
        let error = "nonsense".parse::<T>().unwrap_err();
        assert!(words.iter().all(|word| {
            let stem = word.split('(').next().unwrap();
            error.to_string().contains(stem)
        }));
    }

    #[test]
    fn every_switch_is_printed_as_it_is_read_and_says_what_it_takes() {
        assert_words::<DirectIo>(&["auto", "on", "off"], "auto");
        assert_words::<Submission>(&["auto", "sync", "uring"], "auto");
        assert_words::<TranslationMode>(&["swizzled", "hashed"], "swizzled");
        assert_words::<LatchingMode>(&["optimistic", "latched", "none"], "optimistic");
        assert_words::<ReclamationMode>(&["epoch", "version"], "version");
        assert_words::<EvictionMode>(
            &["worker", "threads(1)", "threads(4)", "adaptive(2)"],
            "worker",
        );
        assert_eq!("threads".parse(), "threads(1)".parse::<EvictionMode>());
        assert_eq!("adaptive".parse(), "adaptive(1)".parse::<EvictionMode>());
        for wrong in
            ["threads(0)", "threads(-1)", "threads()", "threads(1", "adaptive(0)", "Worker"]
        {
            assert!(wrong.parse::<EvictionMode>().is_err(), "{wrong}");
        }
    }
}
