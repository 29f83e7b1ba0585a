//! Writer of oracleGeneral, whose records hold the next access of their object.
//!
//! The next reference is known only afterwards, so pages are spooled to an unnamed file. When the
//! trace is complete they are read backwards, block by block, with a table of the last place of
//! each page. The records go to a second unnamed file and from there to the target. Memory grows
//! with the distinct pages, not with the trace.
//!
//! Sizes are 1, so that a cache size in bytes is a size in pages. The time is the reference's
//! number in thousands.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};

use hashbrown::HashMap;
use millpond_base::{Mark, Reason};

use crate::trace::{Batch, TraceError};

use super::output::Output;
use super::sink::{Losses, Sink, finished};
use super::whole::folder;

/// References converted to records at a time.
const BLOCK: u64 = 1 << 16;
/// Bytes per record.
const RECORD: u64 = 24;

/// Writes oracleGeneral.
pub(crate) struct OracleGeneralSink {
    output: Option<Output>,
    spool: BufWriter<File>,
    references: u64,
    losses: Losses,
}

impl OracleGeneralSink {
    pub(crate) fn new(output: Output) -> Result<OracleGeneralSink, TraceError> {
        let spool = BufWriter::with_capacity(1 << 18, unnamed(&output)?);
        let losses = Losses::default();
        Ok(OracleGeneralSink { output: Some(output), spool, references: 0, losses })
    }

    fn complete(&mut self, output: &mut Output) -> std::io::Result<()> {
        self.spool.flush()?;
        let mut pages = self.spool.get_ref();
        let mut records = unnamed_in(output)?;
        let mut seen: HashMap<u64, u64> = HashMap::new();
        let (mut spooled, mut block) = (Vec::new(), Vec::new());
        let mut end = self.references;
        while end > 0 {
            let begin = (end - 1) / BLOCK * BLOCK;
            spooled.resize(((end - begin) * 8) as usize, 0);
            pages.seek(SeekFrom::Start(begin * 8))?;
            pages.read_exact(&mut spooled)?;
            block.resize(((end - begin) * RECORD) as usize, 0);
            let (ids, _) = spooled.as_chunks::<8>();
            let (slots, _) = block.as_chunks_mut::<{ RECORD as usize }>();
            for (i, (id, slot)) in ids.iter().zip(slots).enumerate().rev() {
                // References count from 1.
                let number = begin + i as u64 + 1;
                let next = seen.insert(u64::from_le_bytes(*id), number);
                let next = next.map_or(-1, |n| n as i64);
                let time = u32::try_from((number - 1) / 1000).unwrap_or(u32::MAX);
                slot[..4].copy_from_slice(&time.to_le_bytes());
                slot[4..12].copy_from_slice(id);
                slot[12..16].copy_from_slice(&1u32.to_le_bytes());
                slot[16..].copy_from_slice(&next.to_le_bytes());
            }
            records.seek(SeekFrom::Start(begin * RECORD))?;
            records.write_all(&block)?;
            end = begin;
        }
        records.seek(SeekFrom::Start(0))?;
        std::io::copy(&mut records, output)?;
        Ok(())
    }
}

/// Creates an unnamed file beside the target, which vanishes with its handle.
fn unnamed(output: &Output) -> Result<File, TraceError> {
    unnamed_in(output).map_err(|source| output.error(source))
}

fn unnamed_in(output: &Output) -> std::io::Result<File> {
    if output.path().as_os_str() == "-" || output.path().starts_with("/dev") {
        return tempfile::tempfile();
    }
    tempfile::tempfile_in(folder(output.path()))
}

impl Sink for OracleGeneralSink {
    fn write(&mut self, batch: &Batch) -> Result<(), TraceError> {
        let output = self.output.as_ref().ok_or_else(finished)?;
        for (page, mark) in batch.pages.iter().zip(&batch.marks) {
            if mark.reason() == Reason::Dsync {
                self.losses.dsyncs += 1;
                continue;
            }
            self.losses.writes += u64::from(mark.is_write());
            self.losses.marks += u64::from(*mark != Mark::of(mark.op()));
            self.references += 1;
            self.spool.write_all(&page.to_le_bytes()).map_err(|source| output.error(source))?;
        }
        self.losses.lsns += batch.lsns.len() as u64;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), TraceError> {
        let Some(mut output) = self.output.take() else { return Ok(()) };
        self.complete(&mut output).map_err(|source| output.error(source))?;
        output.finish()
    }

    fn notes(&self) -> Vec<String> {
        self.losses.notes("oracleGeneral")
    }
}
