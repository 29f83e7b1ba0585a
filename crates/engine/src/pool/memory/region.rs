//! The pool's memory: one allocation, frame after frame (leanstore IV-H). This file needs
//! `unsafe`.
//!
//! Frames are `page_size + 192` bytes apart. A frame that was never handed out is all zeros, which
//! reads as a free frame. Its header is written when it is first handed out. So opening a large
//! pool costs nothing, and memory is found as it is needed, unless it is pre-faulted.

use std::ops::Range;
use std::ptr::NonNull;

use millpond_base::FrameId;
use millpond_policies::contract::Zeroed;

use crate::pool::error::PoolError;
use crate::pool::frame::{FRAME_HEADER_BYTES, FrameHeader, IS_MODEL, POLICY_BYTES, POLICY_LINE};

/// Bytes of a huge page; the first frame begins at a multiple of it.
const HUGE: usize = 2 << 20;

/// Bytes of a small page.
const SMALL: usize = 4096;

/// All frames of a pool.
pub struct FrameMemory {
    /// Start of the mapping, which has `mapped` bytes.
    mapping: NonNull<u8>,
    mapped: usize,
    /// The first frame; all `frames` are inside the mapping, `stride` bytes apart.
    start: NonNull<u8>,
    stride: usize,
    frames: u32,
}

// SAFETY: the mapping is owned; its contents are reached through latches and atomics.
unsafe impl Send for FrameMemory {}
// SAFETY: as above.
unsafe impl Sync for FrameMemory {}

