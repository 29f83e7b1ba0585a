//! Type names in the form that the catalog records, and their comparison with full names.
//!
//! A shape of more than 110 bytes (`shape.rs`), and a name of more than 255, keeps its front and a
//! digest of the rest:
//!
//! ```text
//! front…#hash             a hash of the text without the variants of its enums
//! front…#hash#3.2:hash    with enums: how many variants each has, and a hash of their names
//! front…#hash#:hash       where the counts would be too long
//! ```
//! So variants added at the end of an enum can be distinguished from a change of the recorded ones.
//! Older versions recorded no variants, and before that no shapes.

use xxhash_rust::xxh3::xxh3_64;

/// Maximum bytes of a name.
pub(in crate::store) const TYPE_NAME_MAX: usize = 255;
/// Maximum bytes of a shape in it.
pub(in crate::store) const SHAPE_MAX: usize = 110;
/// Maximum bytes of the counts of variants.
const COUNTS_MAX: usize = 40;

/// Beginning of the digest of a text's rest.
const CUT: &str = "…#";
/// Marks before, between and after the variants of an enum.
pub(in crate::store) const VARIANTS: [char; 3] = ['⟨', '|', '⟩'];

/// Returns the recorded form of a type's name; a recorded name is returned unchanged.
pub(in crate::store) fn recorded(name: &str) -> String {
    if name.len() <= TYPE_NAME_MAX && behind_cut(name).is_some() {
        return name.to_string();
    }
    let mut short = String::new();
    for (at, piece) in pieces(name).enumerate() {
        short.push_str(if at > 0 { "postcard<" } else { "" });
        short.push_str(&cut(piece.shape, SHAPE_MAX));
        short.push_str(piece.rest);
    }
    if short.len() <= TYPE_NAME_MAX { short } else { cut(name, TYPE_NAME_MAX) }
}

/// Returns `true` if a type of the name `wanted` may read data of the recorded type `found`. The
/// types must be the same, but enums may have more variants at the end.
pub(in crate::store) fn is_compatible(found: &str, wanted: &str) -> bool {
    if found == wanted || found == recorded(wanted) {
        return true;
    }
    // Recorded before there were shapes, or requested without them.
    if found == without_shapes(wanted) || without_shapes(found) == wanted {
        return true;
    }
    if let Some(rest) = behind_cut(found) {
        return Parts::of(wanted).has(rest);
    }
    let (mut ours, mut theirs) = (pieces(found), pieces(wanted));
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return true,
            (Some(our), Some(their)) if our.rest == their.rest => {
                if !is_compatible_shape(our.shape, their.shape) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn is_compatible_shape(found: &str, wanted: &str) -> bool {
    let wanted = Parts::of(wanted);
    if let Some((_, rest)) = found.rsplit_once(CUT) {
        return wanted.has(rest);
    }
    let found = Parts::of(found);
    let begins = |(found, wanted): (&Vec<&str>, &Vec<&str>)| wanted.starts_with(found);
    let all = || found.variants.iter().zip(&wanted.variants).all(begins);
    // Older versions recorded no variants.
    let has_all = || found.variants.len() == wanted.variants.len() && all();
    found.skeleton == wanted.skeleton && (found.variants.is_empty() || has_all())
}

/// Returns a name without the shapes in it, as older versions recorded it.
fn without_shapes(name: &str) -> String {
    let plain = |(at, piece): (usize, Piece<'_>)| {
        if at > 0 { format!("postcard{}", without_end(piece.rest)) } else { piece.rest.to_string() }
    };
    pieces(name).enumerate().map(plain).collect()
}

fn without_end(rest: &str) -> &str {
    rest.strip_prefix('>').unwrap_or(rest)
}

/// A shape in a name, and the text behind it, with the bracket.
struct Piece<'n> {
    shape: &'n str,
    rest: &'n str,
}

/// Returns the part before the first shape of a name, as a piece without a shape, and each shape
/// with the text behind it.
fn pieces(name: &str) -> impl Iterator<Item = Piece<'_>> {
    name.split("postcard<").enumerate().map(|(at, part)| {
        let end = if at == 0 { 0 } else { part.find('>').unwrap_or(part.len()) };
        Piece { shape: &part[..end], rest: &part[end..] }
    })
}

/// Returns the digest of a cut name; shapes in a whole one may be cut.
fn behind_cut(name: &str) -> Option<&str> {
    name.rsplit_once(CUT).map(|(_, rest)| rest).filter(|rest| !rest.contains('>'))
}

/// Cuts a text of more than `max` bytes.
fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_string();
    }
    let parts = Parts::of(text);
    let mut end = format!("{CUT}{}", hash_of(&parts.skeleton));
    if !parts.variants.is_empty() {
        let counts: Vec<_> = parts.variants.iter().map(|of| of.len().to_string()).collect();
        let counts = Some(counts.join(".")).filter(|counts| counts.len() <= COUNTS_MAX);
        let hash = parts.hash_of_variants(|_, len| len);
        end = format!("{end}#{}:{hash}", counts.unwrap_or_default());
    }
    let front = text.floor_char_boundary(max.saturating_sub(end.len()));
    format!("{}{end}", &text[..front])
}

