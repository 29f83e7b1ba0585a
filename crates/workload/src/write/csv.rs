//! Writer of CSV with a header and all attributes of a reference.

use crate::trace::{Batch, TraceError};

use super::output::Output;
use super::sink::{Sink, finished};
use super::text::push_number;

/// Writes CSV.
pub(crate) struct CsvSink {
    output: Option<Output>,
    lines: Vec<u8>,
    /// `true` if there is an `lsn` column; the first batch decides.
    with_lsns: Option<bool>,
}

impl CsvSink {
    pub(crate) fn new(output: Output) -> CsvSink {
        CsvSink { output: Some(output), lines: Vec::new(), with_lsns: None }
    }

    fn begin(&mut self, with_lsns: bool) {
        self.with_lsns = Some(with_lsns);
        self.lines.extend_from_slice(b"page,op,reason,kind,depth,scan");
        self.lines.extend_from_slice(if with_lsns { b",lsn\n" } else { b"\n" });
    }
}

impl Sink for CsvSink {
    fn write(&mut self, batch: &Batch) -> Result<(), TraceError> {
        self.lines.clear();
        if self.with_lsns.is_none() && !batch.is_empty() {
            self.begin(!batch.lsns.is_empty());
        }
        let with_lsns = self.with_lsns == Some(true);
        let line = &mut self.lines;
        for (i, (page, mark)) in batch.pages.iter().zip(&batch.marks).enumerate() {
            push_number(line, *page);
            line.extend_from_slice(if mark.is_write() { b",W," } else { b",R," });
            line.extend_from_slice(mark.reason().name().as_bytes());
            line.push(b',');
            push_number(line, u64::from(mark.kind().0));
            line.push(b',');
            push_number(line, u64::from(mark.depth()));
            line.extend_from_slice(if mark.is_scan() { b",1" } else { b",0" });
            if with_lsns {
                line.push(b',');
                push_number(line, batch.lsns.get(i).map_or(0, |lsn| lsn.0));
            }
            line.push(b'\n');
        }
        let output = self.output.as_mut().ok_or_else(finished)?;
        output.put(&self.lines)
    }

    fn finish(&mut self) -> Result<(), TraceError> {
        self.output.take().map_or(Ok(()), Output::finish)
    }
}
