//! Numbers of the protocol, by their names in the specification without `NBD_`.

/// First word of the server, "NBDMAGIC".
pub const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second word of the server, and first one of each option, "IHAVEOPT".
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// First word of a reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// First word of a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// First word of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// First word of a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Maximum bytes of an option's data.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Maximum bytes of a request's or a reply's data.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// Maximum bytes of a name (of an export, a metadata context, a message).
pub const NAME_BYTES_MAX: u32 = 4096;
/// Maximum number of queries for metadata contexts in one option.
pub const QUERIES_MAX: u32 = 64;
/// Maximum number of extents in one reply to BLOCK_STATUS.
pub const EXTENTS_MAX: u32 = 64 << 10;

/// Flags of the handshake, of server and client alike.
pub mod handshake_flags {
    /// Replies to options have the fixed newstyle format.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// EXPORT_NAME is not followed by 124 zeros.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Options of a client.
pub mod options {
    /// Choose an export and start; errors cannot be reported.
    pub const EXPORT_NAME: u32 = 1;
    /// End the connection.
    pub const ABORT: u32 = 2;
    /// Name all exports.
    pub const LIST: u32 = 3;
    /// Continue under TLS.
    pub const STARTTLS: u32 = 5;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Describe an export and start.
    pub const GO: u32 = 7;
    /// Replies may come in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Name metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of replies to options.
pub mod option_replies {
    /// Success.
    pub const ACK: u32 = 1;
    /// An export's name.
    pub const SERVER: u32 = 2;
    /// Information about an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// Set in types of errors.
    pub const ERROR: u32 = 1 << 31;
    /// The option is unknown.
    pub const ERR_UNSUP: u32 = ERROR | 1;
    /// The server's policy forbids the option.
    pub const ERR_POLICY: u32 = ERROR | 2;
    /// The option is malformed or invalid.
    pub const ERR_INVALID: u32 = ERROR | 3;
    /// The option is refused until STARTTLS.
    pub const ERR_TLS_REQD: u32 = ERROR | 5;
    /// The export does not exist.
    pub const ERR_UNKNOWN: u32 = ERROR | 6;
    /// The server is stopping.
    pub const ERR_SHUTDOWN: u32 = ERROR | 7;
    /// The option is too long.
    pub const ERR_TOO_BIG: u32 = ERROR | 9;
}

/// Types of INFO replies.
pub mod infos {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// The canonical name.
    pub const NAME: u16 = 1;
    /// A description for people.
    pub const DESCRIPTION: u16 = 2;
    /// Limits on requests.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Capabilities of an export.
pub mod transmission_flags {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is supported.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The flag FUA is supported.
    pub const SEND_FUA: u16 = 1 << 3;
    /// TRIM is supported.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES is supported.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The flag DF is supported.
    pub const SEND_DF: u16 = 1 << 7;
    /// Several connections see one device: FLUSH and FUA on one apply to all.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// CACHE is supported.
    pub const SEND_CACHE: u16 = 1 << 10;
}

/// Flags of requests.
pub mod command_flags {
    /// The reply confirms durability.
    pub const FUA: u16 = 1 << 0;
    /// Zeros must not become a hole.
    pub const NO_HOLE: u16 = 1 << 1;
    /// The reply's data must come in one chunk.
    pub const DF: u16 = 1 << 2;
    /// The reply describes one extent only.
    pub const REQ_ONE: u16 = 1 << 3;
}

/// Types of chunks.
pub mod chunks {
    /// Flag of the last chunk of a reply.
    pub const FLAG_DONE: u16 = 1 << 0;
    /// A chunk without data.
    pub const NONE: u16 = 0;
    /// Bytes that were read.
    pub const OFFSET_DATA: u16 = 1;
    /// A range of zeros.
    pub const OFFSET_HOLE: u16 = 2;
    /// Extents of a metadata context.
    pub const BLOCK_STATUS: u16 = 5;
    /// Set in types of errors.
    pub const ERROR_BIT: u16 = 1 << 15;
    /// An error.
    pub const ERROR: u16 = ERROR_BIT | 1;
    /// An error with its offset.
    pub const ERROR_OFFSET: u16 = ERROR_BIT | 2;
}

/// Error numbers.
pub mod errors {
    /// Not permitted, such as a write to a read-only export.
    pub const EPERM: u32 = 1;
    /// The device failed.
    pub const EIO: u32 = 5;
    /// Out of memory.
    pub const ENOMEM: u32 = 12;
    /// The request is invalid.
    pub const EINVAL: u32 = 22;
    /// No space left.
    pub const ENOSPC: u32 = 28;
    /// The request, or its reply, is too large.
    pub const EOVERFLOW: u32 = 75;
    /// The request is not supported.
    pub const ENOTSUP: u32 = 95;
    /// The server is stopping.
    pub const ESHUTDOWN: u32 = 108;
}

/// Extents of the context `base:allocation`.
pub mod allocation {
    /// The name of the context.
    pub const NAME: &str = "base:allocation";
    /// The range is not allocated.
    pub const HOLE: u32 = 1 << 0;
    /// The extent reads as zeros.
    pub const ZERO: u32 = 1 << 1;
}

/// Extents of the context that describes the server's cache: an extension of ours.
pub mod residency {
    /// The name of the context.
    pub const NAME: &str = "x-millpond:residency";
    /// The cache has a copy.
    pub const CACHED: u32 = 1 << 0;
    /// The backing file does not have the cached data yet; set only with [`CACHED`].
    pub const DIRTY: u32 = 1 << 1;
}
