//! The combinations of strategies that are compiled, and how a policy takes its seat.
//!
//! Translation, latching and the hot half of the policy lie on the path of every page reference,
//! so they are types ([`Mode`]): what a run does not use costs it nothing. Each combination is
//! pool and structures compiled once more, so there are at most twelve; which one a store runs
//! with is decided when it is opened ([`Combination::choose`]), and a call costs one `match`.
//!
//! ```text
//! combination  translation  latching    hot half  what it is for
//! Lean         swizzled     optimistic  cooling   the default, the ladder's top (leanstore fig. 7)
//! Untouched    swizzled     optimistic  nothing   policies that hits never reach: no tracking
//! Listed       swizzled     optimistic  central   policies that hear every hit, under a mutex
//! Dated        swizzled     optimistic  watt      the open policy with the best hit rates
//! Baseline     hashed       latched     central   the ladder's bottom: a classic pool
//! LadderSwips  swizzled     latched     central   the ladder: + swizzling
//! LadderLean   swizzled     latched     cooling   the ladder: + lean evict; − optimistic latches
//! NoSwips      hashed       optimistic  nothing   − swizzling: under a page table nothing cools,
//!                                                 so victims are random
//! Alone        swizzled     none        cooling   what latching costs; one thread
//! Recording    swizzled     optimistic  cooling   the default, recording its page references
//! ```
//! The first four are all that a user's choice of a policy leads to. Hash indexes and heaps are
//! compiled for them only: the others are for measuring trees.
//!
//! Policies by hot half: `nothing` `random`, `fifo`, `loop`, …; `central` `lru`, `2q`, `arc`,
//! `lirs`, …; `cooling` `lean-evict`; `watt` `watt`. [`HotHalf::policies`] lists them.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;

use millpond_policies::config::{ParamError, Spec};
use millpond_policies::contract::{ListTouch, NoTouch, Policy, Rules, Shape, Touch};
use millpond_policies::policy::{LeanEvict, Loop, Random, Watt};
use millpond_policies::registry::{Visitor, visit_all};

use super::choices::{LatchingMode, TranslationMode};
use super::policy_choice::PolicyChoice;
use crate::pool::{Latched, Latching, Mode, Optimistic, Seated, Unlatched};

/// The hot half of `lean-evict`.
pub type CoolingTouch = <LeanEvict as Rules>::Touch;
/// The hot half of `watt`.
pub type WattTouch = <Watt as Rules>::Touch;

/// A combination as a type: latching, hot half, whether references are swizzled, and whether they
/// are recorded. Only those with a name in this module are used by [`Db`](super::Db).
pub struct Compiled<L, T, const SWIZZLES: bool, const RECORDS: bool = false>(PhantomData<(L, T)>);

impl<L, T, const SWIZZLES: bool, const RECORDS: bool> Mode for Compiled<L, T, SWIZZLES, RECORDS>
where
    L: Latching,
    T: Touch,
{
    type Latching = L;
    type Touch = T;
    const SWIZZLES: bool = SWIZZLES;
    const RECORDS: bool = RECORDS;
    const TREES_ONLY: bool = !SWIZZLES || !L::OPTIMISTIC || RECORDS;
}

/// Which hot half a policy has, as far as one is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HotHalf {
    /// A hit does nothing.
    Nothing,
    /// A hit is told to the policy, under its mutex.
    Central,
    /// A hit rescues a page from the cooling stage.
    Cooling,
    /// A hit notes the time.
    Watt,
}

impl HotHalf {
    /// All there are.
    pub const ALL: [HotHalf; 4] =
        [HotHalf::Nothing, HotHalf::Central, HotHalf::Cooling, HotHalf::Watt];

