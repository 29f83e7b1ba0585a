//! Millpond's in-memory twin: the same trees with plain pointers and no pool. It keeps nothing,
//! so it takes no part in what is larger than memory.

use std::path::Path;
use std::sync::Arc;

use millpond::internals::pool::{Optimistic, Twin};
use millpond_bench::stores::tree_store::{TreeSession, TreeStore, TreeStoreError};
use millpond_workload::live::{Store, TableId};

use super::millpond_tree::PAGE_SIZE;
use crate::engine::{Engine, Settings};

type Memory = Twin<Optimistic>;

/// The twin.
pub struct InMemoryTwin(TreeStore<Memory>);

impl Store for InMemoryTwin {
    type Error = TreeStoreError;
    type Session<'s> = TreeSession<'s, Memory>;

    fn create_table(&self, name: &str) -> Result<TableId, TreeStoreError> {
        self.0.create_table(name)
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, TreeStoreError> {
        self.0.table(name)
    }

    fn session(&self) -> Result<TreeSession<'_, Memory>, TreeStoreError> {
        self.0.session()
    }
}

impl Engine for InMemoryTwin {
    const NAME: &'static str = "twin";
    const PERSISTS: bool = false;

    fn open(_folder: &Path, _settings: &Settings) -> anyhow::Result<InMemoryTwin> {
        let memory = Arc::new(Twin::new(PAGE_SIZE as usize)?);
        Ok(InMemoryTwin(TreeStore::new(memory)))
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(self.0.compact()?)
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.0.pages().len() * u64::from(PAGE_SIZE))
    }

    fn close(self) -> anyhow::Result<()> {
        Ok(())
    }
}
