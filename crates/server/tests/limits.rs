//! Limits of a server: refused requests, clients that it does not wait for, and its stop.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millpond_base::{PageId, Reason};
use millpond_device::{Alignment, Device, DeviceError, MemoryDevice, WriteRequest};
use millpond_server::protocol::*;
use millpond_server::serve::{Address, ServeError, ServeOptions, Server};
use millpond_server::volume::Volume;

use crate::support::{LIMIT, Raw, Served, folder, wait_until};

const MIB: u64 = 1 << 20;

fn request(command: Command, flags: u16, offset: u64, length: u32) -> Request {
    Request { flags, command, cookie: 0x0123_4567_89ab_cdef ^ offset, offset, length }
}

#[test]
fn a_request_that_makes_no_sense_is_refused_and_the_next_one_is_served() {
    let served = Served::new(&[7; 64 << 10], 0, 4096);
    let mut raw = served.raw().go("disk", &[]);
    let end = 64 << 10;
    let cases: [(Request, usize, u32); 9] = [
        (request(Command::Read, 0, end, 1), 0, errors::EINVAL),
        (request(Command::Read, 0, u64::MAX, 10), 0, errors::EINVAL),
        (request(Command::Read, 0, 0, PAYLOAD_BYTES_MAX + 1), 0, errors::EOVERFLOW),
        (request(Command::Read, command_flags::DF, 0, 10), 0, errors::EINVAL),
        (request(Command::Write, 0, end - 1, 2), 2, errors::ENOSPC),
        (request(Command::Write, 1 << 9, 0, 100_000), 100_000, errors::EINVAL),
        (request(Command::WriteZeroes, 0, 1, end as u32), 0, errors::ENOSPC),
        (request(Command::BlockStatus, 0, 0, 10), 0, errors::EINVAL),
        (request(Command::Unknown(77), 0, 0, 0), 0, errors::EINVAL),
    ];
    for (request, payload, error) in cases {
        assert_eq!(raw.simple(&request, &vec![1; payload]), error, "{request:?}");
        assert_eq!(raw.simple(&super::limits::request(Command::Read, 0, 10, 5), &[]), 0);
        assert_eq!(raw.bytes(5), [7; 5]);
    }
    raw.request(&request(Command::Write, 0, 0, PAYLOAD_BYTES_MAX + 1), &[]);
    raw.expect_end();
}

#[test]
fn a_request_of_the_most_bytes_is_served_whole() {
    let most = PAYLOAD_BYTES_MAX;
    let served = Served::new(&vec![7; most as usize + 4096], 0, 4096);
    let mut raw = served.raw().go("disk", &[]);
    assert_eq!(raw.simple(&request(Command::Read, 0, 4096, most), &[]), 0);
    assert!(raw.bytes(most as usize).iter().all(|byte| *byte == 7));
    let data: Vec<u8> = (0..most).map(|at| (at >> 12) as u8).collect();
    assert_eq!(raw.simple(&request(Command::Write, 0, 0, most), &data), 0);
    assert_eq!(raw.simple(&request(Command::Read, 0, 0, most), &[]), 0);
    assert!(raw.bytes(most as usize) == data);
}

