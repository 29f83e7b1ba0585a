//! What a slice reads from the device.
//!
//! Bytes are counted by the kernel for this process, threads of the kernel that work for it
//! included, when a request is sent to the device: what the page cache serves does not count, and
//! what is read ahead does. Requests are counted by the device, for all processes: they show how
//! many bytes an engine reads at once, on a machine that does nothing else meanwhile.

use std::path::Path;

/// The block device below a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    major: u32,
    minor: u32,
}

/// Counters at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reads {
    /// Bytes that this process had read from devices.
    pub bytes: u64,
    /// Read requests that the device had completed, of all processes.
    pub requests: u64,
}

impl Device {
    /// The device that holds `path`; none where the file system has no single one.
    pub fn of(path: &Path) -> Option<Device> {
        let number = rustix::fs::stat(path).ok()?.st_dev;
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let device = Device { major, minor };
        device.reads().map(|_| device)
    }

    /// The counters now.
    pub fn reads(&self) -> Option<Reads> {
        let device = format!("/sys/dev/block/{}:{}/stat", self.major, self.minor);
        let device = std::fs::read_to_string(device).ok()?;
        let process = std::fs::read_to_string("/proc/self/io").ok()?;
        Some(Reads { bytes: bytes_of(&process)?, requests: requests_of(&device)? })
    }
}

fn requests_of(stat: &str) -> Option<u64> {
    stat.split_whitespace().next()?.parse().ok()
}

fn bytes_of(io: &str) -> Option<u64> {
    let line = io.lines().find_map(|line| line.strip_prefix("read_bytes:"))?;
    line.trim().parse().ok()
}

impl std::ops::Sub for Reads {
    type Output = Reads;

    /// What came between; counters do not go back.
    fn sub(self, before: Reads) -> Reads {
        Reads {
            bytes: self.bytes.saturating_sub(before.bytes),
            requests: self.requests.saturating_sub(before.requests),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_as_the_kernel_writes_them() {
        let io = "rchar: 6976\nwchar: 0\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 1\n";
        assert_eq!(bytes_of(io), Some(4096));
        assert_eq!(bytes_of("rchar: 1\n"), None);
        assert_eq!(requests_of(" 30854174   272702 678895394 21139349\n"), Some(30_854_174));
        assert_eq!(requests_of(""), None);
    }

    #[test]
    fn bytes_that_come_from_the_device_are_counted() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let Some(device) = Device::of(folder.path()) else {
            return println!("skipped: there is no single device below the sources");
        };
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let before = device.reads().unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len(), 1 << 20);
        let read = device.reads().unwrap() - before;
        // A file system may keep what it was advised to forget, but not make up reads.
        assert!(read.bytes == 0 || read.requests > 0, "{read:?}");
    }
}
