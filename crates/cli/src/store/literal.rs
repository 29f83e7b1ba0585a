//! Keys and values of a store's own types as text: `7`, `"bolts"`, `("bolts", 8)`, `None`.
//!
//! The text is a Rust literal, so a user can type a printed value: strings in double quotes with
//! the escapes of [`escaped`], byte strings as `0x` and digits. An option is written as its value
//! or `None`, the empty tuple as `()`.

use millpond::internals::admin::dump::notation::{escaped, hex, unescape, unhex};
use millpond_handles::Datum;

/// Tuples nested deeper than this are refused: no type of a store is.
const DEPTH_MAX: usize = 20;

/// Writes `datum` as a literal.
pub(super) fn show(datum: &Datum) -> String {
    match datum {
        Datum::None => "None".to_string(),
        Datum::Bool(value) => value.to_string(),
        Datum::Int(number) => number.to_string(),
        Datum::Uint(number) => number.to_string(),
        Datum::Float(number) => format!("{number:?}"),
        Datum::Str(text) => format!("\"{}\"", escaped(text.as_bytes()).replace('"', "\\x22")),
        Datum::Bytes(bytes) => {
            let mut digits = b"0x".to_vec();
            hex(bytes, &mut digits);
            String::from_utf8_lossy(&digits).into_owned()
        }
        Datum::Tuple(elements) => match &elements[..] {
            [only] => format!("({},)", show(only)),
            all => format!("({})", all.iter().map(show).collect::<Vec<_>>().join(", ")),
        },
    }
}

/// Reads a literal.
///
/// # Errors
/// Names the expected token and the text that follows.
pub(super) fn parse(text: &str) -> Result<Datum, String> {
    let mut rest = text;
    let datum = take(&mut rest, 0)?;
    match rest.trim_start() {
        "" => Ok(datum),
        rest => Err(format!("nothing may follow, and there is '{rest}'")),
    }
}

fn eat(rest: &mut &str, text: &str) -> bool {
    let left = rest.trim_start().strip_prefix(text);
    *rest = left.unwrap_or(rest);
    left.is_some()
}

fn take(rest: &mut &str, depth: usize) -> Result<Datum, String> {
    if depth > DEPTH_MAX {
        return Err("tuples are nested too deeply".to_string());
    }
    if eat(rest, "(") {
        return take_tuple(rest, depth);
    }
    if eat(rest, "\"") {
        return take_string(rest);
    }
    *rest = rest.trim_start();
    let end = rest.find([',', ')', ' ']).unwrap_or(rest.len());
    let (word, left) = rest.split_at(end);
    *rest = left;
    match word {
        "None" => return Ok(Datum::None),
        "true" => return Ok(Datum::Bool(true)),
        "false" => return Ok(Datum::Bool(false)),
        _ => {}
    }
    if word.starts_with("0x") {
        let mut bytes = Vec::new();
        unhex(word.as_bytes(), &mut bytes).map_err(|error| format!("'{word}': {error}"))?;
        return Ok(Datum::Bytes(bytes));
    }
    let integer = word.parse().map(Datum::Int).ok();
    let integer = integer.or_else(|| word.parse().map(Datum::Uint).ok());
    let number = integer.or_else(|| word.parse().map(Datum::Float).ok());
    number.ok_or_else(|| {
        format!(
            "'{word}' is no number, true, false, None, \"string\" in double quotes, 0x and digits, \
             or tuple in brackets"
        )
    })
}

fn take_tuple(rest: &mut &str, depth: usize) -> Result<Datum, String> {
    let mut elements = Vec::new();
    while !eat(rest, ")") {
        elements.push(take(rest, depth + 1)?);
        if eat(rest, ",") {
            continue;
        }
        if eat(rest, ")") {
            break;
        }
        return Err(format!("',' or ')' is expected before '{rest}'"));
    }
    // `()` is the only value of its type.
    Ok(if elements.is_empty() { Datum::None } else { Datum::Tuple(elements) })
}

fn take_string(rest: &mut &str) -> Result<Datum, String> {
    let mut is_escaped = false;
    let end = rest.find(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    let end =
        end.ok_or_else(|| "a string does not end: its closing '\"' is missing".to_string())?;
    let text = rest[..end].replace("\\\"", "\"");
    *rest = &rest[end + 1..];
    let mut bytes = Vec::new();
    unescape(text.as_bytes(), &mut bytes).map_err(|error| format!("\"{text}\": {error}"))?;
    String::from_utf8(bytes).map(Datum::Str).map_err(|_| format!("\"{text}\" is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_as_the_same() {
        let text = |text: &str| Datum::Str(text.to_string());
        for (datum, shown) in [
            (Datum::Int(-7), "-7"),
            (Datum::Uint(u128::MAX), "340282366920938463463374607431768211455"),
            (Datum::Float(0.5), "0.5"),
            (Datum::Float(-1e300), "-1e300"),
            (Datum::Bool(true), "true"),
            (Datum::None, "None"),
            (text("a, (b) \"c\" \\ \t"), r#""a, (b) \x22c\x22 \\ \t""#),
            (Datum::Bytes(vec![0, 255]), "0x00ff"),
            (Datum::Tuple(vec![text("bolts"), Datum::Int(8)]), r#"("bolts", 8)"#),
            (Datum::Tuple(vec![Datum::Tuple(vec![Datum::None])]), "((None,),)"),
        ] {
            assert_eq!(show(&datum), shown);
            assert_eq!(parse(shown), Ok(datum));
        }
        assert_eq!(parse(r#" ( "say \"ah\"" ,1) "#).unwrap(), {
            Datum::Tuple(vec![text("say \"ah\""), Datum::Int(1)])
        });
        assert_eq!(parse("()"), Ok(Datum::None));
        let Ok(Datum::Float(number)) = parse("NaN") else { panic!("a float") };
        assert!(number.is_nan());
    }

    #[test]
    fn what_is_no_literal_is_refused_with_what_is_wrong() {
        for (text, what) in [
            ("bolts", "'bolts' is no number"),
            ("(1 2)", "',' or ')' is expected before ' 2)'"),
            ("(1, 2", "expected before ''"),
            ("1 2", "nothing may follow, and there is '2'"),
            (r#"("a, 1)"#, "its closing '\"' is missing"),
            ("0x123", "'0x123'"),
            (r#""\xff""#, "not UTF-8"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
        assert!(parse(&"(".repeat(100_000)).unwrap_err().contains("too deeply"));
    }
}
