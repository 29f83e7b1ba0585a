//! One enum over the combinations that users' policies lead to, and how a call finds the one it is
//! for: a `match`, no virtual call. The names of the combinations come from
//! [`combinations`](crate::store::combinations).

use std::sync::Arc;

use crate::btree::ValueReader;
use crate::pool::Pool;
use crate::store::combinations;
use crate::store::combinations::with_user_combinations;
use crate::store::handle::{StoreHashIndex, StoreHeap, StoreTree};
use crate::store::range::StoreRange;
use crate::store::store::Store;
use crate::store::store_txn::StoreTxn;

/// Declares an enum with a variant per combination `M`, each holding a `$of<M>`.
macro_rules! any {
    ([$($variant:ident)*] $(#[$meta:meta])* $name:ident: $of:ident) => {
        $(#[$meta])*
        #[allow(clippy::enum_variant_names, reason = "named after the combinations")]
        pub(crate) enum $name {
            $($variant($of<combinations::$variant>),)*
        }
    };
    ([$($variant:ident)*] $(#[$meta:meta])* $name:ident<'t>: $of:ident) => {
        $(#[$meta])*
        #[allow(clippy::enum_variant_names, reason = "named after the combinations")]
        pub(crate) enum $name<'t> {
            $($variant($of<'t, combinations::$variant>),)*
        }
    };
}

/// Evaluates `$body` for what the enum holds.
macro_rules! each {
    ($name:ident, $any:expr, $held:ident => $body:expr) => {
        $crate::store::combinations::with_user_combinations! {
            each_arms! { $name, $any, $held => $body }
        }
    };
}
macro_rules! each_arms {
    ([$($variant:ident)*] $name:ident, $any:expr, $held:ident => $body:expr) => {
        match $any {
            $($name::$variant($held) => $body,)*
        }
    };
}
pub(crate) use {each, each_arms};

/// The same, putting the result into the variant of `$to` for the same combination.
macro_rules! turn {
    ($name:ident => $to:ident, $any:expr, $held:ident => $body:expr) => {
        $crate::store::combinations::with_user_combinations! {
            turn_arms! { $name => $to, $any, $held => $body }
        }
    };
}
macro_rules! turn_arms {
    ([$($variant:ident)*] $name:ident => $to:ident, $any:expr, $held:ident => $body:expr) => {
        match $any {
            $($name::$variant($held) => $to::$variant($body),)*
        }
    };
}
pub(crate) use {turn, turn_arms};

/// The same for a `$body` that is an `Option`.
macro_rules! turn_some {
    ($name:ident => $to:ident, $any:expr, $held:ident => $body:expr) => {
        $crate::store::combinations::with_user_combinations! {
            turn_some_arms! { $name => $to, $any, $held => $body }
        }
    };
}
macro_rules! turn_some_arms {
    ([$($variant:ident)*] $name:ident => $to:ident, $any:expr, $held:ident => $body:expr) => {
        match $any {
            $($name::$variant($held) => ($body).map($to::$variant),)*
        }
    };
}
pub(crate) use {turn_some, turn_some_arms};

/// Evaluates `$body` for two enums that hold the same combination; `$other` if they do not.
macro_rules! both {
    (
        ($one:ident, $a:expr, $x:ident), ($two:ident, $b:expr, $y:ident) => $body:expr,
        else $other:expr
    ) => {
        $crate::store::combinations::with_user_combinations! {
            both_arms! { ($one, $a, $x), ($two, $b, $y) => $body, else $other }
        }
    };
}
macro_rules! both_arms {
    (
        [$($variant:ident)*]
        ($one:ident, $a:expr, $x:ident), ($two:ident, $b:expr, $y:ident) => $body:expr,
        else $other:expr
    ) => {
        match ($a, $b) {
            $(($one::$variant($x), $two::$variant($y)) => $body,)*
            _ => $other,
        }
    };
}
pub(crate) use {both, both_arms};

/// `$body` in the variant of [`AnyStore`] for a [`Combination`](combinations::Combination);
/// `$other` for one of the laboratory's.
macro_rules! by_combination {
    ($combination:expr, $body:expr, else $other:expr) => {
        $crate::store::combinations::with_user_combinations! {
            by_combination_arms! { $combination, $body, else $other }
        }
    };
}
macro_rules! by_combination_arms {
    ([$($variant:ident)*] $combination:expr, $body:expr, else $other:expr) => {
        match $combination {
            $(Combination::$variant => AnyStore::$variant($body),)*
            #[cfg(feature = "lab")]
            _ => $other,
        }
    };
}
pub(crate) use {by_combination, by_combination_arms};

type Shared<M> = Arc<Store<M>>;
type PoolReader<'t, M> = ValueReader<'t, Pool<M>>;

with_user_combinations! { any! {
    /// A store.
    #[derive(Clone)]
    AnyStore: Shared
} }
with_user_combinations! { any! {
    /// A tree's handle.
    #[derive(Clone)]
    AnyTree: StoreTree
} }
with_user_combinations! { any! {
    /// A range.
    AnyRange<'t>: StoreRange
} }
with_user_combinations! { any! {
    /// A large value being read.
    AnyReader<'t>: PoolReader
} }
with_user_combinations! { any! {
    /// A transaction.
    AnyTxn: StoreTxn
} }
with_user_combinations! { any! {
    /// A hash index's handle.
    #[derive(Clone)]
    AnyHashIndex: StoreHashIndex
} }
with_user_combinations! { any! {
    /// A heap's handle.
    #[derive(Clone)]
    AnyHeap: StoreHeap
} }
