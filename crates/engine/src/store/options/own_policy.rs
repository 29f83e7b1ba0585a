//! A program's own policies, which run in a store like those that ship with Millpond.

use std::fmt;

use millpond_policies::config::Spec;
use millpond_policies::contract::{OpenPolicy, Policy};

use crate::store::options::policy_choice::{PolicyChoice, PolicyError};

type Choose = fn(&Spec) -> Result<PolicyChoice, PolicyError>;

/// A program's own policies, by name. They are looked up before those of Millpond.
///
/// ```
/// use millpond::{Options, OwnPolicies};
/// use millpond_policies::policy::Lru; // a policy of the user's own, usually
/// let own = OwnPolicies::default().with::<Lru>();
/// let options = Options::new().own_policies(own).policy("lru").memory(64 << 20);
/// options.check().unwrap();
/// ```
#[derive(Clone, Default)]
pub struct OwnPolicies(Vec<(&'static str, Choose)>);

impl OwnPolicies {
    /// Adds `P`, a policy that serves one thread at a time. Its metadata must fit into a cache
    /// line; otherwise a store that names it does not open.
    ///
    /// ```
    /// use millpond::OwnPolicies;
    /// use millpond_policies::policy::Lru; // a policy of your own, usually
    /// assert_eq!(OwnPolicies::default().with::<Lru>().names().count(), 1);
    /// ```
    #[must_use]
    pub fn with<P: Policy>(mut self) -> OwnPolicies {
        self.0.push((P::INFO.id, PolicyChoice::of::<P>));
        self
    }

    /// Adds `P`, a policy that any number of threads use at once.
    ///
    /// ```
    /// use millpond::OwnPolicies;
    /// use millpond_policies::policy::Random; // a policy of your own, usually
    /// assert_eq!(OwnPolicies::default().with_open::<Random>().names().count(), 1);
    /// ```
    #[must_use]
    pub fn with_open<P: OpenPolicy>(mut self) -> OwnPolicies {
        self.0.push((P::INFO.id, PolicyChoice::of_open::<P>));
        self
    }

    /// Returns the names of the policies.
    ///
    /// ```
    /// use millpond::OwnPolicies;
    /// use millpond_policies::policy::Lru;
    /// let own = OwnPolicies::default().with::<Lru>();
    /// assert_eq!(own.names().collect::<Vec<_>>(), ["lru"]);
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().map(|(id, _)| *id)
    }

    /// Parses and checks a policy: one of these, or one that ships with Millpond.
    ///
    /// # Errors
    /// Same as [`PolicyChoice::parse`].
    pub(crate) fn choose(&self, text: &str) -> Result<PolicyChoice, PolicyError> {
        let spec = Spec::parse(text)?;
        match self.0.iter().find(|(id, _)| *id == spec.id) {
            Some((_, choose)) => choose(&spec),
            None => PolicyChoice::of_spec(spec, self.names().collect()),
        }
    }
}

impl PartialEq for OwnPolicies {
    fn eq(&self, other: &OwnPolicies) -> bool {
        self.names().eq(other.names())
    }
}

impl fmt::Debug for OwnPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
