//! The policies whose costs can be measured, by name.

use millpond_lab::registry::{PolicyError, Registry};
use millpond_policies::config::{ParamError, Spec};
use millpond_policies::contract::Policy;
use millpond_policies::registry::{Visitor, visit_all};

use super::meter::{CostMeter, Meter, fixed_bytes};
use super::references::References;

type Make = fn(&Spec, u32, &References, u64) -> Result<Box<dyn CostMeter>, ParamError>;

/// Constructors of the meters of one policy.
struct Maker {
    id: &'static str,
    make: Make,
    fixed_bytes: fn(&Spec) -> Result<usize, ParamError>,
}

/// A registry, and a meter for each of its policies.
pub struct Meters {
    registry: Registry,
    makers: Vec<Maker>,
}

impl Visitor for Meters {
    fn visit<P: Policy>(&mut self) {
        self.makers.push(Maker {
            id: P::INFO.id,
            make: |spec, frames, references, seed| {
                let references = references.clone();
                Ok(Box::new(Meter::<P>::new(&spec.config()?, frames, references, seed)))
            },
            fixed_bytes: |spec| Ok(fixed_bytes::<P>(&spec.config()?)),
        });
    }
}

impl Meters {
    /// Returns every policy that ships with Millpond.
    pub fn builtin() -> Meters {
        let mut meters = Meters { registry: Registry::builtin(), makers: Vec::new() };
        visit_all(&mut meters);
        meters
    }

    /// Adds a policy of the caller's own.
    ///
    /// # Errors
    /// [`PolicyError::Twice`].
    pub fn with<P: Policy>(mut self) -> Result<Meters, PolicyError> {
        self.registry = self.registry.with::<P>()?;
        self.visit::<P>();
        Ok(self)
    }

    /// Policies that can be measured.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the policy of `spec` over a full pool of `frames` frames, at least 1, to measure the
    /// cost of its hits and victims.
    ///
    /// # Errors
    /// [`PolicyError`]; [`PolicyError::NeedsFuture`] for offline policies.
    pub fn meter(
        &self,
        spec: &Spec,
        frames: u32,
        references: &References,
        seed: u64,
    ) -> Result<Box<dyn CostMeter>, PolicyError> {
        let maker = self.maker(&spec.id)?;
        if self.registry.find(&spec.id)?.needs_future {
            return Err(PolicyError::NeedsFuture(spec.id.clone()));
        }
        (maker.make)(spec, frames, references, seed).map_err(|error| wrong(spec, error))
    }

    /// Returns the bytes that the policy of `spec` uses however small the pool is.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn fixed_bytes(&self, spec: &Spec) -> Result<usize, PolicyError> {
        (self.maker(&spec.id)?.fixed_bytes)(spec).map_err(|error| wrong(spec, error))
    }

    fn maker(&self, id: &str) -> Result<&Maker, PolicyError> {
        let known = self.registry.find(id)?.info.id;
        let unknown = || PolicyError::Unknown { id: id.to_string(), hint: String::new() };
        self.makers.iter().find(|maker| maker.id == known).ok_or_else(unknown)
    }
}

fn wrong(spec: &Spec, error: ParamError) -> PolicyError {
    PolicyError::Param { id: spec.id.clone(), error }
}
