//! A server that is killed in the middle of its work, again and again: everything confirmed as
//! durable is there after each restart.
//!
//! fio loses its connection at the kill, and with it the writes that its verification knew of. So
//! it does two other things. Before the kills it writes a region and flushes it, and after each
//! kill it verifies that region. During each life it is the load, and verifies its own reads. The
//! clients of this test track the writes confirmed at the moment of the kill. Each has its own
//! blocks, writes versions of them, with FUA or with a FLUSH afterwards, and notes the confirmed
//! ones.

#![allow(clippy::print_stdout)] // what is left out is named

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond_base::rounds::rounds;
use millpond_server::protocol::{Command as Ask, Request, command_flags};
use millpond_server::serve::{Address, ServeOptions, Server};
use millpond_server::volume::Volume;

use crate::standard_clients::fio_has_nbd;
use crate::support::{LIMIT, Raw, folder, spec, wait_until};

/// The folder to serve, and whether its cache writes back.
const FOLDER: &str = "MILLPOND_TEST_SERVE";
const WRITE_BACK: &str = "MILLPOND_TEST_WRITE_BACK";
/// Bytes of a client's write: half a block, so that blocks are completed, too.
const UNIT: usize = 2048;
const UNITS: u64 = 256;
const CLIENTS: u64 = 3;
/// Behind the clients' units: the region that fio wrote before, and the region of its load.
const KEPT: u64 = 2 << 20;
const LOAD: u64 = 4 << 20;
const SIZE: usize = 8 << 20;

/// Not a test of its own: the process to be killed.
#[test]
fn serves_what_another_test_asks_for() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = PathBuf::from(folder);
    let mut spec = spec(&folder, 1 << 20, 4096);
    spec.cache.iter_mut().for_each(|c| c.write_back = std::env::var_os(WRITE_BACK).is_some());
    let volume = Arc::new(Volume::open(&spec).unwrap());
    let address = Address::Unix(folder.join("socket"));
    let _server = Server::start(volume, &address, ServeOptions::default()).unwrap();
    // The parent kills this process. If the parent dies first, the pipe of the input ends.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}

/// A server process, which is killed when this is dropped.
struct Life(Child);

impl Life {
    fn begin(folder: &Path, write_back: bool) -> Life {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "kill::serves_what_another_test_asks_for", "--nocapture"]);
        command.env(FOLDER, folder).stdin(Stdio::piped()).stdout(Stdio::null());
        if write_back {
            command.env(WRITE_BACK, "1");
        }
        let mut life = Life(command.spawn().unwrap());
        let begun = Instant::now();
        // The socket of the killed server does not answer.
        while UnixStream::connect(folder.join("socket")).is_err() {
            assert!(life.0.try_wait().unwrap().is_none(), "the server did not start");
            assert!(begun.elapsed() < LIMIT);
            std::thread::sleep(Duration::from_millis(2));
        }
        life
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Versions of a unit: the last requested, replied to, and confirmed as durable.
#[derive(Clone, Copy, Default, Debug)]
struct Versions {
    asked: u64,
    replied: u64,
    durable: u64,
}

/// A client's units, from its first one on.
struct Units {
    first: u64,
    all: Vec<Versions>,
    random: fastrand::Rng,
}

fn content(unit: u64, version: u64) -> Vec<u8> {
    if version == 0 {
        return vec![0; UNIT];
    }
    let mut random = fastrand::Rng::with_seed(unit << 32 | version);
    let mut bytes = [unit.to_le_bytes(), version.to_le_bytes()].concat();
    bytes.resize_with(UNIT, || random.u8(..));
    bytes
}

impl Units {
    /// Writes until the server is gone.
    fn write(&mut self, mut raw: Raw) {
        let mut cookie = 0;
        while self.batch(&mut raw, &mut cookie).is_ok() {}
    }

    /// Writes different units at the same time; then, sometimes, sends a FLUSH.
    fn batch(&mut self, raw: &mut Raw, cookie: &mut u64) -> std::io::Result<()> {
        let mut at: Vec<usize> = (0..self.all.len()).collect();
        self.random.shuffle(&mut at);
        at.truncate(self.random.usize(1..12));
        let mut bytes = Vec::new();
        let mut waiting = std::collections::HashMap::new();
        for at in at {
            *cookie += 1;
            let is_fua = self.random.u8(..4) == 0;
            let flags = if is_fua { command_flags::FUA } else { 0 };
            self.all[at].asked += 1;
            let unit = self.first + at as u64;
            let (offset, length) = (unit * UNIT as u64, UNIT as u32);
            let command = Ask::Write;
            bytes.extend(Request { flags, command, cookie: *cookie, offset, length }.encode());
            bytes.extend(content(unit, self.all[at].asked));
            waiting.insert(*cookie, (at, is_fua));
        }
        raw.stream.write_all(&bytes)?;
        while !waiting.is_empty() {
            let (at, is_fua) = waiting.remove(&reply(raw)?).unwrap();
            let versions = &mut self.all[at];
            versions.replied = versions.asked;
            if is_fua {
                versions.durable = versions.asked;
            }
        }
        if self.random.u8(..3) == 0 {
            *cookie += 1;
            let (flags, offset, length) = (0, 0, 0);
            let flush = Request { flags, command: Ask::Flush, cookie: *cookie, offset, length };
            raw.stream.write_all(&flush.encode())?;
            assert_eq!(reply(raw)?, *cookie);
            self.all.iter_mut().for_each(|versions| versions.durable = versions.replied);
        }
        Ok(())
    }

