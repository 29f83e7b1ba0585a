//! Arbitrary bytes from a client and from a server: no panic, no hang, and others are still served.

#[path = "../../../fuzz/bodies/nbd.rs"]
mod body;

use std::os::unix::net::UnixStream;

use millpond_device::Device;
use millpond_server::client::NbdDevice;
use millpond_server::protocol::*;
use millpond_server::serve::Server;

use crate::support::LIMIT;
use body::SIZE;

/// Changes bytes like a fuzzer: values, places, lengths.
pub fn mutate(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) {
    for _ in 0..random.usize(1..5) {
        if bytes.is_empty() {
            return;
        }
        let at = random.usize(..bytes.len());
        match random.u8(..6) {
            0 => bytes[at] ^= 1 << random.u8(..8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.usize(..5)],
            2 => bytes.truncate(at),
            3 => drop(bytes.remove(at)),
            4 => bytes.insert(at, random.u8(..)),
            _ => {
                let until = (at + random.usize(1..64)).min(bytes.len());
                let again = bytes[at..until].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
}

/// Returns the bytes of a client that sends each message once.
pub fn session(random: &mut fastrand::Rng) -> Vec<u8> {
    let export = ["", "disk", "disk/synch", "other"][random.usize(..4)].to_string();
    let queries = vec![allocation::NAME.to_string(), REASON_CONTEXT.to_string()];
    let meta = MetaRequest { export: export.clone(), queries };
    let info = InfoRequest { name: export, wants: vec![0, 1, 2, 3] };
    let mut bytes = 3u32.to_be_bytes().to_vec();
    let mut options = vec![
        ClientOption::List,
        ClientOption::StructuredReply,
        ClientOption::ListMetaContext(meta.clone()),
        ClientOption::SetMetaContext(meta),
        ClientOption::Info(info.clone()),
        ClientOption::Unknown(99),
        ClientOption::StartTls,
    ];
    random.shuffle(&mut options);
    options.truncate(random.usize(..8));
    options.push(ClientOption::Go(info));
    options.iter().for_each(|option| bytes.extend(option.encode()));
    for number in 0..random.u16(..20) {
        let command = Command::of(if number % 2 == 0 { random.u16(..9) } else { 1 });
        let flags = [0, 0, command_flags::FUA, command_flags::DF, 0x30][random.usize(..5)];
        let (offset, length) = (random.u64(..SIZE), random.u32(..5000));
        let cookie = random.u64(..);
        bytes.extend(Request { flags, command, cookie, offset, length }.encode());
        if command == Command::Write {
            bytes.extend(vec![random.u8(..); length as usize]);
        }
    }
    bytes
}

fn is_well(server: &Server) {
    let (client, other) = UnixStream::pair().unwrap();
    server.attach(other);
    let device = NbdDevice::over(client, "disk").unwrap();
    device.write(100, b"still here").unwrap();
    device.sync().unwrap();
    let mut bytes = [0; 10];
    device.read(100, &mut bytes).unwrap();
    assert_eq!(&bytes, b"still here");
}

#[test]
fn a_server_outlives_any_bytes_of_its_clients() {
    let server = body::server();
    for seed in 0..600 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = session(&mut random);
        match seed % 6 {
            0 => bytes = (0..random.usize(..300)).map(|_| random.u8(..)).collect(),
            1 => {}
            _ => mutate(&mut bytes, &mut random),
        }
        body::to_server(&server, &bytes);
        if seed % 100 == 0 {
            is_well(&server);
        }
    }
    is_well(&server);
    let begun = std::time::Instant::now();
    server.stop();
    assert!(begun.elapsed() < LIMIT);
}

/// Returns the bytes of a server in a session of the client below.
pub fn server_side(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = Greeting { flags: 3 }.encode().to_vec();
    let is_structured = random.bool();
    let kind = if is_structured { OptionReply::Ack } else { OptionReply::Other(99) };
    let refused = OptionReply::error(option_replies::ERR_UNSUP, "no");
    let structured = if is_structured { kind } else { refused };
    bytes.extend(structured.encode(options::STRUCTURED_REPLY));
    if is_structured {
        let name = REASON_CONTEXT.to_string();
        let context = OptionReply::MetaContext { id: 2, name };
        bytes.extend(context.encode(options::SET_META_CONTEXT));
        bytes.extend(OptionReply::Ack.encode(options::SET_META_CONTEXT));
    }
    let flags = transmission_flags::HAS_FLAGS | transmission_flags::SEND_FLUSH;
    bytes.extend(OptionReply::Export { size: SIZE, flags }.encode(options::GO));
    bytes.extend(OptionReply::Ack.encode(options::GO));
    let data = [5; 4096];
    if is_structured {
        bytes.extend(Chunk::Data { offset: 8192, bytes: &data[..1000] }.encode(0, false));
        bytes.extend(&data[..1000]);
        bytes.extend(Chunk::Hole { offset: 9192, length: 3096 }.encode(0, true));
    } else {
        bytes.extend(SimpleHeader { error: 0, cookie: 0 }.encode());
        bytes.extend(data);
    }
    bytes.extend(SimpleHeader { error: 0, cookie: 1 }.encode());
    bytes
}

#[test]
fn a_client_outlives_any_bytes_of_its_server() {
    let mut whole = 0;
    for seed in 0..1500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = server_side(&mut random);
        match seed % 6 {
            0 => bytes = (0..random.usize(..300)).map(|_| random.u8(..)).collect(),
            1 => {}
            _ => mutate(&mut bytes, &mut random),
        }
        let heard = body::to_client(bytes);
        if seed % 6 == 1 {
            let heard = heard.unwrap();
            assert!(heard[..1000] == [5; 1000] && (heard[1000] == 0 || heard == [5; 4096]));
            whole += 1;
        }
    }
    assert_eq!(whole, 250);
}

#[test]
fn bytes_that_are_missing_doubled_or_of_another_place_are_an_error() {
    let mut random = fastrand::Rng::with_seed(0);
    let begin = loop {
        // Up to the end of the handshake, with chunks.
        let all = server_side(&mut random);
        if all.windows(4).any(|four| four == CHUNK_MAGIC.to_be_bytes()) {
            let end = all.windows(4).position(|four| four == CHUNK_MAGIC.to_be_bytes());
            break all[..end.unwrap()].to_vec();
        }
    };
    let data = [5; 4096];
    let chunk = |offset: u64, length: usize, cookie: u64, is_last: bool| {
        let bytes = &data[..length];
        [Chunk::Data { offset, bytes }.encode(cookie, is_last), bytes.to_vec()].concat()
    };
    let flushed = SimpleHeader { error: 0, cookie: 1 }.encode().to_vec();
    let cases = [
        (chunk(8192, 4096, 0, true), true),
        ([chunk(10_240, 2048, 0, false), chunk(8192, 2048, 0, true)].concat(), true),
        (chunk(8192, 4095, 0, true), false),
        (chunk(8191, 4096, 0, true), false),
        (chunk(8193, 4096, 0, true), false),
        (chunk(8192, 4096, 7, true), false),
        ([chunk(8192, 2048, 0, false), chunk(8192, 2048, 0, true)].concat(), false),
        ([chunk(8192, 4096, 0, false), chunk(8192, 4096, 0, true)].concat(), false),
        ([Chunk::None.encode(0, true), chunk(8192, 4096, 0, true)].concat(), false),
        (SimpleHeader { error: 0, cookie: 0 }.encode().to_vec(), false),
    ];
    for (at, (reply, is_whole)) in cases.into_iter().enumerate() {
        let heard = body::to_client([&begin[..], &reply, &flushed].concat());
        assert_eq!(heard.is_some(), is_whole, "case {at}");
        assert!(heard.is_none_or(|heard| heard == data));
    }
}
