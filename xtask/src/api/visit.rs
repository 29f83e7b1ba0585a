//! The public items of a documented crate, each once.

use std::collections::HashSet;

use super::crate_docs::{CrateDocs, Id, Item, id};

/// A public item: a type, a trait, a function, a method, a constant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Documented {
    /// Kind of the item in rustdoc's words; `function` for methods, too.
    pub kind: String,
    /// Path of the item from the crate's root, such as `Db::open`.
    pub name: String,
    /// Documentation of the item.
    pub docs: String,
}

/// Returns the public items that the root reaches through public modules and re-exports. Inherent
/// methods and methods that a trait of the crate declares are included. Implementations of traits
/// and items of other crates are not.
pub fn public_items(docs: &CrateDocs) -> Vec<Documented> {
    let mut visitor = Visitor { docs, seen: HashSet::new(), found: Vec::new() };
    visitor.children("", &docs.root());
    visitor.found
}

struct Visitor<'a> {
    docs: &'a CrateDocs,
    seen: HashSet<Id>,
    found: Vec<Documented>,
}

impl Visitor<'_> {
    /// Visits the items of the module with this path.
    fn children(&mut self, path: &str, module: &str) {
        let Some(item) = self.docs.item(module) else { return };
        for child in item.ids("module", "items") {
            self.visit(path, &child, None);
        }
    }

    /// Visits an item of the module with this path, under `alias` if it is re-exported by another
    /// name.
    fn visit(&mut self, path: &str, at: &str, alias: Option<&str>) {
        let docs = self.docs;
        let Some(item) = docs.item(at).filter(|item| item.is_public()) else { return };
        if !self.seen.insert(at.to_string()) {
            return;
        }
        let own = joined(path, alias.or(item.name.as_deref()).unwrap_or(""));
        if item.is("module") {
            return self.children(&own, at);
        }
        if item.is("use") {
            return self.re_export(path, item);
        }
        self.add(&own, item);
        // Items of a trait are as public as the trait.
        for declared in item.ids("trait", "items").iter().filter_map(|at| docs.item(at)) {
            self.add_function(&own, declared);
        }
        let kinds = ["struct", "enum", "union"];
        for block in kinds.iter().flat_map(|kind| item.ids(kind, "impls")) {
            let block = docs.item(&block).filter(|block| block.field("impl", "trait").is_none());
            let items = block.map_or_else(Vec::new, |block| block.ids("impl", "items"));
            let methods = items.iter().filter_map(|at| docs.item(at));
            methods.filter(|method| method.is_public()).for_each(|m| self.add_function(&own, m));
        }
    }

    fn re_export(&mut self, path: &str, item: &Item) {
        let Some(target) = item.field("use", "id").map(id) else { return };
        if item.field("use", "is_glob").is_some_and(|value| *value == true) {
            self.children(path, &target);
        } else {
            let alias = item.field("use", "name").and_then(|name| name.as_str());
            self.visit(path, &target, alias);
        }
    }

    fn add_function(&mut self, owner: &str, item: &Item) {
        if item.is("function") {
            self.add(&joined(owner, item.name.as_deref().unwrap_or("")), item);
        }
    }

    fn add(&mut self, name: &str, item: &Item) {
        let (kind, docs) = (item.kind().to_string(), item.docs.clone().unwrap_or_default());
        self.found.push(Documented { kind, name: name.to_string(), docs });
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}::{name}") }
}
