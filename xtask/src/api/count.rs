//! Counting the public functions and methods of a documented crate.

use std::collections::BTreeMap;

use super::visit::Documented;

/// Counts public functions and methods by the type, trait or module that has them.
pub fn count(items: &[Documented]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for item in items.iter().filter(|item| item.kind == "function") {
        let owner = match item.name.rsplit_once("::") {
            Some((owner, _)) if items.iter().any(|other| other.name == owner) => owner.to_string(),
            Some((module, _)) => format!("functions of {module}"),
            None => "functions of the root".to_string(),
        };
        *counts.entry(owner).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::super::crate_docs::CrateDocs;
    use super::super::visit::public_items;
    use super::*;

    /// Returns the counts of a crate with these items; item 0 is the root.
    fn counts(items: &[&str]) -> Vec<(String, usize)> {
        let index: Vec<_> =
            items.iter().enumerate().map(|(at, i)| format!("\"{at}\":{i}")).collect();
        let text = format!("{{\"root\":0,\"index\":{{{}}}}}", index.join(","));
        count(&public_items(&CrateDocs::parse(&text).unwrap())).into_iter().collect()
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
