//! The choices of [`Options`](crate::Options) as words: each can be parsed from a command line, and
//! prints as it is parsed.

use millpond_policies::choice;
use millpond_policies::config::Param;

use crate::words::by_word;

by_word! {
    DirectIo "direct_io";
    TranslationMode "translation";
    LatchingMode "latching";
}

choice! {
    /// Use of direct I/O, past the operating system's page cache, for the store's file.
    ///
    /// ```
    /// use millpond::{DirectIo, Options};
    /// let options = Options::new().lab(|lab| lab.direct_io = DirectIo::Off);
    /// options.check().unwrap();
    /// assert_eq!("on".parse(), Ok(DirectIo::On));
    /// ```
    #[derive(Default, Hash)]
    pub enum DirectIo {
        /// Direct I/O where the file system supports it; otherwise the page cache, with one
        /// warning.
        #[default]
        Auto = "auto",
        /// Direct I/O; without it the store does not open.
        On = "on",
        /// Never: pages are then in memory twice, and the process exceeds its memory number.
        Off = "off",
    }
}

choice! {
    /// Translation of page ids to frames (leanstore IV-A).
    #[derive(Default, Hash)]
    pub enum TranslationMode {
        /// References to pages in memory are pointers.
        #[default]
        Swizzled = "swizzled",
        /// Each reference looks into a hash table, as in classic pools.
        Hashed = "hashed",
        /// References are pointers, the hash table is kept beside them, and pages that refer to
        /// others are never evicted (gilbert 2.4.1).
        SwizzledTable = "swizzled-table",
    }
}

choice! {
    /// Latching of pages (leanstore IV-F).
    #[derive(Default, Hash)]
    pub enum LatchingMode {
        /// Readers validate versions and restart when one changed.
        #[default]
        Optimistic = "optimistic",
        /// Readers latch every page that they pass.
        Latched = "latched",
        /// No latches: for one thread only.
        None = "none",
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::{self, Debug};
    use std::str::FromStr;

    use super::*;
    use crate::pool::{EvictionMode, Reclamation};
    use crate::words::ChoiceError;
    use millpond_device::Submission;

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
        assert_words::<TranslationMode>(&["swizzled", "hashed", "swizzled-table"], "swizzled");
        assert_words::<LatchingMode>(&["optimistic", "latched", "none"], "optimistic");
        assert_words::<Reclamation>(&["epoch", "version"], "version");
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
