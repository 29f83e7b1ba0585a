//! Millpond's in-memory twin: the same trees with plain pointers and no pool. It keeps nothing,
//! so it takes no part in what is larger than memory.

use std::path::Path;
use std::sync::Arc;

use millpond::btree::BTree;
use millpond::pool::{Optimistic, Twin};
use millpond_workload::live::{Store, TableId};

use super::millpond::PAGE_SIZE;
use super::tree::{Tables, TreeError, TreeSession};
use crate::engine::{Engine, Settings};

type Memory = Twin<Optimistic>;

/// The twin.
pub struct InMemoryTwin {
    memory: Arc<Memory>,
    tables: Tables<Memory>,
}

impl Store for InMemoryTwin {
    type Error = TreeError;
    type Session<'s> = TreeSession<'s, Memory>;

    fn create_table(&self, name: &str) -> Result<TableId, TreeError> {
        self.tables.find_or(name, |owner| Ok(BTree::create(self.memory.clone(), owner)?))
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, TreeError> {
        Ok(self.tables.find(name))
    }

    fn session(&self) -> Result<TreeSession<'_, Memory>, TreeError> {
        Ok(self.tables.session())
    }
}

impl Engine for InMemoryTwin {
    const NAME: &'static str = "twin";
    const PERSISTS: bool = false;

    fn open(_folder: &Path, _settings: &Settings) -> anyhow::Result<InMemoryTwin> {
        let memory = Arc::new(Twin::new(PAGE_SIZE as usize)?);
        Ok(InMemoryTwin { memory, tables: Tables::new() })
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.memory.len() * u64::from(PAGE_SIZE))
    }

    fn close(self) -> anyhow::Result<()> {
        Ok(())
    }
}
