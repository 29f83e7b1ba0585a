//! The documentation of a crate as rustdoc writes it for programs.
//!
//! The format is unstable: few fields are read, and one that is missing reads as empty. A count of
//! nothing is an error, so that another format is noticed.
//!
//! Crates that read the format (`rustdoc-types`, and `public-api` above it) know one version of it
//! each, hence one compiler. `public-api` also drops the documentation, which holds the examples.

use std::collections::HashMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// A documented crate; what is private or hidden is not in it.
#[derive(Debug, Deserialize)]
pub struct CrateDocs {
    root: Value,
    index: HashMap<String, Item>,
}

/// A module, type, function, re-export or whatever else has documentation.
#[derive(Debug, Deserialize)]
pub struct Item {
    pub name: Option<String>,
    pub docs: Option<String>,
    visibility: Value,
    /// By its kind, what belongs to that kind of item.
    inner: HashMap<String, Value>,
}

/// The name of an item in the index.
pub type Id = String;

impl CrateDocs {
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("reading what rustdoc wrote")
    }

    pub fn root(&self) -> Id {
        id(&self.root)
    }

    /// The item, if it belongs to this crate and is documented.
    pub fn item(&self, id: &str) -> Option<&Item> {
        self.index.get(id)
    }
}

impl Item {
    pub fn is_public(&self) -> bool {
        self.visibility == "public"
    }

    pub fn is(&self, kind: &str) -> bool {
        self.inner.contains_key(kind)
    }

    /// Returns the kind of the item in rustdoc's words.
    pub fn kind(&self) -> &str {
        self.inner.keys().next().map_or("", String::as_str)
    }

    /// A field of what belongs to this kind of item.
    pub fn field(&self, kind: &str, name: &str) -> Option<&Value> {
        self.inner.get(kind)?.get(name).filter(|value| !value.is_null())
    }

    /// A field that lists items.
    pub fn ids(&self, kind: &str, name: &str) -> Vec<Id> {
        let list = self.field(kind, name).and_then(Value::as_array);
        list.into_iter().flatten().map(id).collect()
    }
}

/// Numbers in one version of the format are strings in another.
pub fn id(value: &Value) -> Id {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}
