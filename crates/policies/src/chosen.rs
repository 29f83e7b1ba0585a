//! A policy named by text, such as `watt(write_weight=2)`: found in the registry, checked for a
//! tier, with the size of its state.

use std::any::TypeId;
use std::fmt;

use millpond_base::Spelled;
use millpond_base::nearest::did_you_mean;

use crate::config::{Config, ParamError, Spec};
use crate::contract::{HitHook, Policy, PolicySpec, Shape};
use crate::info::{Info, Tier};
use crate::policy_host::{ErasedPolicyHost, PolicyHost};
use crate::registry::{IDS, Visitor, visit_all};

/// Place where all policies are listed, for messages.
pub const LISTED: Spelled = Spelled {
    rust: "`millpond policies` lists them",
    command_line: "`millpond policies` lists them",
    python: "`millpond.policies()` lists them",
};

const SIMULATE: Spelled = Spelled {
    rust: "`millpond sim`",
    command_line: "`millpond sim`",
    python: "`millpond.simulate`",
};

/// Reason that a store or a second tier cannot run with a policy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No policy has that name.
    #[error("there is no policy '{id}'{hint}: {LISTED}")]
    Unknown {
        /// The name given.
        id: String,
        /// " (did you mean …?)", or nothing.
        hint: String,
    },
    /// The policy ships with Millpond, but this program was compiled without it.
    #[error(
        "policy '{id}' is not compiled into this program: turn on the feature `all-policies` of \
         the crate `millpond`, or choose one of {compiled}"
    )]
    NotCompiled {
        /// The policy.
        id: &'static str,
        /// Names of the policies that are compiled, with commas.
        compiled: String,
    },
    /// The policy needs a feature that a live store lacks.
    #[error("policy '{id}' {reason}: simulate it ({SIMULATE}), or choose another one")]
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
    /// The text cannot be parsed, or a parameter is impossible.
    #[error(transparent)]
    Param(#[from] ParamError),
}

/// A policy that exists and can run in a tier, with valid parameters.
#[derive(Clone)]
pub struct ChosenPolicy {
    /// The specification as written.
    pub spec: Spec,
    /// The policy's row in the catalog.
    pub info: Info,
    /// Bytes of `info.frame_bytes` that are stored in the frame's header.
    meta_bytes: usize,
    /// Maximum bytes per frame that a new policy allocates beside the frames.
    birth_bytes_per_frame: f64,
    /// Bytes that do not depend on the pool: hands, counts.
    fixed_bytes: u64,
    ghosts_max: fn(&Spec, u32) -> u64,
    hook: TypeId,
}

/// Creates a policy for a cache of that shape, in its host, without its type.
///
/// # Errors
/// A parameter that the policy does not have, or a value that it does not take.
pub type ErasedHost = fn(&Spec, &Shape) -> Result<Box<dyn ErasedPolicyHost>, ParamError>;

/// Returns the host of the shipped policy `id`; `None` if no policy has that id. The hosts are
/// compiled here, once for all crates that can afford a call through a pointer.
pub fn erased_host_of(id: &str) -> Option<ErasedHost> {
    struct Find<'a>(&'a str, Option<ErasedHost>);
    impl Visitor for Find<'_> {
        fn visit<P: Policy>(&mut self) {
            if P::INFO.id == self.0 {
                self.1 = Some(erased::<P>);
            }
        }
    }
    let mut find = Find(id, None);
    visit_all(&mut find);
    find.1
}

/// Creates `P` for a cache of that shape, in its host.
///
/// # Errors
/// See [`ErasedHost`].
pub fn erased<P: Policy>(
    spec: &Spec,
    shape: &Shape,
) -> Result<Box<dyn ErasedPolicyHost>, ParamError> {
    Ok(Box::new(PolicyHost::<P>::new(&spec.config::<P::Config>()?, shape)))
}

impl fmt::Debug for ChosenPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChosenPolicy({})", self.spec)
    }
}

/// A ghost is found by its page id in a hash table that is at least 7/16 full: a key, a position
/// and a control byte, 16/7 times.
const GHOST_INDEX_BYTES: u64 = 40;

/// Returns the pool sizes at which a policy's allocation is measured: 2048 to 4096 frames in small
/// steps. Tables whose sizes are powers of two are least full just beyond some size, which only the
/// policy knows.
fn birth_sizes() -> impl Iterator<Item = u32> {
    (16..=32).map(|sixteenth| sixteenth * 128)
}
/// Bound of the factor by which a size in between may be worse than its neighbours.
const BIRTH_MARGIN: f64 = 17.0 / 16.0;

impl ChosenPolicy {
    /// Parses a policy's name and parameters, and checks them for `tier`. A second tier takes any
    /// policy that need not know the future, including those of a first tier.
    ///
    /// # Errors
    /// [`PolicyError`]: no policy has that name, it cannot run in the tier, or a parameter is
    /// wrong.
    pub fn parse(text: &str, tier: Tier) -> Result<ChosenPolicy, PolicyError> {
        ChosenPolicy::find(Spec::parse(text)?, tier, Vec::new())
    }

