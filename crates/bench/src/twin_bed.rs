//! The test bed of the in-memory twin, in plain memory or in a file that is paged in and out.

use std::sync::Arc;
use std::time::Duration;

use millpond::pool::{Latching, Twin};
use millpond_base::Size;
use millpond_workload::tpcc;

use crate::bed::{Bed, Facts, Recorders};
use crate::client::Workload;
use crate::crew::{Crew, check_threads};
use crate::error::BenchError;
use crate::memory_group::MemoryGroup;
use crate::runner::{Observer, Outcome, RunSpec};
use crate::setup::Setup;
use crate::store::TreeStore;

/// Trees on plain memory.
pub(crate) struct TwinBed<L: Latching> {
    store: TreeStore<Twin<L>>,
    crew: Crew,
    /// Behind the memory that it limits: the last thing that goes.
    group: Option<MemoryGroup>,
}

impl<L: Latching> TwinBed<L> {
    pub(crate) fn new(setup: &Setup, workload: &Workload) -> Result<TwinBed<L>, BenchError> {
        let mut crew = Crew::new(setup, workload);
        check_threads(crew.latching, workload)?;
        let page_size = crew.facts.page_size as usize;
        let (twin, group) = match &setup.paged {
            None => (Twin::<L>::new(page_size)?, None),
            Some(paged) => {
                // What is touched before that counts elsewhere.
                let group = MemoryGroup::enter(paged.limit)?;
                (Twin::<L>::in_file(page_size, &paged.folder)?, Some(group))
            }
        };
        let store = TreeStore::new(Arc::new(twin));
        crew.load(&store, setup.load_threads)?;
        crew.facts.pages = store.pages().len();
        Ok(TwinBed { store, crew, group })
    }
}

impl<L: Latching> Bed for TwinBed<L> {
    fn facts(&self) -> &Facts {
        &self.crew.facts
    }

    fn run(
        &mut self,
        spec: &RunSpec,
        at_start: &mut dyn FnMut(Recorders<'_>) -> Result<(), BenchError>,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, BenchError> {
        self.crew.run(&self.store, spec, &|| None, &mut || at_start(Recorders::default()), observer)
    }

    fn set_workload(&mut self, workload: Workload) {
        self.crew.set_workload(workload);
    }

    fn row_bytes(&self) -> Vec<f64> {
        self.crew.row_bytes()
    }

    fn check(&self) -> Result<Option<tpcc::Report>, BenchError> {
        self.crew.check(&self.store)
    }

    fn check_at_rest(&mut self) -> Result<Option<tpcc::Report>, BenchError> {
        self.group = None;
        self.check()
    }

    fn data_pages(&self) -> Result<u64, BenchError> {
        Ok(self.store.pages().len())
    }

    fn recorders(&self) -> Recorders<'_> {
        Recorders::default()
    }

    fn reopen(&mut self, _: Option<Size>) -> Result<(), BenchError> {
        Ok(())
    }

    fn probe(&self, _: u32, _: Duration) -> Result<Option<f64>, BenchError> {
        Ok(None)
    }
}
