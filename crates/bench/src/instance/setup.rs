//! Set-up of the engine under test.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use millpond::Options;
use millpond::internals::store::{LatchingMode, TranslationMode};
use millpond_base::Size;
use millpond_device::SlowProfile;
use millpond_server::client::{NbdError, NbdUri};

/// Kind of our engine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Engine {
    /// Trees on the buffer pool.
    #[default]
    Pool,
    /// The pool's trees on plain memory (leanstore V-A).
    Twin,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::Pool => "pool",
            Engine::Twin => "twin",
        })
    }
}

/// Destination of the pages that the pool evicts.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum DeviceSpec {
    /// Memory, without any device.
    #[default]
    Memory,
    /// A file, created by the run and removed after it.
    File(PathBuf),
    /// Memory that takes as long as a stated drive. Loading is not slowed down.
    Slow(SlowProfile),
    /// An export of an NBD server, whose bytes are lost. A log beside it is in memory.
    Nbd(NbdUri),
}

impl FromStr for DeviceSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceSpec, String> {
        if text == "memory" {
            return Ok(DeviceSpec::Memory);
        }
        if let Some(path) = text.strip_prefix("file:").filter(|path| !path.is_empty()) {
            return Ok(DeviceSpec::File(PathBuf::from(path)));
        }
        if text.starts_with("nbd") {
            return text.parse().map(DeviceSpec::Nbd).map_err(|error: NbdError| error.to_string());
        }
        match text.strip_prefix("slow:") {
            Some(name) => match name.parse::<SlowProfile>() {
                Ok(profile) => Ok(DeviceSpec::Slow(profile)),
                Err(error) => Err(error.to_string()),
            },
            None => Err(format!(
                "device '{text}' is none: memory, file:PATH, slow:nvme|sata|disk|array or \
                 nbd://HOST:PORT/EXPORT"
            )),
        }
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceSpec::Memory => f.write_str("memory"),
            DeviceSpec::File(path) => write!(f, "file:{}", path.display()),
            DeviceSpec::Slow(profile) => write!(f, "slow:{}", profile.name),
            DeviceSpec::Nbd(uri) => uri.fmt(f),
        }
    }
}

/// Memory that the operating system pages in and out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paged {
    /// Folder of the file that backs the memory. The file has no name and vanishes with the run.
    pub folder: PathBuf,
    /// Bytes that the process may use from the start of loading on.
    pub limit: u64,
}

/// The engine under test.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// Kind of the engine.
    pub engine: Engine,
    /// Options of the store. The run sets `memory` and `lab.frames` from `pool`. With `log` or
    /// `locks`, each transaction of the workload is a transaction of the engine. With neither,
    /// there are only the trees and their pool.
    pub options: Options,
    /// Size of the pool: frames, bytes for everything, or a share of the loaded pages. With
    /// `None`, the pool is large enough that nothing is evicted.
    pub pool: Option<Size>,
    /// Destination of evicted pages.
    pub device: DeviceSpec,
    /// `true` if a slow device is slow only after the warm-up, so that pools warm up in a
    /// fraction of the time. Not available with transactions.
    pub warms_up_fast: bool,
    /// Limit under which the twin's memory is paged; `None` for plain memory without a limit.
    pub paged: Option<Paged>,
    /// `true` if page references can be recorded.
    pub records: bool,
    /// `true` if scans of whole tables are marked as scans, so that their pages go first.
    pub scan_hints: bool,
    /// Start with an empty pool instead of the pages left by loading.
    pub cold: bool,
    /// Bytes by which the data may grow during all runs; a pool without a size reserves them.
    pub growth: u64,
    /// Threads that load.
    pub load_threads: u32,
}

impl Setup {
    /// Returns the default pool in memory, large enough for everything, without log and locks.
    pub fn new() -> Setup {
        Setup {
            engine: Engine::Pool,
            options: Options::new().lab(|lab| lab.log = false).lab(|lab| lab.locks = false),
            pool: None,
            device: DeviceSpec::Memory,
            warms_up_fast: false,
            paged: None,
            records: false,
            scan_hints: false,
            cold: false,
            growth: 64 << 20,
            load_threads: 1,
        }
    }
}

impl Setup {
    /// Changes the set-up to the trees on plain memory, with the strategies for which a twin is
    /// compiled.
    pub fn to_twin(&mut self) {
        self.engine = Engine::Twin;
        self.options.lab.translation = TranslationMode::Swizzled;
        self.options.lab.latching = LatchingMode::Optimistic;
    }
}

impl Default for Setup {
    fn default() -> Setup {
        Setup::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_printed_as_they_are_read() {
        for text in ["memory", "file:/tmp/x", "slow:nvme", "slow:array", "nbd://host:1/x"] {
            assert_eq!(text.parse::<DeviceSpec>().unwrap().to_string(), text);
        }
        for wrong in ["", "disk", "file:", "slow:", "slow:tape", "nbd:", "nbd://"] {
            assert!(wrong.parse::<DeviceSpec>().is_err(), "{wrong}");
        }
    }
}