    /// Returns the shipped policy that `spec` names. `others` are further known names for the hint.
    ///
    /// # Errors
    /// Same as [`ChosenPolicy::parse`].
    pub fn find(
        spec: Spec,
        tier: Tier,
        others: Vec<&'static str>,
    ) -> Result<ChosenPolicy, PolicyError> {
        let mut search = Search { spec, tier, found: None, names: others, fit: Vec::new() };
        visit_all(&mut search);
        let Search { spec, found, names, fit, .. } = search;
        found.unwrap_or_else(|| {
            if let Some(id) = IDS.into_iter().find(|id| *id == spec.id) {
                return Err(PolicyError::NotCompiled { id, compiled: fit.join(", ") });
            }
            let hint = did_you_mean(&spec.id, names);
            Err(PolicyError::Unknown { id: spec.id, hint })
        })
    }

    /// Returns `P` with the parameters of `spec`.
    ///
    /// # Errors
    /// Same as [`ChosenPolicy::parse`].
    pub fn of<P: Policy>(spec: &Spec, tier: Tier) -> Result<ChosenPolicy, PolicyError> {
        Facts::of::<P>().choose(spec, tier)
    }

    /// Returns the type of the policy's hit hook.
    pub fn hook(&self) -> TypeId {
        self.hook
    }

    /// Creates the policy for a cache of shape `shape`, in its host.
    ///
    /// # Panics
    /// If the policy is a user's own ([`ChosenPolicy::of`]): only pools run those, and its host is
    /// not compiled.
    pub fn erased_host(&self, shape: &Shape) -> Box<dyn ErasedPolicyHost> {
        let host = erased_host_of(self.info.id).and_then(|host| host(&self.spec, shape).ok());
        // Cannot fail: the policy is a shipped one, and its parameters were checked.
        host.expect("a shipped policy, whose parameters were checked")
    }

    /// Returns the maximum bytes of the policy in a cache of `frames` frames without headers for
    /// its metadata: [`ChosenPolicy::state_bytes`] and the metadata.
    pub fn erased_bytes(&self, frames: u32) -> Option<u64> {
        Some(self.state_bytes(frames)? + u64::from(frames) * self.meta_bytes as u64)
    }

    /// Returns the maximum bytes of the policy's state beside a pool of `frames` frames: list
    /// nodes, ghosts and the index of ghosts. Returns `None` if its parameters do not bound the
    /// ghosts.
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
    found: Option<Result<ChosenPolicy, PolicyError>>,
    /// Names of all policies.
    names: Vec<&'static str>,
    /// Names of the policies that are made for the tier.
    fit: Vec<&'static str>,
}

impl Visitor for Search {
    fn visit<P: Policy>(&mut self) {
        self.names.push(P::INFO.id);
        if P::INFO.tier == self.tier {
            self.fit.push(P::INFO.id);
        }
        if P::INFO.id == self.spec.id {
            self.found = Some(ChosenPolicy::of::<P>(&self.spec, self.tier));
        }
    }
}

/// Type-independent properties of a policy. There are about sixty policies, so only code that needs
/// the type is compiled for each.
struct Facts {
    info: Info,
    needs_future: bool,
    meta_bytes: usize,
    hook: TypeId,
    check: fn(&Spec) -> Result<(), ParamError>,
    /// Bytes that a new policy allocates beside the frames; 0 if its parameters are invalid.
    birth_bytes: fn(&Spec, u32) -> usize,
    ghosts_max: fn(&Spec, u32) -> u64,
}

impl Facts {
    fn of<P: Policy>() -> Facts {
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
        }
    }

    /// Chooses the policy for a cache of tier `tier`.
    fn choose(self, spec: &Spec, tier: Tier) -> Result<ChosenPolicy, PolicyError> {
        let Facts { info, meta_bytes, hook, birth_bytes, ghosts_max, .. } = self;
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
        Ok(ChosenPolicy {
            spec: spec.clone(),
            info,
            meta_bytes,
            birth_bytes_per_frame: birth_sizes().map(per_frame).fold(0.0, f64::max) * BIRTH_MARGIN,
            fixed_bytes: fixed as u64,
            ghosts_max,
            hook,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ChosenPolicy, PolicyError> {
        ChosenPolicy::parse(text, Tier::First)
    }

    #[test]
    fn a_policy_is_found_with_its_parameters() {
        let choice = parse("lean-evict(cooling=25%)").unwrap();
        assert_eq!(
            (choice.info.id, choice.spec.to_string()),
            ("lean-evict", "lean-evict(cooling=25%)".to_string())
        );
        for id in ["random", "lru", "watt", "arc", "sieve"] {
            assert_eq!(parse(id).unwrap().info.id, id);
        }
    }

    #[test]
    fn what_cannot_run_says_why() {
        let text = |text: &str| parse(text).unwrap_err().to_string();
        assert!(text("lean-evikt").contains("did you mean 'lean-evict'"), "{}", text("lean-evikt"));
        assert!(text("lean-evict(cooling=x)").contains("cooling"));
        assert!(text("lean-evict(").contains("missing"));
        let offline = parse("opt").unwrap_err();
        assert!(matches!(offline, PolicyError::NotLive { id: "opt", .. }), "{offline}");
        assert!(matches!(parse("tq"), Err(PolicyError::NotLive { .. })));
        assert!(matches!(parse(""), Err(PolicyError::Param(_))));
    }

    #[test]
    fn every_live_policy_is_charged_at_least_what_it_allocates_when_it_is_made() {
        struct Charge(usize);
        impl Visitor for Charge {
            fn visit<P: Policy>(&mut self) {
                let Ok(choice) = parse(P::INFO.id) else { return };
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
