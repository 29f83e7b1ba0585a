//! A trace file as a stream of decompressed bytes in one large buffer.
//!
//! Compression is recognised by its magic number, never by the file's name alone. A damaged or cut
//! stream does not end the data silently. The bytes before the damage are returned, and the
//! request for more fails, so the error names the record that could not be read.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;

use crate::trace::TraceError;

/// Bytes per read of the file: large enough for bulk decoding, small enough for L2.
const CHUNK: usize = 256 << 10;
/// Maximum bytes of a record; a text file with a longer line is no trace.
const MAX_RECORD: usize = 1 << 20;

/// Largest window of a zstd stream, as a power of two: the format's own limit.
const WINDOW_LOG_MAX: u32 = if cfg!(target_pointer_width = "64") { 31 } else { 30 };

/// Bytes examined to recognise text.
const HEAD: usize = 512;

/// Compression of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

/// A trace's decompressed bytes.
pub(crate) struct Input {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    packing: Packing,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    eof: bool,
    failed: Option<io::Error>,
}

impl Input {
    /// Opens `raw` and decompresses it if needed; `path` names it in messages.
    pub(crate) fn new(path: PathBuf, raw: Box<dyn Read + Send>) -> Result<Input, TraceError> {
        let io = |error| TraceError::Io { path: path.clone(), error };
        let (packing, reader) = unpack(raw).map_err(io)?;
        let buf = vec![0; CHUNK];
        let mut input =
            Input { path, reader, packing, buf, start: 0, end: 0, eof: false, failed: None };
        let head = input.peek(HEAD);
        // A byte-order mark declares UTF-8 text; binary records almost always contain a zero.
        if head.starts_with(b"\xef\xbb\xbf") && !head.iter().take(HEAD).any(|&byte| byte == 0) {
            input.consume(3);
        }
        Ok(input)
    }

    /// Returns the name of the file in messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes that are read and not yet consumed.
    #[inline]
    pub(crate) fn data(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// Returns `true` if the stream has ended or failed, so that `data` is all that remains.
    pub(crate) fn is_at_end(&self) -> bool {
        self.eof || self.failed.is_some()
    }

    /// Drops the first `n` bytes of `data`.
    #[inline]
    pub(crate) fn consume(&mut self, n: usize) {
        self.start += n;
        debug_assert!(self.start <= self.end);
    }

    /// Reads until `data` holds `len` bytes or the stream ends; errors wait for `more`.
    pub(crate) fn peek(&mut self, len: usize) -> &[u8] {
        while self.data().len() < len.min(CHUNK) && !self.is_at_end() {
            self.read_some();
        }
        self.data()
    }

    /// Appends further bytes to `data`; returns `false` at the end. `record` is the number of the
    /// next record, for the message.
    pub(crate) fn more(&mut self, record: u64) -> Result<bool, TraceError> {
        if let Some(error) = self.failed.take() {
            self.eof = true;
            return Err(self.failure(error, record));
        }
        if self.eof {
            return Ok(false);
        }
        if self.data().len() >= MAX_RECORD {
            let reason = format!("longer than {MAX_RECORD} bytes: this is no text trace");
            return Err(TraceError::Corrupt { path: self.path.clone(), record, reason });
        }
        self.read_some();
        match self.failed.take() {
            Some(error) => {
                self.eof = true;
                Err(self.failure(error, record))
            }
            None => Ok(!self.eof),
        }
    }

    /// Appends a line end to `data`, for a last line that has none.
    pub(crate) fn end_line(&mut self) {
        self.make_room();
        self.buf[self.end] = b'\n';
        self.end += 1;
    }

    fn make_room(&mut self) {
        if self.start > 0 {
            self.buf.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buf.len() {
            self.buf.resize(self.buf.len() * 2, 0);
        }
    }

    fn read_some(&mut self) {
        self.make_room();
        loop {
            match self.reader.read(&mut self.buf[self.end..]) {
                Ok(0) => self.eof = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => self.failed = Some(e),
            }
            return;
        }
    }

    /// Converts a read error. Damage of the compressed stream means a corrupt file; anything else
    /// is an error of the system.
    fn failure(&self, source: io::Error, record: u64) -> TraceError {
        let path = self.path.clone();
        let name = match self.packing {
            Packing::None => return TraceError::Io { path, error: source },
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
        };
        use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
        match source.kind() {
            UnexpectedEof => {
                let reason = format!("the {name} stream ends in the middle: the file is cut off");
                TraceError::Corrupt { path, record, reason }
            }
            // Libzstd reports this case only by its text, not by a code.
            Other if source.to_string().contains("too much memory") => {
                let reason = format!(
                    "the {name} stream has a window of more than 2^{WINDOW_LOG_MAX} bytes: pack \
                     it with a smaller one (zstd --long={WINDOW_LOG_MAX} or less)"
                );
                TraceError::Corrupt { path, record, reason }
            }
            InvalidData | InvalidInput | Other => {
                let reason = format!("the {name} stream is damaged: {source}");
                TraceError::Corrupt { path, record, reason }
            }
            _ => TraceError::Io { path, error: source },
        }
    }
}

/// Examines the first four bytes of `raw` and adds the matching decoder.
fn unpack(mut raw: Box<dyn Read + Send>) -> io::Result<(Packing, Box<dyn Read + Send>)> {
    let mut head = Vec::with_capacity(4);
    raw.by_ref().take(4).read_to_end(&mut head)?;
    let packing = packing_of(&head);
    let whole = Cursor::new(head).chain(raw);
    Ok(match packing {
        Packing::None => (packing, Box::new(whole)),
        Packing::Gzip => {
            let packed = BufReader::with_capacity(CHUNK, whole);
            (packing, Box::new(Members { decoder: Some(GzDecoder::new(packed)) }))
        }
        Packing::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(whole)?;
            // Archives are packed with long windows (zstd --long=31); memory is taken as needed.
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            (packing, Box::new(decoder))
        }
    })
}

/// Members of a gzip file, one after the other. Data after the last member that is no member is a
/// separate error, not an end in the middle of a member.
struct Members<R> {
    /// `None` at the end.
    decoder: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let count = decoder.read(buf)?;
            if count > 0 || buf.is_empty() {
                return Ok(count);
            }
            let Some(decoder) = self.decoder.take() else { break };
            let mut packed = decoder.into_inner();
            match packed.fill_buf()? {
                [] => {}
                [0x1f, ..] => self.decoder = Some(GzDecoder::new(packed)),
                _ => {
                    let reason = "what is behind the end of the last member is no gzip";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
            }
        }
        Ok(0)
    }
}

fn packing_of(head: &[u8]) -> Packing {
    match head {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] => Packing::Zstd,
        // A skippable frame may come first.
        [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Packing::Zstd,
        _ => Packing::None,
    }
}

/// Returns the name of an unsupported compression of `data`, the start of a file, and the command
/// that unpacks it; `None` if `data` has none.
pub(crate) fn foreign_packing(data: &[u8]) -> Option<(&'static str, &'static str)> {
    match data {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(("xz", "xz -dc")),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => {
            Some(("bzip2", "bzip2 -dc"))
        }
        [0x04, 0x22, 0x4d, 0x18, ..] => Some(("lz4", "lz4 -dc")),
        [b'P', b'K', 3, 4, ..] => Some(("zip", "unzip -p")),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Some(("7-Zip", "7z x -so")),
        [b'L', b'Z', b'I', b'P', 1, ..] => Some(("lzip", "lzip -dc")),
        _ => None,
    }
}
