//! The options of a store that messages name.

use millpond_base::Spelled;

/// [`Options::memory`](crate::Options::memory).
pub(crate) const MEMORY: Spelled =
    Spelled { rust: "Options::memory", command_line: "--memory", python: "`memory`" };

/// [`Options::spill_max`](crate::Options::spill_max), which no command line has.
pub(crate) const SPILL_MAX: Spelled = Spelled {
    rust: "Options::spill_max",
    command_line: "Options::spill_max",
    python: "`spill_max`",
};

/// [`Options::create_if_missing`](crate::Options::create_if_missing).
pub(crate) const CREATE: Spelled =
    Spelled { rust: "create_if_missing", command_line: "create_if_missing", python: "`create`" };
