//! The write-ahead log: an endless stream of records in a ring of recycled segments.
//!
//! `README.md` beside this file has the rules that the code cites. The log knows neither pages nor
//! transactions: bodies are opaque bytes.

mod append;
pub mod copy;
pub mod counts;
mod cut;
pub mod error;
mod flush;
mod group_commit;
mod listeners;
// `Log` has a file of its own name, as everything else does.
#[allow(clippy::module_inception)]
mod log;
mod open;
pub mod options;
pub mod reader;
pub mod record;
mod ring;
mod segments;
mod shared;
mod slot_moves;
mod slots;
pub mod survey;
mod tail;
mod window;
mod writer;

pub use counts::LogCounts;
pub use error::LogError;
pub use listeners::OnDurable;
pub use log::Log;
pub use options::LogOptions;
pub use reader::{Found, Reader};
pub use record::{Appended, Header, Record};
pub use survey::{Behind, Survey};
pub use tail::{Cut, Tail};
