//! Reads: from the cache, from storage, or from both.

use std::io::IoSliceMut;

use millpond_device::{AlignedBuffer, DeviceError, ReadRequest};

use crate::copy::Copy;
use crate::parts::{ToCache, read_below};
use crate::write_back::back_device::BackDevice;
use crate::write_back::tables::Whereabouts;

/// A part of a request that is in a slot.
struct InSlot {
    request: usize,
    part: usize,
    slot: u32,
    checksum: u64,
    clean: Option<millpond_base::FrameId>,
}

/// Locations of the parts of requests.
#[derive(Default)]
struct Plan {
    is_below: Vec<Vec<bool>>,
    slots: Vec<InSlot>,
    both: Vec<(usize, usize)>,
    fills: Vec<ToCache>,
}

impl BackDevice {
    fn plan(&self, requests: &[ReadRequest<'_, '_>]) -> Plan {
        let mut plan = Plan::default();
        let mut cache = self.cache();
        for (at, request) in requests.iter().enumerate() {
            let mut offset = request.offset;
            let tags = request.tags.iter().map(Some).chain(std::iter::repeat(None));
            let mut is_below = vec![true; request.parts.len()];
            for ((part, bytes), tag) in request.parts.iter().enumerate().zip(tags) {
                let range = offset..offset + bytes.len() as u64;
                offset = range.end;
                let found = match tag.filter(|_| self.has_slot(&range)) {
                    Some(tag) => cache.read_back(*tag, &range),
                    None => cache.find(&range),
                };
                let is_elsewhere = !matches!(found, Whereabouts::Storage(_));
                if let Some(is_below) = is_below.get_mut(part).filter(|_| is_elsewhere) {
                    *is_below = false;
                }
                match found {
                    Whereabouts::Slot { slot, checksum, frame } => {
                        let clean = frame;
                        plan.slots.push(InSlot { request: at, part, slot, checksum, clean });
                    }
                    Whereabouts::Both => plan.both.push((at, part)),
                    Whereabouts::Storage(None) => {}
                    Whereabouts::Storage(Some(fill)) => {
                        plan.fills.push(ToCache { request: at, part, range, fill });
                    }
                }
            }
            plan.is_below.push(is_below);
        }
        plan
    }

    pub(super) fn read_requests(&self, requests: &mut [ReadRequest<'_, '_>]) {
        let Plan { mut is_below, slots, both, fills } = self.plan(requests);
        let lost = self.read_in_slots(requests, slots);
        let mut errors = Vec::new();
        for (request, part, error) in lost {
            match error {
                Some(error) => errors.push((request, error)),
                None => {
                    let parts = is_below.get_mut(request).and_then(|all| all.get_mut(part));
                    parts.into_iter().for_each(|place| *place = true);
                }
            }
        }
        let is_any_below = is_below.iter().flatten().any(|is_below| *is_below);
        read_below(&*self.below, requests, &is_below);
        for (at, part) in both {
            let Some(request) = requests.get_mut(at) else { continue };
            let before = request.parts.iter().take(part).map(|part| part.len() as u64);
            let offset = request.offset + before.sum::<u64>();
            let Some(bytes) = request.parts.get_mut(part) else { continue };
            if let Err(error) = self.read_both(offset, bytes) {
                errors.push((at, error));
            }
        }
        for (at, error) in errors {
            if let Some(request) = requests.get_mut(at) {
                request.result = Err(error);
            }
        }
        self.keep(fills, requests);
        if is_any_below {
            // Its page may be at the place of a written one, whose slot is not free yet.
            self.make_room_ahead();
        }
    }

    /// Reads the parts that are in slots. Returns those that failed, with an error if storage lacks
    /// them.
    fn read_in_slots(
        &self,
        requests: &mut [ReadRequest<'_, '_>],
        slots: Vec<InSlot>,
    ) -> Vec<(usize, usize, Option<DeviceError>)> {
        if slots.is_empty() {
            return Vec::new();
        }
        let mut copies = Vec::with_capacity(slots.len());
        let mut wanted = slots.iter().peekable();
        for (at, request) in requests.iter_mut().enumerate() {
            for (part, bytes) in request.parts.iter_mut().enumerate() {
                if let Some(from) = wanted.next_if(|from| (from.request, from.part) == (at, part)) {
                    copies.push((self.layout.slot_offset(from.slot), [IoSliceMut::new(bytes)]));
                }
            }
        }
        let mut reads: Vec<ReadRequest<'_, '_>> = (copies.iter_mut())
            .map(|(offset, bytes)| ReadRequest::new(*offset, &mut bytes[..]))
            .collect();
        self.fast.read_batch(&mut reads);
        let results: Vec<_> = reads.into_iter().map(|read| read.result).collect();
        let proven: Vec<Result<(), DeviceError>> = (copies.iter().zip(&slots).zip(results))
            .map(|(((_, [bytes]), from), result)| {
                result.and_then(|()| self.prove(from.slot, from.checksum, bytes))
            })
            .collect();
        drop(copies);
        let mut cache = self.cache();
        let mut lost = Vec::new();
        for (from, result) in slots.into_iter().zip(proven) {
            match (result, from.clean) {
                (Ok(()), _) => cache.counts.served += 1,
                (Err(_), Some(frame)) => {
                    cache.lose_copy(frame, from.slot);
                    lost.push((from.request, from.part, None));
                }
                (Err(error), None) => {
                    cache.counts.mismatches += 1;
                    lost.push((from.request, from.part, Some(error)));
                }
            }
            cache.unpin_slot(from.slot);
        }
        lost
    }

    /// Reads bytes that the cache has in part, or in differently cut copies.
    pub(super) fn read_both(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let range = offset..offset + bytes.len() as u64;
        let copies = self.cache().pin_within(&range);
        let is_covered = matches!(copies.as_slice(), [only]
            if only.offset <= range.start
                && range.end <= only.offset + u64::from(only.length));
        let below = if is_covered { Ok(()) } else { self.below.read(offset, bytes) };
        let (buffers, results) = self.read_slots(&copies);
        {
            let mut cache = self.cache();
            copies.iter().for_each(|copy| cache.unpin_slot(copy.slot));
        }
        below?;
        for ((copy, buffer), result) in copies.iter().zip(&buffers).zip(results) {
            result?;
            lay_over(bytes, offset, copy, buffer);
        }
        Ok(())
    }

    /// Reads the bytes from `offset` on into a new buffer.
    pub(super) fn read_own(
        &self,
        offset: u64,
        length: usize,
    ) -> Result<AlignedBuffer, DeviceError> {
        let mut buffer = AlignedBuffer::new(length);
        self.read_both(offset, &mut buffer)?;
        Ok(buffer)
    }
}

/// Copies the overlapping bytes of a copy into `bytes`.
fn lay_over(bytes: &mut [u8], offset: u64, copy: &Copy, buffer: &[u8]) {
    let end = offset + bytes.len() as u64;
    let begin = copy.offset.max(offset);
    let end = (copy.offset + u64::from(copy.length)).min(end);
    let to = (begin - offset) as usize..(end.max(begin) - offset) as usize;
    let from = (begin - copy.offset) as usize..(end.max(begin) - copy.offset) as usize;
    if let (Some(to), Some(from)) = (bytes.get_mut(to), buffer.get(from)) {
        to.copy_from_slice(from);
    }
}
