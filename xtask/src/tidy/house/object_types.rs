//! Types by their size, and types that share a name.
//!
//! An `impl` names its type by the last word of a path. Where several types of a crate have that
//! name, it belongs to the one whose module is nearest to the file of the `impl`. Methods that a
//! macro writes are not counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use syn::{ImplItem, Item, ItemImpl, Type};

use super::parsed::Parsed;

/// A struct, enum or union.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ObjectType {
    pub krate: String,
    pub name: String,
    /// File that defines the type.
    pub file: String,
    /// Fields of a struct, variants of an enum.
    pub fields: usize,
    /// Functions of all its inherent `impl` blocks.
    pub methods: usize,
    /// Files with an `impl` of it, those of traits included.
    pub files: usize,
}

/// Types of one name in several files of a crate.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Namesakes {
    pub krate: String,
    pub name: String,
    pub files: Vec<String>,
}

/// A type while its `impl` blocks are collected.
struct Definition {
    file: String,
    fields: usize,
    methods: usize,
    impls: BTreeSet<String>,
}

/// Definitions by crate and name.
type Definitions<'a> = BTreeMap<(&'a str, String), Vec<Definition>>;

/// Returns all types, those with the most methods first, and all sets of types that share a
/// name.
pub fn object_types(parsed: &[Parsed<'_>]) -> (Vec<ObjectType>, Vec<Namesakes>) {
    let mut definitions: Definitions<'_> = BTreeMap::new();
    for file in parsed {
        define(file, &file.syntax.items, &mut definitions);
    }
    for file in parsed {
        implement(file, &file.syntax.items, &mut definitions);
    }
    let mut objects = Vec::new();
    let mut namesakes = Vec::new();
    for ((krate, name), all) in definitions {
        let files: BTreeSet<&String> = all.iter().map(|definition| &definition.file).collect();
        if files.len() > 1 {
            let files = files.into_iter().cloned().collect();
            namesakes.push(Namesakes { krate: krate.to_string(), name: name.clone(), files });
        }
        objects.extend(all.into_iter().map(|definition| ObjectType {
            krate: krate.to_string(),
            name: name.clone(),
            file: definition.file,
            fields: definition.fields,
            methods: definition.methods,
            files: definition.impls.len(),
        }));
    }
    objects.sort_by_key(|object| std::cmp::Reverse((object.methods, object.fields)));
    namesakes.sort_by_key(|set| std::cmp::Reverse(set.files.len()));
    (objects, namesakes)
}

fn define<'a>(file: &Parsed<'a>, items: &[Item], definitions: &mut Definitions<'a>) {
    for item in items.iter().filter(|item| !file.is_test(item)) {
        let (name, fields) = match item {
            Item::Struct(item) => (&item.ident, item.fields.len()),
            Item::Enum(item) => (&item.ident, item.variants.len()),
            Item::Union(item) => (&item.ident, item.fields.named.len()),
            Item::Mod(module) => {
                let inner = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                define(file, inner, definitions);
                continue;
            }
            _ => continue,
        };
        let path = file.source.path.to_string();
        let definition = Definition { file: path, fields, methods: 0, impls: BTreeSet::new() };
        definitions.entry((file.krate, name.to_string())).or_default().push(definition);
    }
}

fn implement<'a>(file: &Parsed<'a>, items: &[Item], definitions: &mut Definitions<'a>) {
    for item in items.iter().filter(|item| !file.is_test(item)) {
        match item {
            Item::Impl(block) => implement_one(file, block, definitions),
            Item::Mod(module) => {
                let inner = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                implement(file, inner, definitions);
            }
            _ => {}
        }
    }
}

fn implement_one<'a>(file: &Parsed<'a>, block: &ItemImpl, definitions: &mut Definitions<'a>) {
    let Type::Path(path) = &*block.self_ty else { return };
    let Some(last) = path.path.segments.last() else { return };
    let Some(all) = definitions.get_mut(&(file.krate, last.ident.to_string())) else { return };
    let distance = |definition: &&mut Definition| nearness(&definition.file, file.source.path);
    let Some(definition) = all.iter_mut().max_by_key(distance) else { return };
    definition.impls.insert(file.source.path.to_string());
    if block.trait_.is_none() {
        let is_function = |item: &&ImplItem| matches!(item, ImplItem::Fn(_));
        definition.methods += block.items.iter().filter(is_function).count();
    }
}

/// Returns the number of leading parts that two paths share; the same file is nearest.
fn nearness(a: &str, b: &str) -> usize {
    if a == b {
        return usize::MAX;
    }
    a.split('/').zip(b.split('/')).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::super::super::source::Source;
    use super::*;

    #[test]
    fn methods_of_all_blocks_count_for_the_nearest_type_of_the_name() {
        let files = [
            (
                "crates/a/src/m/x.rs",
                "pub struct P<T> { a: T, b: u8 }\nimpl<T> P<T> { fn f() {} }\n",
            ),
            (
                "crates/a/src/m/y.rs",
                "impl P<u8> { fn g(&self) {} const C: u8 = 1; fn h() {} }\n\
                 #[cfg(test)]\nmod tests { impl P<u8> { fn t() {} } struct Q; }\n",
            ),
            ("crates/a/src/n.rs", "enum P { A, B, C }\nimpl Clone for P { fn clone() {} }\n"),
        ];
        let sources: Vec<Source<'_>> =
            files.iter().map(|(path, text)| Source::parse(path, text).unwrap()).collect();
        let parse = |source| Parsed { krate: "a", source, syntax: syntax(source) };
        let parsed: Vec<Parsed<'_>> = sources.iter().map(parse).collect();
        let (objects, namesakes) = object_types(&parsed);
        let brief: Vec<_> = objects.iter().map(|o| (o.fields, o.methods, o.files)).collect();
        assert_eq!(brief, [(2, 3, 2), (3, 0, 1)]);
        assert_eq!(namesakes.len(), 1);
        assert_eq!(namesakes[0].files, ["crates/a/src/m/x.rs", "crates/a/src/n.rs"]);
    }

    fn syntax(source: &Source<'_>) -> syn::File {
        syn::parse_file(&source.lines.join("\n")).unwrap()
    }
}