    /// The hot half of a policy; `None` if no combination is compiled for it.
    pub fn of(policy: &PolicyChoice) -> Option<HotHalf> {
        struct Find<'a> {
            id: &'a str,
            touch: Option<TypeId>,
        }
        impl Visitor for Find<'_> {
            fn visit<P: Policy>(&mut self) {
                if P::INFO.id == self.id {
                    self.touch = Some(TypeId::of::<P::Touch>());
                }
            }
        }
        let mut find = Find { id: policy.info.id, touch: None };
        visit_all(&mut find);
        let touch = find.touch?;
        HotHalf::ALL.into_iter().find(|half| half.touch() == touch)
    }

    fn touch(self) -> TypeId {
        match self {
            HotHalf::Nothing => TypeId::of::<NoTouch>(),
            HotHalf::Central => TypeId::of::<ListTouch>(),
            HotHalf::Cooling => TypeId::of::<CoolingTouch>(),
            HotHalf::Watt => TypeId::of::<WattTouch>(),
        }
    }

    /// All live policies with this hot half, by name.
    pub fn policies(self) -> Vec<&'static str> {
        struct List {
            touch: TypeId,
            names: Vec<&'static str>,
        }
        impl Visitor for List {
            fn visit<P: Policy>(&mut self) {
                let id = P::INFO.id;
                if TypeId::of::<P::Touch>() == self.touch && PolicyChoice::parse(id).is_ok() {
                    self.names.push(id);
                }
            }
        }
        let mut list = List { touch: self.touch(), names: Vec::new() };
        visit_all(&mut list);
        list.names
    }
}

/// Something to do with a combination's type.
pub trait Visit {
    /// What comes of it.
    type Output;
    /// Does it.
    fn visit<M: Mode>(self) -> Self::Output;
}

