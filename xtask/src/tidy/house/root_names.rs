//! Names that a crate's root exports, without features and with each feature.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Meta, Token, UseTree, Visibility};

use super::super::module_map::module_of;
use super::parsed::Parsed;

/// Number of names that `crate::…` offers.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct RootNames {
    pub without_features: usize,
    /// For each feature that changes the number, the number with only that feature.
    pub with_feature: BTreeMap<String, usize>,
}

/// The files of one crate by their module.
type Modules<'a> = BTreeMap<Vec<String>, &'a syn::File>;

/// Counts the exports of `lib.rs`; a program's crate has none.
pub fn root_names(directory: &str, files: &[&Parsed<'_>]) -> RootNames {
    let modules: Modules<'_> = files
        .iter()
        .filter(|file| !file.source.path.ends_with("/main.rs"))
        .map(|file| (module_of(file.source.path, directory), &file.syntax))
        .collect();
    let count = |feature: Option<&str>| {
        let mut names = BTreeSet::new();
        exports(&modules, &[], feature, &mut names);
        names.len()
    };
    let without_features = count(None);
    let mut features = BTreeSet::new();
    if let Some(root) = modules.get(&Vec::new()) {
        for attribute in root.items.iter().flat_map(attributes) {
            features_named(&attribute.meta, &mut features);
        }
    }
    let with_feature = features.into_iter().filter_map(|feature| {
        let names = count(Some(&feature));
        (names != without_features).then_some((feature, names))
    });
    RootNames { without_features, with_feature: with_feature.collect() }
}

/// Adds the public names of a module, those of globs included.
fn exports(
    modules: &Modules<'_>,
    module: &[String],
    feature: Option<&str>,
    names: &mut BTreeSet<String>,
) {
    let Some(file) = modules.get(module) else { return };
    for item in &file.items {
        let attributes = attributes(item);
        let is_macro = matches!(item, Item::Macro(_));
        let is_public = match visibility(item) {
            Some(visibility) => matches!(visibility, Visibility::Public(_)),
            None => is_macro && attributes.iter().any(|a| a.path().is_ident("macro_export")),
        };
        if !is_public || is_hidden(attributes) || !is_compiled(attributes, feature) {
            continue;
        }
        match item {
            Item::Use(item) => {
                for (path, leaf) in leaves(&item.tree) {
                    match leaf {
                        Some(name) => drop(names.insert(name)),
                        None => glob(modules, module, &path, feature, names),
                    }
                }
            }
            other => names.extend(name(other)),
        }
    }
}

/// Adds the exports of `pub use path::*`, if the path leads to a module of the crate.
fn glob(
    modules: &Modules<'_>,
    module: &[String],
    path: &[String],
    feature: Option<&str>,
    names: &mut BTreeSet<String>,
) {
    let target = match path.first().map(String::as_str) {
        Some("crate") => path[1..].to_vec(),
        Some("self") => [module, &path[1..]].concat(),
        _ => [module, path].concat(),
    };
    if target != module {
        exports(modules, &target, feature, names);
    }
}

/// Returns the leaves of a `use`: the path before the leaf, and the exported name, `None` for a
/// glob.
fn leaves(tree: &UseTree) -> Vec<(Vec<String>, Option<String>)> {
    match tree {
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            let inner = leaves(&path.tree).into_iter();
            inner.map(|(rest, leaf)| ([vec![first.clone()], rest].concat(), leaf)).collect()
        }
        UseTree::Name(name) => vec![(Vec::new(), Some(name.ident.to_string()))],
        UseTree::Rename(rename) => vec![(Vec::new(), Some(rename.rename.to_string()))],
        UseTree::Glob(_) => vec![(Vec::new(), None)],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn visibility(item: &Item) -> Option<&Visibility> {
    match item {
        Item::Const(item) => Some(&item.vis),
        Item::Enum(item) => Some(&item.vis),
        Item::Fn(item) => Some(&item.vis),
        Item::Mod(item) => Some(&item.vis),
        Item::Static(item) => Some(&item.vis),
        Item::Struct(item) => Some(&item.vis),
        Item::Trait(item) => Some(&item.vis),
        Item::Type(item) => Some(&item.vis),
        Item::Union(item) => Some(&item.vis),
        Item::Use(item) => Some(&item.vis),
        _ => None,
    }
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Mod(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Returns `true` if the item has the attribute `#[doc(hidden)]`.
fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("doc") && list.tokens.to_string() == "hidden",
        _ => false,
    })
}

/// Returns `true` if each `#[cfg(…)]` above the item holds on Linux, outside tests, with only this
/// feature.
fn is_compiled(attributes: &[Attribute], feature: Option<&str>) -> bool {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.filter_map(|cfg| cfg.parse_args::<Meta>().ok()).all(|meta| holds(&meta, feature))
}

fn holds(meta: &Meta, feature: Option<&str>) -> bool {
    match meta {
        Meta::Path(path) => path.is_ident("unix"),
        Meta::NameValue(_) => match value(meta) {
            Some((name, value)) if name == "feature" => Some(value.as_str()) == feature,
            Some((name, value)) => name == "target_os" && value == "linux",
            None => false,
        },
        Meta::List(list) => {
            let inner = list
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .unwrap_or_default();
            let mut inner = inner.iter().map(|meta| holds(meta, feature));
            if list.path.is_ident("not") {
                !inner.any(|holds| holds)
            } else if list.path.is_ident("any") {
                inner.any(|holds| holds)
            } else {
                inner.all(|holds| holds)
            }
        }
    }
}

/// Returns the value of a condition `name = "value"`.
fn value(meta: &Meta) -> Option<(String, String)> {
    let Meta::NameValue(pair) = meta else { return None };
    let syn::Expr::Lit(literal) = &pair.value else { return None };
    let syn::Lit::Str(text) = &literal.lit else { return None };
    Some((pair.path.get_ident()?.to_string(), text.value()))
}

/// Collects the features that a condition names.
fn features_named(meta: &Meta, features: &mut BTreeSet<String>) {
    match meta {
        Meta::NameValue(_) => {
            features.extend(value(meta).filter(|(name, _)| name == "feature").map(|(_, v)| v));
        }
        Meta::List(list) if !list.path.is_ident("cfg_attr") => {
            let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            for meta in inner.unwrap_or_default() {
                features_named(&meta, features);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::source::Source;
    use super::*;

    fn counted(files: &[(&str, &str)]) -> RootNames {
        let sources: Vec<Source<'_>> =
            files.iter().map(|(path, text)| Source::parse(path, text).unwrap()).collect();
        let parsed: Vec<Parsed<'_>> = sources
            .iter()
            .zip(files)
            .map(|(source, (_, text))| Parsed {
                krate: "a",
                source,
                syntax: syn::parse_file(text).unwrap(),
            })
            .collect();
        root_names("crates/a/src", &parsed.iter().collect::<Vec<_>>())
    }

    #[test]
    fn what_users_can_name_counts_once() {
        let text = "mod m;\npub use m::{A, b::C as D, A};\npub struct E;\npub(crate) struct F;\n\
                    #[doc(hidden)]\npub mod internals;\n#[cfg(doctest)]\npub struct Readme;\n\
                    #[macro_export]\nmacro_rules! g { () => {} }\nmacro_rules! h { () => {} }\n\
                    #[cfg(not(any(test, feature = \"model\")))]\npub use m::I;\n";
        let names = counted(&[("crates/a/src/lib.rs", text)]);
        assert_eq!(names.without_features, 5, "A, D, E, g, I");
        assert_eq!(names.with_feature, BTreeMap::from([("model".to_string(), 4)]));
    }

    #[test]
    fn a_glob_exports_the_public_names_of_its_module() {
        let files = [
            ("crates/a/src/lib.rs", "mod m;\npub use m::*;\n#[cfg(feature = \"f\")]\npub mod p;\n"),
            ("crates/a/src/m/mod.rs", "mod n;\npub use self::n::{B, C};\nfn x() {}\n"),
            ("crates/a/src/p.rs", "pub struct Q;\n"),
        ];
        let names = counted(&files);
        assert_eq!(names.without_features, 2);
        assert_eq!(names.with_feature, BTreeMap::from([("f".to_string(), 3)]));
    }
}
