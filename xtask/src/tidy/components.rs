//! `components.toml`: the allowed dependencies between crates and between modules, and
//! exceptions that must shrink.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The map of components.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Components {
    /// Files that may hold `unsafe`.
    pub unsafe_files: Vec<String>,
    pub crates: BTreeMap<String, Crate>,
    #[serde(default)]
    pub modules: BTreeMap<String, Modules>,
    /// Modules that import each other in a circle.
    #[serde(default)]
    pub circles: Vec<Circle>,
    pub api: Option<Api>,
    pub openings: Option<OpeningsMax>,
    /// Rules by which the profiler charges samples to components.
    pub profile: Option<Profile>,
}

/// Rules by which the profiler charges samples to components.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Code whose cost is charged to its caller.
    #[serde(default)]
    pub transparent: Vec<String>,
    /// Code that counts as latching of the component that calls it; some of it is in the
    /// standard library.
    pub latches: Vec<String>,
    pub components: Vec<Charged>,
}

/// A component that samples are charged to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charged {
    pub name: String,
    /// Component that this one counts towards, where both are judged as one.
    pub part_of: Option<String>,
    /// Folders and files.
    pub paths: Vec<String>,
}

/// One of our crates; it may not exist yet.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crate {
    pub path: String,
    pub package: String,
    /// Names (keys of `crates`) of our crates that it may depend on.
    pub uses: Vec<String>,
    /// Further crates of ours that its tests may depend on.
    #[serde(default)]
    pub tests_use: Vec<String>,
}

/// Arrows inside one crate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modules {
    /// Layers from the top down; a module may use the layers below it, and none of its own
    /// layer.
    #[serde(default)]
    pub layers: Vec<Vec<String>>,
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// Uses that the modules matching `of` may make of their own crate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Module paths; a last part `*` stands for each child by itself.
    pub of: Vec<String>,
    /// If given, the only modules that they may use, children included.
    pub may_use: Option<Vec<String>>,
    /// Modules that they may not use.
    #[serde(default)]
    pub never: Vec<String>,
    /// The explanation in the message of a violation.
    pub why: String,
}

/// Modules of one folder that reach each other by imports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Circle {
    pub folder: String,
    /// Files (`x.rs`) or folders (`x/`) of the modules.
    pub files: Vec<String>,
    /// Reason that the circle remains.
    pub why: String,
}

/// Limits on the size of the engine's public interface.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// Maximum number of functions and methods in its documentation (`cargo xtask api`).
    pub public_functions_max: usize,
}

/// Maximum shares of doc comments that do not stand alone in an index; the limits only
/// fall.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpeningsMax {
    /// Maximum share of comments that open with What, Whether, Who, Where or Whose.
    pub noun_clauses_percent_max: f64,
    /// Maximum share of comments that lean on the item above.
    pub leaning_percent_max: f64,
}

impl Components {
    /// Path of the map of components.
    pub const FILE: &str = "components.toml";

    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }
}
