//! One enum over all compiled combinations, and how a call finds the one it is for: a `match`, no
//! virtual call.

use std::sync::Arc;

use super::store::Store;
use super::store_handle::{StoreHashIndex, StoreHeap, StoreTree};
use super::store_range::StoreRange;
use super::store_txn::StoreTxn;
use crate::btree::ValueReader;
use crate::hash_index::Entries;
use crate::heap::Records;
use crate::pool::Pool;

/// Declares an enum with a variant per combination `M`, each holding a `$of<M>`.
macro_rules! any {
    ($(#[$meta:meta])* $name:ident $(<$life:lifetime>)?: $of:ident) => {
        $(#[$meta])*
        pub(super) enum $name $(<$life>)? {
            Lean($of<$($life,)? $crate::db::modes::Lean>),
            Untouched($of<$($life,)? $crate::db::modes::Untouched>),
            Various($of<$($life,)? $crate::db::modes::Various>),
            Dated($of<$($life,)? $crate::db::modes::Dated>),
            Baseline($of<$($life,)? $crate::db::modes::Baseline>),
            LadderSwips($of<$($life,)? $crate::db::modes::LadderSwips>),
            LadderLean($of<$($life,)? $crate::db::modes::LadderLean>),
            NoSwips($of<$($life,)? $crate::db::modes::NoSwips>),
            Alone($of<$($life,)? $crate::db::modes::Alone>),
            Recording($of<$($life,)? $crate::db::modes::Recording>),
        }
    };
}

/// Evaluates `$body` for whatever the enum holds.
macro_rules! each {
    ($name:ident, $any:expr, $held:ident => $body:expr) => {
        match $any {
            $name::Lean($held) => $body,
            $name::Untouched($held) => $body,
            $name::Various($held) => $body,
            $name::Dated($held) => $body,
            $name::Baseline($held) => $body,
            $name::LadderSwips($held) => $body,
            $name::LadderLean($held) => $body,
            $name::NoSwips($held) => $body,
            $name::Alone($held) => $body,
            $name::Recording($held) => $body,
        }
    };
}
pub(super) use each;

/// The same, putting the result into the variant of `$to` for the same combination.
macro_rules! turn {
    ($name:ident => $to:ident, $any:expr, $held:ident => $body:expr) => {
        match $any {
            $name::Lean($held) => $to::Lean($body),
            $name::Untouched($held) => $to::Untouched($body),
            $name::Various($held) => $to::Various($body),
            $name::Dated($held) => $to::Dated($body),
            $name::Baseline($held) => $to::Baseline($body),
            $name::LadderSwips($held) => $to::LadderSwips($body),
            $name::LadderLean($held) => $to::LadderLean($body),
            $name::NoSwips($held) => $to::NoSwips($body),
            $name::Alone($held) => $to::Alone($body),
            $name::Recording($held) => $to::Recording($body),
        }
    };
}
pub(super) use turn;

/// `$body` in the variant of [`AnyStore`] for a [`Combination`](super::modes::Combination).
macro_rules! by_combination {
    ($combination:expr, $body:expr) => {
        match $combination {
            Combination::Lean => AnyStore::Lean($body),
            Combination::Untouched => AnyStore::Untouched($body),
            Combination::Various => AnyStore::Various($body),
            Combination::Dated => AnyStore::Dated($body),
            Combination::Baseline => AnyStore::Baseline($body),
            Combination::LadderSwips => AnyStore::LadderSwips($body),
            Combination::LadderLean => AnyStore::LadderLean($body),
            Combination::NoSwips => AnyStore::NoSwips($body),
            Combination::Alone => AnyStore::Alone($body),
            Combination::Recording => AnyStore::Recording($body),
        }
    };
}
pub(super) use by_combination;

type Shared<M> = Arc<Store<M>>;
type PoolReader<'t, M> = ValueReader<'t, Pool<M>>;
type PoolEntries<'t, M> = Entries<'t, Pool<M>>;
type PoolRecords<'t, M> = Records<'t, Pool<M>>;

any! {
    /// A store.
    #[derive(Clone)]
    AnyStore: Shared
}
any! {
    /// A tree's handle.
    #[derive(Clone)]
    AnyTree: StoreTree
}
any! {
    /// A range.
    AnyRange<'t>: StoreRange
}
any! {
    /// A large value being read.
    AnyReader<'t>: PoolReader
}
/// The same three macros for what is compiled for fewer combinations: those that a user's choice
/// of a policy leads to.
macro_rules! any_few {
    ($(#[$meta:meta])* $name:ident $(<$life:lifetime>)?: $of:ident) => {
        $(#[$meta])*
        pub(super) enum $name $(<$life>)? {
            Lean($of<$($life,)? $crate::db::modes::Lean>),
            Untouched($of<$($life,)? $crate::db::modes::Untouched>),
            Various($of<$($life,)? $crate::db::modes::Various>),
            Dated($of<$($life,)? $crate::db::modes::Dated>),
        }
    };
}

macro_rules! each_few {
    ($name:ident, $any:expr, $held:ident => $body:expr) => {
        match $any {
            $name::Lean($held) => $body,
            $name::Untouched($held) => $body,
            $name::Various($held) => $body,
            $name::Dated($held) => $body,
        }
    };
}
pub(super) use each_few;

macro_rules! turn_few {
    ($name:ident => $to:ident, $any:expr, $held:ident => $body:expr $(, else $other:expr)?) => {
        match $any {
            $name::Lean($held) => $to::Lean($body),
            $name::Untouched($held) => $to::Untouched($body),
            $name::Various($held) => $to::Various($body),
            $name::Dated($held) => $to::Dated($body),
            $(_ => $other,)?
        }
    };
}
pub(super) use turn_few;

any_few! {
    /// A transaction.
    AnyTxn: StoreTxn
}
any_few! {
    /// A hash index's handle.
    #[derive(Clone)]
    AnyHashIndex: StoreHashIndex
}
any_few! {
    /// The entries of a hash index.
    AnyEntries<'t>: PoolEntries
}
any_few! {
    /// A heap's handle.
    #[derive(Clone)]
    AnyHeap: StoreHeap
}
any_few! {
    /// The records of a heap.
    AnyRecords<'t>: PoolRecords
}
