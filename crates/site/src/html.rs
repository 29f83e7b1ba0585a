//! Just enough of HTML to find links and the places that they lead to.

use std::collections::BTreeSet;
use std::ops::Range;

/// What a page has of both.
#[derive(Default)]
pub struct Scan {
    /// Values of `href` and `src`, decoded, and where they are in the text.
    pub links: Vec<(Range<usize>, String)>,
    /// Values of `id` and `name`.
    pub ids: BTreeSet<String>,
}

/// Reads the tags of a page; what is in comments, scripts and style sheets is none.
pub fn scan(text: &str) -> Scan {
    let mut scan = Scan::default();
    let mut at = 0;
    while let Some(open) = text[at..].find('<').map(|found| at + found) {
        if text[open..].starts_with("<!--") {
            at = behind(text, open, "-->");
            continue;
        }
        let starts_tag = text[open + 1..].starts_with(|c: char| c.is_ascii_alphabetic());
        if !starts_tag {
            at = open + 1;
            continue;
        }
        let name_end = text[open + 1..].find(|c: char| !c.is_ascii_alphanumeric());
        let name_end = name_end.map_or(text.len(), |length| open + 1 + length);
        let name = text[open + 1..name_end].to_ascii_lowercase();
        at = attributes(text, name_end, &mut scan);
        if name == "script" || name == "style" {
            at = behind(text, at, &format!("</{name}"));
        }
    }
    scan
}

/// The place behind the next `end`, or that of the text's end.
fn behind(text: &str, from: usize, end: &str) -> usize {
    text[from..].find(end).map_or(text.len(), |found| from + found + end.len())
}

/// Reads a tag's attributes from `at` on; the place behind the tag.
fn attributes(text: &str, mut at: usize, scan: &mut Scan) -> usize {
    let bytes = text.as_bytes();
    loop {
        while at < bytes.len() && (bytes[at].is_ascii_whitespace() || bytes[at] == b'/') {
            at += 1;
        }
        if at >= bytes.len() {
            return at;
        }
        if bytes[at] == b'>' {
            return at + 1;
        }
        let start = at;
        while at < bytes.len() && !b" \t\r\n=>/".contains(&bytes[at]) {
            at += 1;
        }
        let name = text[start..at].to_ascii_lowercase();
        if at < bytes.len() && bytes[at] == b'=' {
            at += 1;
            let value = match bytes.get(at) {
                Some(&quote @ (b'"' | b'\'')) => {
                    let from = at + 1;
                    let quote = if quote == b'"' { "\"" } else { "'" };
                    at = behind(text, from, quote);
                    from..at.max(from + 1) - 1
                }
                _ => {
                    let from = at;
                    while at < bytes.len() && !b" \t\r\n>".contains(&bytes[at]) {
                        at += 1;
                    }
                    from..at
                }
            };
            let decoded = decoded(&text[value.clone()]);
            match name.as_str() {
                "href" | "src" => scan.links.push((value, decoded)),
                "id" | "name" => {
                    scan.ids.insert(decoded);
                }
                _ => {}
            }
        } else if at == start {
            // A byte that begins no attribute.
            at += 1;
        }
    }
}

/// The text that these characters stand for.
fn decoded(text: &str) -> String {
    let text = text.replace("&quot;", "\"").replace("&#39;", "'").replace("&#x27;", "'");
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// The characters that stand for this text, within a tag or outside.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Without `%20` and the like.
pub fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_ids_are_found_and_nothing_else() {
        let text = "<a href=\"x.html#a&amp;b\" class='c'>i &lt;a href=\"no\"&gt; < 3</a>\
                    <!-- <a href=\"no\"> --><script>\"<a href='no'>\"</script>\
                    <h2 id=here><img alt=\"a > b\" src='p.svg'/><a name=\"old\">";
        let scan = scan(text);
        let links: Vec<&str> = scan.links.iter().map(|(_, link)| link.as_str()).collect();
        assert_eq!(links, ["x.html#a&b", "p.svg"]);
        assert_eq!(&text[scan.links[0].0.clone()], "x.html#a&amp;b");
        assert_eq!(scan.ids.into_iter().collect::<Vec<_>>(), ["here", "old"]);
    }

    #[test]
    fn a_page_that_is_cut_off_anywhere_is_read() {
        let text = "<p><a href=\"x\" id='y'>ä</a><!-- --><script>1</script>";
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = scan(&text[..end]);
        }
        assert_eq!(percent_decoded("a%20b%C3%A4%zz%"), "a bä%zz%");
        assert_eq!(decoded(&escaped("<a> & \"b\"")), "<a> & \"b\"");
    }
}
