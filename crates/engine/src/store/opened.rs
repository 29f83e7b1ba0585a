//! Open structures, each shared by all its handles.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use millpond_base::PageId;

use crate::btree::BTree;
use crate::hash_index::HashIndex;
use crate::heap::Heap;
use crate::pool::{Anchor, Pool, PoolError, PoolStrategy};
use crate::recovery::HoldsStructure;
use crate::store::entry::{Entry, Structure};
use crate::store::error::Error;
use crate::store::error::lab::LabError;
use crate::txn;

/// A structure with its name, shared by all its handles. Aligned away from the reference count
/// before it, which every transaction writes that changes the structure.
#[repr(align(128))]
pub(crate) struct Open<S> {
    pub(in crate::store) name: String,
    pub(in crate::store) structure: S,
    /// Number of callers that want the background merge to leave the structure alone.
    pub(in crate::store) resting: AtomicU32,
}

impl<S> Open<S> {
    pub(crate) fn structure(&self) -> &S {
        &self.structure
    }

    /// Returns `true` if a caller wants the background merge to leave the structure alone.
    pub(crate) fn is_resting(&self) -> bool {
        self.resting.load(Ordering::Acquire) > 0
    }
}

/// Holds a structure of any kind open.
pub(crate) trait Holds: Send + Sync {
    /// Returns the structure.
    fn held(&self) -> &dyn txn::Structure;
}

impl<S: txn::Structure> Holds for Open<S> {
    fn held(&self) -> &dyn txn::Structure {
        &self.structure
    }
}

/// Keeps the background merge away from a structure until it is dropped.
pub(in crate::store) struct Rest<'a>(pub(in crate::store) &'a AtomicU32);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

pub(crate) type Shared<S> = Arc<Open<S>>;

/// An open tree, held.
pub(crate) type OpenTree<M> = Shared<BTree<Pool<M>>>;

fn shared<S>(name: &str, structure: S) -> Shared<S> {
    Arc::new(Open { name: name.to_string(), structure, resting: AtomicU32::new(0) })
}

/// A named structure that is open.
pub(crate) enum Opened<M: PoolStrategy> {
    Tree(Shared<BTree<Pool<M>>>),
    Hash(Shared<HashIndex<Pool<M>>>),
    Heap(Shared<Heap<Pool<M>>>),
}

impl<M: PoolStrategy> Clone for Opened<M> {
    fn clone(&self) -> Self {
        match self {
            Opened::Tree(tree) => Opened::Tree(tree.clone()),
            Opened::Hash(index) => Opened::Hash(index.clone()),
            Opened::Heap(heap) => Opened::Heap(heap.clone()),
        }
    }
}

/// Returns a secret seed: with a known one, strangers could choose keys that collide.
fn secret_seed(owner: u32) -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(owner)
}

impl<M: PoolStrategy> HoldsStructure for Opened<M> {
    /// Returns the structure; `None` in a combination of trees only, if it is not a tree.
    fn as_structure(&self) -> Option<&dyn txn::Structure> {
        match self {
            Opened::Tree(tree) => Some(&tree.structure),
            // Impossible; but otherwise the compiler would compile the rest.
            Opened::Hash(_) | Opened::Heap(_) if M::TREES_ONLY => None,
            Opened::Hash(index) => Some(&index.structure),
            Opened::Heap(heap) => Some(&heap.structure),
        }
    }
}

impl<M: PoolStrategy> Opened<M> {
    /// Creates an empty structure.
    pub(crate) fn create(
        pool: &Arc<Pool<M>>,
        name: &str,
        owner: u32,
        kind: Structure,
    ) -> Result<Opened<M>, Error> {
        let pool = pool.clone();
        if kind == Structure::Tree {
            return Ok(Opened::Tree(shared(name, BTree::create(pool, owner)?)));
        }
        if M::TREES_ONLY {
            return Err(LabError::TreesOnly { name: name.to_string(), wanted: kind }.into());
        }
        Ok(if kind == Structure::Hash {
            let index = HashIndex::create(pool, owner, secret_seed(owner))?;
            Opened::Hash(shared(name, index))
        } else {
            Opened::Heap(shared(name, Heap::create(pool, owner)?))
        })
    }