impl FrameMemory {
    /// Maps memory for `frames` frames of pages of `page_size` bytes.
    ///
    /// # Errors
    /// The operating system refuses the memory, or the number is absurd.
    pub fn map(frames: u32, page_size: usize) -> Result<FrameMemory, PoolError> {
        let stride = page_size + FRAME_HEADER_BYTES;
        let bytes = (frames as usize).checked_mul(stride).and_then(|b| b.checked_add(HUGE));
        let refused = |reason: &str| PoolError::Memory {
            bytes: u64::from(frames) * stride as u64,
            reason: reason.to_string(),
        };
        let mapped = bytes.ok_or_else(|| refused("more than can be addressed"))?;
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new private mapping at an address of the system's choice.
        let mapping = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, prot, flags) }
            .map_err(|error| refused(&error.to_string()))?;
        let mapping = NonNull::new(mapping.cast::<u8>()).ok_or_else(|| refused("no address"))?;
        let lead = mapping.align_offset(HUGE).min(HUGE);
        // SAFETY: at most HUGE bytes in, and HUGE more than needed were mapped.
        let start = unsafe { mapping.add(lead) };
        crate::pool::memory::huge::advise(start, mapped - lead);
        let memory = FrameMemory { mapping, mapped, start, stride, frames };
        if IS_MODEL {
            for id in (0..frames).map(FrameId) {
                let Some(frame) = memory.frame(id) else { break };
                // SAFETY: inside the mapping, aligned, and not used yet.
                unsafe { frame.write(FrameHeader::new(id)) };
            }
        }
        Ok(memory)
    }

    /// Returns the number of frames.
    #[inline(always)]
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Returns the bytes from one frame to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the first frame's address.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Makes writes to frames fatal, or allows them again; the last frames may be left out.
    pub(crate) fn forbid_writes(&self, forbid: bool) -> std::io::Result<()> {
        use rustix::mm::{MprotectFlags, mprotect};
        let flags = match forbid {
            true => MprotectFlags::READ,
            false => MprotectFlags::READ | MprotectFlags::WRITE,
        };
        let bytes = self.frames as usize * self.stride / HUGE * HUGE;
        // SAFETY: part of the own mapping. A thread that writes there in the meantime ends the
        // process, as the caller wants.
        unsafe { mprotect(self.start.as_ptr().cast(), bytes, flags) }?;
        Ok(())
    }

    /// Returns the frame `id`, or `None` if there is none.
    #[inline]
    pub fn frame(&self, id: FrameId) -> Option<NonNull<FrameHeader>> {
        if id.0 >= self.frames {
            return None;
        }
        // SAFETY: inside the mapping, as the index is checked.
        Some(unsafe { self.start.add(id.index() * self.stride) }.cast())
    }

    /// Returns the header of frame `id`, even if the frame was never handed out.
    #[inline]
    pub fn header(&self, id: FrameId) -> Option<&FrameHeader> {
        // SAFETY: mapped while `self` lives; a frame is made of atomics, for which any bits will
        // do, zeros included.
        self.frame(id).map(|frame| unsafe { frame.as_ref() })
    }

    /// Returns the id of the frame at `frame`, or `None` for an address outside (an anchor's).
    #[inline]
    pub fn id_of(&self, frame: NonNull<FrameHeader>) -> Option<FrameId> {
        let offset = frame.as_ptr().addr().checked_sub(self.start.as_ptr().addr())?;
        let index = u32::try_from(offset / self.stride).ok()?;
        if index < self.frames { Some(FrameId(index)) } else { None }
    }

    /// Writes the header of a frame that is handed out for the first time.
    pub fn initialise(&self, id: FrameId) {
        if let Some(header) = self.header(id) {
            header.initialise(id);
        }
    }

    /// Puts an `M` into the policy's line of every frame. Does nothing if `M` has no size, or if
    /// zeros are a valid `M`: then no frame has to be touched before its first use.
    ///
    /// # Errors
    /// `M` does not fit into a line.
    pub fn initialise_metas<M>(
        &self,
        zeroed: Option<Zeroed<M>>,
        fresh: impl Fn() -> M,
    ) -> Result<(), PoolError> {
        if size_of::<M>() > POLICY_BYTES || align_of::<M>() > POLICY_BYTES {
            return Err(PoolError::Policy {
                reason: format!("its {} bytes per frame exceed {POLICY_BYTES}", size_of::<M>()),
            });
        }
        if size_of::<M>() == 0 || zeroed.is_some() {
            return Ok(());
        }
        for index in 0..self.frames {
            let Some(frame) = self.frame(FrameId(index)) else { break };
            // SAFETY: the policy's line lies inside the frame, is aligned to 64 and large enough,
            // and no thread has a reference into it before the pool is open.
            unsafe { frame.cast::<u8>().add(POLICY_LINE).cast::<M>().write(fresh()) };
        }
        Ok(())
    }

    /// Populates the bytes in `range`, counted from the first frame, as a write to them would;
    /// contents do not change.
    ///
    /// # Errors
    /// The system cannot (Linux before 5.14), or has no memory.
    pub fn populate(&self, range: Range<usize>) -> std::io::Result<()> {
        let end = range.end.min(self.frames as usize * self.stride);
        let begin = range.start / SMALL * SMALL;
        if begin >= end {
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::mm::{Advice, madvise};
            // SAFETY: inside the mapping, whose first frame is aligned to huge pages; advice that
            // changes no contents.
            unsafe {
                let start = self.start.add(begin).as_ptr().cast();
                madvise(start, end - begin, Advice::LinuxPopulateWrite)
            }?;
            Ok(())
        }
        #[cfg(not(target_os = "linux"))]
        Err(std::io::ErrorKind::Unsupported.into())
    }

    /// Touches every page of the memory, so that no later access pays for it.
    pub fn prefault(&self) {
        let bytes = self.frames as usize * self.stride;
        for at in (0..bytes).step_by(SMALL) {
            // SAFETY: inside the mapping; a volatile read and write-back of the same byte, before
            // anybody else has the pool.
            unsafe {
                let byte = self.start.add(at).as_ptr();
                byte.write_volatile(byte.read_volatile());
            }
        }
    }
}

impl Drop for FrameMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, with that length; guards borrow the pool that owns this.
        let result = unsafe { rustix::mm::munmap(self.mapping.as_ptr().cast(), self.mapped) };
        if let Err(error) = result {
            tracing::warn!(%error, "the pool's memory could not be given back");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::frame::State;

    #[test]
    fn frames_lie_192_bytes_more_than_a_page_apart_and_know_their_place() {
        let memory = FrameMemory::map(5, 4096).unwrap();
        for i in 0..5 {
            let id = FrameId(i);
            let frame = memory.frame(id).unwrap();
            assert_eq!(frame.as_ptr().addr() % 64, 0);
            assert_eq!(memory.id_of(frame), Some(id));
            assert_eq!(memory.header(id).unwrap().state(), State::Free);
            memory.initialise(id);
            assert_eq!(memory.header(id).unwrap().page(), None);
        }
        assert!(memory.frame(FrameId(5)).is_none());
        assert_eq!(memory.id_of(NonNull::dangling()), None);
        memory.prefault();
    }

    #[test]
    fn too_much_memory_is_an_error() {
        assert!(matches!(FrameMemory::map(u32::MAX, 1 << 30), Err(PoolError::Memory { .. })));
    }
}
