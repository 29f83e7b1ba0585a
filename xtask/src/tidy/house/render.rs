//! The figures for a terminal.

use std::fmt::Write as _;

use anyhow::{Error, bail};

use super::counts::Counts;
use super::measured::House;
use super::parsed::Site;

const TYPES: usize = 10;
const NAMESAKES: usize = 10;

/// A count whose places can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sites {
    TupleParameters,
    NounClauses,
    Leaning,
    RawLocks,
}

impl Sites {
    pub const NAMES: &str = "tuples, openings, leaning, locks";

    /// Returns the places, in order of path.
    pub fn of(self, house: &House) -> &[Site] {
        match self {
            Sites::TupleParameters => &house.all.tuple_parameter_sites,
            Sites::NounClauses => &house.all.openings.noun_clause_sites,
            Sites::Leaning => &house.all.openings.leaning_sites,
            Sites::RawLocks => &house.all.raw_lock_sites,
        }
    }
}

impl std::str::FromStr for Sites {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Ok(match name {
            "tuples" => Sites::TupleParameters,
            "openings" => Sites::NounClauses,
            "leaning" => Sites::Leaning,
            "locks" => Sites::RawLocks,
            _ => bail!("`{name}` has no sites: {}", Sites::NAMES),
        })
    }
}

/// Formats all figures, one below the other in columns.
pub fn render(house: &House) -> String {
    let mut blocks = vec![crates(house), types(house)];
    if !house.namesakes.is_empty() {
        blocks.push(namesakes(house));
    }
    blocks.extend([counts(house), prose(house)]);
    blocks.join("\n")
}

fn crates(house: &House) -> String {
    let mut rows = vec![["crate", "lines of code", "files", "names at the root"].map(String::from)];
    for size in &house.crates {
        let mut names = size.root_names.without_features.to_string();
        for (feature, with) in &size.root_names.with_feature {
            let _ = write!(names, ", {with} with {feature}");
        }
        rows.push([size.name.clone(), size.lines.to_string(), size.files.to_string(), names]);
    }
    let sum = |of: fn(&super::sizes::CrateSize) -> usize| {
        house.crates.iter().map(of).sum::<usize>().to_string()
    };
    rows.push(["sum".into(), sum(|size| size.lines), sum(|size| size.files), String::new()]);
    aligned(&rows)
}

fn types(house: &House) -> String {
    let head = ["type", "methods", "fields", "files with an impl", "defined in"];
    let mut rows = vec![head.map(String::from)];
    for object in house.types.iter().take(TYPES) {
        rows.push([
            object.name.clone(),
            object.methods.to_string(),
            object.fields.to_string(),
            object.files.to_string(),
            object.file.clone(),
        ]);
    }
    aligned(&rows)
}

fn namesakes(house: &House) -> String {
    let mut rows = vec![["types of one name", "files", "crate"].map(String::from)];
    for set in house.namesakes.iter().take(NAMESAKES) {
        rows.push([set.name.clone(), set.files.len().to_string(), set.krate.clone()]);
    }
    aligned(&rows)
}

/// A row of two counts: its name, and the function that formats a count.
type CountRow = (&'static str, fn(&Counts) -> String);

const COUNT_ROWS: [CountRow; 8] = [
    ("tuple-pattern parameters", |c| c.tuple_parameters.to_string()),
    ("locks that ignore poison by hand", |c| {
        format!("{} in {} files", c.raw_locks, c.raw_lock_files)
    }),
    ("doc comments", |c| c.openings.doc_comments.to_string()),
    ("  that open with What, Whether, Who, Where, Whose", |c| {
        format!("{}, {:.1} %", c.openings.noun_clauses, c.openings.noun_clause_percent())
    }),
    ("  that lean on the item above", |c| {
        format!("{}, {:.1} %", c.openings.leaning, c.openings.leaning_percent())
    }),
    ("files of 440 to 500 lines", |c| c.files_of_440_to_500_lines.to_string()),
    ("files over 500 lines", |c| c.files_over_500_lines.to_string()),
    ("files under 60 lines", |c| c.files_under_60_lines.to_string()),
];

fn counts(house: &House) -> String {
    let mut rows = vec![["count", "engine", "all"].map(String::from)];
    let row = |(name, of): &CountRow| [name.to_string(), of(&house.engine), of(&house.all)];
    rows.extend(COUNT_ROWS.iter().map(row));
    aligned(&rows)
}

fn prose(house: &House) -> String {
    let (words, sentences) = (&house.vocabulary, &house.sentences);
    let mut rows = vec![
        ["prose".to_string(), "value".to_string()],
        ["\"what\" per 10,000 words of pages".into(), format!("{:.0}", words.what_in_pages)],
        [
            "\"what\" per 10,000 words of doc comments".into(),
            format!("{:.0}", words.what_in_doc_comments),
        ],
        ["words of a sentence of docs/*.md, median".into(), sentences.median.to_string()],
        ["words, 95th percentile".into(), sentences.percentile_95.to_string()],
        ["commas per sentence".into(), format!("{:.1}", sentences.commas_per_sentence)],
    ];
    let lengths = words.words.iter();
    rows.extend(lengths.map(|(page, count)| [format!("words of {page}"), count.to_string()]));
    let (reports, all) = (megabytes(house.bytes.reports), megabytes(house.bytes.all));
    rows.push(["bytes of reports, of all that is tracked".into(), format!("{reports} of {all}")]);
    aligned(&rows)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Pads columns to their widest cell, with numbers below the head right-aligned.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let is_number = |column: usize| {
        let mut cells = rows.iter().skip(1).map(|row| &row[column]);
        cells.all(|cell| cell.chars().all(|c| c.is_ascii_digit()))
    };
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            let _ = match is_number(column) {
                true => write!(line, "{cell:>width$}  "),
                false => write!(line, "{cell:<width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_numbers_stand_at_the_right() {
        let rows = [["crate", "lines"], ["a", "5"], ["engine", "59292"]];
        let rows = rows.map(|row| row.map(String::from));
        assert_eq!(aligned(&rows), "crate   lines\na           5\nengine  59292\n");
    }

    #[test]
    fn names_of_sites_are_read() {
        for name in Sites::NAMES.split(", ") {
            assert!(name.parse::<Sites>().is_ok(), "{name}");
        }
        assert!("types".parse::<Sites>().is_err());
    }
}
