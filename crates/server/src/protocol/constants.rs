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

/// Bytes of an option's data, at most.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Bytes of a request's or a reply's data, at most.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// Bytes of a name (of an export, a metadata context, a message), at most.
pub const NAME_BYTES_MAX: u32 = 4096;
/// Queries for metadata contexts in one option, at most.
pub const QUERIES_MAX: u32 = 64;
/// Extents of one reply to BLOCK_STATUS, at most.
pub const EXTENTS_MAX: u32 = 64 << 10;

/// Flags of the handshake, of server and client alike.
pub mod handshake_flags {
    /// Replies to options are as in the drawing above.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// EXPORT_NAME is not followed by 124 zeros.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Options of a client.
pub mod options {
    /// Choose an export, and begin; no errors.
    pub const EXPORT_NAME: u32 = 1;
    /// Leave.
    pub const ABORT: u32 = 2;
    /// Name all exports.
    pub const LIST: u32 = 3;
    /// Go on under TLS.
    pub const STARTTLS: u32 = 5;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Describe an export, and begin.
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
    /// Done.
    pub const ACK: u32 = 1;
    /// An export's name.
    pub const SERVER: u32 = 2;
    /// Something about an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// Set in types of errors.
    pub const ERROR: u32 = 1 << 31;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = ERROR | 1;
    /// The server's policy forbids the option.
    pub const ERR_POLICY: u32 = ERROR | 2;
    /// The option is malformed or makes no sense.
    pub const ERR_INVALID: u32 = ERROR | 3;
    /// Not before STARTTLS.
    pub const ERR_TLS_REQD: u32 = ERROR | 5;
    /// There is no such export.
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
    /// Set always.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// No writes.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is known.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The flag FUA is known.
    pub const SEND_FUA: u16 = 1 << 3;
    /// TRIM is known.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES is known.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The flag DF is known.
    pub const SEND_DF: u16 = 1 << 7;
    /// Several connections see one device: FLUSH and FUA of one hold for all.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// CACHE is known.
    pub const SEND_CACHE: u16 = 1 << 10;
}

/// Flags of requests.
pub mod command_flags {
    /// Durable when replied to.
    pub const FUA: u16 = 1 << 0;
    /// Zeros must not become a hole.
    pub const NO_HOLE: u16 = 1 << 1;
    /// The reply's data must come in one chunk.
    pub const DF: u16 = 1 << 2;
    /// One extent only.
    pub const REQ_ONE: u16 = 1 << 3;
}

/// Types of chunks.
pub mod chunks {
    /// In a chunk's flags: the last one of its reply.
    pub const FLAG_DONE: u16 = 1 << 0;
    /// Nothing.
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
    /// An error, and where.
    pub const ERROR_OFFSET: u16 = ERROR_BIT | 2;
}

/// Error numbers.
pub mod errors {
    /// Not permitted, as on a read-only export.
    pub const EPERM: u32 = 1;
    /// The device failed.
    pub const EIO: u32 = 5;
    /// No memory.
    pub const ENOMEM: u32 = 12;
    /// The request makes no sense.
    pub const EINVAL: u32 = 22;
    /// No room.
    pub const ENOSPC: u32 = 28;
    /// The request, or its reply, is too large.
    pub const EOVERFLOW: u32 = 75;
    /// The request is not known.
    pub const ENOTSUP: u32 = 95;
    /// The server is stopping.
    pub const ESHUTDOWN: u32 = 108;
}

/// Extents of the context `base:allocation`.
pub mod allocation {
    /// The name of the context.
    pub const NAME: &str = "base:allocation";
    /// No room is reserved.
    pub const HOLE: u32 = 1 << 0;
    /// The extent reads as zeros.
    pub const ZERO: u32 = 1 << 1;
}

/// Extents of the context that says what the server's cache holds: an extension of ours.
pub mod residency {
    /// The name of the context.
    pub const NAME: &str = "x-millpond:residency";
    /// The cache has a copy.
    pub const CACHED: u32 = 1 << 0;
    /// The backing file does not have it; never without [`CACHED`].
    pub const DIRTY: u32 = 1 << 1;
}