    /// Opens the structure of a catalog entry.
    pub(crate) fn open(pool: &Arc<Pool<M>>, name: &str, entry: &Entry) -> Result<Opened<M>, Error> {
        let (pool, owner, root) = (pool.clone(), entry.owner, entry.root);
        if entry.structure == Structure::Tree {
            return Ok(Opened::Tree(shared(name, BTree::open(pool, owner, root)?)));
        }
        if M::TREES_ONLY {
            return Err(
                LabError::TreesOnly { name: name.to_string(), wanted: entry.structure }.into()
            );
        }
        Ok(if entry.structure == Structure::Hash {
            Opened::Hash(shared(name, HashIndex::open(pool, owner, root)?))
        } else {
            Opened::Heap(shared(name, Heap::open(pool, owner, root)?))
        })
    }

    pub(crate) fn kind(&self) -> Structure {
        match self {
            Opened::Tree(_) => Structure::Tree,
            Opened::Hash(_) => Structure::Hash,
            Opened::Heap(_) => Structure::Heap,
        }
    }

    /// Returns the owner id in its pages.
    pub(crate) fn owner(&self) -> u32 {
        match self {
            Opened::Tree(tree) => tree.structure.owner(),
            Opened::Hash(index) => index.structure.owner(),
            Opened::Heap(heap) => heap.structure.owner(),
        }
    }

    pub(crate) fn root(&self) -> PageId {
        match self {
            Opened::Tree(tree) => tree.structure.root(),
            Opened::Hash(index) => index.structure.root(),
            Opened::Heap(heap) => heap.structure.root(),
        }
    }

    /// Records that the root moved to `page`.
    pub(crate) fn set_root(&self, page: PageId) {
        match self {
            Opened::Tree(tree) => tree.structure.set_root(page),
            Opened::Hash(index) => index.structure.set_root(page),
            Opened::Heap(heap) => heap.structure.set_root(page),
        }
    }

    /// Returns the anchor of the root's swip.
    pub(crate) fn anchor(&self) -> Anchor {
        match self {
            Opened::Tree(tree) => tree.structure.anchor(),
            Opened::Hash(index) => index.structure.anchor(),
            Opened::Heap(heap) => heap.structure.anchor(),
        }
    }

    /// Returns `true` if a caller wants the background merge to leave the structure alone.
    pub(crate) fn is_resting(&self) -> bool {
        match self {
            Opened::Tree(tree) => tree.is_resting(),
            Opened::Hash(index) => index.is_resting(),
            Opened::Heap(heap) => heap.is_resting(),
        }
    }

    /// Returns the number of other holders.
    pub(crate) fn others(&self) -> usize {
        let holds = match self {
            Opened::Tree(tree) => Arc::strong_count(tree),
            Opened::Hash(index) => Arc::strong_count(index),
            Opened::Heap(heap) => Arc::strong_count(heap),
        };
        holds - 1
    }

    /// Returns its splits and merges since it was opened; only trees count them.
    pub(crate) fn tally(&self) -> (u64, u64) {
        let Opened::Tree(tree) = self else { return (0, 0) };
        let counters = tree.structure.counters();
        let splits = counters.leaf_splits + counters.inner_splits;
        (splits, counters.leaf_merges + counters.inner_merges)
    }

    /// Frees all its pages, unless another thread holds it.
    pub(crate) fn destroy(self) -> Result<(), PoolError> {
        match self {
            Opened::Tree(tree) => {
                Arc::into_inner(tree).map_or(Ok(()), |tree| tree.structure.destroy())
            }
            // Impossible; but otherwise the compiler would compile the rest.
            Opened::Hash(_) | Opened::Heap(_) if M::TREES_ONLY => Ok(()),
            Opened::Hash(index) => {
                Arc::into_inner(index).map_or(Ok(()), |index| index.structure.destroy())
            }
            Opened::Heap(heap) => {
                Arc::into_inner(heap).map_or(Ok(()), |heap| heap.structure.destroy())
            }
        }
    }
}
