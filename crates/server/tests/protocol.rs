//! Messages survive encoding and decoding, and no bytes make a parser panic.

use millpond_server::protocol::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9:/-]{0,40}", "\\PC{0,20}", "x{4096}"]
}

fn info() -> impl Strategy<Value = InfoRequest> {
    (name(), vec(any::<u16>(), 0..20)).prop_map(|(name, wants)| InfoRequest { name, wants })
}

fn meta() -> impl Strategy<Value = MetaRequest> {
    let queries = vec("[a-z:-]{0,50}", 0..=QUERIES_MAX as usize);
    (name(), queries).prop_map(|(export, queries)| MetaRequest { export, queries })
}

fn option() -> impl Strategy<Value = ClientOption> {
    prop_oneof![
        name().prop_map(ClientOption::ExportName),
        Just(ClientOption::Abort),
        Just(ClientOption::List),
        Just(ClientOption::StartTls),
        Just(ClientOption::StructuredReply),
        info().prop_map(ClientOption::Info),
        info().prop_map(ClientOption::Go),
        meta().prop_map(ClientOption::ListMetaContext),
        meta().prop_map(ClientOption::SetMetaContext),
        (11u32..).prop_map(ClientOption::Unknown),
    ]
}

fn option_reply() -> impl Strategy<Value = OptionReply> {
    prop_oneof![
        Just(OptionReply::Ack),
        name().prop_map(OptionReply::Server),
        name().prop_map(OptionReply::Name),
        name().prop_map(OptionReply::Description),
        any::<(u64, u16)>().prop_map(|(size, flags)| OptionReply::Export { size, flags }),
        any::<(u32, u32, u32)>().prop_map(|(least, preferred, most)| OptionReply::BlockSize {
            least,
            preferred,
            most
        }),
        (4u16..).prop_map(OptionReply::OtherInfo),
        (any::<u32>(), name()).prop_map(|(id, name)| OptionReply::MetaContext { id, name }),
        (any::<u32>(), name())
            .prop_map(|(kind, message)| OptionReply::error(kind | option_replies::ERROR, message)),
        (5u32..1000).prop_map(OptionReply::Other),
    ]
}

fn extent() -> impl Strategy<Value = Extent> {
    any::<(u32, u32)>().prop_map(|(length, status)| Extent { length, status })
}

