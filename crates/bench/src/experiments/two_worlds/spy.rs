//! A policy that records all calls of its host, and all results.
//!
//! Hits reach a policy's hot half without a latch, and in no order that could be recorded. So a
//! [`Spy`] receives every hit centrally, and passes on what its policy would have received. One
//! thread alone sees no difference; it is for one thread.

use std::marker::PhantomData;

use millpond::OwnPolicies;
use millpond_base::FrameId;
use millpond_policies::contract::{
    Access, Cooled, EvictRequest, Frames, GhostHit, Hit, HitHook, HitOn, Host, OfferOutcome,
    PageState, Policy, PolicySpec, Shape, TickSource, Zeroed,
};
use millpond_policies::info::Info;
use millpond_policies::registry::{Visitor, visit_all};

use super::diary::{Diary, Event};

/// The hot half `T`, with each hit also delivered centrally.
pub struct SpyHook<T>(PhantomData<T>);

impl<T: HitHook> HitHook for SpyHook<T> {
    type Meta = T::Meta;
    type Params = T::Params;
    const HIT: Hit = Hit::Central;
    const TICK: TickSource = T::TICK;
    const COOLS: bool = T::COOLS;
    const UNFIX: bool = T::UNFIX;

    #[inline(always)]
    fn on_hit(meta: &T::Meta, params: &T::Params, access: &Access) {
        T::on_hit(meta, params, access);
    }

    #[inline(always)]
    fn reset(meta: &T::Meta, params: &T::Params, access: &Access) {
        T::reset(meta, params, access);
    }

    fn zeroed(params: &T::Params) -> Option<Zeroed<T::Meta>> {
        T::zeroed(params)
    }

    fn fresh(params: &T::Params) -> T::Meta {
        T::fresh(params)
    }
}

/// `P`, and a diary.
pub struct Spy<P> {
    policy: P,
    diary: Diary,
    /// The number of next hits that belong to a reference already recorded.
    known: u32,
}

impl<P: Policy> Spy<P> {
    fn own(frames: Frames<'_, SpyHook<P::Hook>>) -> Frames<'_, P::Hook> {
        frames.alike()
    }

    fn hit_ons(&self) -> HitOn {
        if P::Hook::UNFIX { self.policy.hit_on() } else { HitOn::Fix }
    }
}

impl<P: Policy> PolicySpec for Spy<P> {
    const INFO: Info = P::INFO;
    const NEEDS_FUTURE: bool = P::NEEDS_FUTURE;
    const IS_RANDOM: bool = P::IS_RANDOM;
    type Hook = SpyHook<P::Hook>;
    type Config = P::Config;

    fn new(config: &P::Config, shape: &Shape) -> Spy<P> {
        Spy { policy: P::new(config, shape), diary: Diary::begin(), known: 0 }
    }

    fn params(&self) -> <P::Hook as HitHook>::Params {
        self.policy.params()
    }

    fn hit_on(&self) -> HitOn {
        self.policy.hit_on()
    }

    fn evictions_per_tick(&self) -> u32 {
        self.policy.evictions_per_tick()
    }

    fn ghosts_max(config: &P::Config, frames: u32) -> u64 {
        P::ghosts_max(config, frames)
    }

    fn state_bytes(&self) -> usize {
        self.policy.state_bytes()
    }

    fn check(&self, frames: Frames<'_, Self::Hook>, resident: &[FrameId]) -> Result<(), String> {
        self.policy.check(Spy::<P>::own(frames), resident)
    }
}

impl<P: Policy> Policy for Spy<P> {
    fn hit(&mut self, frames: Frames<'_, Self::Hook>, frame: FrameId, access: &Access) {
        if self.known > 0 {
            self.known -= 1;
        } else {
            let (page, mark) = (access.page, access.mark);
            self.diary.note(Event::Referenced { page, mark, hit: true });
            self.known = u32::from(self.hit_ons() == HitOn::Both);
        }
        if P::Hook::HIT == Hit::Central {
            self.policy.hit(Spy::<P>::own(frames), frame, access);
        }
    }

    fn revive(&mut self, frames: Frames<'_, Self::Hook>, frame: FrameId) {
        self.diary.note(Event::Revived(frame));
        self.policy.revive(Spy::<P>::own(frames), frame);
    }

    fn miss(&mut self, access: &Access) -> GhostHit {
        let (page, mark) = (access.page, access.mark);
        self.diary.note(Event::Referenced { page, mark, hit: false });
        self.policy.miss(access)
    }

    fn admit(
        &mut self,
        frames: Frames<'_, Self::Hook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    ) {
        self.diary.note(Event::Admitted(frame, access.page, access.mark));
        self.known = u32::from(self.hit_ons() != HitOn::Fix);
        self.policy.admit(Spy::<P>::own(frames), frame, access, ghost_hit);
    }

    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, Self::Hook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let incoming = request.incoming.map(|(page, _)| page);
        self.diary.note(Event::Asked { wanted: request.frames, incoming });
        let mut host = SpyHost { host, diary: &self.diary };
        self.policy.evict(Spy::<P>::own(frames), request, &mut host)
    }

    fn forget(&mut self, frames: Frames<'_, Self::Hook>, frame: FrameId) {
        self.diary.note(Event::Forgotten(frame));
        self.policy.forget(Spy::<P>::own(frames), frame);
    }

    fn cleaned(&mut self, frames: Frames<'_, Self::Hook>, frame: FrameId) {
        self.diary.note(Event::Cleaned(frame));
        self.policy.cleaned(Spy::<P>::own(frames), frame);
    }
}

struct SpyHost<'a, H: ?Sized> {
    host: &'a mut H,
    diary: &'a Diary,
}

impl<H: Host + ?Sized> Host for SpyHost<'_, H> {
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        let outcome = self.host.offer(frame);
        self.diary.note(Event::Offered(frame, outcome));
        outcome
    }

    fn cool(&mut self, frame: FrameId) -> Cooled {
        let cooled = self.host.cool(frame);
        self.diary.note(Event::Cooled(frame, cooled));
        cooled
    }

    fn has_enough(&self) -> bool {
        self.host.has_enough()
    }

    fn count_examined(&mut self, frames: u32) {
        self.host.count_examined(frames);
    }

    fn state(&self, frame: FrameId) -> PageState {
        let state = self.host.state(frame);
        self.diary.note(Event::Looked(frame, state));
        state
    }
}

/// Returns all shipped policies, each with a diary, to open a store with. Without the feature `lab`
/// there are none, because the pool that is most like the simulator is not compiled.
pub fn spies() -> OwnPolicies {
    struct Gather(OwnPolicies);
    impl Visitor for Gather {
        fn visit<P: Policy>(&mut self) {
            self.0 = std::mem::take(&mut self.0).with::<Spy<P>>();
        }
    }
    let mut gather = Gather(OwnPolicies::default());
    if cfg!(feature = "lab") {
        visit_all(&mut gather);
    }
    gather.0
}
