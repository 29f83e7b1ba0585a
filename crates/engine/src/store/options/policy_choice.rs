//! A replacement policy as text, `watt(write_weight=2)`, looked up in the registry and checked;
//! and what its state costs.

#[cfg(feature = "lab")]
use std::any::Any;
use std::any::TypeId;
use std::fmt;

use millpond_base::nearest::nearest;
use millpond_policies::any_hook::AnyHook;
use millpond_policies::config::{Config, ParamError, Spec};
use millpond_policies::contract::{HitHook, OpenPolicy, Policy, PolicySpec, Shape};
use millpond_policies::info::{Info, Tier};
use millpond_policies::policy_host::{ErasedPolicyHost, PolicyHost};
use millpond_policies::registry::{Visitor, visit_all};

use crate::pool::{HitDelivery, HostedPolicy, HostingError};

/// A policy that a store cannot run with.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No policy has that name.
    #[error("there is no policy '{id}'{hint}: `millpond policies` lists them")]
    Unknown {
        /// The name given.
        id: String,
        /// " (did you mean …?)", or nothing.
        hint: String,
    },
    /// The policy needs a feature that a live store lacks.
    #[error("policy '{id}' {reason}: simulate it (`millpond sim`), or choose another one")]
    NotLive {
        /// The policy.
        id: &'static str,
        /// The missing feature.
        reason: &'static str,
    },
    /// The policy needs a feature that a second tier lacks.
    #[error("policy '{id}' must know the future: choose another one for the second tier")]
    NotForTiers {
        /// The policy.
        id: &'static str,
    },
    /// The text cannot be read, or a parameter cannot be.
    #[error(transparent)]
    Param(#[from] ParamError),
}

/// A policy that exists, with parameters that can be.
#[derive(Clone)]
pub struct PolicyChoice {
    /// The specification as written.
    pub spec: Spec,
    /// The policy's row in the catalog.
    pub info: Info,
    /// Bytes of `info.frame_bytes` that lie in the frame's header.
    meta_bytes: usize,
    /// Bytes beside the frames that a new policy allocates per frame, at most.
    birth_bytes_per_frame: f64,
    /// Bytes that do not depend on the pool: hands, counts.
    fixed_bytes: u64,
    ghosts_max: fn(&Spec, u32) -> u64,
    /// Type of the policy's hit hook.
    pub(crate) hook: TypeId,
    host: Hosting,
    tier_host: TierHost,
}

/// Hosts a policy in a second tier; its parameters were checked.
type TierHost = fn(&Spec, &Shape) -> Box<dyn ErasedPolicyHost>;

/// Hosts a policy.
type Host<H> = fn(&Spec, &Shape, HitDelivery) -> Result<H, HostingError>;

/// Hosting of a policy.
#[derive(Clone, Copy)]
struct Hosting {
    /// Whatever its hot half.
    any: Host<HostedPolicy<AnyHook>>,
    /// For its own hot half.
    #[cfg(feature = "lab")]
    own: Host<Box<dyn Any>>,
}

impl fmt::Debug for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PolicyChoice({})", self.spec)
    }
}

/// A ghost is found by its page id in a hash table that is at least 7/16 full: a key, a position
/// and a control byte, 16/7 times.
const GHOST_INDEX_BYTES: u64 = 40;

/// A policy is made for pools of these sizes, to see how much it allocates. The sizes are 2048 to
/// 4096 frames in small steps: tables that are powers of two are least full just beyond some size
/// that only the policy knows.
fn birth_sizes() -> impl Iterator<Item = u32> {
    (16..=32).map(|sixteenth| sixteenth * 128)
}
/// A size in between may be worse than its neighbours by less than so much.
const BIRTH_MARGIN: f64 = 17.0 / 16.0;

impl PolicyChoice {
    /// Reads and checks a policy.
    ///
    /// # Errors
    /// [`PolicyError`] when there is none such, or it cannot run in a store, or a parameter is
    /// wrong.
    pub fn parse(text: &str) -> Result<PolicyChoice, PolicyError> {
        PolicyChoice::of_spec(Spec::parse(text)?, Vec::new())
    }

    /// The policy that `text` names, for a second tier: any that need not know the future, those
    /// of a first tier, too.
    ///
    /// # Errors
    /// As [`PolicyChoice::parse`].
    pub fn parse_for_tier(text: &str) -> Result<PolicyChoice, PolicyError> {
        PolicyChoice::search(Spec::parse(text)?, Vec::new(), Tier::Second)
    }

    /// The shipped policy that `spec` names. `others` are names that a user may have meant, too.
    pub(in crate::store) fn of_spec(
        spec: Spec,
        others: Vec<&'static str>,
    ) -> Result<PolicyChoice, PolicyError> {
        PolicyChoice::search(spec, others, Tier::First)
    }