/// A text, split into parts.
struct Parts<'t> {
    /// Everything but the variants of enums.
    skeleton: String,
    /// Names of the variants, by enum.
    variants: Vec<Vec<&'t str>>,
}

impl Parts<'_> {
    fn of(text: &str) -> Parts<'_> {
        let [open, between, close] = VARIANTS;
        let mut parts = Parts { skeleton: String::new(), variants: Vec::new() };
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once(open) {
            let (variants, behind) = behind.split_once(close).unwrap_or((behind, ""));
            parts.skeleton.push_str(before);
            parts.variants.push(variants.split(between).collect());
            rest = behind;
        }
        parts.skeleton.push_str(rest);
        parts
    }

    /// Returns `true` if the text matches the digest `rest`, apart from added variants at the end
    /// of its enums.
    fn has(&self, rest: &str) -> bool {
        // Older versions recorded no variants.
        let (hash, variants) = rest.split_once('#').map_or((rest, None), |(h, v)| (h, Some(v)));
        hash == hash_of(&self.skeleton) && variants.is_none_or(|variants| self.begin_as(variants))
    }

    fn begin_as(&self, recorded: &str) -> bool {
        let Some((counts, hash)) = recorded.split_once(':') else { return false };
        if counts.is_empty() {
            return hash == self.hash_of_variants(|_, len| len);
        }
        let counts: Option<Vec<usize>> =
            counts.split('.').map(|count| count.parse().ok()).collect();
        let fits = |counts: &Vec<usize>| {
            let mut pairs = counts.iter().zip(&self.variants);
            counts.len() == self.variants.len() && pairs.all(|(count, of)| *count <= of.len())
        };
        let counts = counts.filter(fits);
        counts.is_some_and(|counts| hash == self.hash_of_variants(|at, _| counts[at]))
    }

    /// Returns the hash of the first variants of each enum. `count` returns how many, and gets the
    /// enum's number and its count of variants.
    fn hash_of_variants(&self, count: impl Fn(usize, usize) -> usize) -> String {
        let [_, between, close] = VARIANTS;
        let mut text = String::new();
        for (at, of) in self.variants.iter().enumerate() {
            for name in &of[..count(at, of.len())] {
                text.push_str(name);
                text.push(between);
            }
            text.push(close);
        }
        hash_of(&text)
    }
}

fn hash_of(text: &str) -> String {
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_older_versions_are_names_without_shapes() {
        let name = "(postcard<Meters(f64)>, Option<postcard<u8>>)";
        assert_eq!(without_shapes(name), "(postcard, Option<postcard>)");
        assert_eq!(without_shapes("(String, u8)"), "(String, u8)");
        assert!(is_compatible("(postcard, Option<postcard>)", name));
        assert!(!is_compatible("(postcard, postcard)", name));
    }

    #[test]
    fn a_recorded_name_is_bounded_and_recorded_as_it_is() {
        let kinds = |count: usize| "Kind⟨Dot|Line⟩,".repeat(count);
        for count in [0, 1, 6, 7, 8, 15, 16, 30, 300] {
            for shapes in 0..5 {
                let name = "postcard<ä".to_string() + &kinds(count) + "u8>, ";
                let name = name.repeat(shapes) + "Option<u8>";
                let short = recorded(&name);
                assert!(short.len() <= TYPE_NAME_MAX, "{short}");
                assert_eq!(recorded(&short), short);
                assert!(is_compatible(&short, &name), "{short}");
                let other = format!("{name}, u8");
                assert!(!is_compatible(&short, &other), "{short}");
            }
        }
    }

    #[test]
    fn enums_may_get_more_variants_at_the_end_and_no_other_change() {
        let one = |kinds: &str, front: usize| {
            let name = format!("postcard<{}Kind⟨{kinds}⟩,[Other⟨A|B⟩]>", "a:u64,".repeat(front));
            format!("({name}, {name})")
        };
        for front in [0, 5, 13, 14, 40] {
            let found = recorded(&one("Dot|Line", front));
            for (kinds, may) in [
                ("Dot|Line", true),
                ("Dot|Line|Box", true),
                ("Line|Dot", false),
                ("Dot", false),
                ("Dot|Lines", false),
                ("Dot|Box|Line", false),
            ] {
                assert_eq!(is_compatible(&found, &one(kinds, front)), may, "{front}, {kinds}");
            }
        }
    }

    #[test]
    fn of_too_many_enums_any_change_is_another_type() {
        let all = |last: &str| format!("postcard<{}Kind⟨{last}⟩>", "Kind⟨Dot⟩,".repeat(30));
        let found = recorded(&all("Dot"));
        assert!(is_compatible(&found, &all("Dot")));
        assert!(!is_compatible(&found, &all("Dot|Line")));
    }
}
