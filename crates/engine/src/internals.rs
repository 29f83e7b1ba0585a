//! Internals for the measurements, tools and tests of this workspace. They are not stable: they
//! change whenever the engine does.

#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod admin {
    pub use crate::admin::*;
}
#[cfg(not(any(test, feature = "model")))]
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod api {
    pub use crate::api::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod btree {
    pub use crate::btree::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod encoding {
    pub use crate::encoding::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod hash_index {
    pub use crate::hash_index::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod heap {
    pub use crate::heap::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod io {
    pub use crate::io::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod lock {
    pub use crate::lock::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod log {
    pub use crate::log::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod page {
    pub use crate::page::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod pool {
    pub use crate::pool::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod recovery {
    pub use crate::recovery::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod stats {
    pub use crate::stats::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod store {
    pub use crate::store::*;
}
#[allow(missing_docs, unused_imports, reason = "a view of a private room")]
pub mod txn {
    pub use crate::txn::*;
}
