//! A policy's parameters: declared once, set from a command line, printed with their defaults.
//!
//! A policy file declares its parameters with [`config!`](crate::config!); every parameter gets a
//! name, a default, a help line and, where it has one, a range. Nothing else in the crate knows
//! them.

use std::fmt;
use std::ops::RangeInclusive;

use millpond_base::{Share, nearest::nearest};

/// A parameter that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// No parameter has that name.
    #[error("'{policy}' has no parameter '{name}'{hint}; it has: {known}")]
    Unknown {
        /// The policy.
        policy: String,
        /// The name given.
        name: String,
        /// "; did you mean …", or nothing.
        hint: String,
        /// The names there are.
        known: String,
    },
    /// The value is not of the parameter's type.
    #[error("parameter '{name}' cannot be '{value}': it takes {expected}")]
    Unreadable {
        /// The parameter.
        name: String,
        /// The value given.
        value: String,
        /// What it takes.
        expected: String,
    },
    /// The value is of the right type, and impossible.
    #[error("parameter '{name}' cannot be {value}: {reason}")]
    Impossible {
        /// The parameter.
        name: String,
        /// The value given.
        value: String,
        /// Why not.
        reason: String,
    },
    /// A policy was not written as `id` or `id(name=value,…)`.
    #[error("cannot read policy '{text}': {reason}")]
    Syntax {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// One parameter, for listings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: String,
    /// Its default, as it would be written.
    pub default: String,
    /// One line of help.
    pub help: String,
}

/// A policy's parameters. Implemented by [`config!`](crate::config!).
pub trait Config: Default + Clone + Send + Sync + 'static {
    /// The parameters there are.
    fn list() -> Vec<ParamInfo>;

    /// Sets one.
    ///
    /// # Errors
    /// [`ParamError`] when there is none of that name or it cannot have that value.
    fn set(&mut self, policy: &str, name: &str, value: &str) -> Result<(), ParamError>;

    /// Whether the parameters can be together: what ranges alone do not say.
    ///
    /// # Errors
    /// [`ParamError::Impossible`] for one of those that contradict each other.
    fn check(&self) -> Result<(), ParamError> {
        Ok(())
    }

    /// Every parameter's present value, in order, as it would be written.
    fn values(&self) -> Vec<(&'static str, String)>;

    /// The same policy for a sample that has this share of the pages: numbers of frames and of
    /// references shrink by as much, rates per reference grow; what is relative stays.
    fn scaled(&self, share: f64) -> Self {
        let _ = share;
        self.clone()
    }
}

/// A type that a parameter can have.
pub trait Param: Sized + Clone + 'static {
    /// Reads a value.
    fn read(text: &str) -> Option<Self>;
    /// Writes it so that `read` gives it back.
    fn write(&self) -> String;
    /// What it takes, for messages: "a whole number".
    fn takes() -> String;
    /// The value for a sample that has this share of the pages: the same, but for a type whose
    /// values may be numbers of frames.
    #[must_use]
    fn scaled(&self, share: f64) -> Self {
        let _ = share;
        self.clone()
    }
}

/// A number that can be an amount: of frames or references (`counts …` in
/// [`config!`](crate::config!)), or something per reference (`per …`).
pub trait Amount: Param + PartialOrd {
    /// So many times as much.
    #[must_use]
    fn times(&self, factor: f64) -> Self;
}

impl Amount for u32 {
    fn times(&self, factor: f64) -> u32 {
        (f64::from(*self) * factor).round() as u32
    }
}

impl Amount for u64 {
    fn times(&self, factor: f64) -> u64 {
        (*self as f64 * factor).round() as u64
    }
}

impl Amount for f64 {
    fn times(&self, factor: f64) -> f64 {
        self * factor
    }
}

/// The nearest value that `range` holds; used by [`config!`](crate::config!).
pub fn within<T: Param + PartialOrd>(value: T, range: &RangeInclusive<T>) -> T {
    if value < *range.start() {
        range.start().clone()
    } else if value > *range.end() {
        range.end().clone()
    } else {
        value
    }
}