    /// Checks that each unit has a version that it may have, and continues from that version.
    fn check(&mut self, raw: &mut Raw, is_kept: bool) {
        let (offset, length) = (self.first * UNIT as u64, (self.all.len() * UNIT) as u32);
        let (flags, command, cookie) = (0, Ask::Read, 7);
        let request = Request { flags, command, cookie, offset, length };
        assert_eq!(raw.simple(&request, &[]), 0);
        let found = raw.bytes(length as usize);
        for (at, found) in found.chunks(UNIT).enumerate() {
            let (unit, versions) = (self.first + at as u64, &mut self.all[at]);
            let version = u64::from_le_bytes(found[8..16].try_into().unwrap());
            assert!(found == content(unit, version), "unit {unit} is a mixture: {versions:?}");
            let least = if is_kept { versions.replied } else { versions.durable };
            let possible = least..=versions.asked;
            assert!(possible.contains(&version), "unit {unit}: {version} is there, {versions:?}");
            // A read does not make it durable.
            (versions.replied, versions.durable) = (version, least);
        }
    }
}

/// Returns the cookie of the next reply, which must have no error.
fn reply(raw: &mut Raw) -> std::io::Result<u64> {
    let mut reply = [0; 16];
    raw.stream.read_exact(&mut reply)?;
    assert_eq!(reply[4..8], [0; 4], "a write or flush failed");
    Ok(u64::from_be_bytes(reply[8..].try_into().unwrap()))
}

/// Returns a command that runs fio over a region; `more` are its further options.
fn fio(folder: &Path, offset: u64, more: &[&str]) -> Command {
    let mut command = Command::new("fio");
    let socket = folder.join("socket").display().to_string();
    command.args(["--name=f", "--ioengine=nbd", "--bs=4k", "--verify=crc32c", "--size=1M"]);
    command.arg(format!("--uri=nbd+unix:///disk?socket={socket}"));
    command.arg(format!("--offset={offset}")).args(more);
    // fio may leave a file with its verification state.
    command.current_dir(folder).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn fio_does(folder: &Path, offset: u64, more: &[&str]) {
    let output = fio(folder, offset, more).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{more:?}: {said}");
}

fn kill_again_and_again(write_back: bool) {
    let has_fio = fio_has_nbd();
    let folder = folder(&vec![0; SIZE]);
    let folder = folder.path();
    let connect = || Raw::over(UnixStream::connect(folder.join("socket")).unwrap()).go("", &[]);
    let mut random = fastrand::Rng::with_seed(u64::from(write_back));
    let mut clients: Vec<Units> = (0..CLIENTS)
        .map(|at| Units {
            first: at * UNITS,
            all: vec![Versions::default(); UNITS as usize],
            random: random.fork(),
        })
        .collect();
    let mut life = Life::begin(folder, write_back);
    let kept = ["--rw=randwrite", "--iodepth=8", "--randseed=5"];
    if has_fio {
        fio_does(folder, KEPT, &[&kept[..], &["--do_verify=0", "--end_fsync=1"]].concat());
    }
    for _ in 0..rounds(6, 200) {
        let load = has_fio.then(|| {
            let more = ["--rw=randrw", "--iodepth=16", "--verify_backlog=32", "--loops=1000"];
            fio(folder, LOAD, &more).spawn().unwrap()
        });
        std::thread::scope(|scope| {
            for client in &mut clients {
                let raw = connect();
                scope.spawn(move || client.write(raw));
            }
            std::thread::sleep(Duration::from_millis(random.u64(50..400)));
            drop(life);
        });
        if let Some(load) = load {
            let said = load.wait_with_output().unwrap().stderr;
            let said = String::from_utf8_lossy(&said);
            assert!(!said.contains("verify"), "{said}");
        }
        life = Life::begin(folder, write_back);
        // Without write-back, the backing file has all replied writes, since the system lives on.
        clients.iter_mut().for_each(|client| client.check(&mut connect(), !write_back));
        if has_fio {
            fio_does(folder, KEPT, &[&kept[..], &["--verify_only"]].concat());
        }
    }
    for client in clients {
        assert!(client.all.iter().any(|unit| unit.durable > 1), "hardly anything was written");
    }
    drop(life);
    // A server that is asked to stop closes the volume; this one is as the kill left it.
    let mut spec = spec(folder, 1 << 20, 4096);
    spec.cache.iter_mut().for_each(|cache| cache.write_back = write_back);
    wait_until("the lock of who was killed", || Volume::open(&spec).is_ok());
}

#[test]
fn what_was_confirmed_is_there_after_kills_where_writes_go_through() {
    kill_again_and_again(false);
}

#[test]
fn what_was_confirmed_is_there_after_kills_where_writes_stay_in_the_cache() {
    kill_again_and_again(true);
}
