//! Resources that a run needs, and those of the machine.

use std::fmt;
use std::path::Path;

/// Resources that a cell, or a whole experiment, needs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Need {
    /// Seconds on a current machine.
    pub seconds: f64,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of disk.
    pub disk: u64,
}

impl Need {
    /// Returns a need of `seconds`, and almost nothing else.
    pub fn of_seconds(seconds: f64) -> Need {
        Need { seconds, ..Need::default() }
    }

    /// Combines two needs in sequence: times add up, memory and disk are reused.
    #[must_use]
    pub fn then(self, other: Need) -> Need {
        Need {
            seconds: self.seconds + other.seconds,
            memory: self.memory.max(other.memory),
            disk: self.disk.max(other.disk),
        }
    }

    /// Checks that there is room.
    ///
    /// # Errors
    /// [`Short`], which names the short resource.
    pub fn check(&self, room: &Room) -> Result<(), Short> {
        if let Some(there) = room.memory.filter(|there| *there < self.memory) {
            return Err(Short::Memory { needed: self.memory, there });
        }
        if let Some(there) = room.disk.filter(|there| *there < self.disk) {
            return Err(Short::Disk { needed: self.disk, there });
        }
        if let Some(there) = room.seconds.filter(|there| *there < self.seconds) {
            return Err(Short::Time { needed: self.seconds, there });
        }
        Ok(())
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "about {}, {} of memory", time(self.seconds), bytes(self.memory))?;
        match self.disk {
            0 => write!(f, " and no disk"),
            disk => write!(f, " and {} of disk", bytes(disk)),
        }
    }
}

/// Available resources; `None` if the amount is unknown or unlimited.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Room {
    /// Available bytes of memory.
    pub memory: Option<u64>,
    /// Available bytes of disk.
    pub disk: Option<u64>,
    /// Maximum seconds; a longer run is refused.
    pub seconds: Option<f64>,
}

impl Room {
    /// Returns this machine's free memory, and the free disk around `folder`, which may not exist
    /// yet.
    pub fn here(folder: &Path) -> Room {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("MemAvailable:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        let there = absolute.ancestors().find(|folder| folder.exists());
        let disk = there.and_then(|folder| rustix::fs::statvfs(folder).ok());
        Room {
            memory: kib.map(|kib| kib << 10),
            disk: disk.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
            seconds: None,
        }
    }
}

/// Reason that a run is refused before its start.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Short {
    /// Memory.
    #[error(
        "it needs {} of memory, and {} are free: choose a smaller --scale, or fewer figures",
        bytes(*needed), bytes(*there)
    )]
    Memory {
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that are free.
        there: u64,
    },
    /// Disk.
    #[error(
        "it needs {} of disk, and {} are free where --out is: name another place, or choose a \
         smaller --scale", bytes(*needed), bytes(*there)
    )]
    Disk {
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that are free.
        there: u64,
    },
    /// Time.
    #[error(
        "it takes about {}, and --minutes allows {}: allow more, or choose fewer figures or a \
         smaller --scale", time(*needed), time(*there)
    )]
    Time {
        /// Seconds that it takes.
        needed: f64,
        /// Seconds that it may take.
        there: f64,
    },
}

/// Formats a number of bytes for people.
pub(super) fn bytes(n: u64) -> String {
    match n {
        0 => "no".to_string(),
        n if n < 1 << 30 => format!("{} MiB", n.div_ceil(1 << 20)),
        n => format!("{:.1} GiB", n as f64 / f64::from(1 << 30)),
    }
}

/// Formats a time for people.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 100.0 * 60.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_and_memory_is_used_again() {
        let a = Need { seconds: 2.0, memory: 5, disk: 1 };
        let b = Need { seconds: 3.0, memory: 4, disk: 7 };
        assert_eq!(a.then(b), Need { seconds: 5.0, memory: 5, disk: 7 });
    }

    #[test]
    fn what_is_short_is_named_with_both_numbers() {
        let need = Need { seconds: 7200.0, memory: 3 << 30, disk: 200 << 30 };
        assert_eq!(need.check(&Room::default()), Ok(()));
        let room = |memory, disk, seconds| Room { memory, disk, seconds };
        let short = need.check(&room(Some(1 << 30), None, None)).unwrap_err();
        assert_eq!(short, Short::Memory { needed: 3 << 30, there: 1 << 30 });
        assert!(short.to_string().contains("3.0 GiB of memory, and 1.0 GiB"), "{short}");
        let short = need.check(&room(Some(4 << 30), Some(1 << 20), None)).unwrap_err();
        assert!(short.to_string().contains("200.0 GiB of disk, and 1 MiB"), "{short}");
        let short = need.check(&room(None, None, Some(60.0))).unwrap_err();
        assert!(short.to_string().contains("2.0 h, and --minutes allows 60 s"), "{short}");
        assert_eq!(need.check(&room(Some(3 << 30), Some(200 << 30), Some(7200.0))), Ok(()));
    }

    #[test]
    fn this_machine_has_memory_and_disk() {
        let room = Room::here(Path::new("not/there/yet"));
        assert!(room.disk.is_some_and(|bytes| bytes > 0), "{room:?}");
        #[cfg(target_os = "linux")]
        assert!(room.memory.is_some_and(|bytes| bytes > 0), "{room:?}");
    }
}