macro_rules! combinations {
    ($(
        $(#[$doc:meta])*
        $name:ident = $translation:ident, $latching:ident, $half:ident, $records:literal:
            Compiled<$latch:ty, $touch:ty, $($flags:literal),*>;
    )*) => {
        $(
            $(#[$doc])*
            pub type $name = Compiled<$latch, $touch, $($flags),*>;
        )*

        /// A combination by its name; the module's table says what each is for.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Combination {
            $($(#[$doc])* $name,)*
        }

        impl Combination {
            /// All there are.
            pub const ALL: &[Combination] = &[$(Combination::$name),*];

            /// How page ids become frames.
            pub fn translation(self) -> TranslationMode {
                match self { $(Combination::$name => TranslationMode::$translation,)* }
            }

            /// How threads keep out of each other's way.
            pub fn latching(self) -> LatchingMode {
                match self { $(Combination::$name => LatchingMode::$latching,)* }
            }

            /// What a hit does.
            pub fn hot_half(self) -> HotHalf {
                match self { $(Combination::$name => HotHalf::$half,)* }
            }

            /// Whether page references can be recorded.
            pub fn records(self) -> bool {
                match self { $(Combination::$name => $records,)* }
            }

            /// Whether stores that run with it have no hash indexes and no heaps.
            pub fn has_trees_only(self) -> bool {
                match self { $(Combination::$name => <$name as Mode>::TREES_ONLY,)* }
            }

            /// Hands the combination's type to `visit`.
            pub fn visit<V: Visit>(self, visit: V) -> V::Output {
                match self { $(Combination::$name => visit.visit::<$name>(),)* }
            }
        }
    };
}

combinations! {
    /// Swips, optimistic latches, lean eviction: the default.
    Lean = Swizzled, Optimistic, Cooling, false: Compiled<Optimistic, CoolingTouch, true>;
    /// Swips, optimistic latches, policies that hits never reach.
    Untouched = Swizzled, Optimistic, Nothing, false: Compiled<Optimistic, NoTouch, true>;
    /// Swips, optimistic latches, policies that hear every hit.
    Listed = Swizzled, Optimistic, Central, false: Compiled<Optimistic, ListTouch, true>;
    /// Swips, optimistic latches, WATT.
    Dated = Swizzled, Optimistic, Watt, false: Compiled<Optimistic, WattTouch, true>;
    /// Page table, shared latches, policies that hear every hit: a classic pool.
    Baseline = Hashed, Latched, Central, false: Compiled<Latched, ListTouch, false>;
    /// The classic pool with swips.
    LadderSwips = Swizzled, Latched, Central, false: Compiled<Latched, ListTouch, true>;
    /// The same with lean eviction.
    LadderLean = Swizzled, Latched, Cooling, false: Compiled<Latched, CoolingTouch, true>;
    /// Page table, optimistic latches, policies that hits never reach.
    NoSwips = Hashed, Optimistic, Nothing, false: Compiled<Optimistic, NoTouch, false>;
    /// Swips, no latches, lean eviction: for one thread.
    Alone = Swizzled, None, Cooling, false: Compiled<Unlatched, CoolingTouch, true>;
    /// The default, writing down its page references.
    Recording = Swizzled, Optimistic, Cooling, true:
        Compiled<Optimistic, CoolingTouch, true, true>;
}

impl Combination {
    /// The compiled combination for these choices.
    ///
    /// # Errors
    /// [`CombinationError`], which lists what there is.
    pub fn choose(
        translation: TranslationMode,
        latching: LatchingMode,
        policy: &PolicyChoice,
        records: bool,
    ) -> Result<Combination, CombinationError> {
        let half = HotHalf::of(policy);
        let fits = |c: &&Combination| {
            c.translation() == translation
                && c.latching() == latching
                && Some(c.hot_half()) == half
                && c.records() == records
        };
        Combination::ALL.iter().find(fits).copied().ok_or_else(|| CombinationError {
            translation,
            latching,
            policy: policy.info.id,
            records,
            exist: Combination::list(),
        })
    }

    fn list() -> String {
        let lines = Combination::ALL.iter().map(|c| format!("\n  {c}"));
        lines.collect()
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policies = self.hot_half().policies().join("|");
        write!(f, "translation={} latching={}", self.translation(), self.latching())?;
        write!(f, "{} policy={policies}", if self.records() { " recording" } else { "" })
    }
}

/// Strategies that are not compiled together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "translation={translation} latching={latching}{} policy={policy} is not compiled; there are:\
     {exist}",
    if *records { " recording" } else { "" }
)]
pub struct CombinationError {
    /// The translation asked for.
    pub translation: TranslationMode,
    /// The latching asked for.
    pub latching: LatchingMode,
    /// The policy asked for.
    pub policy: &'static str,
    /// Whether recording was asked for.
    pub records: bool,
    /// What there is, a line for each.
    pub exist: String,
}

/// Why a policy cannot take a seat.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeatError {
    /// A parameter of the policy cannot be.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The policy has another hot half than the combination.
    #[error(
        "policy '{policy}' does not fit a pool that is compiled for {touch}: choose the \
         combination by the policy"
    )]
    HotHalf {
        /// The policy.
        policy: &'static str,
        /// The hot half of the combination.
        touch: &'static str,
    },
}

/// The policy on its seat, for a combination with hot half `T`. Policies that are known to be
/// open (`random`, `loop`, `watt`) sit there open, all others under a mutex.
///
/// # Errors
/// [`SeatError`].
pub fn seat_for<T: Touch>(policy: &PolicyChoice, shape: &Shape) -> Result<Seated<T>, SeatError> {
    let wrong = || SeatError::HotHalf { policy: policy.info.id, touch: type_name::<T>() };
    let seated = seat(&policy.spec, shape).ok_or_else(wrong)??;
    seated.downcast::<Seated<T>>().map(|seated| *seated).map_err(|_| wrong())
}

