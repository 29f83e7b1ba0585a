//! `millpond serve` as a user meets it: what it prints, how it stops, what is there afterwards.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use millpond_device::Device;
use millpond_server::client::{NbdDevice, NbdOptions, NbdUri};
use tempfile::TempDir;

const BYTES: usize = 1 << 20;

struct ServeFixture {
    folder: TempDir,
}

/// A server that runs.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// What it said before it listened.
    greeting: String,
}

impl ServeFixture {
    fn new() -> ServeFixture {
        let place = ServeFixture { folder: tempfile::tempdir().unwrap() };
        std::fs::write(place.path("vol.img"), vec![7; BYTES]).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.arg("serve").args(arguments).current_dir(self.folder.path());
        command
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let always = ["--nbd", "unix:socket", "--backing", "vol.img"];
        let mut command = self.command(&[&always, arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("listening at") {
            assert!(stdout.read_line(&mut greeting).unwrap() > 0, "it ended: {greeting}");
        }
        Running { child, stdout, greeting }
    }

    fn client(&self) -> NbdDevice {
        let uri = format!("nbd+unix:///?socket={}", self.path("socket").display());
        NbdDevice::open(&uri.parse::<NbdUri>().unwrap(), &NbdOptions::default()).unwrap()
    }

    /// Returns the standard error of a server that does not start.
    #[track_caller]
    fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let Output { status, stderr, .. } = self.command(arguments).output().unwrap();
        let error = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(code), "{arguments:?}: {error}");
        error
    }
}

impl Running {
    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Stops it; returns what it printed after it listened.
    fn stop(mut self, signal: &str) -> String {
        self.signal(signal);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {rest}");
        rest
    }
}

#[test]
fn a_server_keeps_what_was_written_and_a_warm_cache() {
    let place = ServeFixture::new();
    let arguments = ["--cache", "cache", "--cache-size", "2MiB", "--policy", "t2-lru"];
    let mut expected = vec![7; BYTES];
    for (round, signal) in [(1, "-TERM"), (2, "-INT"), (3, "-TERM")] {
        let running = place.start(&arguments);
        let (cold, warm) = ("blocks, 0 there, policy t2-lru", "blocks, 256 there, policy t2-lru");
        let is_as_it_should = if round == 1 { cold } else { warm };
        assert!(running.greeting.contains(is_as_it_should), "{}", running.greeting);
        assert!(running.greeting.contains("vol.img: 1048576 bytes in blocks of 4096"));
        let client = place.client();
        let mut found = vec![0; BYTES];
        client.read(0, &mut found).unwrap();
        assert!(found == expected, "round {round}");
        client.write(round * 5000, &vec![round as u8; 10_000]).unwrap();
        expected[round as usize * 5000..][..10_000].fill(round as u8);
        client.sync().unwrap();
        client.read(0, &mut found).unwrap();
        drop(client);
        let table = running.stop(signal);
        let value = |name: &str| {
            let line = table.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name} in\n{table}")).trim().parse::<u64>().unwrap()
        };
        assert_eq!((value("writes"), value("bytes written")), (1, 10_000));
        assert_eq!(value("cache: blocks kept"), 256);
        assert!(value("cache: served") >= if round == 1 { 200 } else { 500 }, "{table}");
        let widths: Vec<usize> = table.lines().map(str::len).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "not aligned:\n{table}");
        assert!(!place.path("socket").exists());
        assert!(std::fs::read(place.path("vol.img")).unwrap() == expected);
    }
}

#[test]
fn what_was_flushed_is_there_after_a_server_was_killed() {
    killed_with(&["--cache", "cache", "--cache-size", "2MiB"]);
}

#[test]
fn and_so_it_is_where_the_cache_has_what_the_file_has_not() {
    for size in ["2MiB", "512KiB"] {
        killed_with(&["--cache", "cache", "--cache-size", size, "--write-back"]);
    }
}

