//! An engine with its folder, ready for any workload.
//!
//! A call through [`Contestant`] is one load or one slice, so that the engines can stand in one
//! list; below it everything is compiled for the one engine.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use millpond_base::Seed;
use millpond_workload::live::{Access, Session, full_scan};
use millpond_workload::tpcc;
use millpond_workload::ycsb;

use crate::engine::{Engine, Settings};
use crate::timed::{Measured, Timing, timed, timed_scans};
use crate::workload::{Data, Workload};

/// What a load gave.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loaded {
    /// Rows per second.
    pub rate: f64,
    /// Bytes on disk, or of the pages in use, after the engine has settled.
    pub bytes: u64,
}

/// An engine in the comparison.
pub trait Contestant {
    /// Returns the engine's name.
    fn name(&self) -> &'static str;

    /// Returns `true` if the engine's data outlives closing.
    fn persists(&self) -> bool;

    /// Loads the rows into a new store and says how that went; unless that was to be measured in
    /// ascending order, the store stays open, in place of the one before.
    ///
    /// # Errors
    /// The engine's.
    fn load(&mut self, data: &Data, order: Workload, seed: Seed) -> anyhow::Result<Loaded>;

    /// Makes a new store with TPC-C's tables, in place of the one before.
    ///
    /// # Errors
    /// The engine's.
    fn load_tpcc(&mut self, scale: &tpcc::Scale, seed: Seed) -> anyhow::Result<Loaded>;

    /// Opens the store that was closed.
    ///
    /// # Errors
    /// The engine's.
    fn open(&mut self, settings: &Settings) -> anyhow::Result<()>;

    /// Reads all rows once.
    ///
    /// # Errors
    /// The engine's, or no store is open.
    fn warm(&mut self) -> anyhow::Result<()>;

    /// Runs a slice of a workload over the loaded rows.
    ///
    /// # Errors
    /// The engine's, or no store is open.
    fn slice(
        &mut self,
        data: &Data,
        workload: Workload,
        timing: &Timing,
        seed: Seed,
    ) -> anyhow::Result<Measured>;

    /// Runs a slice of TPC-C.
    ///
    /// # Errors
    /// The engine's, or no store is open.
    fn slice_tpcc(
        &mut self,
        scale: &tpcc::Scale,
        timing: &Timing,
        seed: Seed,
    ) -> anyhow::Result<Measured>;

    /// Checks TPC-C's conditions.
    ///
    /// # Errors
    /// The engine's, or the first condition that does not hold.
    fn check_tpcc(&mut self) -> anyhow::Result<()>;

    /// Closes the store, if one is open.
    ///
    /// # Errors
    /// The engine's.
    fn close(&mut self) -> anyhow::Result<()>;
}

/// An engine, its folder and its open store.
pub struct Stand<E: Engine> {
    /// Where its folders are; the rows' is called `data`.
    root: PathBuf,
    settings: Settings,
    store: Option<E>,
}

impl<E: Engine> Stand<E> {
    /// The engine with its folders below `root`.
    pub fn new(root: &Path, settings: &Settings) -> Stand<E> {
        Stand { root: root.join(E::NAME), settings: *settings, store: None }
    }

    /// The folder of the store that stays.
    fn folder(&self) -> PathBuf {
        self.root.join("data")
    }

    fn store(&self) -> anyhow::Result<&E> {
        self.store.as_ref().with_context(|| format!("{}: no store is open", E::NAME))
    }

    /// A new store in an empty folder.
    fn fresh(&self, folder: &Path, settings: &Settings) -> anyhow::Result<E> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        E::open(folder, settings)
    }

    fn loaded(store: &E, folder: &Path, rows: u64, start: Instant) -> anyhow::Result<Loaded> {
        let rate = rows as f64 / start.elapsed().as_secs_f64();
        store.settle()?;
        let bytes = match store.bytes() {
            Some(bytes) => bytes,
            None => bytes_in(folder)?,
        };
        Ok(Loaded { rate, bytes })
    }
}

