//! Dumps: stores as text, one line per entry, to read, to compare, or to move between versions.
//!
//! ```text
//! @millpond-dump 1 text            1: version of this format; text or hex
//! # a comment
//! @tree users                      the entries that follow are in the tree `users`
//! ada\tLovelace\n                   key, a tab, value: see `notation`
//! @hash sessions                   the same for a hash index
//! @heap log                        and for a heap: keys are the ids of records, in digits
//! 65536\tfirst line\n
//! @tree ages\tString\tu8\n           behind a name, where they are known: types of keys and values
//! # ada\t36\n                       above an entry that is not text: its literals, for readers
//! @end 1                           how many entries there were: without it, a part is missing
//! ```
//! In text, a key that begins with `@` or `#` is written with `\x40` or `\x23`. In `hex`, keys and
//! values are pairs of hexadecimal digits. The third form is one JSON object per line:
//! `{"millpond_dump":1}`, `{"tree":"users"}` (or `hash`, `heap`; if types are known, with
//! `"keys":"String","values":"u8"`), `{"key":"ada","value":"Lovelace"}`, `{"end":1}`. Bytes that
//! are not UTF-8 are in `key_hex` and `value_hex`. Literals are in `key_shown` and `value_shown`.

#[cfg(feature = "internals")]
mod form;
#[cfg(feature = "internals")]
mod load;
pub mod notation;
#[cfg(feature = "internals")]
mod reader;
#[cfg(feature = "internals")]
mod writer;

#[cfg(feature = "internals")]
pub use form::Form;
#[cfg(feature = "internals")]
pub use load::{LoadError, Loaded, Loader, load};
pub use notation::NotationError;
#[cfg(feature = "internals")]
pub use reader::{DumpError, DumpFault, DumpReader, Item};
#[cfg(feature = "internals")]
pub use writer::{DumpWriter, Literals, LiteralsOf, ReadLiterals};
