//! Writer of plain text: the page, and ` W` for a write.

use millpond_base::{Mark, Reason};

use crate::trace::{Batch, TraceError};

use super::output::Output;
use super::sink::{Losses, Sink, finished};

/// Writes text.
pub(crate) struct TextSink {
    output: Option<Output>,
    losses: Losses,
    lines: Vec<u8>,
}

impl TextSink {
    pub(crate) fn new(output: Output) -> TextSink {
        TextSink { output: Some(output), losses: Losses::default(), lines: Vec::new() }
    }
}

impl Sink for TextSink {
    fn write(&mut self, batch: &Batch) -> Result<(), TraceError> {
        let output = self.output.as_mut().ok_or_else(finished)?;
        self.lines.clear();
        for (page, mark) in batch.pages.iter().zip(&batch.marks) {
            if mark.reason() == Reason::Dsync {
                self.losses.dsyncs += 1;
                continue;
            }
            push_number(&mut self.lines, *page);
            self.lines.extend_from_slice(if mark.is_write() { b" W\n" } else { b"\n" });
            self.losses.marks += u64::from(*mark != Mark::of(mark.op()));
        }
        self.losses.lsns += batch.lsns.len() as u64;
        output.put(&self.lines)
    }

    fn finish(&mut self) -> Result<(), TraceError> {
        self.output.take().map_or(Ok(()), Output::finish)
    }

    fn notes(&self) -> Vec<String> {
        self.losses.notes("text")
    }
}

/// Appends the decimal digits of `number`.
pub(crate) fn push_number(line: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}
