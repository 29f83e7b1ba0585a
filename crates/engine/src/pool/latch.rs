//! The latch of a frame: one versioned word with three modes, and three ways to use it.
//!
//! ```text
//! bit  0        exclusive: a thread may change the page
//! bits 1..=15   shared holders
//! bits 16..=63  version: counts the exclusive holds that ended with a change
//! ```
//!
//! An *optimistic* reader (leanstore IV-F) writes nothing: it remembers the version, reads, and
//! checks that the version is still the same. Shared holds do not disturb it. A *shared* holder
//! keeps writers out. The [`Latching`] compiled into a store decides how its reads are protected:
//! optimistically, by shared holds or, in a store for one thread, not at all. A run therefore pays
//! only for the protection that it measures. In every case, a page that a user's closure reads is
//! held in shared mode.
//!
//! Long because the word and the three ways to use it are one argument.
//!
//! # Rules
//!
//! 1. The thread that holds the word exclusively may change the page and the fields of the frame
//!    that it guards. The version grows when the hold ends, unless the holder keeps it with
//!    `release_unchanged` or `downgrade_unchanged`. It may do so if it changed nothing, or only the
//!    form of a swip whose page stays or has come into memory.
//! 2. The bytes that an optimistic reader saw count only after [`Latching::validate`] returned
//!    `true`.
//! 3. No I/O and no waiting for a condition happens under a latch; a thread waits for a latch only
//!    downwards (parent, then child), and only tries latches in any other order.

use millpond_base::sections::{Section, note};
use millpond_base::sync::atomic::{AtomicU64, Ordering, fence};

const EXCLUSIVE: u64 = 1;
const SHARED_ONE: u64 = 1 << 1;
const SHARED_MASK: u64 = 0xfffe;
const VERSION_ONE: u64 = 1 << 16;
const VERSION_MASK: u64 = !0xffff;

/// Number of tries of a waiter before it yields to other threads. Holds last less than a
/// microsecond, unless the holder lost its processor.
pub(in crate::pool) const SPINS_MAX: u32 = if cfg!(feature = "model") { 1 } else { 64 };
/// Number of other sharers that may come or go while one more tries to join.
const SHARERS_MAX: u32 = 64;
/// Number of yields before a waiter gives up and its operation restarts.
const YIELDS_MAX: u32 = 16;

/// The latch word of a frame.
#[derive(Debug)]
#[repr(transparent)]
pub struct Latch(AtomicU64);

impl Default for Latch {
    fn default() -> Latch {
        Latch(AtomicU64::new(VERSION_ONE))
    }
}