#[test]
fn options_are_refused_by_kind_and_the_handshake_goes_on() {
    let served = Served::new(&[7; 64 << 10], 0, 4096);
    let mut raw = served.raw().greet(1);
    let mut refused = |option: ClientOption, kind: u32| match raw.ask(&option) {
        OptionReply::Error { kind: found, .. } => assert_eq!(found, kind, "{option:?}"),
        other => panic!("{other:?}"),
    };
    let info = |name: &str| InfoRequest { name: name.to_string(), wants: vec![] };
    refused(ClientOption::Unknown(11), option_replies::ERR_UNSUP);
    refused(ClientOption::StartTls, option_replies::ERR_POLICY);
    refused(ClientOption::Info(info("other")), option_replies::ERR_UNKNOWN);
    refused(ClientOption::Go(info("disk/")), option_replies::ERR_UNKNOWN);
    let meta = MetaRequest { export: "disk".into(), queries: vec![allocation::NAME.into()] };
    refused(ClientOption::SetMetaContext(meta), option_replies::ERR_INVALID);
    // More data than an option may have, and data of an option that has none.
    for (length, kind) in [
        (OPTION_BYTES_MAX + 1, option_replies::ERR_TOO_BIG),
        (OPTION_BYTES_MAX, option_replies::ERR_INVALID),
        (5, option_replies::ERR_INVALID),
    ] {
        raw.send(&OptionHeader { option: options::LIST, length }.encode());
        raw.send(&vec![0; length as usize]);
        let reply = raw.option_reply(options::LIST);
        assert!(matches!(reply, OptionReply::Error { kind: found, .. } if found == kind));
    }
    for name in ["disk", "disk/synch", "disk/replace", "disk/recov"] {
        let reply = if name == "disk" { raw.ask(&ClientOption::List) } else { raw.option_reply(3) };
        assert_eq!(reply, OptionReply::Server(name.to_string()));
    }
    assert_eq!(raw.option_reply(options::LIST), OptionReply::Ack);
    // The oldest way to begin, with 124 zeros, since the client has not set the flag against them.
    raw.send(&ClientOption::ExportName("disk".into()).encode());
    let reply = raw.bytes(134);
    assert_eq!(reply[..8], (64u64 << 10).to_be_bytes());
    assert_eq!(raw.simple(&request(Command::Flush, 0, 0, 0), &[]), 0);
    let mut unknown = served.raw().greet(3);
    unknown.send(&ClientOption::ExportName("other".into()).encode());
    unknown.expect_end();
    served.raw().greet(1 << 7).expect_end();
}

#[test]
fn a_client_that_reads_no_replies_holds_up_nobody_else_and_little_memory() {
    let served = Served::new(&vec![3; 4 << 20], 0, 4096);
    let mut slow = served.raw().go("disk", &[]);
    slow.stream.set_nonblocking(true).unwrap();
    let one = request(Command::Read, 0, 0, MIB as u32).encode();
    // As many connections as the server accepts.
    let (begin, mut idle) = (Instant::now(), 0);
    while idle < 100 && begin.elapsed() < LIMIT {
        match slow.stream.write(&one) {
            Ok(count) => assert!(count == one.len()),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                idle += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("{error}"),
        }
    }
    wait_until("the last read", || {
        let before = served.volume.counts().reads;
        std::thread::sleep(Duration::from_millis(100));
        before == served.volume.counts().reads
    });
    let reads = served.volume.counts().reads;
    assert!((2..50).contains(&reads), "{reads} reads of 1 MiB, where 40 MiB are the limit");
    let other = served.client("disk");
    let mut bytes = vec![0; 2 << 20];
    for _ in 0..20 {
        other.read(0, &mut bytes).unwrap();
        other.write(0, &bytes[..4096]).unwrap();
    }
    other.sync().unwrap();
    assert!(bytes.iter().all(|byte| *byte == 3));
    // Now the client reads, and gets all of it.
    slow.stream.set_nonblocking(false).unwrap();
    for _ in 0..reads {
        slow.bytes(16);
        assert!(slow.bytes(MIB as usize) == vec![3; MIB as usize]);
    }
}

#[test]
fn no_more_clients_are_let_in_than_there_may_be() {
    let folder = folder(&[1; 8192]);
    let volume = Volume::open(&crate::support::spec(&folder, 0, 4096)).unwrap();
    let options = ServeOptions { connections: 2, ..ServeOptions::default() };
    let served = Served::of(folder, volume, options);
    let (one, _other) = (served.raw().go("", &[]), served.raw().go("", &[]));
    served.raw().expect_end();
    assert_eq!(served.server.counts().refused, 1);
    drop(one);
    wait_until("leaving", || served.server.connections() == 1);
    served.raw().go("", &[]);
}

