//! Standard clients: those of libnbd, QEMU and fio. A test is skipped, with a message, if its
//! client is not installed.

#![allow(clippy::print_stdout)] // what is left out is named

use std::path::Path;
use std::process::{Command, Output};

use crate::support::Served;

const SIZE: usize = 8 << 20;

/// Returns `true` if the program is installed; otherwise prints the package to install.
fn is_there(program: &str, package: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    let is_there = found.is_ok_and(|output| output.status.success());
    if !is_there {
        println!("no {program} here: its test is left out; the package {package} has it");
    }
    is_there
}

/// Returns `true` if fio is installed with its NBD engine; otherwise prints the package to install.
pub fn fio_has_nbd() -> bool {
    if !is_there("fio", "fio") {
        return false;
    }
    let has_it = run("fio", &["--enghelp"]).lines().any(|line| line.trim() == "nbd");
    if !has_it {
        println!("this fio has no NBD engine: its test is left out; Debian's package fio has it");
    }
    has_it
}

fn run(program: &str, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = Command::new(program).args(arguments).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{program} {arguments:?}: {status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

fn random_bytes(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..SIZE).map(|_| random.u8(..)).collect()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn nbdinfo_finds_exports_sizes_and_holes() {
    if !is_there("nbdinfo", "libnbd-bin") {
        return;
    }
    let mut bytes = random_bytes(1);
    bytes[1 << 20..3 << 20].fill(0);
    let served = Served::new(&bytes, 4 << 20, 4096);
    let uri = served.uri("disk");
    assert_eq!(run("nbdinfo", &["--size", &uri]).trim(), SIZE.to_string());
    let about = run("nbdinfo", &[&uri]);
    for expected in [
        "structured packets",
        "base:allocation",
        "x-millpond:reason",
        "x-millpond:residency",
        "can_cache: true",
        "can_df: true",
        "can_fua: true",
        "can_multi_conn: true",
        "can_trim: true",
        "can_zero: true",
        "is_read_only: false",
        "block_size_preferred: 4096",
        "block_size_maximum: 33554432",
    ] {
        assert!(about.contains(expected), "{expected} is not in\n{about}");
    }
    let list = run("nbdinfo", &["--list", &uri]);
    for export in ["\"disk\"", "\"disk/synch\"", "\"disk/replace\"", "\"disk/recov\""] {
        assert!(list.contains(&format!("export={export}")), "{list}");
    }
    // The file was written without holes; trimming makes one.
    served.volume.trim(1 << 20, 2 << 20, true).unwrap();
    let map = run("nbdinfo", &["--map", &uri]);
    let rows: Vec<Vec<&str>> = map.lines().map(|l| l.split_whitespace().collect()).collect();
    let is_known = served.volume.allocation(1 << 20, 4096, 1).unwrap()[0].status != 0;
    if is_known {
        let hole = (1u64 << 20).to_string();
        assert!(rows.iter().any(|row| row[0] == hole && row[3] == "hole,zero"), "{map}");
        assert!(rows.iter().any(|row| row[0] == "0" && row[3] == "data"), "{map}");
    }
}

#[test]
fn nbdinfo_prints_what_the_cache_holds() {
    if !is_there("nbdinfo", "libnbd-bin") {
        return;
    }
    let served = Served::new(&random_bytes(7), 4 << 20, 4096);
    let rows = || {
        let map = run("nbdinfo", &["--map=x-millpond:residency", &served.uri("disk")]);
        let numbers = map.lines().map(|line| {
            let words = line.split_whitespace().take(3);
            words.map(|word| word.parse().unwrap()).collect::<Vec<usize>>()
        });
        numbers.collect::<Vec<_>>()
    };
    assert_eq!(rows(), [[0, SIZE, 0]]);
    served.volume.prefetch(1 << 20, 64 << 10).unwrap();
    let (begin, end) = (1 << 20, (1 << 20) + (64 << 10));
    assert_eq!(rows(), [[0, begin, 0], [begin, 64 << 10, 1], [end, SIZE - end, 0]]);
}

#[test]
fn nbdcopy_copies_both_ways_over_several_connections() {
    if !is_there("nbdcopy", "libnbd-bin") {
        return;
    }
    let served = Served::new(&vec![0; SIZE], 2 << 20, 4096);
    let (from, to) = (path(served.folder.path(), "from"), path(served.folder.path(), "to"));
    let mut bytes = random_bytes(2);
    bytes[5 << 20..6 << 20].fill(0);
    std::fs::write(&from, &bytes).unwrap();
    let uri = served.uri("disk/replace");
    run("nbdcopy", &["--connections=4", "--threads=4", "--requests=16", "--flush", &from, &uri]);
    assert!(served.server.counts().connections >= 4);
    run("nbdcopy", &["--connections=4", &served.uri(""), &to]);
    assert!(std::fs::read(&to).unwrap() == bytes);
    let tier = served.volume.tier_counts().unwrap();
    assert!(tier.writes > 0 && tier.reads > 0 && tier.errors == 0, "{tier:?}");
    let backing = served.backing();
    let _folder = served.close();
    assert!(std::fs::read(backing).unwrap() == bytes);
}

/// Every feature of the protocol, by libnbd, which checks the server strictly.
const SCRIPT: &str = r#"
h.set_full_info(True)
h.add_meta_context("base:allocation")
h.add_meta_context("x-millpond:reason")
h.connect_uri(uri)
assert h.get_structured_replies_negotiated()
size = h.get_size()
assert h.can_multi_conn() and h.can_fua() and h.can_flush() and h.can_trim() and h.can_df()
assert h.can_zero() and h.can_cache() and not h.is_read_only()
assert h.can_meta_context("base:allocation") and h.can_meta_context("x-millpond:reason")
assert h.get_canonical_export_name() == "disk/recov"
h.pwrite(b"A" * 10000, 1234)
h.pwrite(b"B" * 4096, 8192, nbd.CMD_FLAG_FUA)
assert h.pread(1, 1233) == b"\1" and h.pread(6958, 1234) == b"A" * 6958
assert h.pread(4096, 8192) == b"B" * 4096
parts = []
def chunk(bytes, offset, status, error):
    parts.append((offset, len(bytes)))
assert h.pread_structured(4096, 8192, chunk, nbd.CMD_FLAG_DF) == b"B" * 4096
assert parts == [(8192, 4096)], parts
h.zero(5000, 2000)
h.zero(5000, 20000, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
assert h.pread(30000, 0) == (b"\1" * 1234 + b"A" * 766 + bytes(5000) + b"A" * 1192 + b"B" * 4096
                             + b"\1" * 7712 + bytes(5000) + b"\1" * 5000)
h.trim(65536, 131072, nbd.CMD_FLAG_FUA)
assert h.pread(65536, 131072) == bytes(65536)
h.cache(1 << 20, 0)
h.flush()
seen = {}
def extent(context, offset, entries, error):
    seen[context] = (offset, sum(entries[::2]), entries[1::2])
h.block_status(size, 0, extent)
offset, length, states = seen["base:allocation"]
assert offset == 0 and 0 < length <= size
assert seen["x-millpond:reason"] == (0, size, [3])
h.block_status(65536, 131072, extent, nbd.CMD_FLAG_REQ_ONE)
assert seen["base:allocation"][1] == 65536
# Requests that make no sense, which libnbd would not send by itself.
h.set_strict_mode(0)
for call in [lambda: h.pread(10, size), lambda: h.pwrite(b"x", size),
             lambda: h.trim(10, size - 5), lambda: h.zero(10, size)]:
    try:
        call()
        assert False, "a request past the end was taken"
    except nbd.Error as error:
        assert error.errno in ("EINVAL", "ENOSPC"), error.errno
# Many under way at once, of all kinds.
writes = [h.aio_pwrite(bytes([at >> 13]) * 8192, at) for at in range(0, 1 << 20, 8192)]
while writes:
    h.poll(-1)
    writes = [write for write in writes if not h.aio_command_completed(write)]
for at in range(0, 1 << 20, 8192):
    assert h.pread(8192, at) == bytes([at >> 13]) * 8192
h.shutdown()
# Without structured replies.
o = nbd.NBD()
o.set_request_structured_replies(False)
o.connect_uri(uri)
assert o.pread(8192, 8192) == b"\1" * 8192
try:
    o.pread(8192, size)
    assert False
except nbd.Error:
    pass
o.shutdown()
# The options one by one.
p = nbd.NBD()
p.set_opt_mode(True)
p.connect_uri(uri)
names = []
p.opt_list(lambda name, text: names.append(name))
assert names == ["disk", "disk/synch", "disk/replace", "disk/recov"], names
contexts = []
p.opt_list_meta_context(lambda name: contexts.append(name))
assert "base:allocation" in contexts and "x-millpond:reason" in contexts, contexts
p.set_export_name("none")
try:
    p.opt_info()
    assert False
except nbd.Error:
    pass
p.set_export_name("disk/synch")
p.opt_info()
assert p.get_size() == size
p.opt_abort()
"#;

#[test]
fn libnbd_finds_all_commands_as_they_should_be() {
    let has_module = |python: &&str| {
        let output = Command::new(python).args(["-c", "import nbd"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    // The system's packages need the system's Python.
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has_module) else {
        println!("no libnbd for Python here: its test is left out; python3-libnbd has it");
        return;
    };
    let served = Served::new(&vec![1; SIZE], 2 << 20, 4096);
    let uri = served.uri("disk/recov");
    let script = format!("import nbd\nh = nbd.NBD()\nuri = {uri:?}\n{SCRIPT}");
    run(python, &["-c", &script]);
    assert_eq!(served.server.counts().broken, 0);
}

#[test]
fn qemu_writes_reads_converts_and_compares() {
    if !is_there("qemu-io", "qemu-utils") || !is_there("qemu-img", "qemu-utils") {
        return;
    }
    let served = Served::new(&vec![1; SIZE], 2 << 20, 4096);
    let uri = served.uri("disk/synch");
    let io = |commands: &[&str]| {
        let mut arguments = vec!["-f", "raw"];
        commands.iter().for_each(|command| arguments.extend(["-c", *command]));
        arguments.push(&uri);
        let output = run("qemu-io", &arguments);
        let is_wrong = |line: &str| line.contains("failed") || line.contains("error");
        assert!(!output.lines().any(is_wrong), "{output}");
    };
    io(&[
        "write -P 0x41 512 100k",
        "write -f -P 0x42 1M 64k",
        "flush",
        "read -P 0x41 512 100k",
        "read -P 0x42 1M 64k",
        "read -P 1 2M 1M",
        "write -z 1M 32k",
        "read -P 0 1M 32k",
        "discard 2M 1M",
        "aio_write -P 0x43 3M 256k",
        "aio_write -P 0x44 4M 256k",
        "aio_flush",
        "read -P 0x43 3M 256k",
        "read -P 0x44 4M 256k",
    ]);
    // A flush by one client shows its data to another, under another name.
    let other = served.client("disk");
    let mut bytes = vec![0; 256 << 10];
    millpond_device::Device::read(&other, 3 << 20, &mut bytes).unwrap();
    assert!(bytes == vec![0x43; 256 << 10]);
    let about = run("qemu-img", &["info", "--output=json", &uri]);
    assert!(about.contains(&format!("\"virtual-size\": {SIZE}")), "{about}");
    let copy = path(served.folder.path(), "copy.qcow2");
    run("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &uri, &copy]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", &uri, &copy]);
    let image = path(served.folder.path(), "image");
    std::fs::write(&image, random_bytes(4)).unwrap();
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", &image, &uri]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &image, &uri]);
    run("qemu-img", &["map", "-f", "raw", "--output=json", &uri]);
}

#[test]
fn fio_verifies_what_it_wrote_by_several_connections() {
    if !fio_has_nbd() {
        return;
    }
    let served = Served::new(&vec![0; SIZE], 2 << 20, 4096);
    let uri = format!("--uri={}", served.uri("disk"));
    let arguments = [
        "--name=verify",
        "--ioengine=nbd",
        &uri,
        "--rw=randwrite",
        "--bs=1k-16k",
        "--size=2M",
        "--offset_increment=2M",
        "--numjobs=4",
        "--iodepth=16",
        "--verify=crc32c",
        "--do_verify=1",
        "--verify_state_save=0",
        "--fsync=32",
        "--thread",
        "--group_reporting",
    ];
    let output = run("fio", &arguments);
    assert!(output.contains("err= 0"), "{output}");
    assert!(served.volume.counts().syncs > 0);
}