proptest! {
    #[test]
    fn options_come_back(option in option()) {
        let bytes = option.encode();
        let (header, data) = bytes.split_at(OptionHeader::BYTES);
        let header = OptionHeader::decode(header).unwrap();
        prop_assert_eq!(header.encode().to_vec(), bytes[..OptionHeader::BYTES].to_vec());
        prop_assert_eq!(header.length as usize, data.len());
        prop_assert_eq!(ClientOption::decode(header.option, data).unwrap(), option);
    }

    #[test]
    fn replies_to_options_come_back(reply in option_reply(), to in any::<u32>()) {
        let bytes = reply.encode(to);
        let (header, data) = bytes.split_at(OptionReplyHeader::BYTES);
        let header = OptionReplyHeader::decode(header).unwrap();
        prop_assert_eq!((header.option, header.length as usize), (to, data.len()));
        prop_assert_eq!(OptionReply::decode(header.kind, data).unwrap(), reply);
    }

    #[test]
    fn requests_come_back(
        (flags, command, cookie, offset, length) in any::<(u16, u16, u64, u64, u32)>()
    ) {
        let command = Command::of(command % 12);
        let request = Request { flags, command, cookie, offset, length };
        prop_assert_eq!(Request::decode(&request.encode()).unwrap(), request);
    }

    #[test]
    fn replies_come_back(cookie in any::<u64>(), error in any::<u32>(), is_last in any::<bool>(),
        extents in vec(extent(), 0..100), message in "\\PC{0,50}", offset in any::<u64>(),
        bytes in vec(any::<u8>(), 1..100), length in any::<u32>(), context in any::<u32>())
    {
        let simple = SimpleHeader { error, cookie };
        let found = ReplyHeader::decode(&simple.encode()).unwrap();
        prop_assert_eq!(found, ReplyHeader::Simple(simple));
        let all = [
            Chunk::None,
            Chunk::Data { offset, bytes: &bytes },
            Chunk::Hole { offset, length },
            Chunk::BlockStatus { context, extents },
            Chunk::Error { error, message: message.clone(), offset: None },
            Chunk::Error { error, message, offset: Some(offset) },
        ];
        for chunk in all {
            let mut encoded = chunk.encode(cookie, is_last);
            if let Chunk::Data { bytes, .. } = &chunk {
                encoded.extend_from_slice(bytes);
            }
            let (head, data) = encoded.split_at(ChunkHeader::BYTES);
            let ReplyHeader::Chunk(header) = ReplyHeader::decode(head).unwrap() else {
                panic!("a chunk is none");
            };
            prop_assert_eq!((header.cookie, header.is_last()), (cookie, is_last));
            prop_assert_eq!(header.length as usize, data.len());
            prop_assert_eq!(Chunk::decode(header.kind, data).unwrap(), chunk);
        }
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(
        bytes in vec(any::<u8>(), 0..200), number in any::<u32>()
    ) {
        let small = number % 14;
        let _ = Greeting::decode(&bytes);
        let _ = OptionHeader::decode(&bytes);
        let _ = OptionReplyHeader::decode(&bytes);
        let _ = Request::decode(&bytes);
        let _ = ReplyHeader::decode(&bytes);
        let _ = ReplyHeader::length(&bytes);
        for option in [small, number] {
            let _ = ClientOption::decode(option, &bytes);
            let _ = OptionReply::decode(option, &bytes);
            let _ = OptionReply::decode(option | option_replies::ERROR, &bytes);
            let _ = Chunk::decode(option as u16, &bytes);
            let _ = Chunk::decode(option as u16 | chunks::ERROR_BIT, &bytes);
        }
    }

    #[test]
    fn a_message_that_is_cut_or_changed_is_another_one_or_an_error(
        option in option(), reply in option_reply(), at in any::<prop::sample::Index>(),
        byte in any::<u8>())
    {
        for (bytes, head) in [(option.encode(), 16), (reply.encode(1), 20)] {
            let number = u32::from_be_bytes(bytes[8..12].try_into().unwrap());
            let kind = u32::from_be_bytes(bytes[12..16].try_into().unwrap());
            let data = &bytes[head..];
            if data.is_empty() {
                continue;
            }
            let mut changed = data.to_vec();
            let at = at.index(data.len());
            changed[at] ^= byte;
            for data in [&changed[..], &data[..at], &[data, &[0]].concat()] {
                let _ = ClientOption::decode(number, data);
                let _ = OptionReply::decode(kind, data);
            }
        }
    }
}

#[test]
fn what_is_as_long_as_it_may_be_is_read() {
    let option = vec![0; OPTION_BYTES_MAX as usize];
    let error = ClientOption::decode(options::LIST, &option).unwrap_err();
    assert!(!matches!(error, ProtocolError::Limit { .. }), "a list has no data: {error}");
    let name = ClientOption::ExportName("x".repeat(NAME_BYTES_MAX as usize));
    assert_eq!(ClientOption::decode(options::EXPORT_NAME, &name.encode()[16..]).unwrap(), name);
    let queries = vec![String::new(); QUERIES_MAX as usize];
    let many = ClientOption::SetMetaContext(MetaRequest { export: String::new(), queries });
    let read = ClientOption::decode(options::SET_META_CONTEXT, &many.encode()[16..]).unwrap();
    assert_eq!(read, many);
    let extents = vec![Extent { length: 4096, status: 1 }; EXTENTS_MAX as usize];
    let status = Chunk::BlockStatus { context: 1, extents };
    let encoded = status.encode(1, true);
    let data = &encoded[ChunkHeader::BYTES..];
    assert_eq!(Chunk::decode(status.kind(), data).unwrap(), status);
    let header = OptionReplyHeader { option: 1, kind: 1, length: OPTION_BYTES_MAX };
    assert_eq!(OptionReplyHeader::decode(&header.encode()).unwrap(), header);
    let chunk = ChunkHeader { flags: 0, kind: 1, cookie: 1, length: ChunkHeader::DATA_MAX };
    assert!(ReplyHeader::decode(&chunk.encode()).is_ok());
}

#[test]
fn what_is_too_long_is_refused_before_anybody_makes_room_for_it() {
    let long = vec![0; OPTION_BYTES_MAX as usize + 1];
    let error = ClientOption::decode(options::LIST, &long).unwrap_err();
    assert!(matches!(error, ProtocolError::Limit { .. }), "{error}");
    let name = ClientOption::ExportName("x".repeat(NAME_BYTES_MAX as usize + 1)).encode();
    assert!(ClientOption::decode(options::EXPORT_NAME, &name[16..]).is_err());
    let status = Chunk::BlockStatus { context: 1, extents: Vec::new() };
    let extents = vec![0; 4 + 8 * (EXTENTS_MAX as usize + 1)];
    let error = Chunk::decode(status.kind(), &extents).unwrap_err();
    assert!(matches!(error, ProtocolError::Limit { .. }), "{error}");
    let queries = [&[0; 4][..], &(QUERIES_MAX + 1).to_be_bytes(), &[0; 4 * 65]].concat();
    let error = ClientOption::decode(options::SET_META_CONTEXT, &queries).unwrap_err();
    assert!(matches!(error, ProtocolError::Limit { .. }), "{error}");
    // A count of queries with nothing behind it.
    let many = [&[0; 4][..], &u32::MAX.to_be_bytes()].concat();
    let error = ClientOption::decode(options::SET_META_CONTEXT, &many).unwrap_err();
    assert!(matches!(error, ProtocolError::Limit { .. }), "{error}");
    let header = OptionReplyHeader { option: 1, kind: 1, length: OPTION_BYTES_MAX + 1 };
    assert!(OptionReplyHeader::decode(&header.encode()).is_err());
    let chunk = ChunkHeader { flags: 0, kind: 1, cookie: 1, length: ChunkHeader::DATA_MAX + 1 };
    assert!(ReplyHeader::decode(&chunk.encode()).is_err());
}

#[test]
fn messages_are_as_the_specification_has_them() {
    let greeting = Greeting { flags: 3 };
    assert_eq!(&greeting.encode(), b"NBDMAGICIHAVEOPT\0\x03");
    let go = ClientOption::Go(InfoRequest { name: "d".into(), wants: vec![infos::BLOCK_SIZE] });
    assert_eq!(go.encode(), b"IHAVEOPT\0\0\0\x07\0\0\0\x09\0\0\0\x01d\0\x01\0\x03",);
    let request =
        Request { flags: 1, command: Command::Write, cookie: 2, offset: 0x1000, length: 0x200 };
    let bytes = [
        0x25, 0x60, 0x95, 0x13, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x10, 0, 0,
        0, 2, 0,
    ];
    assert_eq!(request.encode(), bytes);
    let reply = SimpleHeader { error: 5, cookie: 2 };
    assert_eq!(reply.encode(), [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 2]);
    let ack = OptionReply::Ack.encode(options::GO);
    let bytes = [0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0];
    assert_eq!(ack, bytes);
    let chunk = Chunk::Hole { offset: 4096, length: 512 }.encode(7, true);
    let bytes = [
        0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0,
        0x10, 0, 0, 0, 2, 0,
    ];
    assert_eq!(chunk, bytes);
}
