//! Tables of the options, from the documentation of the structs in the engine's source.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use quote::ToTokens;
use syn::{Attribute, Expr, Fields, Item, ItemEnum, ItemStruct, Lit, Meta};

/// The types that the page shows, with their files.
const TYPES: [(&str, &str); 9] = [
    ("Options", "crates/engine/src/store/options/options.rs"),
    ("SecondTierOptions", "crates/engine/src/store/options/second_tier.rs"),
    ("Compression", "crates/engine/src/page/superblock.rs"),
    ("TxnOptions", "crates/engine/src/txn/options.rs"),
    ("Durability", "crates/engine/src/txn/options.rs"),
    ("Isolation", "crates/engine/src/txn/options.rs"),
    ("TransactOptions", "crates/engine/src/api/transact.rs"),
    ("BulkOptions", "crates/engine/src/btree/structure/bulk.rs"),
    ("Lab", "crates/engine/src/store/options/lab.rs"),
];

/// A section for each type.
pub fn markdown(root: &Path) -> Result<String> {
    let mut page = String::new();
    for (name, file) in TYPES {
        let text =
            fs::read_to_string(root.join(file)).with_context(|| format!("reading {file}"))?;
        page.push_str(&section(&text, name).with_context(|| file.to_string())?);
    }
    Ok(page)
}

/// The section of the type `name` in this source.
fn section(source: &str, name: &str) -> Result<String> {
    let parsed = syn::parse_file(source).context("reading Rust")?;
    let found = parsed.items.iter().find_map(|item| match item {
        Item::Struct(item) if item.ident == name => Some(of_struct(item)),
        Item::Enum(item) if item.ident == name => Some(of_enum(item)),
        _ => None,
    });
    found.with_context(|| format!("there is no struct or enum {name}"))
}

fn of_struct(item: &ItemStruct) -> String {
    let mut rows = String::from("| option | |\n|---|---|\n");
    if let Fields::Named(fields) = &item.fields {
        for field in &fields.named {
            let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
            let kind = type_text(&field.ty);
            rows.push_str(&format!("| `{name}` `{kind}` | {} |\n", cell(&docs(&field.attrs))));
        }
    }
    format!("## {}\n\n{}\n\n{rows}\n", item.ident, docs(&item.attrs))
}

fn of_enum(item: &ItemEnum) -> String {
    let mut rows = String::from("| value | |\n|---|---|\n");
    for variant in &item.variants {
        let is_default = variant.attrs.iter().any(|attribute| attribute.path().is_ident("default"));
        let default = if is_default { " (default)" } else { "" };
        rows.push_str(&format!(
            "| `{}`{default} | {} |\n",
            variant.ident,
            cell(&docs(&variant.attrs))
        ));
    }
    format!("## {}\n\n{}\n\n{rows}\n", item.ident, docs(&item.attrs))
}

/// A type as a programmer writes it.
fn type_text(kind: &syn::Type) -> String {
    let text = kind.to_token_stream().to_string();
    text.replace(" < ", "<").replace(" > ", ">").replace(" >", ">").replace(" :: ", "::")
}

/// The documentation without its examples, and without links that only rustdoc knows.
fn docs(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    let mut is_code = false;
    for attribute in attributes {
        let Meta::NameValue(pair) = &attribute.meta else { continue };
        let Expr::Lit(value) = &pair.value else { continue };
        let Lit::Str(text) = &value.lit else { continue };
        if !pair.path.is_ident("doc") {
            continue;
        }
        let line = text.value();
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push(line.trim().to_string());
        }
    }
    without_links(lines.join("\n").trim())
}

/// `[text](target)` and `` [`item`] `` as their text.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once('[') {
        out.push_str(before);
        let Some((label, behind)) = inside.split_once(']') else {
            out.push('[');
            rest = inside;
            continue;
        };
        let target = behind.strip_prefix('(').and_then(|target| target.split_once(')'));
        out.push_str(label);
        rest = target.map_or(behind, |(_, behind)| behind);
    }
    out.push_str(rest);
    out
}

/// Returns the text as the cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
/// How a store is opened: see [`Db`].
///
/// ```
/// let [no] = example;
/// ```
pub struct Options {
    /// Bytes, a|b, as [`Options::x`](Options#structfield.x) says
    /// it. Default: none.
    pub memory: Option<u64>,
}
/// When.
pub enum When {
    /// At once.
    #[default]
    Now,
    /// Later.
    Then,
}";

    #[test]
    fn a_struct_is_a_table_of_what_its_documentation_says() {
        let section = section(SOURCE, "Options").unwrap();
        let row = "| `memory` `Option<u64>` | Bytes, a\\|b, as `Options::x` says it. \
                   Default: none. |\n";
        assert!(section.starts_with("## Options\n\nHow a store is opened: see `Db`.\n\n"));
        assert!(section.ends_with(&format!("|---|---|\n{row}\n")), "{section}");
    }

    #[test]
    fn an_enum_is_a_table_of_its_values_and_a_missing_type_is_an_error() {
        let found = section(SOURCE, "When").unwrap();
        assert!(found.contains("| `Now` (default) | At once. |\n| `Then` | Later. |\n"), "{found}");
        assert!(section(SOURCE, "Where").is_err());
    }

    #[test]
    fn the_types_of_the_page_are_in_their_files() {
        let page = markdown(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
        assert!(page.contains("| `log_gap` `u64` |") && page.contains("| `Sync` (default) |"));
    }
}