    fn search(
        spec: Spec,
        others: Vec<&'static str>,
        tier: Tier,
    ) -> Result<PolicyChoice, PolicyError> {
        let mut search = Search { spec, tier, found: None, names: others };
        visit_all(&mut search);
        let Search { spec, found, names, .. } = search;
        found.unwrap_or_else(|| {
            let hint = match nearest(&spec.id, names) {
                Some(near) => format!(" (did you mean '{near}'?)"),
                None => String::new(),
            };
            Err(PolicyError::Unknown { id: spec.id, hint })
        })
    }

    /// `P` with these parameters.
    pub(crate) fn of<P: Policy>(spec: &Spec) -> Result<PolicyChoice, PolicyError> {
        Facts::of::<P>(Hosting::closed::<P>()).choose(spec, Tier::First)
    }

    /// Creates the choice of a policy that all threads use at once.
    pub(crate) fn of_open<P: OpenPolicy>(spec: &Spec) -> Result<PolicyChoice, PolicyError> {
        Facts::of::<P>(Hosting::open::<P>()).choose(spec, Tier::First)
    }

    /// The policy with its host, for a second tier.
    pub fn tier_host(&self, shape: &Shape) -> Box<dyn ErasedPolicyHost> {
        (self.tier_host)(&self.spec, shape)
    }

    /// Bytes that it takes in a second tier of `frames` frames, at most: there its metadata are not
    /// part of the frames. As [`PolicyChoice::state_bytes`].
    pub fn tier_bytes(&self, frames: u32) -> Option<u64> {
        Some(self.state_bytes(frames)? + u64::from(frames) * self.meta_bytes as u64)
    }

    /// The policy with its host, for a pool that finds the hot half at run time.
    pub(crate) fn host(
        &self,
        shape: &Shape,
        mode: HitDelivery,
    ) -> Result<HostedPolicy<AnyHook>, HostingError> {
        (self.host.any)(&self.spec, shape, mode)
    }

    /// The policy with its host, a [`HostedPolicy`] for its own hot half.
    #[cfg(feature = "lab")]
    pub(crate) fn host_own(
        &self,
        shape: &Shape,
        mode: HitDelivery,
    ) -> Result<Box<dyn Any>, HostingError> {
        (self.host.own)(&self.spec, shape, mode)
    }

    /// Bytes that the policy's state takes at most beside a pool of `frames` frames: list nodes,
    /// ghosts and the index of ghosts. `None` if its parameters let it keep ghosts without bound.
    pub fn state_bytes(&self, frames: u32) -> Option<u64> {
        let ghosts = (self.ghosts_max)(&self.spec, frames);
        let per_frame = (f64::from(self.info.frame_bytes) - self.meta_bytes as f64).max(0.0);
        let of_frames = |per_frame: f64| (f64::from(frames) * per_frame).ceil() as u64;
        let per_ghost = self.info.ghost_bytes.ceil() as u64 + GHOST_INDEX_BYTES;
        let declared = ghosts.checked_mul(per_ghost)?.checked_add(of_frames(per_frame))?;
        declared.max(of_frames(self.birth_bytes_per_frame)).checked_add(self.fixed_bytes)
    }
}

struct Search {
    spec: Spec,
    tier: Tier,
    found: Option<Result<PolicyChoice, PolicyError>>,
    names: Vec<&'static str>,
}

impl Visitor for Search {
    fn visit<P: Policy>(&mut self) {
        self.names.push(P::INFO.id);
        if P::INFO.id == self.spec.id {
            self.found = Some(Facts::of::<P>(Hosting::closed::<P>()).choose(&self.spec, self.tier));
        }
    }

    fn visit_open<P: OpenPolicy>(&mut self) {
        self.names.push(P::INFO.id);
        if P::INFO.id == self.spec.id {
            self.found = Some(Facts::of::<P>(Hosting::open::<P>()).choose(&self.spec, self.tier));
        }
    }
}

impl Hosting {
    /// Under a mutex.
    fn closed<P: Policy>() -> Hosting {
        Hosting {
            any: HostedPolicy::any::<P>,
            #[cfg(feature = "lab")]
            own: |spec, shape, mode| {
                Ok(Box::new(HostedPolicy::<P::Hook>::closed::<P>(spec, shape, mode)?))
            },
        }
    }

    /// Open to all threads, unless each hit is to be delivered at once.
    fn open<P: OpenPolicy>() -> Hosting {
        Hosting {
            any: |spec, shape, mode| match mode {
                HitDelivery::Exact => HostedPolicy::any::<P>(spec, shape, mode),
                HitDelivery::Auto | HitDelivery::Batched => {
                    HostedPolicy::any_open::<P>(spec, shape)
                }
            },
            #[cfg(feature = "lab")]
            own: |spec, shape, mode| match mode {
                HitDelivery::Exact => (Hosting::closed::<P>().own)(spec, shape, mode),
                HitDelivery::Auto | HitDelivery::Batched => {
                    Ok(Box::new(HostedPolicy::<P::Hook>::open::<P>(spec, shape)?))
                }
            },
        }
    }
}

