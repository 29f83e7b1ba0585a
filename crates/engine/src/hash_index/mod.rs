//! The hash index: unordered maps of byte strings on pages (leanstore IV-E).
//!
//! A directory page of fixed size selects one of its slots by a number of hash bits. Each slot
//! leads to a bucket page, which is a small hash table of its own. The directory is extendible. A
//! bucket of local depth ℓ is shared by all slots that agree in their first ℓ bits, and a full
//! bucket is split in two of depth ℓ + 1.
//!
//! # One swip per page
//!
//! Several slots share a bucket, but a page has exactly one swip. The slots that share a bucket
//! agree in their *leading* bits, so they are adjacent, 2ᵇ⁻ˡ of them, aligned to their number. The
//! first of them is the canonical one, and the only one that holds the swip; the swips of the
//! others are null. A byte beside every slot holds the local depth, and thereby the canonical slot:
//! a mask, no second load. So the pool, which visits swips, sees each once; a split writes one new
//! swip and up to 2ᵇ depth bytes; and no swip is ever copied.
//!
//! # A directory larger than a page
//!
//! When a bucket of a single slot is full, a new directory takes the slot, with the bucket as its
//! only child at depth 0. The next b bits of the hash select a slot there: a trie whose nodes are
//! extendible directories. The trie is as deep as the hashes are dense: with 4 KiB pages one level
//! reaches 1 MiB, two 256 MiB, three 64 GiB. The root keeps its page: it is always the directory at
//! the top.
//!
//! There are no overflow chains. A full bucket whose keys agree in all bits that directories can
//! use is a typed error; with 64-bit hashes and a secret seed that does not happen by chance.
//!
//! # Synchronisation
//!
//! Readers validate versions and restart. A writer descends like a reader and latches only its
//! bucket. A split latches the directory, then the bucket. A merge latches two neighbours from left
//! to right. A directory with one child of depth 0 is replaced by that child, with its parent
//! latched first.

mod bucket;
mod change;
mod check;
mod descend;
mod directory;
mod entries;
mod error;
mod grow;
mod index;
mod kind;
mod lookup;
mod shrink;
mod stored;

pub use check::{Report, Violation, check_page, is_readable, seed_in};
pub use entries::{Entries, HashStats, Position};
pub use error::WriteError;
pub(crate) use index::split_name;
pub use index::{HashIndex, Limits};
pub use kind::{DirectoryKind, KINDS};
pub use stored::{
    StoredChild, hash_of, stored_children, stored_count, stored_entry, stored_hashes,
};