macro_rules! param_by_from_str {
    ($($ty:ty, $takes:literal;)*) => {$(
        impl Param for $ty {
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn write(&self) -> String {
                self.to_string()
            }
            fn takes() -> String {
                $takes.to_string()
            }
        }
    )*};
}

param_by_from_str! {
    u8, "a whole number";
    u32, "a whole number";
    u64, "a whole number";
    bool, "true or false";
    Share, "a share: 10% or 0.1";
}

impl Param for f64 {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|v: &f64| v.is_finite())
    }
    fn write(&self) -> String {
        self.to_string()
    }
    fn takes() -> String {
        "a number".to_string()
    }
}

/// A part of the pool: a share of its frames, a multiple of them, or so many, or no limit.
///
/// Written `25%`, `2x`, `100` or `all`.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub enum Part {
    /// A multiple of the pool's frames, rounded down: `0.25`, from `25%` or `0.25x`.
    Times(f64),
    /// So many.
    Count(u64),
    /// No limit.
    All,
}

impl Part {
    /// As a number, for a pool of so many frames; `u64::MAX` for no limit.
    pub fn of(self, frames: u32) -> u64 {
        match self {
            Part::Times(t) => {
                let exact = t * f64::from(frames);
                (exact + exact * 1e-12) as u64
            }
            Part::Count(n) => n,
            Part::All => u64::MAX,
        }
    }

    /// As a number of frames of the pool: at most all of them.
    pub fn frames_of(self, frames: u32) -> u32 {
        self.of(frames).min(u64::from(frames)) as u32
    }
}

impl Param for Part {
    fn read(text: &str) -> Option<Self> {
        if text == "all" {
            return Some(Part::All);
        }
        let positive = |t: &f64| t.is_finite() && *t >= 0.0;
        if let Some(percent) = text.strip_suffix('%') {
            let share = percent.trim().parse::<f64>().ok().map(|p| p / 100.0);
            return share.filter(positive).map(Part::Times);
        }
        if let Some(times) = text.strip_suffix('x') {
            return times.trim().parse().ok().filter(positive).map(Part::Times);
        }
        text.parse().ok().map(Part::Count)
    }

    fn write(&self) -> String {
        match self {
            Part::Times(t) if *t > 1.0 => format!("{t}x"),
            Part::Times(t) => Share(*t).to_string(),
            Part::Count(n) => n.to_string(),
            Part::All => "all".to_string(),
        }
    }

    fn takes() -> String {
        "a part of the pool: 25%, 2x, 100 or all".to_string()
    }

    fn scaled(&self, share: f64) -> Part {
        match self {
            Part::Count(n) => Part::Count(n.times(share)),
            relative => *relative,
        }
    }
}

/// A multiple of the pool's frames: unlike for a [`Part`], a bare number is one, too.
///
/// Written `4`, `0.5x` or `50%`.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Multiple(pub f64);

impl Multiple {
    /// As a number, for a pool of so many frames, rounded down.
    pub fn of(self, frames: u32) -> u64 {
        Part::Times(self.0).of(frames)
    }
}

impl Param for Multiple {
    fn read(text: &str) -> Option<Self> {
        let (number, divisor) = match (text.strip_suffix('%'), text.strip_suffix('x')) {
            (Some(percent), _) => (percent.trim(), 100.0),
            (None, Some(times)) => (times.trim(), 1.0),
            (None, None) => (text, 1.0),
        };
        let times = number.parse::<f64>().ok()? / divisor;
        (times.is_finite() && times >= 0.0).then_some(Multiple(times))
    }

    fn write(&self) -> String {
        format!("{}x", self.0)
    }

    fn takes() -> String {
        "a multiple of the pool: 4, 0.5x or 50%".to_string()
    }
}

