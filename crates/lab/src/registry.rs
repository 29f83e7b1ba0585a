//! The policies that can be run: Millpond's own, and those that a user adds.

use millpond_base::nearest::did_you_mean;
use millpond_policies::chosen::{ErasedHost, LISTED, erased, erased_host_of};
use millpond_policies::config::{Config, ParamError, ParamInfo, Spec};
use millpond_policies::contract::{Hit, HitHook, Policy};
use millpond_policies::info::Info;
use millpond_policies::registry::{Visitor, visit_all};
use millpond_workload::trace::Source;

use crate::sim::{Cell, SimOptions, Simulation};
use crate::tier1::{Tier1, Tier1Options};
use crate::tier2::{Tier2Cell, Tier2Options, Tier2Simulation};

/// Reason why a policy cannot be run as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No policy has the given id.
    #[error("unknown policy '{id}'{hint}; {LISTED}")]
    Unknown {
        /// The requested id.
        id: String,
        /// "; did you mean …", or nothing.
        hint: String,
    },
    /// A parameter of the policy is wrong.
    #[error("policy '{id}': {error}")]
    Param {
        /// The policy.
        id: String,
        /// The fault.
        error: ParamError,
    },
    /// An offline policy was requested where the future is unknown.
    #[error("policy '{0}' needs the future, which a stream has not: choose an online policy")]
    NeedsFuture(String),
    /// Two policies have the same id.
    #[error("policy '{0}' is registered already: choose another id")]
    Twice(String),
}

/// Returns a name for the metadata that a hit reaches.
pub fn hit_reaches(hit: Hit) -> &'static str {
    match hit {
        Hit::Nothing => "nothing",
        Hit::Meta => "own line",
        Hit::Central => "central",
    }
}