fn pause(round: u32) {
    // A model checker must know that nothing happens until another thread runs.
    if cfg!(feature = "model") || round % 64 == 63 {
        millpond_base::sync::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

/// Number of tries of a waiter before it gives up.
pub(in crate::pool) const ROUNDS_MAX: u32 =
    if cfg!(feature = "model") { 2 } else { SPINS_MAX * YIELDS_MAX };

impl Latch {
    /// Returns the version that a reader may start from, or `None` while the word is held
    /// exclusively.
    #[inline(always)]
    pub fn version(&self) -> Option<u64> {
        let word = self.0.load(Ordering::Acquire);
        if word & EXCLUSIVE == 0 { Some(word & VERSION_MASK) } else { None }
    }

    /// Returns whether nothing was changed since [`Latch::version`] returned `version`.
    #[inline(always)]
    pub fn is_still(&self, version: u64) -> bool {
        debug_assert_eq!(version & !VERSION_MASK, 0, "a version has no mode bits");
        // Earlier reads of the page must come before the read of the word.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) & (VERSION_MASK | EXCLUSIVE) == version
    }

    /// Takes the word exclusively if no thread holds it in any mode.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    #[inline(always)]
    pub fn try_exclusive(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word & (EXCLUSIVE | SHARED_MASK) == 0 && self.take(word)
    }

    /// Takes the word exclusively if no thread holds it and the version still is `version`.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    #[inline(always)]
    pub fn try_exclusive_at(&self, version: u64) -> bool {
        debug_assert_eq!(version & !VERSION_MASK, 0, "no version");
        self.take(version)
    }

    #[cfg_attr(feature = "critical-sections", track_caller)]
    #[inline(always)]
    fn take(&self, word: u64) -> bool {
        debug_assert_eq!(word & (EXCLUSIVE | SHARED_MASK), 0, "a latch that is taken is free");
        let taken = self.acquire(word, word | EXCLUSIVE, Section::Exclusive);
        if taken {
            // Readers must not see the changes that follow without the bit.
            fence(Ordering::Release);
        }
        taken
    }

    /// Takes the latch in another mode, by changing the word from `from` to `to`; `false` if the
    /// word is no longer `from`.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    #[inline(always)]
    fn acquire(&self, from: u64, to: u64, section: Section) -> bool {
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        let is_held = self.0.compare_exchange(from, to, acquire, relaxed).is_ok();
        if is_held {
            note(section);
        }
        is_held
    }

    /// Takes the word exclusively, waiting a little; `false` if it was not available.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    #[inline]
    pub fn exclusive(&self) -> bool {
        self.exclusive_within(ROUNDS_MAX)
    }

    /// Takes the word exclusively within `rounds` tries; `false` if it was not available.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    pub fn exclusive_within(&self, rounds: u32) -> bool {
        for round in 0..rounds {
            if self.try_exclusive() {
                return true;
            }
            pause(round);
        }
        false
    }

    /// Ends an exclusive hold; the version grows.
    #[inline(always)]
    pub fn release_exclusive(&self) {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(word & EXCLUSIVE, EXCLUSIVE, "released, but not held");
        debug_assert_eq!(word & SHARED_MASK, 0, "an exclusive holder is alone");
        self.0.store((word & VERSION_MASK).wrapping_add(VERSION_ONE), Ordering::Release);
    }

    /// Ends an exclusive hold without a new version, as nothing was changed that readers must
    /// notice: they need not start again.
    #[inline(always)]
    pub fn release_unchanged(&self) {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(word & EXCLUSIVE, EXCLUSIVE, "released, but not held");
        debug_assert_eq!(word & SHARED_MASK, 0, "an exclusive holder is alone");
        self.0.store(word & VERSION_MASK, Ordering::Release);
    }

    /// Takes the word in shared mode, unless it is held exclusively.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    #[inline(always)]
    pub fn try_shared(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        if word & EXCLUSIVE != 0 || word & SHARED_MASK == SHARED_MASK {
            return false;
        }
        self.acquire(word, word + SHARED_ONE, Section::Shared)
    }

    /// Takes the word in shared mode, waiting a little; `false` if it was not available.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    #[inline]
    pub fn shared(&self) -> bool {
        self.shared_within(ROUNDS_MAX)
    }

    /// Takes the word in shared mode within `rounds` tries; `false` if it was not available.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    pub fn shared_within(&self, rounds: u32) -> bool {
        for round in 0..rounds {
            if self.try_shared() {
                return true;
            }
            pause(round);
        }
        false
    }

    /// Takes the word in shared mode if the version still is `version` and no thread holds the word
    /// exclusively.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    #[inline]
    pub fn try_shared_at(&self, version: u64) -> bool {
        debug_assert_eq!(version & !VERSION_MASK, 0, "a version has no mode bits");
        let mut word = version;
        // Mostly no other thread shares it; if one does, holders come and go.
        for _ in 0..SHARERS_MAX {
            let next = word + SHARED_ONE;
            match self.0.compare_exchange(word, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    note(Section::Shared);
                    return true;
                }
                Err(now) => word = now,
            }
            let is_still = word & (VERSION_MASK | EXCLUSIVE) == version;
            if !is_still || word & SHARED_MASK == SHARED_MASK {
                return false;
            }
        }
        false
    }

    /// Ends a shared hold.
    #[inline(always)]
    pub fn release_shared(&self) {
        let before = self.0.fetch_sub(SHARED_ONE, Ordering::Release);
        debug_assert_ne!(before & SHARED_MASK, 0, "released, but not shared");
    }

    /// Turns the only shared hold into the exclusive one; on `false` the shared hold remains.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    #[inline(always)]
    pub fn try_upgrade(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        if word & SHARED_MASK != SHARED_ONE {
            return false;
        }
        let alone = (word & VERSION_MASK) | EXCLUSIVE;
        let upgraded = self.acquire(word, alone, Section::Exclusive);
        if upgraded {
            fence(Ordering::Release);
        }
        upgraded
    }

    /// Returns the version, even while the word is held. The version cannot change under a holder.
    #[inline]
    pub fn version_held(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & VERSION_MASK
    }

    /// Returns the version that the word will have when this exclusive hold has ended.
    #[inline]
    pub fn version_after(&self) -> u64 {
        self.version_held().wrapping_add(VERSION_ONE)
    }

    /// Turns the exclusive hold back into a shared one, as if nothing had been changed.
    #[inline]
    pub fn downgrade_unchanged(&self) {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(word & EXCLUSIVE, EXCLUSIVE, "downgraded, but not held");
        debug_assert_eq!(word & SHARED_MASK, 0, "an exclusive holder is alone");
        self.0.store((word & VERSION_MASK) | SHARED_ONE, Ordering::Release);
    }

    /// Returns whether a thread holds the word exclusively, at this moment.
    pub fn is_exclusive(&self) -> bool {
        self.0.load(Ordering::Relaxed) & EXCLUSIVE != 0
    }

    /// Returns whether a thread holds the word in any mode, at this moment.
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (EXCLUSIVE | SHARED_MASK) != 0
    }
}