/// Fails with [`ParamError::Impossible`] unless `range` holds `value`; used by
/// [`config!`](crate::config!).
///
/// # Errors
/// As said.
pub fn in_range<T: Param + PartialOrd + fmt::Debug>(
    name: &str,
    value: &T,
    range: &RangeInclusive<T>,
) -> Result<(), ParamError> {
    if range.contains(value) {
        return Ok(());
    }
    let (low, high) = (range.start().write(), range.end().write());
    Err(ParamError::Impossible {
        name: name.to_string(),
        value: value.write(),
        reason: format!("it must be between {low} and {high}"),
    })
}

/// The error for a parameter name that does not exist; used by [`config!`](crate::config!).
pub fn unknown(policy: &str, name: &str, known: &[ParamInfo]) -> ParamError {
    let hint = match nearest(name, known.iter().map(|p| p.name)) {
        Some(near) => format!(" (did you mean '{near}'?)"),
        None => String::new(),
    };
    let names: Vec<&str> = known.iter().map(|p| p.name).collect();
    let known = if names.is_empty() { "none".to_string() } else { names.join(", ") };
    ParamError::Unknown { policy: policy.to_string(), name: name.to_string(), hint, known }
}

/// Reads a value or says what it should have been; used by [`config!`](crate::config!).
///
/// # Errors
/// [`ParamError::Unreadable`].
pub fn read_param<T: Param>(name: &str, value: &str) -> Result<T, ParamError> {
    T::read(value).ok_or_else(|| ParamError::Unreadable {
        name: name.to_string(),
        value: value.to_string(),
        expected: T::takes(),
    })
}

/// Declares a policy's parameters. A plain number of frames or references says so, `counts frames`
/// or `counts references`, and one that is divided by them `per reference`, so that it can be
/// scaled where a sample of the pages is simulated in place of them all.
///
/// ```
/// use millpond_policies::config;
/// config! {
///     /// Parameters of an example.
///     pub struct ExampleConfig {
///         /// Frames looked at for each victim.
///         sample: u32 = 8, in 1..=4096;
///         /// Weight of a write.
///         write_weight: f64 = 4.0;
///         /// References after which a page is old.
///         life: u64 = 1000, in 1..=1_000_000, counts references;
///     }
/// }
/// use millpond_policies::config::Config;
/// let mut c = ExampleConfig::default();
/// c.set("example", "sample", "16").unwrap();
/// assert_eq!(c.sample, 16);
/// assert!(c.set("example", "sample", "0").is_err());
/// ```
#[macro_export]
macro_rules! config {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $help:literal])+ $field:ident: $ty:ty = $default:expr
                $(, in $range:expr)? $(, counts $unit:ident)? $(, per $each:ident)?;)*
        }
        $(check $check:path;)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($(#[doc = $help])+ pub $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::config::Config for $name {
            fn list() -> Vec<$crate::config::ParamInfo> {
                #[allow(unused_variables)]
                let defaults = Self::default();
                vec![$($crate::config::ParamInfo {
                    name: stringify!($field),
                    takes: <$ty as $crate::config::Param>::takes(),
                    default: $crate::config::Param::write(&defaults.$field),
                    help: [$($help.trim()),+].join(" "),
                },)*]
            }

            #[allow(unused_variables)]
            fn set(
                &mut self,
                policy: &str,
                name: &str,
                value: &str,
            ) -> Result<(), $crate::config::ParamError> {
                $(if name == stringify!($field) {
                    let read: $ty = $crate::config::read_param(name, value)?;
                    $($crate::config::in_range(name, &read, &($range))?;)?
                    self.$field = read;
                    return Ok(());
                })*
                Err($crate::config::unknown(
                    policy,
                    name,
                    &<Self as $crate::config::Config>::list(),
                ))
            }

            $(fn check(&self) -> Result<(), $crate::config::ParamError> {
                $check(self)
            })?

            fn values(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($field), $crate::config::Param::write(&self.$field)),)*]
            }

            #[allow(unused_variables, unused_mut)]
            fn scaled(&self, share: f64) -> Self {
                let mut all = self.clone();
                $(
                    let mut value: $ty = $crate::config::Param::scaled(&self.$field, share);
                    $(
                        let _ = stringify!($unit);
                        value = $crate::config::Amount::times(&value, share);
                    )?
                    $(
                        let _ = stringify!($each);
                        value = $crate::config::Amount::times(&value, 1.0 / share);
                    )?
                    $(value = $crate::config::within(value, &($range));)?
                    all.$field = value;
                )*
                all
            }
        }
    };
}

