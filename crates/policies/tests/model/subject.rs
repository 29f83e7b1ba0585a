//! Every registered policy with its type forgotten, so that the model is compiled once.

use millpond_base::FrameId;
use millpond_policies::config::{Config, ParamError, ParamInfo, Spec};
use millpond_policies::contract::{
    Access, EvictRequest, Frames, GhostHit, Hit, HitHook, HitOn, Host, Policy, Shape, TickSource,
};
use millpond_policies::info::{Family, Info};
use millpond_policies::registry::{Visitor, visit_all};

/// A policy together with its frames' metadata.
pub trait Subject {
    /// Delivers a hit: to the hot half, and the cold half if it receives hits.
    fn hit(&mut self, frame: FrameId, access: &Access);
    fn revive(&mut self, frame: FrameId);
    fn wants(&mut self, access: &Access) -> bool;
    fn miss(&mut self, access: &Access) -> GhostHit;
    /// Reset, then admit.
    fn load(&mut self, frame: FrameId, access: &Access, ghost_hit: GhostHit);
    fn evict(&mut self, request: &EvictRequest, host: &mut dyn Host) -> u32;
    fn forget(&mut self, frame: FrameId);
    fn cleaned(&mut self, frame: FrameId);
    fn hit_on(&self) -> HitOn;
    fn evictions_per_tick(&self) -> u32;
    fn state_bytes(&self) -> usize;
    fn check(&self, resident: &[FrameId]) -> Result<(), String>;
}

struct Seated<P: Policy> {
    policy: P,
    params: <P::Hook as HitHook>::Params,
    metas: Vec<<P::Hook as HitHook>::Meta>,
}

impl<P: Policy> Subject for Seated<P> {
    fn hit(&mut self, frame: FrameId, access: &Access) {
        let frames = Frames::<P::Hook>::of(&self.metas);
        if P::Hook::HIT != Hit::Nothing {
            P::Hook::on_hit(frames.meta(frame), &self.params, access);
        }
        if P::Hook::HIT == Hit::Central {
            self.policy.hit(frames, frame, access);
        }
    }

    fn revive(&mut self, frame: FrameId) {
        self.policy.revive(Frames::of(&self.metas), frame);
    }

    fn wants(&mut self, access: &Access) -> bool {
        self.policy.wants(access)
    }

    fn miss(&mut self, access: &Access) -> GhostHit {
        self.policy.miss(access)
    }

    fn load(&mut self, frame: FrameId, access: &Access, ghost_hit: GhostHit) {
        let frames = Frames::<P::Hook>::of(&self.metas);
        P::Hook::reset(frames.meta(frame), &self.params, access);
        self.policy.admit(frames, frame, access, ghost_hit);
    }

    fn evict(&mut self, request: &EvictRequest, host: &mut dyn Host) -> u32 {
        self.policy.evict(Frames::of(&self.metas), request, host)
    }

    fn forget(&mut self, frame: FrameId) {
        self.policy.forget(Frames::of(&self.metas), frame);
    }

    fn cleaned(&mut self, frame: FrameId) {
        self.policy.cleaned(Frames::of(&self.metas), frame);
    }

    fn hit_on(&self) -> HitOn {
        if P::Hook::UNFIX { self.policy.hit_on() } else { HitOn::Fix }
    }

    fn evictions_per_tick(&self) -> u32 {
        self.policy.evictions_per_tick()
    }

    fn state_bytes(&self) -> usize {
        self.policy.state_bytes()
    }

    fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        self.policy.check(Frames::of(&self.metas), resident)
    }
}

type Make = fn(&Spec, &Shape) -> Result<Box<dyn Subject>, ParamError>;

/// A policy's static facts, and the function that creates one.
#[derive(Clone)]
pub struct Kind {
    pub info: Info,
    pub params: Vec<ParamInfo>,
    pub hit: Hit,
    pub tick: TickSource,
    pub needs_future: bool,
    pub meta_bytes: usize,
    make: Make,
    ghosts_max: fn(&Spec, u32) -> Result<u64, ParamError>,
    check_spec: fn(&Spec) -> Result<(), ParamError>,
}

impl Kind {
    fn of<P: Policy>() -> Kind {
        Kind {
            info: P::INFO,
            params: P::Config::list(),
            hit: <P::Hook as HitHook>::HIT,
            tick: <P::Hook as HitHook>::TICK,
            needs_future: P::NEEDS_FUTURE,
            meta_bytes: size_of::<<P::Hook as HitHook>::Meta>(),
            make: |spec, shape| {
                let policy = P::new(&spec.config()?, shape);
                let mut metas = Vec::new();
                metas.resize_with(shape.frames as usize, Default::default);
                Ok(Box::new(Seated { params: policy.params(), policy, metas }))
            },
            ghosts_max: |spec, frames| Ok(P::ghosts_max(&spec.config()?, frames)),
            check_spec: |spec| spec.config::<P::Config>().map(|_| ()),
        }
    }

    pub fn make(&self, spec: &Spec, shape: &Shape) -> Box<dyn Subject> {
        (self.make)(spec, shape).unwrap_or_else(|e| panic!("{spec}: {e}"))
    }

    pub fn ghosts_max(&self, spec: &Spec, frames: u32) -> u64 {
        (self.ghosts_max)(spec, frames).unwrap_or_else(|e| panic!("{spec}: {e}"))
    }

    /// Verifies the parameters of `spec`.
    pub fn check_spec(&self, spec: &Spec) -> Result<(), ParamError> {
        (self.check_spec)(spec)
    }

    /// Returns `true` if the policy examines frames by number, and so may offer one that holds no
    /// page. Policies that receive every hit know which frames are resident, and so do those of the
    /// other families.
    pub fn may_offer_absent(&self) -> bool {
        const BY_NUMBER: &[&str] =
            &["loop", "sorting-lru", "sorting-lru-k", "age-scan", "lrd-v1", "lrd-v2", "t2-rand"];
        let family = matches!(self.info.family, Family::Random | Family::Clock | Family::Sampled);
        self.hit != Hit::Central && (family || BY_NUMBER.contains(&self.info.id))
    }
}

/// Every registered policy, in the order of the catalog.
pub fn kinds() -> Vec<Kind> {
    struct All(Vec<Kind>);
    impl Visitor for All {
        fn visit<P: Policy>(&mut self) {
            self.0.push(Kind::of::<P>());
        }
    }
    let mut all = All(Vec::new());
    visit_all(&mut all);
    all.0
}
