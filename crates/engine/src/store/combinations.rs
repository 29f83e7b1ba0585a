//! The compiled combinations of strategies, and the hosting of a policy in each of them.
//!
//! Translation, latching and the hot half of the policy are on the path of every page reference. So
//! they are types ([`PoolStrategy`]), and an unused strategy costs nothing at run time. Each
//! combination compiles pool and structures once more, so there are at most twelve. A store chooses
//! its combination when it is opened ([`Combination::choose`]), and a call costs one `match`.
//!
//! ```text
//! combination             translation     latching    hook  what it is for
//! SwizzledAny             swizzled        optimistic  any   every policy: what users run
//! HashedLatchedAny        hashed          latched     any   a conventional engine; ladder, bottom
//! SwizzledLatchedAny      swizzled        latched     any   the ladder: + swizzling, + lean evict
//! TableLatchedAny         swizzled-table  latched     any   Graefe's pointer swizzling
//! HashedAny               hashed          optimistic  any   − swizzling; beside the simulator
//! SwizzledUnlatchedWatt   swizzled        none        watt  what latching costs; one thread
//! SwizzledAnyRecording    swizzled        optimistic  any   any policy, with its references
//! ```
//! [`Db`](crate::Db) is compiled only for the first, whatever the policy, so that an embedder
//! compiles the engine once. The others are the laboratory's. They exist with the cargo feature
//! `lab`; the one that records needs `recording`, too. They are reached through
//! [`Combination::visit`] and [`Store<M>`](super::Store).
//!
//! Hot halves: `watt` is that of the policy `watt`. `any` is the hook of any policy, found at run
//! time ([`AnyHook`]), which costs a predicted branch or two more per hit. Policies that keep
//! something in the frame, except WATT, S3-FIFO and `tide`, also cost an indirect call.
//! [`Combination::policies`] lists the policies that run with a combination.

use std::any::{TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;

use millpond_policies::any_hook::AnyHook;
use millpond_policies::contract::{HitHook, Policy, PolicySpec, Shape};
use millpond_policies::policy::Watt;
use millpond_policies::registry::{Visitor, visit_all};

use crate::pool::HitDelivery;
use crate::pool::{HostedPolicy, HostingError, Latching, Optimistic, PoolStrategy};
#[cfg(feature = "lab")]
use crate::pool::{Latched, Unlatched};
use crate::store::options::choices::{LatchingMode, TranslationMode};
use crate::store::options::policy_choice::PolicyChoice;

/// The hot half of `watt`.
pub type WattHook = <Watt as PolicySpec>::Hook;

/// A combination as a type: latching, hot half, swizzling, recording of references, and a page
/// table beside swips. [`Db`](crate::Db) uses only those with a name in this module.
pub struct Compiled<
    L,
    T,
    const SWIZZLES: bool,
    const RECORDS: bool = false,
    const KEEPS_TABLE: bool = false,
>(PhantomData<(L, T)>);

impl<L, T, const SWIZZLES: bool, const RECORDS: bool, const KEEPS_TABLE: bool> PoolStrategy
    for Compiled<L, T, SWIZZLES, RECORDS, KEEPS_TABLE>
where
    L: Latching,
    T: HitHook,
{
    type Latching = L;
    type Hook = T;
    const SWIZZLES: bool = SWIZZLES;
    const HAS_TABLE: bool = KEEPS_TABLE || !SWIZZLES;
    const RECORDS: bool = RECORDS;
    // The users' combination, and the conventional engines that gilbert 2 measures, have
    // transactions.
    const TREES_ONLY: bool = SWIZZLES != L::OPTIMISTIC && !KEEPS_TABLE || RECORDS;
}

/// The hot half that a combination is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HotHalf {
    /// A hit records the time.
    Watt,
    /// A hit calls the policy's own hot half, which is found at run time.
    Any,
}

impl HotHalf {
    fn hook(self) -> TypeId {
        match self {
            HotHalf::Watt => TypeId::of::<WattHook>(),
            HotHalf::Any => TypeId::of::<AnyHook>(),
        }
    }
}

/// Work on a combination's type.
pub trait Visit {
    /// Result of the work.
    type Output;
    /// Runs the work for the combination `M`.
    fn visit<M: PoolStrategy>(self) -> Self::Output;
}