fn killed_with(arguments: &[&str]) {
    let place = ServeFixture::new();
    let writes_back = arguments.contains(&"--write-back");
    for round in 0..3u8 {
        let mut running = place.start(arguments);
        let is_empty = running.greeting.contains("blocks, 0 there");
        assert_eq!(is_empty, !writes_back || round == 0, "{}", running.greeting);
        let client = place.client();
        let (told, heard) = std::sync::mpsc::channel();
        let flushed = std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut flushed = 0u32;
                // Until the server is gone.
                for number in 1u32.. {
                    let bytes = [&number.to_le_bytes()[..], &[round; 4092]].concat();
                    let place = u64::from(number % 256) * 4096;
                    if client.write(place, &bytes).and_then(|()| client.sync()).is_err() {
                        break;
                    }
                    flushed = number;
                    let _ = told.send(());
                }
                flushed
            });
            // In the midst of it.
            let flushes = 60 * (usize::from(round) + 1);
            assert_eq!(heard.iter().take(flushes).count(), flushes);
            running.signal("-KILL");
            writer.join().unwrap()
        });
        running.child.wait().unwrap();
        assert!(flushed > 0);
        let after = place.start(arguments);
        let client = place.client();
        for number in flushed.saturating_sub(255).max(1)..=flushed {
            let mut bytes = [0; 4096];
            client.read(u64::from(number % 256) * 4096, &mut bytes).unwrap();
            let found = u32::from_le_bytes(bytes[..4].try_into().unwrap());
            // One write behind the last flush may be there, too.
            assert!(found == number || found == flushed + 1, "{found} in place of {number}");
            assert!(bytes[4..].iter().all(|byte| *byte == round));
        }
        drop(client);
        after.signal("-KILL");
        let mut after = after;
        after.child.wait().unwrap();
    }
}

#[test]
fn what_cannot_be_served_says_why() {
    let place = ServeFixture::new();
    let serve = |more: &[&'static str]| {
        [&["--nbd", "unix:other", "--backing", "vol.img"][..], more].concat()
    };
    let error = place.fails(2, &["--nbd", "0.0.0.0:0", "--backing", "vol.img"]);
    assert!(error.contains("without TLS"), "{error}");
    let error = place.fails(2, &["--nbd", "everywhere", "--backing", "vol.img"]);
    assert!(error.contains("unix:/path/to/socket"), "{error}");
    let error = place.fails(2, &serve(&["--block", "3000"]));
    assert!(error.contains("power of two"), "{error}");
    let error = place.fails(2, &serve(&["--cache", "cache", "--policy", "tqq"]));
    assert!(error.contains("did you mean 'tq'"), "{error}");
    let error = place.fails(2, &serve(&["--cache", "vol.img"]));
    assert!(error.contains("name two files"), "{error}");
    let error = place.fails(2, &serve(&["--name", "a/b"]));
    assert!(error.contains("none of them '/'"), "{error}");
    let error = place.fails(2, &serve(&["--tls-cert", "vol.img"]));
    assert!(error.contains("--tls-key"), "{error}");
    let error = place.fails(1, &serve(&["--tls-cert", "vol.img", "--tls-key", "vol.img"]));
    assert!(error.contains("vol.img has no certificate"), "{error}");
    let error = place.fails(1, &["--nbd", "unix:other", "--backing", "missing.img"]);
    assert!(error.contains("truncate -s SIZE missing.img"), "{error}");
    std::fs::write(place.path("letter"), "Dear Ada").unwrap();
    let error = place.fails(1, &serve(&["--cache", "letter"]));
    assert!(error.contains("letter"), "{error}");
    assert_eq!(std::fs::read(place.path("letter")).unwrap(), b"Dear Ada");
    let running = place.start(&["--cache", "cache"]);
    let error = place.fails(1, &serve(&[]));
    let holder = format!("in use by the process with pid {}", running.child.id());
    assert!(error.contains(&holder), "{error}");
    std::fs::write(place.path("another.img"), vec![1; 8192]).unwrap();
    let error = place.fails(1, &["--nbd", "unix:socket", "--backing", "another.img"]);
    assert!(error.contains("somebody listens at"), "{error}");
    running.stop("-TERM");
}

