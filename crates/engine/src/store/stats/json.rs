//! Writer of JSON objects of numbers and short texts, so that an embedder does not compile a
//! serialiser for one file. The reader needs the feature `serde`.

use std::fmt::Write;

/// A JSON object being written.
pub(super) struct Object<'j> {
    json: &'j mut String,
    is_empty: bool,
}

impl<'j> Object<'j> {
    pub(super) fn begin(json: &'j mut String) -> Object<'j> {
        json.push('{');
        Object { json, is_empty: true }
    }

    /// Begins a member; the caller appends its value to the returned text.
    pub(super) fn value(&mut self, name: &str) -> &mut String {
        if !std::mem::take(&mut self.is_empty) {
            self.json.push(',');
        }
        quote(self.json, name);
        self.json.push(':');
        self.json
    }

    pub(super) fn number(&mut self, name: &str, number: u64) {
        push(self.value(name), format_args!("{number}"));
    }

    /// Writes a number; infinities and NaN, which JSON lacks, become null.
    pub(super) fn float(&mut self, name: &str, number: f64) {
        match number.is_finite() {
            true => push(self.value(name), format_args!("{number:?}")),
            false => self.value(name).push_str("null"),
        }
    }

    pub(super) fn flag(&mut self, name: &str, flag: bool) {
        push(self.value(name), format_args!("{flag}"));
    }

    pub(super) fn text(&mut self, name: &str, text: &str) {
        quote(self.value(name), text);
    }

    pub(super) fn pairs(&mut self, name: &str, pairs: &[(u64, u64)]) {
        let json = self.value(name);
        json.push('[');
        for (at, (a, b)) in pairs.iter().enumerate() {
            push(json, format_args!("{}[{a},{b}]", if at > 0 { "," } else { "" }));
        }
        json.push(']');
    }

    pub(super) fn end(self) {
        self.json.push('}');
    }
}

fn push(json: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = json.write_fmt(text);
}

fn quote(json: &mut String, text: &str) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => push(json, format_args!("\\u{:04x}", c as u32)),
            c => json.push(c),
        }
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_and_any_number_is_read_back() {
        let mut json = String::new();
        let mut object = Object::begin(&mut json);
        object.text("text", "a\"b\\c\n\u{1}é");
        object.number("most", u64::MAX);
        object.float("small", 1e-7);
        object.float("large", 1e300);
        object.float("none", f64::NAN);
        object.flag("flag", true);
        object.pairs("pairs", &[(1, 2), (3, 4)]);
        object.pairs("empty", &[]);
        Object::begin(object.value("object")).end();
        object.end();
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        let expected = serde_json::json!({
            "text": "a\"b\\c\n\u{1}é", "most": u64::MAX, "small": 1e-7, "large": 1e300,
            "none": null, "flag": true, "pairs": [[1, 2], [3, 4]], "empty": [], "object": {},
        });
        assert_eq!(read, expected);
    }
}