/// Type-independent properties of a policy. There are some sixty policies, so only code that needs
/// the type is compiled for each.
struct Facts {
    info: Info,
    needs_future: bool,
    meta_bytes: usize,
    hook: TypeId,
    check: fn(&Spec) -> Result<(), ParamError>,
    /// Bytes beside the frames that a new one allocates; 0 if its parameters cannot be.
    birth_bytes: fn(&Spec, u32) -> usize,
    ghosts_max: fn(&Spec, u32) -> u64,
    host: Hosting,
    tier_host: TierHost,
}

impl Facts {
    fn of<P: Policy>(host: Hosting) -> Facts {
        Facts {
            info: P::INFO,
            needs_future: P::NEEDS_FUTURE,
            meta_bytes: size_of::<<<P as PolicySpec>::Hook as HitHook>::Meta>(),
            hook: TypeId::of::<P::Hook>(),
            check: |spec| spec.config::<P::Config>()?.check(),
            birth_bytes: |spec, frames| {
                let shape = Shape { frames, pages_dense: None, seed: 1 };
                let made = spec.config::<P::Config>().map(|config| P::new(&config, &shape));
                made.map_or(0, |policy| policy.state_bytes())
            },
            ghosts_max: |spec, frames| {
                spec.config::<P::Config>().map_or(0, |config| P::ghosts_max(&config, frames))
            },
            host,
            tier_host: |spec, shape| {
                let config = spec.config::<P::Config>().unwrap_or_default();
                Box::new(PolicyHost::<P>::new(&config, shape))
            },
        }
    }

    /// For a cache of that tier.
    fn choose(self, spec: &Spec, tier: Tier) -> Result<PolicyChoice, PolicyError> {
        let Facts { info, meta_bytes, hook, birth_bytes, ghosts_max, host, tier_host, .. } = self;
        let not_live = |reason| Err(PolicyError::NotLive { id: info.id, reason });
        if tier == Tier::Second {
            if self.needs_future {
                return Err(PolicyError::NotForTiers { id: info.id });
            }
        } else if info.tier == Tier::Second {
            return not_live("is made for a second-tier cache");
        } else if self.needs_future || !info.live {
            return not_live("must know the future, or cannot run live");
        }
        (self.check)(spec)?;
        let fixed = birth_bytes(spec, 1);
        let of_frames = |frames| birth_bytes(spec, frames).saturating_sub(fixed) as f64;
        let per_frame = |frames| of_frames(frames) / f64::from(frames);
        Ok(PolicyChoice {
            spec: spec.clone(),
            info,
            meta_bytes,
            birth_bytes_per_frame: birth_sizes().map(per_frame).fold(0.0, f64::max) * BIRTH_MARGIN,
            fixed_bytes: fixed as u64,
            ghosts_max,
            hook,
            host,
            tier_host,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_found_with_its_parameters() {
        let choice = PolicyChoice::parse("lean-evict(cooling=25%)").unwrap();
        assert_eq!(
            (choice.info.id, choice.spec.to_string()),
            ("lean-evict", "lean-evict(cooling=25%)".to_string())
        );
        for id in ["random", "lru", "watt", "arc", "sieve"] {
            assert_eq!(PolicyChoice::parse(id).unwrap().info.id, id);
        }
    }

    #[test]
    fn what_cannot_run_says_why() {
        let text = |text: &str| PolicyChoice::parse(text).unwrap_err().to_string();
        assert!(text("lean-evikt").contains("did you mean 'lean-evict'"), "{}", text("lean-evikt"));
        assert!(text("lean-evict(cooling=x)").contains("cooling"));
        assert!(text("lean-evict(").contains("missing"));
        let offline = PolicyChoice::parse("opt").unwrap_err();
        assert!(matches!(offline, PolicyError::NotLive { id: "opt", .. }), "{offline}");
        assert!(matches!(PolicyChoice::parse("tq"), Err(PolicyError::NotLive { .. })));
        assert!(matches!(PolicyChoice::parse(""), Err(PolicyError::Param(_))));
    }

    #[test]
    fn every_live_policy_is_charged_at_least_what_it_allocates_when_it_is_made() {
        struct Charge(usize);
        impl Visitor for Charge {
            fn visit<P: Policy>(&mut self) {
                let Ok(choice) = PolicyChoice::parse(P::INFO.id) else { return };
                for frames in [1_000, 7_400, 20_000, 29_000, 33_000] {
                    let shape = Shape { frames, pages_dense: None, seed: 1 };
                    let made = P::new(&P::Config::default(), &shape).state_bytes() as u64;
                    let Some(charged) = choice.state_bytes(frames) else {
                        panic!("{} keeps ghosts without bound by default", P::INFO.id)
                    };
                    assert!(made <= charged, "{}, {frames} frames: {made}", P::INFO.id);
                    let most = u64::from(frames) * 500 + (64 << 10);
                    assert!(charged <= most, "{}, {frames} frames: {charged}", P::INFO.id);
                }
                self.0 += 1;
            }
        }
        let mut charge = Charge(0);
        visit_all(&mut charge);
        assert!(charge.0 > 30, "{}", charge.0);
    }
}
