//! One enum over all compiled combinations, and how a call finds the one it is for: a `match`, no
//! virtual call.

use std::sync::Arc;

use crate::btree::ValueReader;
use crate::hash_index::Entries;
use crate::heap::Records;
use crate::pool::Pool;
use crate::store::combinations;
use crate::store::handle::{StoreHashIndex, StoreHeap, StoreTree};
use crate::store::range::StoreRange;
use crate::store::store::Store;
use crate::store::store_txn::StoreTxn;

/// Declares an enum with a variant per combination `M`, each holding a `$of<M>`.
macro_rules! any {
    ($(#[$meta:meta])* $name:ident $(<$life:lifetime>)?: $of:ident) => {
        $(#[$meta])*
        pub(crate) enum $name $(<$life>)? {
            SwizzledCooling($of<$($life,)? combinations::SwizzledCooling>),
            SwizzledNoHook($of<$($life,)? combinations::SwizzledNoHook>),
            SwizzledAny($of<$($life,)? combinations::SwizzledAny>),
            SwizzledWatt($of<$($life,)? combinations::SwizzledWatt>),
            HashedLatchedCentral($of<$($life,)? combinations::HashedLatchedCentral>),
            SwizzledLatchedCentral($of<$($life,)? combinations::SwizzledLatchedCentral>),
            SwizzledLatchedCooling($of<$($life,)? combinations::SwizzledLatchedCooling>),
            HashedAny($of<$($life,)? combinations::HashedAny>),
            SwizzledUnlatchedWatt($of<$($life,)? combinations::SwizzledUnlatchedWatt>),
            SwizzledAnyRecording($of<$($life,)? combinations::SwizzledAnyRecording>),
        }
    };
}

/// Evaluates `$body` for whatever the enum holds.
macro_rules! each {
    ($name:ident, $any:expr, $held:ident => $body:expr) => {
        match $any {
            $name::SwizzledCooling($held) => $body,
            $name::SwizzledNoHook($held) => $body,
            $name::SwizzledAny($held) => $body,
            $name::SwizzledWatt($held) => $body,
            $name::HashedLatchedCentral($held) => $body,
            $name::SwizzledLatchedCentral($held) => $body,
            $name::SwizzledLatchedCooling($held) => $body,
            $name::HashedAny($held) => $body,
            $name::SwizzledUnlatchedWatt($held) => $body,
            $name::SwizzledAnyRecording($held) => $body,
        }
    };
}
pub(crate) use each;

/// The same, putting the result into the variant of `$to` for the same combination.
macro_rules! turn {
    ($name:ident => $to:ident, $any:expr, $held:ident => $body:expr) => {
        match $any {
            $name::SwizzledCooling($held) => $to::SwizzledCooling($body),
            $name::SwizzledNoHook($held) => $to::SwizzledNoHook($body),
            $name::SwizzledAny($held) => $to::SwizzledAny($body),
            $name::SwizzledWatt($held) => $to::SwizzledWatt($body),
            $name::HashedLatchedCentral($held) => $to::HashedLatchedCentral($body),
            $name::SwizzledLatchedCentral($held) => $to::SwizzledLatchedCentral($body),
            $name::SwizzledLatchedCooling($held) => $to::SwizzledLatchedCooling($body),
            $name::HashedAny($held) => $to::HashedAny($body),
            $name::SwizzledUnlatchedWatt($held) => $to::SwizzledUnlatchedWatt($body),
            $name::SwizzledAnyRecording($held) => $to::SwizzledAnyRecording($body),
        }
    };
}
pub(crate) use turn;

/// `$body` in the variant of [`AnyStore`] for a
/// [`Combination`](crate::store::combinations::Combination).
macro_rules! by_combination {
    ($combination:expr, $body:expr) => {
        match $combination {
            Combination::SwizzledCooling => AnyStore::SwizzledCooling($body),
            Combination::SwizzledNoHook => AnyStore::SwizzledNoHook($body),
            Combination::SwizzledAny => AnyStore::SwizzledAny($body),
            Combination::SwizzledWatt => AnyStore::SwizzledWatt($body),
            Combination::HashedLatchedCentral => AnyStore::HashedLatchedCentral($body),
            Combination::SwizzledLatchedCentral => AnyStore::SwizzledLatchedCentral($body),
            Combination::SwizzledLatchedCooling => AnyStore::SwizzledLatchedCooling($body),
            Combination::HashedAny => AnyStore::HashedAny($body),
            Combination::SwizzledUnlatchedWatt => AnyStore::SwizzledUnlatchedWatt($body),
            Combination::SwizzledAnyRecording => AnyStore::SwizzledAnyRecording($body),
        }
    };
}
pub(crate) use by_combination;

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
        pub(crate) enum $name $(<$life>)? {
            SwizzledCooling($of<$($life,)? combinations::SwizzledCooling>),
            SwizzledNoHook($of<$($life,)? combinations::SwizzledNoHook>),
            SwizzledAny($of<$($life,)? combinations::SwizzledAny>),
            SwizzledWatt($of<$($life,)? combinations::SwizzledWatt>),
        }
    };
}

macro_rules! each_few {
    ($name:ident, $any:expr, $held:ident => $body:expr) => {
        match $any {
            $name::SwizzledCooling($held) => $body,
            $name::SwizzledNoHook($held) => $body,
            $name::SwizzledAny($held) => $body,
            $name::SwizzledWatt($held) => $body,
        }
    };
}
pub(crate) use each_few;

macro_rules! turn_few {
    ($name:ident => $to:ident, $any:expr, $held:ident => $body:expr $(, else $other:expr)?) => {
        match $any {
            $name::SwizzledCooling($held) => $to::SwizzledCooling($body),
            $name::SwizzledNoHook($held) => $to::SwizzledNoHook($body),
            $name::SwizzledAny($held) => $to::SwizzledAny($body),
            $name::SwizzledWatt($held) => $to::SwizzledWatt($body),
            $(_ => $other,)?
        }
    };
}
pub(crate) use turn_few;

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
