//! From a swip to the page: the hot path, and the slower paths of cooling and of missing pages.
//!
//! A hot page costs one test of the swip's tag bits (leanstore III-A), the child's version and a
//! second look at the parent's. With a hash table instead, the swip always holds a page id, which
//! is looked up (leanstore fig. 2a). With both, a miss checks the table before it reads the page
//! (gilbert 2.4.1). That rarely finds anything: with swizzling, a page whose parent could not be
//! latched when its read ended waits in the table of in-flight I/O, and not in the page table.

use std::ptr::NonNull;

use millpond_base::{Mark, PageId};

use crate::pool::buffer_pool::Pool;
use crate::pool::frame::{FrameHeader, State};
use crate::pool::guard::{Read, Write};
use crate::pool::jump::{Jump, Load, Try};
use crate::pool::latch::Latching;
use crate::pool::mini_transaction::MiniTransaction;
use crate::pool::options::PoolStrategy;
use crate::pool::swip::Swip;

impl<M: PoolStrategy> Pool<M> {
    /// See [`Pages::child`].
    #[inline(always)]
    pub(crate) fn child_of_reader<'o>(
        &'o self,
        parent: &Read<'o, Self>,
        at: usize,
        mark: Mark,
    ) -> Try<Read<'o, Self>> {
        let word = parent.swip(at);
        parent.validate()?;
        let frame = self.translate(parent, at, word, mark)?;
        // SAFETY: the parent had not changed after the swip was read, so the word is a swip that
        // this pool made, of one of its frames; or the page table names one.
        let child = unsafe { Read::begin(parent.mtr(), frame) }?;
        parent.validate()?;
        if !M::SWIZZLES && child.header().page() != Some(word.page()) {
            return Err(Jump::Restart);
        }
        self.on_hit(parent.mtr(), frame, mark);
        Ok(child)
    }

    /// See [`Pages::child_exclusive`].
    #[inline(always)]
    pub(crate) fn child_of_reader_exclusive<'o>(
        &'o self,
        parent: &Read<'o, Self>,
        at: usize,
        mark: Mark,
    ) -> Try<Write<'o, Self>> {
        let word = parent.swip(at);
        parent.validate()?;
        let frame = self.translate(parent, at, word, mark)?;
        // SAFETY: as in `child_of_reader`.
        let child = unsafe { Write::begin(parent.mtr(), frame) }?;
        parent.validate()?;
        if !M::SWIZZLES && child.header().page() != Some(word.page()) {
            return Err(Jump::Restart);
        }
        self.on_hit(parent.mtr(), frame, mark);
        Ok(child)
    }

    #[inline(always)]
    fn translate(
        &self,
        parent: &Read<'_, Self>,
        at: usize,
        word: Swip,
        mark: Mark,
    ) -> Try<NonNull<FrameHeader>> {
        if M::SWIZZLES {
            return match word.frame() {
                Some(frame) if word.is_hot() => {
                    debug_assert!(
                        self.frames.memory().id_of(frame).is_some(),
                        "no frame: {word:?}"
                    );
                    Ok(frame)
                }
                _ => self.translate_cold(parent, at, word, mark),
            };
        }
        match self.translation.find(&self.frames, word.page()) {
            Ok(Some(id)) => {
                let frame = self.frames.memory().frame(id).ok_or(Jump::Restart)?;
                self.warm(parent.mtr(), frame, word.page())?;
                if self.frames.header(frame).is_unverified() {
                    self.verify_late(parent, at, frame, word.page())?;
                }
                Ok(frame)
            }
            Ok(None) => self.translate_cold(parent, at, word, mark),
            Err(_) => Err(Jump::Restart),
        }
    }

    /// Verifies a page that was loaded while its parent was not available.
    #[cold]
    fn verify_late(
        &self,
        parent: &Read<'_, Self>,
        at: usize,
        frame: NonNull<FrameHeader>,
        page: PageId,
    ) -> Try<()> {
        let latch = &parent.header().latch;
        if !M::Latching::promote(latch, parent.token()) {
            return Err(Jump::Restart);
        }
        let verified =
            self.translation
                .verify_found(&self.frames, parent.frame(), at, frame, page, || self.is_free(page));
        M::Latching::demote(latch);
        verified
    }

    /// Delivers a reference to the page in `frame` to the policy, and to the recorder.
    #[inline(always)]
    pub(crate) fn on_hit(
        &self,
        mtr: &MiniTransaction<'_, Self>,
        frame: NonNull<FrameHeader>,
        mark: Mark,
    ) {
        self.replacement.on_hit(&self.frames, &self.statistics.counters, mtr, frame, mark);
    }

    /// Resolves a page that is in the cooling stage, or loaded but not attached, or missing.
    #[cold]
    fn translate_cold(
        &self,
        parent: &Read<'_, Self>,
        at: usize,
        word: Swip,
        mark: Mark,
    ) -> Try<NonNull<FrameHeader>> {
        if word == Swip::NULL {
            return Err(Jump::null_swip(parent.header().page(), at));
        }
        if M::SWIZZLES && word.is_cooling() {
            return self.revive(parent, at, word);
        }
        let page = word.page();
        if M::SWIZZLES && M::HAS_TABLE && self.translation.has(&self.frames, page) {
            // The page was attached a moment ago, so the swip has changed by now.
            return Err(Jump::Restart);
        }
        if let Some(arrived) = self.claim(page, mark) {
            let latch = &parent.header().latch;
            if M::Latching::promote(latch, parent.token()) {
                let attached = self.attach_at(parent.frame(), at, page, arrived, mark);
                M::Latching::demote(latch);
                if attached.is_ok() {
                    // The page was admitted with this very reference.
                    parent.mtr().set_notified();
                }
                return attached;
            }
            self.translation.in_flight().arrive(page, arrived);
            return Err(Jump::Restart);
        }
        let version = M::Latching::version(&parent.header().latch, parent.token());
        let parent_page = parent.header().page();
        Err(Jump::load(Load { page, parent: parent.frame(), parent_page, version, at, mark }))
    }

    /// Makes a page in the cooling stage hot again (leanstore III-B).
    fn revive(&self, parent: &Read<'_, Self>, at: usize, word: Swip) -> Try<NonNull<FrameHeader>> {
        let latch = &parent.header().latch;
        if !M::Latching::promote(latch, parent.token()) {
            return Err(Jump::Restart);
        }
        let frame = self.revive_held(parent.frame(), at, word);
        M::Latching::demote(latch);
        frame
    }

    /// Makes a page hot again if its frame's state shows that it is in the cooling stage; for pools
    /// without swizzling. Does nothing if a restart only takes the same path once more.
    #[inline(always)]
    fn warm(
        &self,
        mtr: &MiniTransaction<'_, Self>,
        frame: NonNull<FrameHeader>,
        page: PageId,
    ) -> Try<()> {
        let cools = self.replacement.cools();
        if cools && self.frames.header(frame).state() == State::Cooling && mtr.is_new() {
            return self.warm_up(frame, page);
        }
        Ok(())
    }

    #[cold]
    fn warm_up(&self, frame: NonNull<FrameHeader>, page: PageId) -> Try<()> {
        let header = self.frames.header(frame);
        if !header.latch.try_exclusive() {
            return Err(Jump::Restart);
        }
        let is_still = header.page() == Some(page) && header.state() == State::Cooling;
        if is_still {
            self.replacement.revive(&self.frames, self.counters(), header.id(), || {
                header.become_state(State::Hot);
            });
        }
        header.latch.release_unchanged();
        if is_still { Ok(()) } else { Err(Jump::Restart) }
    }

    /// Makes a page in the cooling stage hot again, under the parent's exclusive latch.
    pub(crate) fn revive_held(
        &self,
        parent: NonNull<FrameHeader>,
        at: usize,
        word: Swip,
    ) -> Try<NonNull<FrameHeader>> {
        debug_assert!(
            self.frames.header(parent).latch.is_exclusive(),
            "a swip changes under a latch"
        );
        let now = Swip(self.frames.view(parent).u64(at));
        let (Some(frame), true) = (word.frame(), now.frame() == word.frame()) else {
            return Err(Jump::Restart);
        };
        if now.is_cooling() {
            let header = self.frames.header(frame);
            debug_assert_eq!(
                header.state(),
                State::Cooling,
                "a cooling swip leads to a cooling page"
            );
            debug_assert_eq!(header.parent(), Some(parent), "a page has one parent");
            self.replacement.revive(&self.frames, self.counters(), header.id(), || {
                header.become_state(State::Hot);
                self.frames.set_swip(parent, at, Swip::hot(frame));
            });
        }
        Ok(frame)
    }

    /// See [`Pages::child_of_held`].
    pub(crate) fn child_of_writer<'o>(
        &'o self,
        parent: &Write<'o, Self>,
        at: usize,
        mark: Mark,
    ) -> Try<Write<'o, Self>> {
        let word = Swip(parent.view().u64(at));
        if word == Swip::NULL {
            return Err(Jump::null_swip(parent.header().page(), at));
        }
        let frame = if M::SWIZZLES && word.is_hot() {
            word.frame().ok_or(Jump::Restart)?
        } else if M::SWIZZLES && word.is_cooling() {
            self.revive_held(parent.frame(), at, word)?
        } else if let Some(frame) = self.resident_by_table(parent.mtr(), word.page())? {
            if self.frames.header(frame).is_unverified() {
                self.translation.verify_found(
                    &self.frames,
                    parent.frame(),
                    at,
                    frame,
                    word.page(),
                    || self.is_free(word.page()),
                )?;
            }
            frame
        } else if let Some(arrived) = self.claim(word.page(), mark) {
            let frame = self.attach_at(parent.frame(), at, word.page(), arrived, mark)?;
            parent.mtr().set_notified();
            frame
        } else {
            let version = parent.header().latch.version_held();
            let (page, parent_page) = (word.page(), parent.header().page());
            let parent = parent.frame();
            return Err(Jump::load(Load { page, parent, parent_page, version, at, mark }));
        };
        // SAFETY: the parent is held, so the word is a swip of this pool, or the table names a
        // frame.
        let child = unsafe { Write::begin(parent.mtr(), frame) }?;
        if !M::SWIZZLES && child.header().page() != Some(word.page()) {
            return Err(Jump::Restart);
        }
        self.on_hit(parent.mtr(), frame, mark);
        Ok(child)
    }

    fn resident_by_table(
        &self,
        mtr: &MiniTransaction<'_, Self>,
        page: PageId,
    ) -> Try<Option<NonNull<FrameHeader>>> {
        if M::SWIZZLES {
            return Ok(None);
        }
        let found = self.translation.find(&self.frames, page).map_err(|_| Jump::Restart)?;
        let frame = found.and_then(|id| self.frames.memory().frame(id));
        if let Some(frame) = frame {
            self.warm(mtr, frame, page)?;
        }
        Ok(frame)
    }
}
