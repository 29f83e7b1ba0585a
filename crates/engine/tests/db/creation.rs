//! Creating a store: what a process leaves that is killed meanwhile, and others that open it at the
//! same moment; and drives whose blocks are longer than compressed pages.

use std::path::{Path, PathBuf};
use std::process::Command;

use millpond::{Compression, Db, ErrorKind, Options};

use super::place;

fn options(log: bool) -> Options {
    Options::new().memory(16 << 20).lab(|lab| lab.log = log)
}

/// A process leaves such a file that is killed while it tries whether an empty file can be read
/// directly: in blocks of the drive, or of the memory.
#[test]
fn a_block_of_zeros_that_a_killed_creation_left_is_no_store() {
    for bytes in [512, 1024, 2048, 4096] {
        for log in [true, false] {
            for of_log in [false, true] {
                let (_dir, path) = place();
                let what = format!("{bytes} bytes, with a log: {log}, of the log: {of_log}");
                let left = if of_log { log_of(&path) } else { path.clone() };
                std::fs::write(&left, vec![0; bytes]).unwrap();
                if of_log && log {
                    std::fs::write(&path, []).unwrap();
                }
                if of_log && !log {
                    continue;
                }
                let db = Db::open(&path, options(log)).expect(&what);
                db.raw_tree("t").unwrap().put(b"key", b"value").unwrap();
                db.close().unwrap();
                let db = Db::open(&path, options(log)).expect(&what);
                let found = db.raw_tree("t").unwrap().get(b"key").unwrap();
                assert_eq!(found.as_deref(), Some(&b"value"[..]), "{what}");
            }
        }
    }
}

#[test]
fn a_short_file_of_somebody_else_is_refused_and_stays() {
    for (bytes, at) in [(512, 511), (512, 0), (1024, 700), (4096, 4095), (100, 3)] {
        for log in [true, false] {
            let (_dir, path) = place();
            let mut text = vec![0; bytes];
            text[at] = 1;
            std::fs::write(&path, &text).unwrap();
            let error = Db::open(&path, options(log)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OtherType, "{bytes}: {error}");
            assert_eq!(std::fs::read(&path).unwrap(), text);
        }
    }
    let (_dir, path) = place();
    std::fs::write(&path, [0; 512]).unwrap();
    assert!(Db::open(&path, options(false).read_only(true)).is_err());
    assert!(Db::open(&path, options(true).create_if_missing(false)).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), [0; 512]);
}

#[test]
fn of_threads_that_open_a_new_store_at_once_the_losers_find_it_in_use() {
    for _ in 0..40 {
        let (_dir, path) = place();
        let barrier = std::sync::Barrier::new(4);
        let open = || {
            barrier.wait();
            Db::open(&path, options(true))
        };
        let opened: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut stores = 0;
        for one in opened {
            match one {
                Ok(_) => stores += 1,
                Err(error) => assert_eq!(error.kind(), ErrorKind::InUse, "{error}"),
            }
        }
        assert!(stores <= 1);
        Db::open(&path, options(true)).unwrap().close().unwrap();
    }
}

fn log_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-log", path.display()))
}

/// A file system on a drive of blocks of 4,096 bytes.
struct LargeBlocks {
    folder: tempfile::TempDir,
    device: String,
}

impl LargeBlocks {
    /// The error names the step that the system does not allow.
    fn new() -> Result<LargeBlocks, &'static str> {
        let folder = tempfile::tempdir().unwrap();
        let (image, mount) = (folder.path().join("image"), folder.path().join("mount"));
        std::fs::create_dir(&mount).unwrap();
        std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let run = |command: &mut Command| -> Option<String> {
            let output = command.output().ok().filter(|output| output.status.success())?;
            Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
        };
        let losetup = ["--find", "--show", "--sector-size", "4096", "--direct-io=off"];
        let device = run(Command::new("losetup").args(losetup).arg(&image));
        let device = device.ok_or("losetup makes no device here")?;
        let made = LargeBlocks { folder, device };
        let is_mounted = run(Command::new("mkfs.ext4").arg("-q").arg(&made.device)).is_some()
            && run(Command::new("mount").arg(&made.device).arg(&mount)).is_some();
        if is_mounted { Ok(made) } else { Err("no file system is made or mounted here") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("mount").join(name)
    }
}

impl Drop for LargeBlocks {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path().join("mount")).status();
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
    }
}

#[test]
fn a_compressed_store_opens_on_a_drive_of_larger_blocks_and_is_copied_to_one() {
    let drive = match LargeBlocks::new() {
        Ok(drive) => drive,
        Err(why) => return println!("skipped: {why}"),
    };
    for page_bytes in [4096, 8192, 16_384, 65_536] {
        let (_dir, path) = place();
        let compressed = options(true).page_size(page_bytes).compression(Compression::Lz4);
        let db = Db::open(&path, compressed).unwrap();
        let tree = db.raw_tree("t").unwrap();
        for row in 0..3000u32 {
            tree.put(&row.to_be_bytes(), &[row as u8; 200]).unwrap();
        }
        let copy = drive.path(&format!("copy-{page_bytes}"));
        db.backup_to(&copy).unwrap();
        drop(tree);
        db.close().unwrap();
        let moved = drive.path(&format!("moved-{page_bytes}"));
        std::fs::copy(&path, &moved).unwrap();
        std::fs::copy(log_of(&path), log_of(&moved)).unwrap();
        for path in [copy, moved] {
            let what = format!("{page_bytes}: {}", path.display());
            for round in 0..2 {
                let db = Db::open(&path, options(true)).expect(&what);
                let tree = db.raw_tree("t").unwrap();
                assert_eq!(tree.len().unwrap(), 3000 + round, "{what}");
                tree.put(&(9000 + round).to_be_bytes(), b"more").unwrap();
                assert!(db.check().unwrap().is_sound(), "{what}");
                drop(tree);
                db.close().unwrap();
            }
        }
    }
}
