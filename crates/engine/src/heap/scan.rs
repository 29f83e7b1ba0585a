//! Iteration over all records, in the order of their ids, from either end; and statistics.
//!
//! A scan copies one page at a time, and holds no latch between two pages. It visits the pages that
//! exist when it begins.

use std::collections::VecDeque;

use millpond_base::AccessKind;

use crate::heap::data::{Data, Form, bytes_of};
use crate::heap::descend::{DataPageSlot, mark, wrong};
use crate::heap::directory::{count_in, span};
use crate::heap::error::corrupt;
use crate::heap::table::{Heap, RecordId};
use crate::page::{Batch, BatchEntry, PageBuffer};
use crate::pool::{Pages, PoolError, Swip};

/// Number of data pages prefetched for a scan.
const AHEAD: usize = 8;

/// Records to yield, with their bytes; `None` for a forwarded record, which is copied when it is
/// yielded.
type Ready = VecDeque<(RecordId, Option<Vec<u8>>)>;

/// Iterates over the records of a heap; see [`Heap::records`].
pub struct Records<'h, P: Pages> {
    heap: &'h Heap<P>,
    /// The pages left: the next one from the front, and one behind the next one from the back.
    pages: std::ops::Range<u64>,
    front: Ready,
    back: Ready,
    steps: usize,
    page: PageBuffer,
}

/// The size of a heap; see [`Heap::stats`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapStats {
    /// Number of records.
    pub records: u64,
    /// Number of records that outgrew their page.
    pub forwarded: u64,
    /// Number of data pages.
    pub data_pages: u64,
    /// Bytes of data pages.
    pub total_bytes: u64,
    /// Bytes of records.
    pub raw_bytes: u64,
}

impl<P: Pages> Heap<P> {
    /// Iterates over copies of all records, in the order of their ids or backwards. Writers are not
    /// blocked. A record that exists all the time is returned exactly once.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn records(&self) -> Result<Records<'_, P>, PoolError> {
        let (page, pages) = (PageBuffer::new(self.pages.page_size()), 0..self.extent()?);
        let (front, back) = (Ready::new(), Ready::new());
        Ok(Records { heap: self, pages, front, back, steps: 0, page })
    }

    /// Iterates over the records with ids from `from` on, like [`Heap::records`].
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn records_from(&self, from: RecordId) -> Result<Records<'_, P>, PoolError> {
        let mut records = self.records()?;
        records.pages.start = from.page().min(records.pages.end);
        records.fill(true)?;
        records.front.retain(|(id, _)| *id >= from);
        Ok(records)
    }

    /// Copies records of one data page, and returns the id up to which the copy is complete.
    ///
    /// Forward, copies the records from id `from` on in its page. Backwards, copies the records
    /// before `from` in the page of the last id before it. Returns `None` behind the last page, or
    /// before the first.
    pub(crate) fn batch(
        &self,
        from: u64,
        forward: bool,
        batch: &mut Batch,
    ) -> Result<Option<u64>, PoolError> {
        let (mut page, step) = batch.begin(self.pages.page_size());
        let end = self.copy_batch(from, forward, &mut page, step, &mut batch.entries);
        batch.end(page);
        end
    }

    fn copy_batch(
        &self,
        from: u64,
        forward: bool,
        page: &mut PageBuffer,
        step: usize,
        out: &mut Vec<BatchEntry>,
    ) -> Result<Option<u64>, PoolError> {
        let first = if forward { RecordId(from) } else { RecordId(from.saturating_sub(1)) };
        let number = first.page();
        if self.copy_page(number, page, step.is_multiple_of(AHEAD), forward)? {
            let data = Data(page.view());
            for i in 0..data.slots() {
                let Some(item) = data.item(i) else { continue };
                let id = RecordId::new(number, i);
                if (forward && id.0 < from) || (!forward && id.0 >= from) {
                    continue;
                }
                let value = match item.form {
                    Form::Guest | Form::Removed => continue,
                    Form::Forward => self.get_owned(id)?,
                    Form::Record => Some(bytes_of(page.bytes(), item).to_vec()),
                };
                // A forward whose record has been removed since is skipped.
                let entry =
                    value.map(|value| BatchEntry { position: id.0, key: Vec::new(), value });
                out.extend(entry);
            }
        } else {
            let extent = self.extent()?;
            if number >= extent {
                return Ok((!forward && extent > 0).then(|| RecordId::new(extent, 0).0));
            }
        }
        if forward {
            return Ok(Some(RecordId::new(number + 1, 0).0));
        }
        Ok((number > 0).then(|| RecordId::new(number, 0).0))
    }

    /// Returns the number of records, by a walk over all data pages.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn len(&self) -> Result<u64, PoolError> {
        Ok(self.stats()?.records)
    }

    /// Returns whether there are no records.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn is_empty(&self) -> Result<bool, PoolError> {
        match self.records()?.next() {
            None => Ok(true),
            Some(record) => record.map(|_| false),
        }
    }

    /// Returns the size of the heap, by a walk over all data pages. It is exact if no thread writes
    /// during the walk.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn stats(&self) -> Result<HeapStats, PoolError> {
        let mut stats = HeapStats::default();
        let mut page = PageBuffer::new(self.pages.page_size());
        for number in 0..self.extent()? {
            let ahead = number.is_multiple_of(AHEAD as u64);
            if !self.copy_page(number, &mut page, ahead, true)? {
                continue;
            }
            let data = Data(page.view());
            stats.data_pages += 1;
            for item in (0..data.slots()).filter_map(|i| data.item(i)) {
                stats.records += u64::from(matches!(item.form, Form::Record | Form::Forward));
                stats.forwarded += u64::from(item.form == Form::Forward);
                if matches!(item.form, Form::Record | Form::Guest) {
                    stats.raw_bytes += bytes_of(page.bytes(), item).len() as u64;
                }
            }
        }
        stats.total_bytes = stats.data_pages * self.pages.page_size() as u64;
        Ok(stats)
    }

    /// Returns the number of the last data page that was allocated, plus one.
    pub(crate) fn extent(&self) -> Result<u64, PoolError> {
        self.pages.run(|mtr| {
            let (mut directory, mut level) = self.root_page(mtr)?;
            let mut extent = 0u64;
            let mut depth = 0;
            loop {
                let count = count_in(self.form, directory.view());
                let before = span(self.form, level).saturating_mul(count.saturating_sub(1) as u64);
                let at = self.form.swip_at(count.saturating_sub(1));
                if level == 1 || count == 0 {
                    directory.validate()?;
                    return Ok(extent.saturating_add(count as u64));
                }
                if directory.swip(at) == Swip::NULL {
                    return wrong(&directory);
                }
                extent = extent.saturating_add(before);
                level -= 1;
                depth += 1;
                directory = self.directory_below(&directory, at, level, depth)?;
            }
        })
    }

    /// Copies data page `number`; returns `false` if there is none. With `ahead`, starts loading
    /// the pages that follow it, in the direction of `forward`.
    fn copy_page(
        &self,
        number: u64,
        copy: &mut PageBuffer,
        ahead: bool,
        forward: bool,
    ) -> Result<bool, PoolError> {
        self.pages.run(|mtr| {
            let Some(place) = self.place(mtr, number)? else { return Ok(false) };
            if ahead {
                self.prefetch_after(&place, forward);
            }
            let to = mark(AccessKind::Read, place.depth + 1).with_scan(true);
            let page = place.directory.child(place.at, to)?;
            if !Data(page.view()).is_data() {
                return wrong(&page);
            }
            page.view().copy_into(0, copy.bytes_mut());
            page.validate()?;
            if Data(copy.view()).is_sound() {
                return Ok(true);
            }
            let id = page.header().page().unwrap_or_default();
            Err(corrupt(id, "the header of a data page is inconsistent"))
        })
    }

    /// Starts loading the data pages that follow in the same directory.
    fn prefetch_after(&self, place: &DataPageSlot<'_, P>, forward: bool) {
        let count = count_in(self.form, place.directory.view());
        let mut ahead = [0; AHEAD];
        let mut n = 0;
        for step in 1..=AHEAD {
            let i =
                if forward { place.index.checked_add(step) } else { place.index.checked_sub(step) };
            let Some(i) = i.filter(|&i| i < count) else { break };
            ahead[n] = self.form.swip_at(i);
            n += 1;
        }
        self.pages.prefetch(&place.directory, &ahead[..n]);
    }
}

