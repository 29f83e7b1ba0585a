//! [`config!`](crate::config!) and [`choice!`](crate::choice!): how a policy file declares its
//! parameters, and the trait that the first one implements.

use millpond_base::nearest::did_you_mean;

use super::error::ParamError;

/// One parameter, for listings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Name of the parameter.
    pub name: &'static str,
    /// Description of the accepted values.
    pub takes: String,
    /// Default value, as written on a command line.
    pub default: String,
    /// One line of help.
    pub help: String,
}

/// A policy's parameters. Implemented by [`config!`](crate::config!).
pub trait Config: Default + Clone + Send + Sync + 'static {
    /// Returns the list of parameters.
    fn list() -> Vec<ParamInfo>;

    /// Sets one parameter.
    ///
    /// # Errors
    /// [`ParamError`] if no parameter has that name, or the value is invalid.
    fn set(&mut self, policy: &str, name: &str, value: &str) -> Result<(), ParamError>;

    /// Verifies that the parameters are consistent, which ranges alone cannot express.
    ///
    /// # Errors
    /// [`ParamError::Impossible`] for one of the contradicting parameters.
    fn check(&self) -> Result<(), ParamError> {
        Ok(())
    }

    /// Returns every parameter's present value, in order, as written on a command line.
    fn values(&self) -> Vec<(&'static str, String)>;

    /// Returns the parameters of the policy for a sample with this share of the pages. Numbers of
    /// frames and references shrink in proportion, rates per reference grow, and relative values
    /// stay.
    fn scaled(&self, share: f64) -> Self {
        let _ = share;
        self.clone()
    }
}

/// Returns the error for an unknown parameter name; used by [`config!`](crate::config!).
pub fn unknown(policy: &str, name: &str, known: &[ParamInfo]) -> ParamError {
    let hint = did_you_mean(name, known.iter().map(|p| p.name));
    let names: Vec<&str> = known.iter().map(|p| p.name).collect();
    let known = if names.is_empty() { "none".to_string() } else { names.join(", ") };
    ParamError::Unknown { policy: policy.to_string(), name: name.to_string(), hint, known }
}

/// Declares a policy's parameters. A plain number of frames or references is marked `counts frames`
/// or `counts references`, and a rate `per reference`, so that it can be scaled when a sample of
/// the pages is simulated instead of all.
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

/// Declares an enum for a parameter: `choice! { /// … \n pub enum Tie { … } }`, each variant with
/// its name on the command line.
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

config! {
    /// Parameters of a policy without parameters.
    pub struct NoConfig {}
}