type Make = fn(&Spec, &SimOptions) -> Result<Box<dyn Simulation>, ParamError>;
type Scaled = fn(&Spec, f64) -> Result<Spec, ParamError>;
type Values = fn(&Spec) -> Result<Vec<(&'static str, String)>, ParamError>;

/// A policy that can be run, with its type erased.
pub struct Entry {
    /// The policy's row in the catalog.
    pub info: Info,
    /// The frame metadata that a hit reaches.
    pub hit: Hit,
    /// The policy's parameters.
    pub params: Vec<ParamInfo>,
    /// `true` if the policy needs the future.
    pub needs_future: bool,
    /// `true` if the policy draws random numbers, which its seed decides.
    pub is_random: bool,
    make: Make,
    /// Host of the simulations that call the policy through a pointer.
    host: ErasedHost,
    values: Values,
    scaled: Scaled,
    ghosts_max: fn(&Spec, u32) -> Result<u64, ParamError>,
}

impl Entry {
    fn of<P: Policy>(host: ErasedHost) -> Entry {
        Entry {
            info: P::INFO,
            hit: <P::Hook as HitHook>::HIT,
            params: P::Config::list(),
            needs_future: P::NEEDS_FUTURE,
            is_random: P::IS_RANDOM,
            make: |spec, options| Ok(Box::new(Cell::<P>::new(&spec.config()?, options))),
            host,
            values: |spec| Ok(spec.config::<P::Config>()?.values()),
            scaled: |spec, share| {
                let whole = spec.config::<P::Config>()?;
                let (before, after) = (whole.values(), whole.scaled(share).values());
                let mut scaled = spec.clone();
                for ((name, _), (_, value)) in
                    before.into_iter().zip(after).filter(|(before, after)| before != after)
                {
                    scaled.params.retain(|(given, _)| given != name);
                    scaled.params.push((name.to_string(), value));
                }
                Ok(scaled)
            },
            ghosts_max: |spec, frames| Ok(P::ghosts_max(&spec.config()?, frames)),
        }
    }

    fn param_error(&self, source: ParamError) -> PolicyError {
        PolicyError::Param { id: self.info.id.to_string(), error: source }
    }

    /// Returns a simulation of the policy.
    ///
    /// # Errors
    /// [`PolicyError::Param`].
    pub fn simulation(
        &self,
        spec: &Spec,
        options: &SimOptions,
    ) -> Result<Box<dyn Simulation>, PolicyError> {
        (self.make)(spec, options).map_err(|e| self.param_error(e))
    }

    /// Returns a buffer pool under the policy that turns the references of `source` into the
    /// requests that it sends to storage.
    ///
    /// # Errors
    /// [`PolicyError::Param`], and [`PolicyError::NeedsFuture`] for offline policies: the first
    /// tier reads its trace as it comes.
    pub fn tier1(
        &self,
        spec: &Spec,
        options: &Tier1Options,
        source: Box<dyn Source>,
    ) -> Result<Box<dyn Source>, PolicyError> {
        if self.needs_future {
            return Err(PolicyError::NeedsFuture(self.info.id.to_string()));
        }
        let host = (self.host)(spec, &Tier1::shape(options)).map_err(|e| self.param_error(e))?;
        Ok(Box::new(Tier1::of(self.info.id, host, options, source)))
    }

    /// Returns a simulation of the policy as a second tier.
    ///
    /// # Errors
    /// [`PolicyError::Param`].
    pub fn tier2(
        &self,
        spec: &Spec,
        options: &Tier2Options,
    ) -> Result<Box<dyn Tier2Simulation>, PolicyError> {
        let host =
            (self.host)(spec, &Tier2Cell::shape(options)).map_err(|e| self.param_error(e))?;
        Ok(Box::new(Tier2Cell::of(self.info.id, host, options)))
    }

    /// Returns the value of each parameter under `spec`.
    ///
    /// # Errors
    /// [`PolicyError::Param`].
    pub fn values(&self, spec: &Spec) -> Result<Vec<(&'static str, String)>, PolicyError> {
        (self.values)(spec).map_err(|e| self.param_error(e))
    }

    /// Returns the policy for a sample with this share of the pages: parameters that count frames
    /// or references are scaled.
    ///
    /// # Errors
    /// [`PolicyError::Param`].
    pub fn scaled(&self, spec: &Spec, share: f64) -> Result<Spec, PolicyError> {
        (self.scaled)(spec, share).map_err(|e| self.param_error(e))
    }

    /// Returns the largest number of ghosts that the policy keeps beside `frames` frames.
    ///
    /// # Errors
    /// [`PolicyError::Param`].
    pub fn ghosts_max(&self, spec: &Spec, frames: u32) -> Result<u64, PolicyError> {
        (self.ghosts_max)(spec, frames).map_err(|e| self.param_error(e))
    }
}

/// Policies by id.
#[derive(Default)]
pub struct Registry {
    entries: Vec<Entry>,
}

/// Adds shipped policies to a registry.
struct Shipped(Registry);

impl Visitor for Shipped {
    fn visit<P: Policy>(&mut self) {
        // Cannot fail: both lists are the catalog.
        let host = erased_host_of(P::INFO.id).expect("a policy of the catalog");
        self.0.entries.push(Entry::of::<P>(host));
    }
}

impl Registry {
    /// Returns a registry of every policy that ships with Millpond.
    pub fn builtin() -> Registry {
        let mut shipped = Shipped(Registry::default());
        visit_all(&mut shipped);
        shipped.0
    }

    /// Adds a policy of the caller.
    ///
    /// # Errors
    /// [`PolicyError::Twice`].
    pub fn with<P: Policy>(mut self) -> Result<Registry, PolicyError> {
        if self.entries.iter().any(|e| e.info.id == P::INFO.id) {
            return Err(PolicyError::Twice(P::INFO.id.to_string()));
        }
        self.entries.push(Entry::of::<P>(erased::<P>));
        Ok(self)
    }

    /// Returns all policies, in the order of the catalog.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the policy called `id`.
    ///
    /// # Errors
    /// [`PolicyError::Unknown`], with the nearest known name.
    pub fn find(&self, id: &str) -> Result<&Entry, PolicyError> {
        let found = self.entries.iter().find(|e| e.info.id == id);
        found.ok_or_else(|| {
            let hint = did_you_mean(id, self.entries.iter().map(|e| e.info.id));
            PolicyError::Unknown { id: id.to_string(), hint }
        })
    }
}