#[test]
fn a_client_that_does_not_get_on_with_its_handshake_is_left() {
    let folder = folder(&[1; 8192]);
    let volume = Volume::open(&crate::support::spec(&folder, 0, 4096)).unwrap();
    let handshake = Duration::from_millis(300);
    let served = Served::of(folder, volume, ServeOptions { handshake, ..Default::default() });
    let begun = Instant::now();
    let (mut silent, mut drip) = (served.raw(), served.raw().greet(3));
    let in_session = served.raw().go("", &[]);
    // A byte at a time does not help.
    let bytes = ClientOption::List.encode();
    for byte in bytes.iter().cycle().take(1000) {
        if drip.stream.write_all(&[*byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    silent.expect_end();
    drip.expect_end();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let mut session = in_session;
    assert_eq!(session.simple(&request(Command::Read, 0, 0, 1), &[]), 0);
}

/// A device that blocks writes until they are released, and records their reasons.
struct Held {
    below: MemoryDevice,
    is_open: AtomicBool,
    waiting: AtomicBool,
    reasons: Mutex<Vec<(PageId, Reason)>>,
}

impl Held {
    fn new(is_open: bool) -> Arc<Held> {
        Arc::new(Held {
            below: MemoryDevice::from_bytes(&[0; 64 << 10]),
            is_open: AtomicBool::new(is_open),
            waiting: AtomicBool::new(false),
            reasons: Mutex::default(),
        })
    }
}

impl Device for Held {
    fn path(&self) -> &Path {
        self.below.path()
    }
    fn length(&self) -> u64 {
        self.below.length()
    }
    fn alignment(&self) -> Alignment {
        self.below.alignment()
    }
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.below.read(offset, bytes)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.below.write(offset, bytes)
    }
    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        while !self.is_open.load(Ordering::Acquire) {
            self.waiting.store(true, Ordering::Release);
            std::thread::sleep(Duration::from_millis(1));
        }
        for request in requests.iter() {
            let all = request.tags.iter().map(|tag| (tag.page, tag.reason));
            self.reasons.lock().unwrap().extend(all);
        }
        self.below.write_batch(requests);
    }
    fn sync(&self) -> Result<(), DeviceError> {
        self.below.sync()
    }
    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.below.grow(length)
    }
}

#[test]
fn a_server_that_stops_finishes_what_was_asked_for_and_lets_nobody_in() {
    let device = Held::new(false);
    let folder = tempfile::tempdir().unwrap();
    let volume = Volume::over(device.clone(), 4096, false);
    let served = Served::of(folder, volume, ServeOptions::default());
    let mut client = served.raw().go("disk", &[]);
    let mut idle = served.raw().go("disk", &[]);
    let mut young = served.raw();
    client.request(&request(Command::Write, 0, 0, 4096), &[9; 4096]);
    wait_until("the write", || device.waiting.load(Ordering::Acquire));
    let socket = served.socket();
    let stopping = std::thread::spawn(move || served.server.stop());
    wait_until("the socket's end", || UnixStream::connect(&socket).is_err());
    idle.expect_end();
    young.expect_end();
    assert!(!stopping.is_finished(), "a write is under way");
    device.is_open.store(true, Ordering::Release);
    assert_eq!(client.bytes(16)[4..8], [0; 4], "it was replied to");
    client.expect_end();
    assert!(stopping.join().unwrap().connections >= 3);
    assert_eq!(device.below.to_bytes()[..4096], [9; 4096]);
    assert!(!socket.exists());
}

#[test]
fn a_server_that_stops_does_not_wait_for_a_client_that_takes_no_replies() {
    let folder = folder(&vec![1; 2 << 20]);
    let volume = Volume::open(&crate::support::spec(&folder, 0, 4096)).unwrap();
    let grace = Duration::from_millis(200);
    let served = Served::of(folder, volume, ServeOptions { grace, ..Default::default() });
    let mut slow = served.raw().go("disk", &[]);
    for _ in 0..20 {
        slow.send(&request(Command::Read, 0, 0, MIB as u32).encode());
    }
    wait_until("reads", || served.volume.counts().reads == 20);
    let begun = Instant::now();
    served.server.stop();
    assert!(begun.elapsed() >= grace && begun.elapsed() < Duration::from_secs(20));
    served.volume.close().unwrap();
}

