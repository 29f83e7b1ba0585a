//! A hot half that is chosen at run time. This file needs `unsafe`.
//!
//! A live pool is compiled for its hot half, of which there are about twenty, not counting users'
//! own. A pool with its trees, log and recovery for each would be absurd. [`AnyHook`] stands for
//! all of them: it keeps a policy's `Meta` as bytes in the frame's line and calls its hot half
//! through a pointer. That costs a hit one predicted indirect call. Policies that no hit reaches,
//! such as lean eviction, cost one predicted branch. For WATT and for policies with a counter in
//! the frame (S3-FIFO, `tide`), the test for the usual hit is compiled in ([`HitHook::is_noop`]),
//! so most of their hits make no call either.
//!
//! # Why this is sound
//!
//! [`host`](crate::any_cold::host) and [`host_open`](crate::any_cold::host_open) return a cold half
//! together with its parameters, and are `unsafe`: the caller guarantees to pass the two only metas
//! that [`HitHook::fresh`] returned for these parameters. So wherever bytes are read as a `Meta`,
//! they are one of the right type. Parameters are kept in their own block of bytes for the same
//! reason.

use std::any::TypeId;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use crate::contract::{Access, Hit, HitHook, PolicySpec, Screen, TickSource, Zeroed};
use crate::parts::Counted;
use crate::policy::Watt;
use crate::zeroed::Zeros;

/// Bytes of a frame's line that a policy may use; a model checker's atomics are larger.
pub const META_BYTES: usize = if cfg!(feature = "model") { 2048 } else { 64 };
/// Maximum bytes of a policy's hit-path parameters.
pub const PARAM_BYTES: usize = 256;

/// A policy whose state is too large for [`AnyHook`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "policy '{policy}' wants {bytes} bytes of {what}, aligned to {align}, and a live pool lends it \
     {most}, aligned to 64: keep what is larger in the policy itself"
)]
pub struct TooLarge {
    /// The policy.
    pub policy: &'static str,
    /// The part that is too large: metadata or parameters.
    pub what: &'static str,
    /// Size of that part in bytes.
    pub bytes: usize,
    /// Alignment of that part in bytes.
    pub align: usize,
    /// Largest size that a live pool lends, in bytes.
    pub most: usize,
}

/// A frame's line, with some policy's `Meta` in it.
#[repr(C, align(64))]
pub struct AnyMeta(UnsafeCell<[MaybeUninit<u8>; META_BYTES]>);

// SAFETY: it holds a `HitHook::Meta`, which is `Send + Sync`, and is accessed only as such.
unsafe impl Send for AnyMeta {}
// SAFETY: as above.
unsafe impl Sync for AnyMeta {}

// SAFETY: any bytes are valid. `AnyHook::zeroed` decides if they are also a `HitHook::Meta`.
unsafe impl Zeros for AnyMeta {}

impl Default for AnyMeta {
    fn default() -> AnyMeta {
        AnyMeta(UnsafeCell::new([MaybeUninit::uninit(); META_BYTES]))
    }
}

/// Some policy's parameters.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Block([MaybeUninit<u8>; PARAM_BYTES]);

// SAFETY: callers must pass a meta and a block of the types that the hook was made for.
type Hook = unsafe fn(&AnyMeta, &Block, &Access);

/// The hot half of WATT.
type WattHook = <Watt as PolicySpec>::Hook;

/// Hot halves whose test for the usual hit is compiled in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// WATT's, and no other with [`Screen::AskFirst`].
    Watt,
    /// A counter's.
    Counted,
    /// Another hot half, which is not asked.
    None,
}

impl Asked {
    fn of<T: HitHook>() -> Asked {
        let id = TypeId::of::<T>();
        match () {
            () if id == TypeId::of::<WattHook>() => Asked::Watt,
            () if id == TypeId::of::<Counted>() => Asked::Counted,
            () => Asked::None,
        }
    }
}

/// Parameters of [`AnyHook`]: the hot half that it calls, and the parameters of that half. By
/// default, the hot half does nothing.
#[derive(Clone, Copy)]
pub struct AnyParams {
    /// [`Screen::AskFirst`] only if `asked` names the hot half, whose clock is then used.
    screen: Screen,
    asked: Asked,
    hit: Hit,
    tick: TickSource,
    cools: bool,
    /// `true` if `on_hit` does anything.
    has_hook: bool,
    /// `true` if zeroed memory is a fresh meta.
    zeroed: bool,
    on_hit: Hook,
    reset: Hook,
    // SAFETY: callers must pass a block of the type that the function was made for.
    fresh: unsafe fn(&Block) -> AnyMeta,
    block: Block,
}