#[test]
fn a_cache_that_memory_has_no_room_for_is_refused_and_leaves_no_file() {
    let place = ServeFixture::new();
    for more in [&["--cache-size", "100TiB"][..], &["--cache-size", "100TiB", "--write-back"]] {
        let always = ["--nbd", "unix:other", "--backing", "vol.img", "--cache", "cache"];
        let error = place.fails(2, &[&always, more].concat());
        assert!(error.contains("of memory for its tables"), "{error}");
        assert!(error.contains("give a smaller --cache-size or a larger --block"), "{error}");
        let left = std::fs::read_dir(place.folder.path()).unwrap().map(|file| file.unwrap());
        assert_eq!(left.map(|file| file.file_name()).collect::<Vec<_>>(), ["vol.img"]);
    }
}

#[test]
fn a_benchmark_runs_on_a_server_with_hints() {
    let place = ServeFixture::new();
    let file = std::fs::File::create(place.path("vol.img")).unwrap();
    file.set_len(256 << 20).unwrap();
    let running = place.start(&["--cache", "cache", "--cache-size", "16MiB", "--policy", "tq"]);
    let uri = format!("nbd+unix:///?socket={}", place.path("socket").display());
    let common = ["--rows", "4000", "--pool", "20%", "--operations", "2000", "--json"];
    for more in [&["--updates", "50"][..], &["--updates", "50", "--log", "on"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.args(["bench", "ycsb", "--device", &uri]).args(common).args(more);
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{more:?}: {error}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(&uri), "the device is named");
    }
    let table = running.stop("-TERM");
    let value = |name: &str| {
        let line = table.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    assert!(value("cache: writes") > 100 && value("cache: reads") > 100, "{table}");
    assert_eq!(value("connections broken"), 0);
}

#[test]
fn a_backing_file_is_not_whole_without_its_cache_until_it_was_destaged() {
    let place = ServeFixture::new();
    let arguments = ["--cache", "cache", "--cache-size", "2MiB", "--write-back"];
    let destage = |file: &str, cache: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.args(["destage", file, cache]).current_dir(place.folder.path());
        let Output { status, stderr, .. } = command.output().unwrap();
        (status.code().unwrap(), String::from_utf8(stderr).unwrap())
    };
    let running = place.start(&arguments);
    let client = place.client();
    client.write(0, &vec![9; BYTES / 2]).unwrap();
    client.sync().unwrap();
    let (code, error) = destage("vol.img", "cache");
    assert!(code == 1 && error.contains("is in use by the process with pid"), "{error}");
    drop(client);
    running.stop("-TERM");
    let without = ["--nbd", "unix:other", "--backing", "vol.img"];
    let error = place.fails(1, &without);
    assert!(error.contains("vol.img is not whole") && error.contains("cache"), "{error}");
    let error = place.fails(1, &[&without[..], &["--cache", "new", "--write-back"]].concat());
    assert!(error.contains("vol.img is not whole"), "{error}");
    // If the cache is lost, what helps a volume is not what helps a store.
    std::fs::rename(place.path("cache"), place.path("gone")).unwrap();
    for lost in [&without[..], &[&without[..], &["--cache", "cache", "--write-back"]].concat()] {
        let error = place.fails(1, lost);
        assert!(error.contains("vol.img is not whole"), "{error}");
        assert!(error.contains("restore a backup") && !error.contains("salvage"), "{error}");
    }
    std::fs::rename(place.path("gone"), place.path("cache")).unwrap();
    for (file, cache) in [("vol.img", "missing"), ("missing", "cache")] {
        let (code, error) = destage(file, cache);
        assert!(code == 1 && error.contains("missing"), "{error}");
    }
    let (code, said) = destage("vol.img", "cache");
    assert!(code == 0 && said.contains("vol.img is whole, 127 pages were written"), "{said}");
    let expected = [vec![9; BYTES / 2], vec![7; BYTES / 2]].concat();
    assert!(std::fs::read(place.path("vol.img")).unwrap() == expected);
    let (code, said) = destage("vol.img", "cache");
    assert!(code == 0 && said.contains("cache has nothing that vol.img has not"), "{said}");
}