/// A `Seated<T>` for the `T` that the policy has. Not generic, so that the cold halves of all
/// policies are compiled once, and in this crate.
fn seat(spec: &Spec, shape: &Shape) -> Option<Result<Box<dyn Any>, ParamError>> {
    struct Seats<'a> {
        spec: &'a Spec,
        shape: &'a Shape,
        seated: Option<Result<Box<dyn Any>, ParamError>>,
    }
    impl Visitor for Seats<'_> {
        fn visit<P: Policy>(&mut self) {
            if P::INFO.id == self.spec.id {
                self.seated = Some(Seated::exact::<P>(self.spec, self.shape).map(any));
            }
        }
    }
    fn any<T: Touch>(seated: Seated<T>) -> Box<dyn Any> {
        Box::new(seated)
    }
    let id = spec.id.as_str();
    if id == Random::INFO.id {
        return Some(Seated::open::<Random>(spec, shape).map(any));
    }
    if id == Loop::INFO.id {
        return Some(Seated::open::<Loop>(spec, shape).map(any));
    }
    if id == <Watt as Rules>::INFO.id {
        return Some(Seated::open::<Watt>(spec, shape).map(any));
    }
    let mut seats = Seats { spec, shape, seated: None };
    visit_all(&mut seats);
    seats.seated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Seat;

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
            type Output = (bool, &'static str, TypeId, bool);
            fn visit<M: Mode>(self) -> Self::Output {
                (M::SWIZZLES, M::Latching::NAME, TypeId::of::<M::Touch>(), M::RECORDS)
            }
        }
        assert!(Combination::ALL.len() <= 12);
        for c in Combination::ALL {
            let (swizzles, latching, touch, records) = c.visit(Look);
            assert_eq!(swizzles, c.translation() == TranslationMode::Swizzled, "{c:?}");
            assert_eq!(latching, c.latching().to_string(), "{c:?}");
            assert!(touch == c.hot_half().touch() && records == c.records(), "{c:?}");
        }
    }

    #[test]
    fn each_combination_is_found_by_every_policy_that_it_names() {
        for c in Combination::ALL {
            let names = c.hot_half().policies();
            assert!(!names.is_empty(), "{c:?}");
            for name in names {
                let (translation, latching) = (c.translation(), c.latching());
                let found = Combination::choose(translation, latching, &policy(name), c.records());
                assert_eq!(found, Ok(*c), "{name}");
            }
        }
    }

    #[test]
    fn what_is_not_compiled_is_answered_with_what_is() {
        let (hashed, none) = (TranslationMode::Hashed, LatchingMode::None);
        let error = Combination::choose(hashed, none, &policy("lru"), false).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("translation=hashed latching=none policy=lru is not"), "{text}");
        assert_eq!(text.lines().count(), 1 + Combination::ALL.len(), "{text}");
        let clock = policy("clock");
        let default = (TranslationMode::default(), LatchingMode::default());
        assert!(Combination::choose(default.0, default.1, &clock, false).is_err());
    }

    #[test]
    fn every_policy_sits_in_its_own_hot_half_and_in_no_other() {
        let named = |text: &str| policy(text);
        assert_eq!(seat_for::<NoTouch>(&named("random"), &shape()).unwrap().name, "random");
        let wrong = seat_for::<ListTouch>(&named("random"), &shape()).err().unwrap();
        assert!(matches!(wrong, SeatError::HotHalf { policy: "random", .. }), "{wrong}");
        for name in HotHalf::Central.policies() {
            let seated = seat_for::<ListTouch>(&named(name), &shape()).unwrap();
            assert!(seated.name == name && matches!(seated.seat, Seat::Exact(_)));
        }
        let lean = seat_for::<CoolingTouch>(&named("lean-evict(cooling=25%)"), &shape());
        assert_eq!(lean.unwrap().name, "lean-evict");
    }

    #[test]
    fn policies_that_can_be_open_are() {
        let watt = seat_for::<WattTouch>(&policy("watt(write_weight=2)"), &shape()).unwrap();
        assert!(matches!(watt.seat, Seat::Open(_)) && watt.name == "watt");
        for name in ["random", "loop"] {
            let seated = seat_for::<NoTouch>(&policy(name), &shape()).unwrap();
            assert!(matches!(seated.seat, Seat::Open(_)), "{name}");
        }
    }
}