impl Default for AnyParams {
    fn default() -> AnyParams {
        // SAFETY: the function reads nothing.
        unsafe fn nothing(_: &AnyMeta, _: &Block, _: &Access) {}
        // SAFETY: as above.
        unsafe fn blank(_: &Block) -> AnyMeta {
            AnyMeta::default()
        }
        AnyParams {
            screen: Screen::Ignore,
            asked: Asked::None,
            hit: Hit::Nothing,
            tick: TickSource::None,
            cools: false,
            has_hook: false,
            zeroed: true,
            on_hit: nothing,
            reset: nothing,
            fresh: blank,
            block: Block([MaybeUninit::uninit(); PARAM_BYTES]),
        }
    }
}

/// # Safety
/// `block` must hold a `T::Params`.
unsafe fn params_in<T: HitHook>(block: &Block) -> &T::Params {
    // SAFETY: the caller's promise; size and alignment were checked when they were put there.
    unsafe { &*block.0.as_ptr().cast() }
}

/// # Safety
/// `meta` must hold a `T::Meta`.
unsafe fn meta_in<T: HitHook>(meta: &AnyMeta) -> &T::Meta {
    // SAFETY: the caller's promise; size and alignment were checked when it was put there.
    unsafe { &*meta.0.get().cast() }
}

/// # Safety
/// As [`meta_in`] and [`params_in`].
unsafe fn on_hit_as<T: HitHook>(meta: &AnyMeta, block: &Block, access: &Access) {
    // SAFETY: the caller's promise.
    unsafe { T::on_hit(meta_in::<T>(meta), params_in::<T>(block), access) }
}

/// # Safety
/// As [`meta_in`] and [`params_in`].
#[inline(always)]
unsafe fn is_noop_as<T: HitHook>(meta: &AnyMeta, block: &Block, access: &Access) -> bool {
    // SAFETY: the caller's promise.
    unsafe { T::is_noop(meta_in::<T>(meta), params_in::<T>(block), access) }
}

/// # Safety
/// As [`meta_in`] and [`params_in`].
unsafe fn reset_as<T: HitHook>(meta: &AnyMeta, block: &Block, access: &Access) {
    // SAFETY: the caller's promise.
    unsafe { T::reset(meta_in::<T>(meta), params_in::<T>(block), access) }
}

/// # Safety
/// As [`params_in`]; and `T::Meta` must fit, which is checked where `T`'s parameters are put down.
unsafe fn fresh_as<T: HitHook>(block: &Block) -> AnyMeta {
    let any = AnyMeta::default();
    // SAFETY: the caller's promise; the line is ours alone, large enough and aligned.
    unsafe { any.0.get().cast::<T::Meta>().write(T::fresh(params_in::<T>(block))) };
    any
}

impl AnyParams {
    /// Erases the type of `T` with these parameters, for the policy called `name`.
    pub(crate) fn of<T: HitHook>(
        policy: &'static str,
        params: T::Params,
    ) -> Result<AnyParams, TooLarge> {
        fits::<T::Meta>(policy, "metadata per frame", META_BYTES)?;
        fits::<T::Params>(policy, "parameters", PARAM_BYTES)?;
        let mut block = Block([MaybeUninit::uninit(); PARAM_BYTES]);
        // SAFETY: the block is ours alone, large enough and aligned, as was checked.
        unsafe { block.0.as_mut_ptr().cast::<T::Params>().write(params) };
        let hit = T::hit_cost(&params);
        let asked = Asked::of::<T>();
        let screen = match T::screen(&params) {
            Screen::AskFirst if asked == Asked::None => Screen::Deliver,
            screen => screen,
        };
        Ok(AnyParams {
            screen,
            asked,
            hit,
            tick: T::tick_source(&params),
            cools: T::cools(&params),
            // Policies with lists that keep nothing in the frame need no hook.
            has_hook: hit != Hit::Nothing && size_of::<T::Meta>() > 0,
            zeroed: size_of::<T::Meta>() == 0 || T::zeroed(&params).is_some(),
            on_hit: on_hit_as::<T>,
            reset: reset_as::<T>,
            fresh: fresh_as::<T>,
            block,
        })
    }
}