/// Strategy that decides how a read is protected, compiled into each store.
pub trait Latching: Send + Sync + 'static {
    /// State that a reader keeps.
    type Token: Copy + Send;
    /// Name of the strategy in options and tables.
    const NAME: &'static str;
    /// `true` if a reader may see a page while it changes, so that it must validate.
    const OPTIMISTIC: bool;
    /// `true` if more than one thread may use the store.
    const THREADS: bool = true;

    /// Begins a read; `None` if a writer holds the latch.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    fn read(latch: &Latch) -> Option<Self::Token>;
    /// Begins a read within `rounds` tries; `None` if a writer held the latch all the time.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    fn read_within(latch: &Latch, rounds: u32) -> Option<Self::Token>;
    /// Begins a read, waiting a little; `None` if a writer held the latch for a while.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    #[inline(always)]
    fn read_patiently(latch: &Latch) -> Option<Self::Token> {
        match Self::read(latch) {
            Some(token) => Some(token),
            None => Self::read_within(latch, ROUNDS_MAX),
        }
    }
    /// Returns whether everything that was read under `token` is valid.
    fn validate(latch: &Latch, token: Self::Token) -> bool;
    /// Ends a read.
    fn end(latch: &Latch, token: Self::Token);
    /// Turns the read into a write; on `false` the read continues.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    fn upgrade(latch: &Latch, token: Self::Token) -> bool;
    /// Begins a write; `false` if the latch is held.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    fn write(latch: &Latch) -> bool;
    /// Begins a write within `rounds` tries; `false` if the latch was held all the time.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    fn write_within(latch: &Latch, rounds: u32) -> bool;
    /// Begins a write, waiting a little; `false` if the latch was held for a while.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    #[inline(always)]
    fn write_patiently(latch: &Latch) -> bool {
        Self::write(latch) || Self::write_within(latch, ROUNDS_MAX)
    }
    /// Turns the read into a short write, which changes nothing except where a swip points in
    /// memory; on `false` the read continues.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    fn promote(latch: &Latch, token: Self::Token) -> bool {
        Self::upgrade(latch, token)
    }
    /// Returns to the read that was promoted, which is as valid as before.
    fn demote(latch: &Latch);
    /// Turns the read into a shared hold that keeps every writer out, if the read is valid; it ends
    /// with [`Latch::release_shared`]. On `false` the read continues.
    #[cfg_attr(feature = "critical-sections", track_caller)]
    fn share(latch: &Latch, token: Self::Token) -> bool;
    /// Returns the version that a reader's page has, as long as the read is valid.
    fn version(latch: &Latch, token: Self::Token) -> u64;
}

/// Readers remember versions: the engine's own way (leanstore IV-F).
pub struct Optimistic;

impl Latching for Optimistic {
    type Token = u64;
    const NAME: &'static str = "optimistic";
    const OPTIMISTIC: bool = true;

    #[inline(always)]
    fn read(latch: &Latch) -> Option<u64> {
        let version = latch.version()?;
        note(Section::Optimistic);
        Some(version)
    }

