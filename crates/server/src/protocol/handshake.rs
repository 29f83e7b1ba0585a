//! Messages of server and client before the first request, except replies to options.

use super::constants::{
    MAGIC, OPTION_BYTES_MAX, OPTION_MAGIC, QUERIES_MAX, handshake_flags, options,
};
use super::cursor::{Cursor, limit, put_text};
use super::error::ProtocolError;

/// Bytes of a [`Greeting`].
pub const GREETING_BYTES: usize = 18;

/// First message of a server.
///
/// ```text
/// offset size
///      0    8  NBDMAGIC
///      8    8  IHAVEOPT
///     16    2  handshake flags
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// [`handshake_flags`].
    pub flags: u16,
}

impl Greeting {
    /// Returns the greeting as bytes.
    pub fn encode(self) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_be_bytes());
        bytes[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
        bytes[16..].copy_from_slice(&self.flags.to_be_bytes());
        bytes
    }

    /// Reads a greeting.
    ///
    /// # Errors
    /// The bytes are not a greeting, or they are of a server with the old handshake.
    pub fn decode(bytes: &[u8]) -> Result<Greeting, ProtocolError> {
        let mut cursor = Cursor::new("the server's greeting", bytes);
        cursor.magic64(MAGIC)?;
        cursor.magic64(OPTION_MAGIC)?;
        let flags = cursor.u16()?;
        cursor.end()?;
        Ok(Greeting { flags })
    }

    /// Returns `true` if options can be replied to with errors, which this crate's client needs.
    pub fn is_fixed(self) -> bool {
        self.flags & handshake_flags::FIXED_NEWSTYLE != 0
    }
}

/// Header before an option's data.
///
/// ```text
/// offset size
///      0    8  IHAVEOPT
///      8    4  option
///     12    4  bytes of data
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionHeader {
    /// [`options`], or another number.
    pub option: u32,
    /// Bytes of data that follow; not checked against [`OPTION_BYTES_MAX`].
    pub length: u32,
}

impl OptionHeader {
    /// Bytes of a header.
    pub const BYTES: usize = 16;

    /// Returns the header as bytes.
    pub fn encode(self) -> [u8; OptionHeader::BYTES] {
        let mut bytes = [0; OptionHeader::BYTES];
        bytes[..8].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.option.to_be_bytes());
        bytes[12..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// The bytes are not a header.
    pub fn decode(bytes: &[u8]) -> Result<OptionHeader, ProtocolError> {
        let mut cursor = Cursor::new("an option", bytes);
        cursor.magic64(OPTION_MAGIC)?;
        let (option, length) = (cursor.u32()?, cursor.u32()?);
        cursor.end()?;
        Ok(OptionHeader { option, length })
    }
}

/// Data of INFO and GO.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InfoRequest {
    /// The export; empty for the default one.
    pub name: String,
    /// Information requested beside EXPORT: [`infos`](super::infos), or other numbers.
    pub wants: Vec<u16>,
}

/// Data of LIST_META_CONTEXT and SET_META_CONTEXT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetaRequest {
    /// The export; empty for the default one.
    pub export: String,
    /// `namespace:leaf`, or, to list, `namespace:`.
    pub queries: Vec<String>,
}

/// An option with its data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientOption {
    /// Chooses an export and starts.
    ExportName(String),
    /// Ends the connection.
    Abort,
    /// Lists all exports.
    List,
    /// Continues under TLS.
    StartTls,
    /// Describes an export.
    Info(InfoRequest),
    /// Describes an export and starts.
    Go(InfoRequest),
    /// Allows replies in chunks.
    StructuredReply,
    /// Lists metadata contexts.
    ListMetaContext(MetaRequest),
    /// Chooses metadata contexts.
    SetMetaContext(MetaRequest),
    /// Another number; its data is ignored.
    Unknown(u32),
}

impl ClientOption {
    /// Returns the option's number.
    pub fn number(&self) -> u32 {
        match self {
            ClientOption::ExportName(_) => options::EXPORT_NAME,
            ClientOption::Abort => options::ABORT,
            ClientOption::List => options::LIST,
            ClientOption::StartTls => options::STARTTLS,
            ClientOption::Info(_) => options::INFO,
            ClientOption::Go(_) => options::GO,
            ClientOption::StructuredReply => options::STRUCTURED_REPLY,
            ClientOption::ListMetaContext(_) => options::LIST_META_CONTEXT,
            ClientOption::SetMetaContext(_) => options::SET_META_CONTEXT,
            ClientOption::Unknown(number) => *number,
        }
    }

    /// Reads the `data` of the option with the number `option`.
    ///
    /// # Errors
    /// The data is too long, or does not fit the option. The stream stays in step.
    pub fn decode(option: u32, data: &[u8]) -> Result<ClientOption, ProtocolError> {
        limit("bytes of an option", data.len() as u64, OPTION_BYTES_MAX.into())?;
        let mut cursor = Cursor::new("an option's data", data);
        let decoded = match option {
            options::EXPORT_NAME => ClientOption::ExportName(cursor.rest_text()?),
            // The data of an ABORT is ignored.
            options::ABORT => return Ok(ClientOption::Abort),
            options::LIST => ClientOption::List,
            options::STARTTLS => ClientOption::StartTls,
            options::INFO => ClientOption::Info(decode_info(&mut cursor)?),
            options::GO => ClientOption::Go(decode_info(&mut cursor)?),
            options::STRUCTURED_REPLY => ClientOption::StructuredReply,
            options::LIST_META_CONTEXT => ClientOption::ListMetaContext(decode_meta(&mut cursor)?),
            options::SET_META_CONTEXT => ClientOption::SetMetaContext(decode_meta(&mut cursor)?),
            number => return Ok(ClientOption::Unknown(number)),
        };
        cursor.end()?;
        Ok(decoded)
    }

    /// Returns the whole option, with its header.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        match self {
            ClientOption::ExportName(name) => data.extend_from_slice(name.as_bytes()),
            ClientOption::Info(info) | ClientOption::Go(info) => {
                put_text(&mut data, &info.name);
                data.extend_from_slice(&(info.wants.len() as u16).to_be_bytes());
                info.wants.iter().for_each(|want| data.extend_from_slice(&want.to_be_bytes()));
            }
            ClientOption::ListMetaContext(meta) | ClientOption::SetMetaContext(meta) => {
                put_text(&mut data, &meta.export);
                data.extend_from_slice(&(meta.queries.len() as u32).to_be_bytes());
                meta.queries.iter().for_each(|query| put_text(&mut data, query));
            }
            _ => {}
        }
        let header = OptionHeader { option: self.number(), length: data.len() as u32 };
        [&header.encode()[..], &data].concat()
    }
}

fn decode_info(cursor: &mut Cursor<'_>) -> Result<InfoRequest, ProtocolError> {
    let name = cursor.counted_text()?;
    let count = cursor.u16()?;
    let wants = (0..count).map(|_| cursor.u16()).collect::<Result<_, _>>()?;
    Ok(InfoRequest { name, wants })
}

fn decode_meta(cursor: &mut Cursor<'_>) -> Result<MetaRequest, ProtocolError> {
    let export = cursor.counted_text()?;
    let count = cursor.u32()?;
    limit("queries for metadata contexts", count.into(), QUERIES_MAX.into())?;
    let queries = (0..count).map(|_| cursor.counted_text()).collect::<Result<_, _>>()?;
    Ok(MetaRequest { export, queries })
}