fn fits<T>(policy: &'static str, what: &'static str, most: usize) -> Result<(), TooLarge> {
    let (bytes, align) = (size_of::<T>(), align_of::<T>());
    if bytes <= most && align <= 64 {
        return Ok(());
    }
    Err(TooLarge { policy, what, bytes, align, most })
}

/// A hot half chosen at run time by its parameters. The constants are the maximum of all policies.
pub struct AnyHook;

impl HitHook for AnyHook {
    type Meta = AnyMeta;
    type Params = AnyParams;
    const HIT: Hit = Hit::Central;
    const TICK: TickSource = TickSource::PerAccess;
    const COOLS: bool = true;
    const UNFIX: bool = true;

    #[inline(always)]
    fn screen(params: &AnyParams) -> Screen {
        params.screen
    }

    #[inline(always)]
    fn is_noop(meta: &AnyMeta, params: &AnyParams, access: &Access) -> bool {
        if params.screen != Screen::AskFirst {
            return false;
        }
        match params.asked {
            // SAFETY: the hot half is `Counted`, so that `block` holds its parameters; and `meta`
            // was made by `fresh` of these, as `host`'s caller promised.
            Asked::Counted => unsafe { is_noop_as::<Counted>(meta, &params.block, access) },
            // SAFETY: the same of WATT's.
            Asked::Watt => unsafe { is_noop_as::<WattHook>(meta, &params.block, access) },
            Asked::None => false,
        }
    }

    #[inline(always)]
    fn on_hit(meta: &AnyMeta, params: &AnyParams, access: &Access) {
        if params.has_hook {
            // SAFETY: `meta` was made by `fresh` of these parameters, as `host`'s caller promised.
            unsafe { (params.on_hit)(meta, &params.block, access) }
        }
    }

    #[inline(always)]
    fn reset(meta: &AnyMeta, params: &AnyParams, access: &Access) {
        // SAFETY: as in `on_hit`.
        unsafe { (params.reset)(meta, &params.block, access) }
    }

    #[inline(always)]
    fn hit_cost(params: &AnyParams) -> Hit {
        params.hit
    }

    #[inline(always)]
    fn tick_source(params: &AnyParams) -> TickSource {
        // The compiler merges this with the tests before it.
        match (params.screen, params.asked) {
            (Screen::AskFirst, Asked::Watt) => WattHook::TICK,
            (Screen::AskFirst, Asked::Counted) => Counted::TICK,
            _ => params.tick,
        }
    }

    #[inline(always)]
    fn cools(params: &AnyParams) -> bool {
        params.cools
    }

    fn fresh(params: &AnyParams) -> AnyMeta {
        // SAFETY: the block has the type that the hook was made for: both come from
        // `AnyParams::of`, or the hook reads nothing.
        unsafe { (params.fresh)(&params.block) }
    }