impl<E: Engine> Contestant for Stand<E> {
    fn name(&self) -> &'static str {
        E::NAME
    }

    fn persists(&self) -> bool {
        E::PERSISTS
    }

    fn load(&mut self, data: &Data, order: Workload, seed: Seed) -> anyhow::Result<Loaded> {
        let stays = order != Workload::LoadAscending;
        if stays {
            // Its data are removed, so they need not be kept.
            self.store = None;
        }
        let folder = if stays { self.folder() } else { self.root.join("passing") };
        let store = self.fresh(&folder, &self.settings)?;
        let table = ycsb::create(&store)?;
        let config = data.config(order, 1);
        let start = Instant::now();
        let mut session = store.session()?;
        let rows = ycsb::load(&mut session, table, &config, seed, 0, 1)?;
        drop(session);
        anyhow::ensure!(rows == data.rows, "{} loaded {rows} rows", E::NAME);
        let loaded = Stand::loaded(&store, &folder, rows, start)?;
        if stays {
            self.store = Some(store);
        } else {
            drop(store);
            std::fs::remove_dir_all(&folder)?;
        }
        Ok(loaded)
    }

    fn load_tpcc(&mut self, scale: &tpcc::Scale, seed: Seed) -> anyhow::Result<Loaded> {
        self.store = None;
        let folder = self.folder();
        let store = self.fresh(&folder, &self.settings)?;
        let tables = tpcc::Tables::create(&store)?;
        let start = Instant::now();
        let rows = tpcc::load(&store, &tables, scale, seed, 1)?;
        let loaded = Stand::loaded(&store, &folder, rows, start)?;
        self.store = Some(store);
        Ok(loaded)
    }

    fn open(&mut self, settings: &Settings) -> anyhow::Result<()> {
        self.close()?;
        self.store = Some(E::open(&self.folder(), settings)?);
        Ok(())
    }

    fn warm(&mut self) -> anyhow::Result<()> {
        let store = self.store()?;
        let table = store.table(ycsb::TABLE)?.context("no rows were loaded")?;
        let mut session = store.session()?;
        session.begin(Access::Read)?;
        full_scan(&mut session, table, |_| true)?;
        Ok(session.commit()?)
    }

    fn slice(
        &mut self,
        data: &Data,
        workload: Workload,
        timing: &Timing,
        seed: Seed,
    ) -> anyhow::Result<Measured> {
        let store = self.store()?;
        let table = store.table(ycsb::TABLE)?.context("no rows were loaded")?;
        if workload == Workload::FullScan {
            return timed_scans(store, table, timing);
        }
        let config = data.config(workload, timing.threads);
        let make = |thread| ycsb::Worker::new(&config, table, seed, thread).map_err(Into::into);
        timed(store, timing, make, |worker, session| {
            let step = worker.step(session)?;
            anyhow::ensure!(step.rows > 0, "a row that was loaded is not there");
            Ok(())
        })
    }

    fn slice_tpcc(
        &mut self,
        scale: &tpcc::Scale,
        timing: &Timing,
        seed: Seed,
    ) -> anyhow::Result<Measured> {
        let store = self.store()?;
        let tables = tpcc::Tables::open(store)?;
        let config = tpcc::Config::standard(*scale, timing.threads);
        let make = |thread| tpcc::Worker::new(&config, tables, seed, thread).map_err(Into::into);
        timed(store, timing, make, |worker, session| {
            worker.step(session)?;
            Ok(())
        })
    }

    fn check_tpcc(&mut self) -> anyhow::Result<()> {
        let store = self.store()?;
        let tables = tpcc::Tables::open(store)?;
        let report = tpcc::check(&mut store.session()?, &tables)?;
        anyhow::ensure!(report.is_consistent(), "{}: TPC-C is inconsistent: {report:?}", E::NAME);
        Ok(())
    }

    fn close(&mut self) -> anyhow::Result<()> {
        self.store.take().map_or(Ok(()), E::close)
    }
}

/// Bytes that the files in `folder` take on disk.
pub fn bytes_in(folder: &Path) -> anyhow::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // A file may go while an engine cleans up.
        let Ok(metadata) = entry.metadata() else { continue };
        bytes += if metadata.is_dir() { bytes_in(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}