#[test]
fn reasons_reach_the_device_by_export_and_by_cookie() {
    let device = Held::new(true);
    let folder = tempfile::tempdir().unwrap();
    let volume = Volume::over(device.clone(), 4096, false);
    let served = Served::of(folder, volume, ServeOptions::default());
    let write = |raw: &mut Raw, page: u64, hint: u64| {
        let cookie = page | hint << REASON_SHIFT;
        let (flags, command) = (0, Command::Write);
        let request = Request { flags, command, cookie, offset: page * 4096, length: 4096 };
        assert_eq!(raw.simple(&request, &[1; 4096]), 0);
    };
    let recov = &mut served.raw().go("disk/recov", &[]);
    write(recov, 1, 0);
    // Without the context, all bits of a cookie are the client's own.
    write(recov, 2, 1);
    let hinting = &mut served.raw().go("disk/recov", &[REASON_CONTEXT]);
    (0..4).for_each(|hint| write(hinting, 3 + hint, hint));
    let plain = &mut served.raw().go("", &[REASON_CONTEXT, allocation::NAME]);
    write(plain, 7, 0);
    let expected = [
        (1, Reason::Recov),
        (2, Reason::Recov),
        (3, Reason::Recov),
        (4, Reason::Synch),
        (5, Reason::Replace),
        (6, Reason::Recov),
        (7, Reason::None),
    ];
    assert_eq!(*device.reasons.lock().unwrap(), expected.map(|(at, why)| (PageId(at), why)));
    // BLOCK_STATUS of the context: the class of the export.
    hinting.request(&request(Command::BlockStatus, 0, 4096, 100), &[]);
    let reply = hinting.bytes(ChunkHeader::BYTES + 12);
    let chunk = Chunk::decode(chunks::BLOCK_STATUS, &reply[ChunkHeader::BYTES..]).unwrap();
    let extents = vec![Extent { length: 100, status: 3 }];
    assert_eq!(chunk, Chunk::BlockStatus { context: 2, extents });
}

#[test]
fn a_socket_that_nobody_answers_at_is_replaced_and_nothing_else() {
    let served = Served::new(&[1; 8192], 0, 4096);
    let start = |path: &Path| {
        let volume = Arc::new(Volume::over(Held::new(true), 4096, false));
        Server::start(volume, &Address::Unix(path.into()), ServeOptions::default())
    };
    let error = start(&served.socket()).unwrap_err();
    assert!(matches!(error, ServeError::InUse { .. }), "{error}");
    served.raw().go("", &[]);
    let stale = served.folder.path().join("stale");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    start(&stale).unwrap().stop();
    assert!(!stale.exists());
    let letter = served.folder.path().join("letter");
    std::fs::write(&letter, "Dear Ada").unwrap();
    let error = start(&letter).unwrap_err();
    assert!(matches!(error, ServeError::NotASocket { .. }), "{error}");
    assert_eq!(std::fs::read(&letter).unwrap(), b"Dear Ada");
    let error = start(&served.folder.path().join("x".repeat(107))).unwrap_err();
    assert!(error.to_string().contains("107 bytes are the most"), "{error}");
    let error = start(&served.folder.path().join("no/such/folder")).unwrap_err();
    assert!(matches!(error, ServeError::Listen { .. }), "{error}");
}

#[test]
fn over_tcp_only_this_machine_and_who_is_on_the_list_is_let_in() {
    let volume = Arc::new(Volume::over(Held::new(true), 4096, false));
    let start = |address: &str, allow: &[&str]| {
        let allow = allow.iter().map(|prefix| prefix.parse().unwrap()).collect();
        let options = ServeOptions { allow, ..ServeOptions::default() };
        Server::start(volume.clone(), &address.parse().unwrap(), options)
    };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:10809"] {
        let error = start(address, &[]).unwrap_err();
        assert!(matches!(error, ServeError::NotLocal { .. }), "{error}");
    }
    let greeted = |server: &Server| {
        let Address::Tcp(address) = server.address() else { panic!("not TCP") };
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut bytes = [0; 8];
        stream.read_exact(&mut bytes).is_ok_and(|()| &bytes == b"NBDMAGIC")
    };
    let all = start("127.0.0.1:0", &[]).unwrap();
    assert!(greeted(&all));
    let again = start(&all.address().to_string(), &[]).unwrap_err();
    assert!(matches!(again, ServeError::InUse { .. }), "{again}");
    assert!(greeted(&start("127.0.0.1:0", &["10.0.0.0/8", "127.0.0.0/8"]).unwrap()));
    let others = start("127.0.0.1:0", &["10.0.0.0/8", "::1"]).unwrap();
    assert!(!greeted(&others));
    assert_eq!(others.counts().refused, 1);
}
