//! Counting the public functions and methods of a documented crate.

use std::collections::{BTreeMap, HashSet};

use super::crate_docs::{CrateDocs, Id, Item, id};

/// Public functions and methods by the type, trait or module that has them.
///
/// What counts is reached from the root through public modules and re-exports: functions, inherent
/// methods, methods that a trait of the crate declares. Implementations of traits do not count, nor
/// does what another crate defines.
pub fn count(docs: &CrateDocs) -> BTreeMap<String, usize> {
    let mut counter = Counter { docs, seen: HashSet::new(), counts: BTreeMap::new() };
    counter.children("", &docs.root());
    counter.counts
}

struct Counter<'a> {
    docs: &'a CrateDocs,
    seen: HashSet<Id>,
    counts: BTreeMap<String, usize>,
}

impl Counter<'_> {
    /// The items of the module with this path.
    fn children(&mut self, path: &str, module: &str) {
        let Some(item) = self.docs.item(module) else { return };
        for child in item.ids("module", "items") {
            self.visit(path, &child, None);
        }
    }

    /// An item of the module with this path, where it may have another name than its own.
    fn visit(&mut self, path: &str, at: &str, alias: Option<&str>) {
        let docs = self.docs;
        let Some(item) = docs.item(at).filter(|item| item.is_public()) else { return };
        if !self.seen.insert(at.to_string()) {
            return;
        }
        let name = alias.or(item.name.as_deref()).unwrap_or("");
        let own = if path.is_empty() { name.to_string() } else { format!("{path}::{name}") };
        if item.is("module") {
            self.children(&own, at);
        } else if item.is("use") {
            self.re_export(path, item);
        } else if item.is("function") {
            let module = if path.is_empty() { "the root" } else { path };
            self.add(&format!("functions of {module}"), 1);
        } else if item.is("trait") {
            let is_function = |at: &Id| docs.item(at).is_some_and(|item| item.is("function"));
            self.add(&own, item.ids("trait", "items").iter().filter(|at| is_function(at)).count());
        } else {
            let kinds = ["struct", "enum", "union"];
            let blocks = kinds.iter().flat_map(|kind| item.ids(kind, "impls"));
            self.add(&own, blocks.map(|block| methods(docs, &block)).sum());
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

    fn add(&mut self, owner: &str, count: usize) {
        if count > 0 {
            *self.counts.entry(owner.to_string()).or_default() += count;
        }
    }
}

/// Public functions of a block `impl`, if no trait is implemented by it.
fn methods(docs: &CrateDocs, block: &str) -> usize {
    let Some(item) = docs.item(block).filter(|item| item.field("impl", "trait").is_none()) else {
        return 0;
    };
    let items = item.ids("impl", "items");
    let functions = items.iter().filter_map(|at| docs.item(at));
    functions.filter(|item| item.is("function") && item.is_public()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts of a crate with these items, of which 0 is the root.
    fn counts(items: &[&str]) -> Vec<(String, usize)> {
        let index: Vec<_> =
            items.iter().enumerate().map(|(at, i)| format!("\"{at}\":{i}")).collect();
        let text = format!("{{\"root\":0,\"index\":{{{}}}}}", index.join(","));
        count(&CrateDocs::parse(&text).unwrap()).into_iter().collect()
    }

    fn item(name: &str, inner: &str) -> String {
        format!(r#"{{"name":"{name}","visibility":"public","inner":{{{inner}}}}}"#)
    }

    fn module(name: &str, items: &str) -> String {
        item(name, &format!(r#""module":{{"items":[{items}]}}"#))
    }

    fn of(items: &[String]) -> Vec<(String, usize)> {
        counts(&items.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn function(name: &str) -> String {
        item(name, r#""function":{}"#)
    }

    #[test]
    fn inherent_methods_count_and_implementations_of_traits_do_not() {
        let block = |of: &str| item("", &format!(r#""impl":{{"trait":{of},"items":[4]}}"#));
        let class = item("A", r#""struct":{"impls":[2,3]}"#);
        let all = [module("c", "1"), class, block("null"), block("{}"), function("f")];
        assert_eq!(of(&all), [("A".to_string(), 1)]);
        let private = function("f").replace("public", "crate");
        let all = [&all[..4], &[private]].concat();
        assert_eq!(of(&all), []);
    }

    #[test]
    fn functions_count_with_their_module_and_declared_methods_with_their_trait() {
        let declared = function("g").replace("public", "default");
        let class = item("T", r#""trait":{"items":[4,5]}"#);
        let constant = item("C", r#""assoc_const":{}"#);
        let all = [module("c", "1"), module("m", "2,3"), function("f"), class, declared, constant];
        let expected = [("functions of m", 1), ("m::T", 1)];
        assert_eq!(of(&all), expected.map(|(name, count)| (name.to_string(), count)));
    }

    #[test]
    fn what_is_exported_twice_counts_once_and_what_is_hidden_or_foreign_does_not() {
        let export = |name: &str, id: u32, is_glob: bool| {
            item("", &format!(r#""use":{{"name":"{name}","id":{id},"is_glob":{is_glob}}}"#))
        };
        let all = [
            module("c", "1,2,3"),
            export("f", 5, false),
            export("m", 4, true),
            export("Gone", 99, false),
            module("m", "5,6"),
            function("f"),
            function("g"),
        ];
        assert_eq!(of(&all), [("functions of the root".to_string(), 2)]);
    }
}