macro_rules! combinations {
    (
        users { $(
            $(#[$doc:meta])*
            $name:ident = $half:ident: Compiled<$latch:ty, $hook:ty, $($flags:literal),*>;
        )* }
        laboratory { $(
            $(#[$lab_doc:meta])*
            $lab_name:ident if $feature:literal =
                $translation:ident, $latching:ident, $lab_half:ident, $records:literal:
                Compiled<$lab_latch:ty, $lab_hook:ty, $($lab_flags:literal),*>;
        )* }
    ) => {
        $(
            $(#[$doc])*
            pub type $name = Compiled<$latch, $hook, $($flags),*>;
        )*
        $(
            $(#[$lab_doc])*
            #[cfg(feature = $feature)]
            pub type $lab_name = Compiled<$lab_latch, $lab_hook, $($lab_flags),*>;
        )*

        /// A combination by its name; the module's table has the purpose of each.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Combination {
            $($(#[$doc])* $name,)*
            $($(#[$lab_doc])* #[cfg(feature = $feature)] $lab_name,)*
        }

        impl Combination {
            /// All compiled combinations.
            pub const ALL: &[Combination] = &[
                $(Combination::$name,)*
                $(#[cfg(feature = $feature)] Combination::$lab_name,)*
            ];

            /// Returns the translation of page ids to frames.
            pub fn translation(self) -> TranslationMode {
                match self {
                    $(Combination::$name => TranslationMode::Swizzled,)*
                    $(
                        #[cfg(feature = $feature)]
                        Combination::$lab_name => TranslationMode::$translation,
                    )*
                }
            }

            /// Returns the latching mode.
            pub fn latching(self) -> LatchingMode {
                match self {
                    $(Combination::$name => LatchingMode::Optimistic,)*
                    $(
                        #[cfg(feature = $feature)]
                        Combination::$lab_name => LatchingMode::$latching,
                    )*
                }
            }

            /// Returns the hot half of the policy: its work on a hit.
            pub fn hot_half(self) -> HotHalf {
                match self {
                    $(Combination::$name => HotHalf::$half,)*
                    $(#[cfg(feature = $feature)] Combination::$lab_name => HotHalf::$lab_half,)*
                }
            }

            /// Returns `true` if page references can be recorded.
            pub fn records(self) -> bool {
                match self {
                    $(Combination::$name => false,)*
                    $(#[cfg(feature = $feature)] Combination::$lab_name => $records,)*
                }
            }

            /// Returns `true` if its stores have neither hash indexes nor heaps.
            pub fn has_trees_only(self) -> bool {
                match self {
                    $(Combination::$name => <$name as PoolStrategy>::TREES_ONLY,)*
                    $(
                        #[cfg(feature = $feature)]
                        Combination::$lab_name => <$lab_name as PoolStrategy>::TREES_ONLY,
                    )*
                }
            }

            /// Passes the combination's type to `visit`.
            pub fn visit<V: Visit>(self, visit: V) -> V::Output {
                match self {
                    $(Combination::$name => visit.visit::<$name>(),)*
                    $(
                        #[cfg(feature = $feature)]
                        Combination::$lab_name => visit.visit::<$lab_name>(),
                    )*
                }
            }
        }
    };
}

combinations! {
    users {
        /// Swips, optimistic latches, any policy.
        SwizzledAny = Any: Compiled<Optimistic, AnyHook, true>;
    }
    laboratory {
        /// Page table, shared latches, any policy: a conventional engine, with transactions.
        HashedLatchedAny if "lab" = Hashed, Latched, Any, false: Compiled<Latched, AnyHook, false>;
        /// Swips and shared latches: the classic pool with swips, or with lean eviction.
        SwizzledLatchedAny if "lab" = Swizzled, Latched, Any, false:
            Compiled<Latched, AnyHook, true>;
        /// Graefe's pointer swizzling: swips, the page table beside them, pages that refer to
        /// others never evicted; with shared latches and transactions, as gilbert measured it.
        TableLatchedAny if "lab" = SwizzledTable, Latched, Any, false:
            Compiled<Latched, AnyHook, true, false, true>;
        /// Page table, optimistic latches, any policy.
        HashedAny if "lab" = Hashed, Optimistic, Any, false: Compiled<Optimistic, AnyHook, false>;
        /// Swips, no latches, WATT: for one thread.
        SwizzledUnlatchedWatt if "lab" = Swizzled, None, Watt, false:
            Compiled<Unlatched, WattHook, true>;
        /// Swips, optimistic latches, any policy, recording the page references.
        SwizzledAnyRecording if "recording" = Swizzled, Optimistic, Any, true:
            Compiled<Optimistic, AnyHook, true, true>;
    }
}
impl Combination {
    /// Returns the compiled combination for these choices.
    ///
    /// # Errors
    /// [`CombinationError`], which lists the existing ones.
    pub fn choose(
        translation: TranslationMode,
        latching: LatchingMode,
        policy: &PolicyChoice,
        records: bool,
    ) -> Result<Combination, CombinationError> {
        let fits = |c: &Combination, touch| {
            c.translation() == translation
                && c.latching() == latching
                && c.hot_half().hook() == touch
                && c.records() == records
        };
        let with = |touch| Combination::ALL.iter().find(|c| fits(c, touch)).copied();
        let found = with(policy.chosen.hook()).or_else(|| with(HotHalf::Any.hook()));
        found.ok_or_else(|| CombinationError {
            translation,
            latching,
            policy: policy.chosen.info.id,
            records,
            exist: Combination::list(),
        })
    }

    /// Returns the names of the shipped policies that run with it.
    pub fn policies(self) -> Vec<&'static str> {
        struct Names(Vec<&'static str>);
        impl Visitor for Names {
            fn visit<P: Policy>(&mut self) {
                self.0.push(P::INFO.id);
            }
        }
        let mut names = Names(Vec::new());
        visit_all(&mut names);
        let (translation, latching, records) =
            (self.translation(), self.latching(), self.records());
        let runs_with_it = |id: &&str| {
            PolicyChoice::parse(id).is_ok_and(|policy| {
                Combination::choose(translation, latching, &policy, records) == Ok(self)
            })
        };
        names.0.retain(runs_with_it);
        names.0
    }

    fn list() -> String {
        let lines = Combination::ALL.iter().map(|c| format!("\n  {c}"));
        lines.collect()
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policies = match self.hot_half() {
            HotHalf::Watt => "watt",
            HotHalf::Any => "any other",
        };
        write!(f, "translation={} latching={}", self.translation(), self.latching())?;
        write!(f, "{} policy={policies}", if self.records() { " recording" } else { "" })
    }
}

/// These strategies are not compiled together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "translation={translation} latching={latching}{} policy={policy} is not compiled; there are:\
     {exist}{}",
    if *records { " recording" } else { "" },
    if cfg!(feature = "lab") { "" } else { "\n  more with the cargo feature `lab`" }
)]
pub struct CombinationError {
    /// The requested translation.
    pub translation: TranslationMode,
    /// The requested latching.
    pub latching: LatchingMode,
    /// The requested policy.
    pub policy: &'static str,
    /// Set if recording was requested.
    pub records: bool,
    /// The existing combinations, one per line.
    pub exist: String,
}

/// Reason that a policy cannot be hosted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyFitError {
    /// A parameter of the policy is invalid, or it keeps too much beside each frame.
    #[error(transparent)]
    Policy(#[from] HostingError),
    /// The policy's hot half differs from that of the combination.
    #[error(
        "policy '{policy}' does not fit a pool that is compiled for {touch}: choose the \
         combination by the policy"
    )]
    HotHalf {
        /// Name of the policy.
        policy: &'static str,
        /// The hot half of the combination.
        touch: &'static str,
    },
}

/// Returns the policy with its host, for a combination with the hot half `T`.
///
/// # Errors
/// [`PolicyFitError`].
pub fn host_for<T: HitHook>(
    policy: &PolicyChoice,
    shape: &Shape,
    mode: HitDelivery,
) -> Result<HostedPolicy<T>, PolicyFitError> {
    let hosted = match TypeId::of::<T>() == TypeId::of::<AnyHook>() {
        true => policy.host(shape, mode)?.cast(),
        #[cfg(feature = "lab")]
        false => policy
            .host_own(shape, mode)?
            .and_then(|hosted| hosted.downcast().ok())
            .map(|hosted| *hosted),
        #[cfg(not(feature = "lab"))]
        false => None,
    };
    hosted.ok_or(PolicyFitError::HotHalf { policy: policy.chosen.info.id, touch: type_name::<T>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> PolicyChoice {
        PolicyChoice::parse(text).unwrap()
    }

    fn shape() -> Shape {
        Shape { frames: 64, pages_dense: None, seed: 1 }
    }

    #[test]
    fn there_are_at_most_twelve_and_each_is_what_its_row_says() {
        struct Look;
        impl Visit for Look {
            type Output = ((bool, bool), &'static str, TypeId, bool);
            fn visit<M: PoolStrategy>(self) -> Self::Output {
                let translation = (M::SWIZZLES, M::HAS_TABLE);
                (translation, M::Latching::NAME, TypeId::of::<M::Hook>(), M::RECORDS)
            }
        }
        assert!(Combination::ALL.len() <= 12);
        for c in Combination::ALL {
            let (translation, latching, touch, records) = c.visit(Look);
            let mode = match translation {
                (true, false) => TranslationMode::Swizzled,
                (true, true) => TranslationMode::SwizzledTable,
                (false, true) => TranslationMode::Hashed,
                (false, false) => panic!("{c:?} finds no page"),
            };
            assert_eq!(mode, c.translation());
            assert_eq!(latching, c.latching().to_string(), "{c:?}");
            assert!(touch == c.hot_half().hook() && records == c.records(), "{c:?}");
        }
    }

    #[test]
    fn every_live_policy_runs_with_swips_and_in_the_laboratory_with_a_page_table() {
        let mut of = [0, 0];
        for c in Combination::ALL {
            let names = c.policies();
            assert!(!names.is_empty(), "{c:?}");
            for name in names {
                let (translation, latching) = (c.translation(), c.latching());
                let found = Combination::choose(translation, latching, &policy(name), c.records());
                assert_eq!(found, Ok(*c), "{name}");
                if latching == LatchingMode::Optimistic && !c.records() {
                    of[usize::from(translation == TranslationMode::Hashed)] += 1;
                }
            }
        }
        let hashed = if cfg!(feature = "lab") { 47 } else { 0 };
        assert_eq!(of, [47, hashed], "all of the first tier but opt");
    }

    #[test]
    fn what_is_not_compiled_is_answered_with_what_is() {
        let (hashed, none) = (TranslationMode::Hashed, LatchingMode::None);
        let error = Combination::choose(hashed, none, &policy("lru"), false).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("translation=hashed latching=none policy=lru is not"), "{text}");
        let names_the_feature = usize::from(!cfg!(feature = "lab"));
        assert_eq!(text.lines().count(), 1 + Combination::ALL.len() + names_the_feature, "{text}");
        let clock = policy("clock");
        let choose =
            |latching| Combination::choose(TranslationMode::Swizzled, latching, &clock, false).ok();
        assert_eq!(choose(LatchingMode::None), None);
        assert_eq!(choose(LatchingMode::Optimistic), Some(Combination::SwizzledAny));
        #[cfg(feature = "lab")]
        assert_eq!(choose(LatchingMode::Latched), Some(Combination::SwizzledLatchedAny));
    }

    #[test]
    fn every_policy_is_hosted_for_any_hot_half_and_in_the_laboratory_for_its_own_and_no_other() {
        for name in Combination::SwizzledAny.policies() {
            let hosted = host_for::<AnyHook>(&policy(name), &shape(), HitDelivery::Auto).unwrap();
            assert_eq!(hosted.name(), name);
        }
        let own = |text: &str| host_for::<WattHook>(&policy(text), &shape(), HitDelivery::Auto);
        let wrong = own("lru").err().unwrap();
        assert!(matches!(wrong, PolicyFitError::HotHalf { policy: "lru", .. }), "{wrong}");
        let watt = own("watt(epochs=4)").map(|hosted| hosted.name()).ok();
        assert_eq!(watt, cfg!(feature = "lab").then_some("watt"));
    }

    #[test]
    fn policies_that_can_be_open_are_unless_they_are_to_be_exact() {
        let watt = policy("watt(write_weight=2)");
        for (mode, open) in
            [(HitDelivery::Auto, true), (HitDelivery::Batched, true), (HitDelivery::Exact, false)]
        {
            #[cfg(feature = "lab")]
            assert_eq!(host_for::<WattHook>(&watt, &shape(), mode).unwrap().is_open(), open);
            assert_eq!(host_for::<AnyHook>(&watt, &shape(), mode).unwrap().is_open(), open);
            for name in ["random", "clock", "hyperbolic"] {
                let seated = host_for::<AnyHook>(&policy(name), &shape(), mode).unwrap();
                assert_eq!(seated.is_open(), open, "{name}");
            }
            let lru = host_for::<AnyHook>(&policy("lru"), &shape(), mode).unwrap();
            assert!(!lru.is_open());
        }
    }
}
