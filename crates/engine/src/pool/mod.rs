//! The buffer pool: frames, latches, translation, replacement, write-back.
//!
//! [`Pool`] composes parts, each with private fields and its invariants: `Frames`, `Translation`,
//! `Replacement`, `Evictors`, `Writeback`, `PageIds`, `Anchors` and `RedoLog`. No part knows the
//! pool. A flow that needs several parts is a method of the pool, in a file at the top of this
//! folder, and passes one part to the other.
//!
//! # The order of locks
//!
//! A thread takes these locks from the top down. It waits for no lock above one that it holds;
//! inside the policy host it only tries latches.
//!
//! 1. Latches of frames, a parent's before its child's.
//! 2. The policy host's mutex, if it has one.
//! 3. The mutex of the table of in-flight I/O.
//! 4. The latch of a bucket of the page table.
//! 5. One mutex of free lists, write buffer, deferred deletions, sync list, read orders or page
//!    ids; or that of a slot of the row counts, then that of the page space, under which a record
//!    is appended to the log.
//!
//! # The life of a page in memory
//!
//! A frame is in one of the five states of [`State`]; [`State::may_become`] has the steps between
//! them, and `FrameHeader::become_state` (`frame.rs`) checks each. These functions take them, all
//! methods of [`Pool`] unless a type is named:
//!
//! | step | function | file | latches held |
//! |---|---|---|---|
//! | a frame is taken from a free list | `frame_for`, `Frames::take` | `free_frames.rs`, `memory/frames.rs` | the frame's, exclusively, from here on |
//! | free → loading, before the page is read | `Translation::read`; `Translation::read_ahead` for prefetches | `translation/translation.rs` | the frame's |
//! | loaded, and in-flight until a thread attaches it | `attach_or_leave`, `InFlight::arrive` | `fault.rs`, `translation/in_flight.rs` | the frame's |
//! | loading → hot: verified, admitted to the policy, its swip set | `publish_verified`, `Replacement::admit`, `Translation::attach` | `fault.rs` | the frame's, and the parent's exclusively |
//! | loading → free: the read failed, the page does not fit, or nobody needed it | `Frames::give_back`, `drop_abandoned` | `memory/frames.rs`, `fault.rs` | the frame's |
//! | free → hot: a page is created | `begin_page`, `admit_new` | `allocation.rs` | the frame's |
//! | hot → cooling: the policy cools it | `LiveHost::cool` | `replacement/eviction.rs` | the parent's, by trying; with a page table the frame's |
//! | cooling → hot: it is referenced | `revive_held`; `warm_up` with a page table | `resolve.rs` | the parent's exclusively; with a page table the frame's |
//! | dirty: a guard changes it | `Write::page_mut`, `RedoLog::page_changes` | `guard.rs`, `logging.rs` | the frame's exclusively |
//! | writing begins: it is copied, with its swips in evicted form | `Writer::copy_out`, `FrameHeader::begin_write` | `writeback/write.rs`, `frame.rs` | the frame's, shared |
//! | writing ends: it is clean, unless it changed meanwhile | `Writer::end_write`, `FrameHeader::end_write` | `writeback/write.rs`, `frame.rs` | none |
//! | hot, cooling → evicted: a victim, clean and without swizzled children | `LiveHost::offer` | `replacement/eviction.rs` | the parent's and the frame's exclusively, by trying |
//! | hot, cooling → evicted: it is deleted | `free_page` | `allocation.rs` | the frame's exclusively |
//! | evicted, and standing by for a page cleaner's free list | `let_go`, `InFlight::stand_by` | `evicting.rs`, `translation/in_flight.rs` | none |
//! | evicted → loading by way of free: it is needed after all | `rescue` | `evicting.rs` | the frame's |
//! | evicted → free, after a round of eviction | `let_go`, `Frames::give_back_evicted` | `evicting.rs`, `memory/frames.rs` | none |
//! | evicted → free, after deletion: once it is not being written | `finish_free`, `reap` | `allocation.rs` | the frame's exclusively |
//! | reused, once no thread can still read it | `FreeLists::take`, `Epochs::oldest` | `memory/free_list.rs`, `epoch.rs` | none |
//!
//! # The life cycle of a fix
//!
//! There is no pin count. A page is fixed for as long as a guard on it is valid, and a guard is
//! obtained from the guard of its parent:
//!
//! 1. *Begin.* [`Pages::run`] (`pages.rs`) starts a mini-transaction and enters the epoch.
//! 2. *Fix.* [`Read::child`] (`pages.rs`) follows a swip through `translate` (`resolve.rs`). A hot
//!    page: the child's version is read, or its latch taken, and the parent is validated once more.
//!    A page in the cooling stage is made hot first. Any other ends the mini-transaction with a
//!    [`Jump`], and `settle_jump` (`fault.rs`) loads the page while the thread holds nothing; then
//!    the operation restarts at step 1.
//! 3. *Hit.* `Replacement::on_hit` (`replacement/replacement.rs`) lets the policy's hot half update
//!    the frame's line, and delivers the hit to the policy host where the policy receives hits.
//! 4. *Use.* A reader reads raw and calls [`Read::validate`]; [`Read::upgrade`] makes it a writer,
//!    if the page is still at the version that was read. [`Read::share`] keeps the page for a
//!    user's closure, beyond the end of the mini-transaction.
//! 5. *Unfix.* The guard is dropped. An optimistic reader leaves nothing behind, and a shared latch
//!    is released. A changed page gets a new version: at once or, if the change is logged, when the
//!    record is in the log (`RedoLog::commit`, `logging.rs`).
//! 6. *End.* The epoch is left. Only now can a frame that was given up since the begin be reused.

pub(crate) mod allocation;
mod anchors;
pub(crate) mod borrowed;
pub mod buffer_pool;
pub mod epoch;
pub mod error;
mod evicting;
mod fault;
pub mod frame;
mod free_frames;
pub mod guard;
pub mod hint;
pub mod jump;
pub mod kind;
pub mod latch;
mod logging;
pub mod memory;
pub mod mini_transaction;
mod moving;
pub mod options;
mod page_ids;
pub mod pages;
mod pool_pages;
mod reading_ahead;
pub mod recording;
pub mod replacement;
mod reserved;
mod resolve;
mod starvation;
pub mod storage;
pub mod swip;
mod sync;
pub mod translation;
pub mod twin;
mod workers;
pub mod writeback;
mod writing;

pub use anchors::Anchor;
pub use buffer_pool::Pool;
pub use epoch::Reclamation;
pub use error::{PoolError, StorageError};
pub use evicting::Evicted;
pub use frame::{FRAME_HEADER_BYTES, FrameHeader, State};
pub use guard::{Read, Shared, Write};
pub use hint::PageHint;
pub use jump::{Cold, Jump, Load, Ordered, Try};
pub use kind::{ANCHOR_STAMP, ANCHOR_SWIP, Kind, NoSwips};
pub use latch::{Latch, Latched, Latching, Optimistic, Unlatched};
pub use mini_transaction::{Actor, MiniTransaction, PageMemory, References};
pub use moving::{Moved, Walk};
pub use options::{EvictionMode, PoolOptions, PoolStrategy, SyncMode};
pub use pages::{NewPage, Pages};
pub use recording::storage_recorder::{StorageRecorder, StorageRequest, StorageSink};
pub use replacement::policy_host::{HitDelivery, HostedPolicy, HostingError};
pub(crate) use reserved::Reserved;
pub use storage::{PageIn, PageOut, Storage};
pub use swip::Swip;
pub use twin::twin_pages::Twin;
pub use workers::Workers;
