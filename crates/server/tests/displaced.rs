//! Files that are deleted, moved or replaced while their volume is served: no write is confirmed
//! that cannot be found afterwards.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use millpond_base::Reason;
use millpond_device::Device;
use millpond_server::serve::ServeOptions;
use millpond_server::volume::{Volume, VolumeError};

use crate::support::{Served, folder, spec};

const BYTES: usize = 256 << 10;

fn open(folder: &Path, cache: u64, write_back: bool) -> Volume {
    let mut spec = spec(folder, cache, 4096);
    spec.cache.iter_mut().for_each(|cache| cache.write_back = write_back);
    Volume::open(&spec).unwrap()
}

fn write(volume: &Volume, is_durable: bool) -> Result<(), VolumeError> {
    let mut room = volume.room(0, 8192);
    room.copy_from_slice(&[2; 8192]);
    volume.write(0, room, Reason::None, is_durable)
}

#[track_caller]
fn says(outcome: Result<(), VolumeError>, name: &str) {
    let error = outcome.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, VolumeError::Displaced { .. }), "{text}");
    assert!(text.contains(&format!("/{name} ")) && text.contains("copy the volume"), "{text}");
}

#[test]
fn no_flush_is_confirmed_once_a_file_of_the_volume_is_displaced() {
    for (cache, write_back, name) in
        [(0, false, "backing"), (1 << 20, false, "backing"), (1 << 20, true, "backing")]
            .into_iter()
            .chain([(1 << 20, true, "cache")])
    {
        for is_replaced in [false, true] {
            let folder = folder(&vec![1; BYTES]);
            let path = folder.path().join(name);
            let volume = open(folder.path(), cache, write_back);
            write(&volume, true).unwrap();
            let elsewhere = folder.path().join("elsewhere");
            fs::rename(&path, &elsewhere).unwrap();
            if is_replaced {
                fs::copy(&elsewhere, &path).unwrap();
            }
            says(volume.flush(), name);
            says(write(&volume, true), name);
            says(volume.sync_range(0, 4096), name);
            says(volume.trim(0, 8192, true), name);
            says(volume.write_zeros(0, 8192, false, true), name);
            says(volume.close(), name);
            // The data can be rescued through the server, and the file put back.
            write(&volume, false).unwrap();
            assert!(volume.read(0, 8192).unwrap().iter().all(|byte| *byte == 2));
            fs::rename(&elsewhere, &path).unwrap();
            volume.flush().unwrap();
            volume.close().unwrap();
        }
    }
}

#[test]
fn a_deleted_cache_that_has_nothing_of_its_own_is_no_loss() {
    let folder = folder(&vec![1; BYTES]);
    let volume = open(folder.path(), 1 << 20, false);
    fs::remove_file(folder.path().join("cache")).unwrap();
    write(&volume, true).unwrap();
    volume.close().unwrap();
    assert_eq!(fs::read(folder.path().join("backing")).unwrap()[..8192], [2; 8192]);
}

#[test]
fn a_client_meets_the_failure() {
    let folder = folder(&vec![1; BYTES]);
    let volume = open(folder.path(), 0, false);
    let served = Served::of(folder, volume, ServeOptions::default());
    let client = served.client("");
    client.write(0, &[2; 8192]).unwrap();
    client.sync().unwrap();
    fs::remove_file(served.backing()).unwrap();
    client.write(0, &[3; 8192]).unwrap();
    let error = client.sync().unwrap_err();
    assert!(error.to_string().contains("os error 5"), "{error}");
    drop(client);
    let Served { server, volume, .. } = served;
    server.stop();
    says(volume.close(), "backing");
}

#[test]
fn a_cache_has_the_mode_of_the_file_whose_blocks_it_holds() {
    for mode in [0o600, 0o640, 0o666] {
        for write_back in [false, true] {
            let folder = folder(&vec![1; BYTES]);
            let backing = folder.path().join("backing");
            fs::set_permissions(&backing, fs::Permissions::from_mode(mode)).unwrap();
            let volume = open(folder.path(), 1 << 20, write_back);
            let found = fs::metadata(folder.path().join("cache")).unwrap();
            assert_eq!(found.mode() & 0o777, mode, "write_back: {write_back}");
            volume.close().unwrap();
            drop(volume);
        }
    }
}
