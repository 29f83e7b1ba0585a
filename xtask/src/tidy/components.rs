//! `components.toml`: which crate and which module may lean on which, and what is still to fall.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The whole map.
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
    /// Code whose cost is its caller's.
    #[serde(default)]
    pub transparent: Vec<String>,
    /// Code that is the latching of the component that calls it; some is the standard library's.
    pub latches: Vec<String>,
    pub components: Vec<Charged>,
}

/// A component that samples are charged to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charged {
    pub name: String,
    /// The component that it counts towards where both are judged as one.
    pub part_of: Option<String>,
    /// Folders and files.
    pub paths: Vec<String>,
}

/// One of our crates; it need not exist yet.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crate {
    pub path: String,
    pub package: String,
    /// Names (keys of `crates`) of ours that it may depend on.
    pub uses: Vec<String>,
    /// More of ours that its tests may depend on.
    #[serde(default)]
    pub tests_use: Vec<String>,
}

/// Arrows inside one crate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modules {
    /// Layers from the top down; a layer may use the ones below it, and nothing in its own.
    #[serde(default)]
    pub layers: Vec<Vec<String>>,
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// What the modules that match `of` may use of their own crate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Module paths; a last part `*` stands for each child by itself.
    pub of: Vec<String>,
    /// If given, they may use these modules (and what lies in them) and nothing else.
    pub may_use: Option<Vec<String>>,
    /// They may not use these.
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
    /// Their files (`x.rs`), or folders (`x/`).
    pub files: Vec<String>,
    /// Why they are not untangled.
    pub why: String,
}

/// Limits on how much of the engine its users may see.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// Functions and methods in its documentation (`cargo xtask api`).
    pub public_functions_max: usize,
}

/// Shares of doc comments that do not stand alone in an index; they only fall.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpeningsMax {
    /// Of those that open with What, Whether, Who, Where or Whose.
    pub noun_clauses_percent_max: f64,
    /// Of those that lean on the item above.
    pub leaning_percent_max: f64,
}

impl Components {
    /// Path of the map of components.
    pub const FILE: &str = "components.toml";

    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }
}
