//! Reading the CSV that `millpond sim` prints: by column name, quotes included.

use anyhow::{Context, Result, bail};

/// Returns the row under the header, as pairs of column and value.
pub fn only_row(text: &str) -> Result<Vec<(String, String)>> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let header = fields(lines.next().context("sim printed nothing")?);
    let row = fields(lines.next().context("sim printed a header and no row")?);
    if lines.next().is_some() {
        bail!("sim printed more than one row for one run");
    }
    if header.len() != row.len() {
        bail!("sim's row has {} fields under {} columns", row.len(), header.len());
    }
    Ok(header.into_iter().zip(row).collect())
}

/// Returns the value of one column, as a number.
pub fn number<T: std::str::FromStr>(row: &[(String, String)], column: &str) -> Result<T> {
    let value = row.iter().find(|(name, _)| name == column).map(|(_, value)| value);
    let value = value.with_context(|| format!("sim printed no column `{column}`"))?;
    value.parse().ok().with_context(|| format!("sim's {column} is no number: `{value}`"))
}

/// Splits a line at commas outside quotes; a doubled quote inside quotes stands for one.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let Some(last) = fields.last_mut() else { break };
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                last.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            c => last.push(c),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_by_name_also_with_quotes() {
        let row = only_row("policy,params,misses\nclock,\"variant=fix,\"\"a\"\"\",12\n").unwrap();
        assert_eq!(row[1].1, "variant=fix,\"a\"");
        assert_eq!(number::<u64>(&row, "misses").unwrap(), 12);
        assert!(number::<u64>(&row, "writes").is_err() && number::<u64>(&row, "policy").is_err());
    }

    #[test]
    fn missing_and_ragged_rows_are_errors() {
        for text in ["", "a,b\n", "a,b\n1\n", "a\n1\n2\n"] {
            assert!(only_row(text).is_err(), "{text:?}");
        }
    }
}