/// Declares an enum that a parameter can have: `choice! { /// … \n pub enum Tie { … } }`, each
/// variant with its name on the command line.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
        }

        impl $crate::config::Param for $name {
            fn read(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)+
                    _ => None,
                }
            }
            fn write(&self) -> String {
                match self {
                    $(Self::$variant => $text.to_string(),)+
                }
            }
            fn takes() -> String {
                concat!("one of", $(" ", $text),+).to_string()
            }
        }
    };
}

/// A policy as written on a command line: `watt(write_weight=2,aggregate=mean)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The policy's id.
    pub id: String,
    /// The parameters that were given, in order.
    pub params: Vec<(String, String)>,
}

impl Spec {
    /// Reads one policy.
    ///
    /// # Errors
    /// [`ParamError::Syntax`] says what is wrong.
    pub fn parse(text: &str) -> Result<Spec, ParamError> {
        let text = text.trim();
        let wrong = |reason: &str| ParamError::Syntax {
            text: text.to_string(),
            reason: reason.to_string(),
        };
        let (id, inner) = match text.split_once('(') {
            None if text.contains(')') => return Err(wrong("a ')' without its '('")),
            None => (text, ""),
            Some((id, rest)) => {
                (id.trim(), rest.strip_suffix(')').ok_or_else(|| wrong("the ')' is missing"))?)
            }
        };
        if id.is_empty() {
            return Err(wrong("the name is missing"));
        }
        if inner.contains(['(', ')']) {
            return Err(wrong("parentheses inside parentheses"));
        }
        let mut params: Vec<(String, String)> = Vec::new();
        for pair in inner.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| wrong(&format!("'{pair}' is not name=value")))?;
            let (name, value) = (name.trim().to_string(), value.trim().to_string());
            if params.iter().any(|(n, _)| *n == name) {
                return Err(wrong(&format!("'{name}' is given twice")));
            }
            params.push((name, value));
        }
        Ok(Spec { id: id.to_string(), params })
    }

    /// Reads a comma-separated list of policies; commas inside parentheses belong to a policy.
    ///
    /// # Errors
    /// [`ParamError::Syntax`] says what is wrong.
    pub fn parse_list(text: &str) -> Result<Vec<Spec>, ParamError> {
        let (mut specs, mut depth, mut start) = (Vec::new(), 0i32, 0);
        for (i, c) in text.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    specs.push(Spec::parse(&text[start..i])?);
                    start = i + 1;
                }
                _ => {}
            }
        }
        specs.push(Spec::parse(&text[start..])?);
        Ok(specs)
    }

    /// The parameters of `C` that the spec describes: defaults, then what was given.
    ///
    /// # Errors
    /// [`ParamError`] for the first one that cannot be, alone or beside the others.
    pub fn config<C: Config>(&self) -> Result<C, ParamError> {
        let mut config = C::default();
        for (name, value) in &self.params {
            config.set(&self.id, name, value)?;
        }
        config.check()?;
        Ok(config)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        if !self.params.is_empty() {
            let pairs: Vec<String> = self.params.iter().map(|(n, v)| format!("{n}={v}")).collect();
            write!(f, "({})", pairs.join(","))?;
        }
        Ok(())
    }
}

config! {
    /// The parameters of a policy that has none.
    pub struct NoConfig {}
}

#[cfg(test)]
mod tests {
    use super::*;

    choice! {
        /// A choice.
        pub enum Tie {
            /// By recency.
            Recency = "recency",
            /// By frame.
            Frame = "frame",
        }
    }

    config! {
        /// Something of everything.
        pub struct AllKinds {
            /// A count.
            count: u32 = 8, in 1..=64;
            /// A share.
            share: Share = Share(0.1);
            /// A part,
            /// said on two lines.
            part: Part = Part::Times(0.5);
            /// A choice.
            tie: Tie = Tie::Recency;
        }
    }