    fn zeroed(params: &AnyParams) -> Option<Zeroed<AnyMeta>> {
        if params.zeroed { Zeroed::fresh() } else { None }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use millpond_base::{FrameId, Mark, PageId};

    use super::*;
    use crate::any_cold::host;
    use crate::contract::{
        EvictRequest, Frames, Host, OfferOutcome, Policy, PolicySpec, RefusalReason, Shape,
    };
    use crate::erased::Cold;
    use crate::registry::{Visitor, visit_all};

    /// Pool of four frames, for any cold half.
    struct Four([Option<PageId>; 4]);

    impl Host for Four {
        fn offer(&mut self, frame: FrameId) -> OfferOutcome {
            match self.0[frame.index()].take() {
                Some(page) => OfferOutcome::Taken(page),
                None => OfferOutcome::Refused(RefusalReason::Absent),
            }
        }
    }

    fn access(page: u64, now: u32) -> Access {
        let mark = if page.is_multiple_of(3) { Mark::WRITE } else { Mark::READ };
        Access { page: PageId(page), mark, now, next: 0, next_read: 0 }
    }

    /// Returns the evicted pages, one by one, while pages are referenced in a fixed order.
    fn run<T: HitHook>(cold: &mut dyn Cold<T>, params: &T::Params) -> Vec<Option<PageId>> {
        let metas: Vec<T::Meta> = (0..4).map(|_| T::fresh(params)).collect();
        let frames = Frames::<T>::of(&metas);
        let (mut pool, mut gone) = (Four([None; 4]), Vec::new());
        for now in 1..400u32 {
            let page = u64::from(now.wrapping_mul(2_654_435_761) >> 16) % 7;
            let access = access(page, now);
            if let Some(at) = pool.0.iter().position(|held| *held == Some(PageId(page))) {
                let frame = FrameId(at as u32);
                let screened = match T::screen(params) {
                    Screen::Ignore => true,
                    Screen::AskFirst => {
                        let access = Access { page: PageId::default(), ..access };
                        T::is_noop(frames.meta(frame), params, &access)
                    }
                    Screen::Deliver => false,
                };
                if screened {
                    continue;
                }
                T::on_hit(frames.meta(frame), params, &access);
                if T::hit_cost(params) == Hit::Central {
                    cold.hit(frames, frame, &access);
                }
                continue;
            }
            let ghost_hit = cold.miss(&access);
            if pool.0.iter().all(Option::is_some) {
                let before = pool.0;
                let incoming = Some((access.page, ghost_hit));
                cold.evict(
                    frames,
                    &EvictRequest { frames: 1, steps_max: 4096, now, incoming },
                    &mut pool,
                );
                gone.extend((0..4).filter(|at| pool.0[*at].is_none()).map(|at| before[at]));
            }
            let Some(free) = pool.0.iter().position(Option::is_none) else { continue };
            pool.0[free] = Some(PageId(page));
            let frame = FrameId(free as u32);
            T::reset(frames.meta(frame), params, &access);
            cold.admit(frames, frame, &access, ghost_hit);
        }
        gone
    }

    #[test]
    fn every_policy_evicts_the_same_whether_its_hot_half_is_compiled_in_or_found() {
        struct Compare(usize);
        impl Visitor for Compare {
            fn visit<P: Policy>(&mut self) {
                let shape = Shape { frames: 4, pages_dense: None, seed: 7 };
                let mut plain = P::new(&P::Config::default(), &shape);
                let params = PolicySpec::params(&plain);
                let expected = run::<P::Hook>(&mut plain, &params);
                let policy = P::new(&P::Config::default(), &shape);
                // SAFETY: `run` makes the metas of these parameters.
                let (mut cold, params) = unsafe { host(policy) }.unwrap();
                assert_eq!(run::<AnyHook>(cold.as_mut(), &params), expected, "{}", P::INFO.id);
                let own = P::Hook::screen(&PolicySpec::params(&plain));
                let is_asked = Asked::of::<P::Hook>() != Asked::None;
                match AnyHook::screen(&params) {
                    Screen::AskFirst => assert!(is_asked, "{}", P::INFO.id),
                    Screen::Deliver => assert!(own != Screen::Ignore && !is_asked),
                    Screen::Ignore => assert_eq!(own, Screen::Ignore),
                }
                assert_eq!(AnyHook::hit_cost(&params), P::Hook::HIT);
                assert_eq!(AnyHook::tick_source(&params), P::Hook::TICK);
                assert_eq!(AnyHook::cools(&params), P::Hook::COOLS);
                self.0 += expected.len();
            }
        }
        let mut compare = Compare(0);
        visit_all(&mut compare);
        assert!(compare.0 > 5000, "{} victims", compare.0);
    }

    #[test]
    fn what_is_larger_than_a_line_is_refused() {
        struct Fat;
        impl HitHook for Fat {
            type Meta = [u64; 9];
            type Params = ();
            const HIT: Hit = Hit::Meta;
        }
        let error = AnyParams::of::<Fat>("fat", ()).err().unwrap();
        assert_eq!((error.bytes, error.most), (72, 64));
        assert!(error.to_string().contains("policy 'fat' wants 72 bytes"), "{error}");
    }

    #[test]
    fn without_a_policy_it_does_nothing() {
        let params = AnyParams::default();
        let meta = AnyHook::fresh(&params);
        AnyHook::on_hit(&meta, &params, &access(1, 1));
        AnyHook::reset(&meta, &params, &access(1, 1));
        assert_eq!(AnyHook::hit_cost(&params), Hit::Nothing);
    }
}
