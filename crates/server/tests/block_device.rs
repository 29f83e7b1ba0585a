//! A block device as backing: a loop device, where this process may create one.

#![allow(clippy::print_stdout)] // what is left out is named

use std::path::{Path, PathBuf};
use std::process::Command;

use millpond_base::Reason;
use millpond_server::volume::{OpenVolumeError, Volume, VolumeSpec};

use crate::support::{folder, spec};

const SIZE: usize = 4 << 20;

/// A loop device, detached when this is dropped.
struct Loop(PathBuf);

impl Loop {
    /// Attaches a loop device to `file`; `None`, with a message, if the system has none.
    fn over(file: &Path) -> Option<Loop> {
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        match output {
            Ok(output) if output.status.success() => {
                Some(Loop(String::from_utf8_lossy(&output.stdout).trim().into()))
            }
            other => {
                println!("no loop device here ({other:?}): this test is left out; root has them");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

fn write(volume: &Volume, offset: u64, bytes: &[u8]) {
    let mut room = volume.room(offset, bytes.len() as u32);
    room.copy_from_slice(bytes);
    volume.write(offset, room, Reason::None, true).unwrap();
}

#[test]
fn a_block_device_is_served_like_a_file() {
    let folder = folder(&vec![7; SIZE]);
    let file = folder.path().join("backing");
    let Some(device) = Loop::over(&file) else { return };
    for (cache, write_back) in [(0, false), (1 << 20, false), (1 << 20, true)] {
        let mut spec = VolumeSpec { backing: device.0.clone(), ..spec(&folder, cache, 4096) };
        spec.cache.iter_mut().for_each(|cache| cache.write_back = write_back);
        let volume = Volume::open(&spec).unwrap();
        assert_eq!(volume.length(), SIZE as u64);
        // Nobody else can open it.
        assert!(matches!(Volume::open(&spec), Err(OpenVolumeError::Backing(_))));
        assert!(volume.read(1 << 20, 8192).unwrap().iter().all(|byte| *byte == 7));
        write(&volume, (1 << 20) + 1000, &[8; 5000]);
        volume.write_zeros(2 << 20, 64 << 10, true, false).unwrap();
        volume.trim(3 << 20, 64 << 10, true).unwrap();
        // A block device reports no holes: all of it counts as data.
        let all = volume.allocation(0, SIZE as u32, 9).unwrap();
        assert_eq!(
            all.iter().map(|extent| (extent.length, extent.status)).collect::<Vec<_>>(),
            [(SIZE as u32, 0)]
        );
        let expected = |at: usize| match at {
            0x10_03e8..0x10_1770 => 8,
            0x20_0000..0x21_0000 | 0x30_0000..0x31_0000 => 0,
            _ => 7,
        };
        let found = volume.read(0, SIZE as u32).unwrap();
        assert!((0..SIZE).all(|at| found[at] == expected(at)));
        volume.close().unwrap();
        drop(volume);
        if write_back {
            // The device alone is refused. With its cache, served without the flag, it gets all
            // data.
            let alone = VolumeSpec { cache: None, ..spec.clone() };
            let Err(error) = Volume::open(&alone) else { panic!("opened without its cache") };
            assert!(matches!(error, OpenVolumeError::CacheMissing { .. }), "{error}");
            assert!(error.to_string().contains("serve it with that one"), "{error}");
            spec.cache.iter_mut().for_each(|cache| cache.write_back = false);
            Volume::open(&spec).unwrap().close().unwrap();
        }
        let sync = Command::new("blockdev").arg("--flushbufs").arg(&device.0).status();
        assert!(sync.is_ok_and(|status| status.success()));
        let bytes = std::fs::read(&device.0).unwrap();
        assert!((0..SIZE).all(|at| bytes[at] == expected(at)), "{cache} {write_back}");
        // The next device begins with the same bytes.
        std::fs::write(&device.0, vec![7; SIZE]).unwrap();
    }
}

#[test]
fn a_cache_above_a_block_device_starts_empty_since_nothing_tells_who_wrote_to_it() {
    let folder = folder(&vec![7; SIZE]);
    let Some(device) = Loop::over(&folder.path().join("backing")) else { return };
    let spec = VolumeSpec { backing: device.0.clone(), ..spec(&folder, 1 << 20, 4096) };
    let volume = Volume::open(&spec).unwrap();
    volume.read(0, 64 << 10).unwrap();
    volume.close().unwrap();
    drop(volume);
    std::fs::write(&device.0, vec![9; SIZE]).unwrap();
    let volume = Volume::open(&spec).unwrap();
    assert_eq!(volume.tier_counts().unwrap().resident, 0);
    assert!(volume.read(0, 64 << 10).unwrap().iter().all(|byte| *byte == 9));
    // Served read-only, others may read it, too.
    drop(volume);
    let spec = VolumeSpec { read_only: true, cache: None, ..spec };
    let (one, other) = (Volume::open(&spec).unwrap(), Volume::open(&spec).unwrap());
    assert!(one.read(0, 512).unwrap()[..] == other.read(0, 512).unwrap()[..]);
}
