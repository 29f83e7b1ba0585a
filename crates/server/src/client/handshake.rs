//! The client's side of the handshake.

use std::io::{Read, Write};

use super::error::LinkError;
use crate::protocol::{
    ClientOption, GREETING_BYTES, Greeting, InfoRequest, MetaRequest, OptionReply,
    OptionReplyHeader, PAYLOAD_BYTES_MAX, REASON_CONTEXT, handshake_flags, infos, option_replies,
    transmission_flags,
};
use crate::wire::Wire;

/// Maximum number of replies to one option.
const REPLIES_MAX: usize = 1000;

/// The server's description of the export, and the agreed terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Agreement {
    /// Size in bytes.
    pub size: u64,
    /// [`transmission_flags`].
    pub flags: u16,
    /// Offsets and lengths must be multiples of this.
    pub block: u32,
    /// Maximum bytes of a request.
    pub request_max: u32,
    /// `true` if replies come in chunks.
    pub is_structured: bool,
    /// `true` if cookies carry reasons.
    pub has_hints: bool,
}

impl Agreement {
    /// Returns `true` if the export has this [`transmission_flags`] bit.
    pub fn can(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// Reads the server's greeting, and sends flags.
pub(super) fn greet(stream: &mut (impl Read + Write)) -> Result<(), LinkError> {
    let mut bytes = [0; GREETING_BYTES];
    stream.read_exact(&mut bytes)?;
    let greeting = Greeting::decode(&bytes)?;
    if !greeting.is_fixed() {
        return Err(LinkError::Unable("does not speak the fixed newstyle handshake"));
    }
    let known = handshake_flags::FIXED_NEWSTYLE | handshake_flags::NO_ZEROES;
    Ok(stream.write_all(&u32::from(greeting.flags & known).to_be_bytes())?)
}

/// Asks for TLS, which begins once this returns.
pub(super) fn ask_for_tls(stream: &mut (impl Read + Write)) -> Result<(), LinkError> {
    let refused = |(kind, message)| LinkError::Refused { what: "TLS", kind, message };
    ask(stream, &ClientOption::StartTls)?.map(drop).map_err(refused)
}

/// Chooses `export`.
pub(super) fn choose(
    stream: &mut (impl Read + Write),
    export: &str,
) -> Result<Agreement, LinkError> {
    let is_structured = ask(stream, &ClientOption::StructuredReply)?.is_ok();
    let has_hints = is_structured && ask_for_hints(stream, export)?;
    let info = InfoRequest { name: export.to_string(), wants: vec![infos::BLOCK_SIZE] };
    let replies = ask(stream, &ClientOption::Go(info))?
        .map_err(|(kind, message)| LinkError::Refused { what: "the export", kind, message })?;
    let mut agreement = Agreement {
        size: 0,
        flags: 0,
        // The specification's defaults.
        block: 1,
        request_max: PAYLOAD_BYTES_MAX,
        is_structured,
        has_hints,
    };
    for reply in replies {
        match reply {
            OptionReply::Export { size, flags } => {
                (agreement.size, agreement.flags) = (size, flags);
            }
            OptionReply::BlockSize { least, most, .. } => {
                agreement.block = least;
                agreement.request_max = most.min(PAYLOAD_BYTES_MAX);
            }
            _ => {}
        }
    }
    judge(agreement)
}

/// Chooses the context of reasons; `false` if the server does not support it.
fn ask_for_hints(stream: &mut (impl Read + Write), export: &str) -> Result<bool, LinkError> {
    let queries = vec![REASON_CONTEXT.to_string()];
    let meta = MetaRequest { export: export.to_string(), queries };
    let chosen = ask(stream, &ClientOption::SetMetaContext(meta))?.unwrap_or_default();
    let name_of = |reply: &OptionReply| match reply {
        OptionReply::MetaContext { name, .. } => name.clone(),
        _ => String::new(),
    };
    Ok(chosen.iter().any(|reply| name_of(reply) == REASON_CONTEXT))
}

/// Checks that the server's terms are usable.
fn judge(agreement: Agreement) -> Result<Agreement, LinkError> {
    let Agreement { block, request_max, .. } = agreement;
    if !agreement.can(transmission_flags::HAS_FLAGS) {
        return Err(LinkError::Reply("lacks the export's size and flags"));
    }
    if !block.is_power_of_two() || request_max < block.max(512) || block > 64 << 10 {
        return Err(LinkError::Reply("names impossible sizes of requests"));
    }
    let is_read_only = agreement.can(transmission_flags::READ_ONLY);
    if !is_read_only && !agreement.can(transmission_flags::SEND_FLUSH) {
        return Err(LinkError::Unable("cannot make writes durable: it knows no FLUSH"));
    }
    Ok(Agreement { request_max: request_max / block * block, ..agreement })
}

/// Sends an option, and reads all its replies. The inner `Err` is a refusal.
fn ask(
    stream: &mut (impl Read + Write),
    asked: &ClientOption,
) -> Result<Result<Vec<OptionReply>, (u32, String)>, LinkError> {
    stream.write_all(&asked.encode())?;
    let mut replies = Vec::new();
    while replies.len() < REPLIES_MAX {
        let header = Wire::read_array::<{ OptionReplyHeader::BYTES }>(stream)?;
        let header = header.ok_or(std::io::Error::from(std::io::ErrorKind::UnexpectedEof))?;
        let OptionReplyHeader { option, kind, length } = OptionReplyHeader::decode(&header)?;
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data)?;
        if option != asked.number() {
            return Err(LinkError::Reply("is to another option"));
        }
        match OptionReply::decode(kind, &data)? {
            OptionReply::Ack => return Ok(Ok(replies)),
            OptionReply::Error { kind, message } => return Ok(Err((kind, message))),
            OptionReply::Other(kind) if kind & option_replies::ERROR != 0 => {
                return Ok(Err((kind, String::new())));
            }
            reply => replies.push(reply),
        }
    }
    Err(LinkError::Reply("to an option has no end"))
}
