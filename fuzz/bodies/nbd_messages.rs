//! What the fuzz targets of the parsers of NBD do with their bytes: read them as all that a client
//! says, and as all that a server says, without sockets, so that millions of inputs take minutes.
//!
//! The same functions are run by `crates/server/tests/parsers.rs` over bytes drawn by seed.

use millpond_server::protocol::*;

/// Takes `count` bytes off the front.
fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// Reads bytes as a client's: flags, options up to one that begins, and requests. What was read is
/// the same when it is written and read again. Returns how many messages there were.
pub fn from_client(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    let _ = options_of(&mut bytes, &mut count);
    let _ = requests_of(&mut bytes, &mut count);
    count
}

fn options_of(bytes: &mut &[u8], count: &mut usize) -> Option<()> {
    take(bytes, 4)?;
    loop {
        let header = OptionHeader::decode(take(bytes, OptionHeader::BYTES)?).ok()?;
        assert_eq!(OptionHeader::decode(&header.encode()), Ok(header));
        let data = take(bytes, header.length as usize)?;
        let Ok(option) = ClientOption::decode(header.option, data) else { continue };
        *count += 1;
        let again = option.encode();
        let (begin, rest) = again.split_at(OptionHeader::BYTES);
        let number = OptionHeader::decode(begin).map(|header| header.option);
        assert_eq!(number, Ok(option.number()));
        assert_eq!(ClientOption::decode(option.number(), rest).as_ref(), Ok(&option));
        if matches!(option, ClientOption::Go(_) | ClientOption::ExportName(_)) {
            return Some(());
        }
    }
}

fn requests_of(bytes: &mut &[u8], count: &mut usize) -> Option<()> {
    loop {
        let request = Request::decode(take(bytes, REQUEST_BYTES)?).ok()?;
        assert_eq!(Request::decode(&request.encode()), Ok(request));
        *count += 1;
        if request.command == Command::Write {
            take(bytes, request.length as usize)?;
        }
    }
}

/// Reads bytes as a server's: the greeting, replies to options up to an ACK of GO, and replies to
/// requests, all of READs of 16 bytes. Returns how many messages there were.
pub fn from_server(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    let _ = option_replies_of(&mut bytes, &mut count);
    let _ = replies_of(&mut bytes, &mut count);
    count
}

fn option_replies_of(bytes: &mut &[u8], count: &mut usize) -> Option<()> {
    let greeting = Greeting::decode(take(bytes, GREETING_BYTES)?).ok()?;
    assert_eq!(Greeting::decode(&greeting.encode()), Ok(greeting));
    loop {
        let header = OptionReplyHeader::decode(take(bytes, OptionReplyHeader::BYTES)?).ok()?;
        assert_eq!(OptionReplyHeader::decode(&header.encode()), Ok(header));
        let data = take(bytes, header.length as usize)?;
        let Ok(reply) = OptionReply::decode(header.kind, data) else { continue };
        *count += 1;
        if (header.option, reply) == (options::GO, OptionReply::Ack) {
            return Some(());
        }
    }
}

fn replies_of(bytes: &mut &[u8], count: &mut usize) -> Option<()> {
    loop {
        let length = ReplyHeader::length(bytes.get(..ReplyHeader::BYTES_MIN)?).ok()?;
        match ReplyHeader::decode(take(bytes, length)?).ok()? {
            ReplyHeader::Simple(header) => {
                assert_eq!(ReplyHeader::decode(&header.encode()), Ok(ReplyHeader::Simple(header)));
                take(bytes, if header.error == 0 { 16 } else { 0 })?;
            }
            ReplyHeader::Chunk(header) => {
                assert_eq!(ReplyHeader::decode(&header.encode()), Ok(ReplyHeader::Chunk(header)));
                let data = take(bytes, header.length as usize)?;
                let Ok(chunk) = Chunk::decode(header.kind, data) else { continue };
                if let Chunk::BlockStatus { .. } = &chunk {
                    let again = chunk.encode(header.cookie, header.is_last());
                    let data = again.get(ChunkHeader::BYTES..)?;
                    assert_eq!(Chunk::decode(header.kind, data), Ok(chunk));
                }
            }
        }
        *count += 1;
    }
}