    fn read_within(latch: &Latch, rounds: u32) -> Option<u64> {
        for round in 0..rounds {
            if let Some(version) = Optimistic::read(latch) {
                return Some(version);
            }
            pause(round);
        }
        None
    }

    #[inline(always)]
    fn validate(latch: &Latch, token: u64) -> bool {
        latch.is_still(token)
    }

    #[inline(always)]
    fn end(_: &Latch, _: u64) {}

    #[inline(always)]
    fn upgrade(latch: &Latch, token: u64) -> bool {
        latch.try_exclusive_at(token)
    }

    #[inline(always)]
    fn write(latch: &Latch) -> bool {
        latch.try_exclusive()
    }

    fn write_within(latch: &Latch, rounds: u32) -> bool {
        latch.exclusive_within(rounds)
    }

    #[inline(always)]
    fn demote(latch: &Latch) {
        latch.release_unchanged();
    }

    #[inline(always)]
    fn share(latch: &Latch, token: u64) -> bool {
        latch.try_shared_at(token)
    }

    #[inline(always)]
    fn version(_: &Latch, token: u64) -> u64 {
        token
    }
}

/// Readers hold the latch in shared mode: the traditional way, for comparison.
pub struct Latched;

impl Latching for Latched {
    type Token = ();
    const NAME: &'static str = "latched";
    const OPTIMISTIC: bool = false;

    #[inline(always)]
    fn read(latch: &Latch) -> Option<()> {
        if latch.try_shared() { Some(()) } else { None }
    }

    fn read_within(latch: &Latch, rounds: u32) -> Option<()> {
        if latch.shared_within(rounds) { Some(()) } else { None }
    }

    #[inline(always)]
    fn validate(_: &Latch, (): ()) -> bool {
        true
    }

    #[inline(always)]
    fn end(latch: &Latch, (): ()) {
        latch.release_shared();
    }

    #[inline(always)]
    fn upgrade(latch: &Latch, (): ()) -> bool {
        latch.try_upgrade()
    }

    #[inline(always)]
    fn write(latch: &Latch) -> bool {
        latch.try_exclusive()
    }

    fn write_within(latch: &Latch, rounds: u32) -> bool {
        latch.exclusive_within(rounds)
    }

    #[inline(always)]
    fn demote(latch: &Latch) {
        latch.downgrade_unchanged();
    }

    #[inline(always)]
    fn share(_: &Latch, (): ()) -> bool {
        // The reader's hold is a shared hold already.
        true
    }

    #[inline(always)]
    fn version(latch: &Latch, (): ()) -> u64 {
        latch.version_held()
    }
}

/// No latching, for one thread only: measures the cost of latching.
///
/// Writers still set the exclusive bit, with plain loads and stores, since eviction must see it.
/// They also keep away from pages that are held in shared mode, by the thread's own closures.
pub struct Unlatched;

impl Latching for Unlatched {
    type Token = ();
    const NAME: &'static str = "none";
    const OPTIMISTIC: bool = false;
    const THREADS: bool = false;

    #[inline(always)]
    fn read(_: &Latch) -> Option<()> {
        Some(())
    }

    fn read_within(_: &Latch, _: u32) -> Option<()> {
        Some(())
    }

    #[inline(always)]
    fn validate(_: &Latch, (): ()) -> bool {
        true
    }

    #[inline(always)]
    fn end(_: &Latch, (): ()) {}

    #[inline(always)]
    fn upgrade(latch: &Latch, (): ()) -> bool {
        Unlatched::write(latch)
    }

    #[inline(always)]
    fn write(latch: &Latch) -> bool {
        let word = latch.0.load(Ordering::Relaxed);
        if word & (EXCLUSIVE | SHARED_MASK) != 0 {
            return false;
        }
        latch.0.store(word | EXCLUSIVE, Ordering::Relaxed);
        true
    }

    fn write_within(latch: &Latch, _: u32) -> bool {
        // The holder is this thread: waiting cannot help.
        Unlatched::write(latch)
    }

    #[inline(always)]
    fn demote(latch: &Latch) {
        latch.release_unchanged();
    }

    #[inline(always)]
    fn share(latch: &Latch, (): ()) -> bool {
        latch.try_shared()
    }

    #[inline(always)]
    fn version(latch: &Latch, (): ()) -> u64 {
        latch.version_held()
    }
}
