//! How a new store's pages are compressed, as an argument.

use clap::ValueEnum;
use millpond::Compression;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum CompressionArg {
    /// No compression
    #[default]
    None,
    /// LZ4, page by page
    Lz4,
}

impl CompressionArg {
    pub(crate) fn name(self) -> &'static str {
        match self {
            CompressionArg::None => "none",
            CompressionArg::Lz4 => "lz4",
        }
    }
}

impl From<CompressionArg> for Compression {
    fn from(arg: CompressionArg) -> Compression {
        match arg {
            CompressionArg::None => Compression::None,
            CompressionArg::Lz4 => Compression::Lz4,
        }
    }
}