impl<P: Pages> Records<'_, P> {
    /// Copies the next page with records from that end, if no record is ready there.
    fn fill(&mut self, forward: bool) -> Result<(), PoolError> {
        let ready = if forward { &mut self.front } else { &mut self.back };
        while ready.is_empty() {
            let number = if forward { self.pages.next() } else { self.pages.next_back() };
            let Some(number) = number else { return Ok(()) };
            let ahead = self.steps.is_multiple_of(AHEAD);
            self.steps += 1;
            if !self.heap.copy_page(number, &mut self.page, ahead, forward)? {
                continue;
            }
            let data = Data(self.page.view());
            for i in 0..data.slots() {
                let Some(item) = data.item(i) else { continue };
                let bytes = match item.form {
                    Form::Guest | Form::Removed => continue,
                    Form::Forward => None,
                    Form::Record => Some(bytes_of(self.page.bytes(), item).to_vec()),
                };
                ready.push_back((RecordId::new(number, i), bytes));
            }
        }
        Ok(())
    }

    fn step(&mut self, forward: bool) -> Result<Option<(RecordId, Vec<u8>)>, PoolError> {
        loop {
            self.fill(forward)?;
            let next = if forward {
                self.front.pop_front().or_else(|| self.back.pop_front())
            } else {
                self.back.pop_back().or_else(|| self.front.pop_back())
            };
            let Some((id, bytes)) = next else { return Ok(None) };
            if let Some(bytes) = bytes {
                return Ok(Some((id, bytes)));
            }
            // A forward whose record has been removed since is skipped.
            if let Some(bytes) = self.heap.get_owned(id)? {
                return Ok(Some((id, bytes)));
            }
        }
    }

    fn ended<T>(&mut self, step: Result<Option<T>, PoolError>) -> Option<Result<T, PoolError>> {
        if step.is_err() {
            self.pages = 0..0;
            self.front.clear();
            self.back.clear();
        }
        step.transpose()
    }
}

impl<P: Pages> Iterator for Records<'_, P> {
    type Item = Result<(RecordId, Vec<u8>), PoolError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step(true);
        self.ended(step)
    }
}

impl<P: Pages> DoubleEndedIterator for Records<'_, P> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let step = self.step(false);
        self.ended(step)
    }
}
