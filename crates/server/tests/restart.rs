//! A cache is used again above the backing file that it was closed above, and above no other.

use millpond_base::Reason;
use millpond_server::volume::{Volume, VolumeSpec};

use crate::support::{folder, spec};

const BYTES: u32 = 256 << 10;

/// Reads everything twice, after some writes. Returns the bytes read, and whether the volume began
/// with a warm cache.
fn use_it(spec: &VolumeSpec, closes: bool) -> (Vec<u8>, bool) {
    let volume = Volume::open(spec).unwrap();
    let is_warm = volume.tier_counts().unwrap().resident > 0;
    let first = volume.read(0, BYTES).unwrap().to_vec();
    let served = volume.tier_counts().unwrap().served;
    assert_eq!(served > 0, is_warm, "what the cache has is read from it");
    let mut room = volume.room(1000, 20_000);
    room.copy_from_slice(&first[2000..22_000]);
    volume.write(1000, room, Reason::None, false).unwrap();
    let all = volume.read(0, BYTES).unwrap().to_vec();
    if closes {
        volume.close().unwrap();
    }
    (all, is_warm)
}

fn bytes() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(3);
    (0..BYTES).map(|_| random.u8(..)).collect()
}

#[test]
fn a_cache_is_warm_after_it_was_closed_and_holds_what_was_written() {
    let folder = folder(&bytes());
    let spec = spec(&folder, 1 << 20, 4096);
    let (first, is_warm) = use_it(&spec, true);
    assert!(!is_warm);
    let (second, is_warm) = use_it(&spec, true);
    assert!(is_warm && first[22_000..] == second[22_000..] && first[..1000] == second[..1000]);
    assert!(std::fs::read(&spec.backing).unwrap() == second);
    // Neither a read of the file nor a read-only server without the cache changes anything.
    let read_only = VolumeSpec { cache: None, read_only: true, ..spec.clone() };
    let other = Volume::open(&read_only).unwrap();
    assert!(other.read(0, BYTES).unwrap()[..] == second);
    other.close().unwrap();
    assert!(use_it(&spec, true).1);
}

#[test]
fn a_cache_that_was_not_closed_starts_empty() {
    let folder = folder(&bytes());
    let spec = spec(&folder, 1 << 20, 4096);
    use_it(&spec, true);
    assert!(use_it(&spec, false).1);
    assert!(!use_it(&spec, true).1);
}

#[test]
fn a_cache_starts_empty_when_somebody_else_has_changed_the_file() {
    let folder = folder(&bytes());
    let spec = spec(&folder, 1 << 20, 4096);
    let changes: [&dyn Fn(); 3] = [
        // Immediately afterwards: the times of the file must differ all the same.
        &|| {
            use std::os::unix::fs::FileExt;
            let file = std::fs::OpenOptions::new().write(true).open(&spec.backing).unwrap();
            file.write_all_at(&[0xee; 8192], 100_000).unwrap();
        },
        &|| std::fs::write(&spec.backing, vec![0xdd; BYTES as usize]).unwrap(),
        // Another file with the same name.
        &|| {
            let other = folder.path().join("other");
            std::fs::write(&other, vec![0xcc; BYTES as usize]).unwrap();
            std::fs::rename(&other, &spec.backing).unwrap();
        },
    ];
    for change in changes {
        use_it(&spec, true);
        change();
        let found = std::fs::read(&spec.backing).unwrap();
        let volume = Volume::open(&spec).unwrap();
        assert_eq!(volume.tier_counts().unwrap().resident, 0);
        assert!(volume.read(0, BYTES).unwrap()[..] == found);
        volume.close().unwrap();
    }
}
