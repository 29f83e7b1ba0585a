//! The documentation of a crate as rustdoc writes it for programs.
//!
//! The format is unstable. So few fields are read, and a missing one reads as empty. A count of
//! zero is an error, which reveals a changed format.
//!
//! Crates that read the format (`rustdoc-types`, and `public-api` above it) know one version of it
//! each, hence one compiler. `public-api` also drops the documentation, which holds the examples.

use std::collections::HashMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// A documented crate, without its private and hidden items.
#[derive(Debug, Deserialize)]
pub struct CrateDocs {
    root: Value,
    index: HashMap<String, Item>,
}

/// A documented item: a module, type, function, re-export and so on.
#[derive(Debug, Deserialize)]
pub struct Item {
    pub name: Option<String>,
    pub docs: Option<String>,
    visibility: Value,
    /// Content of the item, under the name of its kind.
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

    /// Returns the item, if it belongs to this crate and is documented.
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

    /// Returns a field of the item's content, if the item is of this kind.
    pub fn field(&self, kind: &str, name: &str) -> Option<&Value> {
        self.inner.get(kind)?.get(name).filter(|value| !value.is_null())
    }

    /// Returns the ids in a field that lists items.
    pub fn ids(&self, kind: &str, name: &str) -> Vec<Id> {
        let list = self.field(kind, name).and_then(Value::as_array);
        list.into_iter().flatten().map(id).collect()
    }
}

/// Returns an id as text: ids are numbers in one version of the format and strings in another.
pub fn id(value: &Value) -> Id {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}