    #[test]
    fn parameters_are_set_listed_and_written_as_they_are_read() {
        let spec = Spec::parse("x(count=3, part=2x,tie=frame,share=25%)").unwrap();
        let config: AllKinds = spec.config().unwrap();
        assert_eq!(config.count, 3);
        assert_eq!(config.part, Part::Times(2.0));
        assert_eq!(config.tie, Tie::Frame);
        let mut again = AllKinds::default();
        for (name, value) in config.values() {
            again.set("x", name, &value).unwrap();
        }
        assert_eq!(format!("{again:?}"), format!("{config:?}"));
        assert_eq!(AllKinds::list()[2].help, "A part, said on two lines.");
        assert_eq!(AllKinds::list()[2].default, "50%");
    }

    #[test]
    fn wrong_parameters_say_what_would_be_right() {
        let error =
            |text: &str| Spec::parse(text).and_then(|s| s.config::<AllKinds>()).unwrap_err();
        let text = error("x(cuont=1)").to_string();
        assert!(text.contains("did you mean 'count'"), "{text}");
        assert!(matches!(error("x(count=0)"), ParamError::Impossible { .. }));
        assert!(matches!(error("x(count=many)"), ParamError::Unreadable { .. }));
        assert!(error("x(tie=left)").to_string().contains("one of recency frame"));
        for broken in ["x(", "(a=1)", "x(a)", "x)", "x(a=1,a=2)", "x(a=(1))"] {
            assert!(matches!(Spec::parse(broken), Err(ParamError::Syntax { .. })), "{broken}");
        }
    }

    #[test]
    fn lists_of_policies_split_outside_parentheses_only() {
        let specs = Spec::parse_list("lru,clock(variant=fix,x=1),arc").unwrap();
        let texts: Vec<String> = specs.iter().map(Spec::to_string).collect();
        assert_eq!(texts, ["lru", "clock(variant=fix,x=1)", "arc"]);
        assert!(Spec::parse_list("lru,,arc").is_err());
    }

    #[test]
    fn multiples_of_a_pool_need_no_unit() {
        for (text, expected) in [("4", 40), ("0.5", 5), ("50%", 5), ("1x", 10), ("0", 0)] {
            let multiple = Multiple::read(text).unwrap();
            assert_eq!(multiple.of(10), expected);
            assert_eq!(Multiple::read(&multiple.write()), Some(multiple));
        }
        assert_eq!((Multiple::read("-1"), Multiple::read("many")), (None, None));
    }

    #[test]
    fn amounts_scale_with_a_sample_and_what_is_relative_stays() {
        config! {
            /// An example.
            pub struct Sampled {
                /// A part.
                kin: Part = Part::Count(1000);
                /// A share.
                old: Part = Part::Times(0.25);
                /// Frames.
                walk: u32 = 3, in 1..=100, counts frames;
                /// References.
                life: u64 = 20_000, counts references;
                /// Each.
                lambda: f64 = 0.25, in 0.0..=1.0, per reference;
                /// Neither.
                k: u32 = 8;
            }
        }
        let scaled = Sampled::default().scaled(0.1);
        assert_eq!((scaled.kin, scaled.old), (Part::Count(100), Part::Times(0.25)));
        assert_eq!((scaled.walk, scaled.life, scaled.k), (1, 2_000, 8), "at least the least");
        assert_eq!(scaled.lambda, 1.0, "at most the most");
    }

    #[test]
    fn parts_of_a_pool_round_down() {
        assert_eq!(Part::read("25%").unwrap().of(10), 2);
        assert_eq!(Part::read("2x").unwrap().of(10), 20);
        assert_eq!(Part::read("7").unwrap().of(10), 7);
        assert_eq!(Part::read("all").unwrap().of(10), u64::MAX);
        assert_eq!(Part::read("2x").unwrap().frames_of(10), 10);
        assert_eq!(Part::read("-1"), None);
    }
}
