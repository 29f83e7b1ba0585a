//! The concrete types behind `Db` and its handles: a store and its structures in the one
//! combination of strategies that users run, whatever the policy
//! ([`combinations`](crate::store::combinations)).

use std::sync::Arc;

use crate::btree::{Cursor, ValueReader};
use crate::pool::Pool;
use crate::store::combinations::SwizzledAny;
use crate::store::handle::{StoreHashIndex, StoreHeap, StoreTree};
use crate::store::range::StoreRange;
use crate::store::store::Store;
use crate::store::store_txn::StoreTxn;

/// A store.
pub(crate) type DbStore = Arc<Store<SwizzledAny>>;
/// A tree's handle.
pub(crate) type DbTree = StoreTree<SwizzledAny>;
/// A range.
pub(crate) type DbRange<'t> = StoreRange<'t, SwizzledAny>;
/// A position in a tree.
pub(crate) type DbCursor<'t> = Cursor<'t, Pool<SwizzledAny>>;
/// A large value being read.
pub(crate) type DbReader<'t> = ValueReader<'t, Pool<SwizzledAny>>;
/// A transaction.
pub(crate) type DbTxn = StoreTxn<SwizzledAny>;
/// A hash index's handle.
pub(crate) type DbHashIndex = StoreHashIndex<SwizzledAny>;
/// A heap's handle.
pub(crate) type DbHeap = StoreHeap<SwizzledAny>;
