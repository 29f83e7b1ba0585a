//! Commands in the documentation, taken apart: each is one that its program knows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A program with a command line.
pub struct Program {
    /// Its name, which is its package's where it is not `millpond`.
    pub name: &'static str,
    /// Its command line.
    pub command: fn() -> clap::Command,
}

/// Marks a block of commands that cannot be run here.
const SKIP: &str = "<!-- not run: ";

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Markdown file, but what builds and tests leave.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_passed = ["target", "results", "shared"].contains(&name.as_str());
        if path.is_dir() && !is_passed && !name.starts_with('.') {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The blocks of commands of a page that are not marked, with their lines.
pub fn blocks(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut above, mut open) = (Vec::new(), "", None);
    for (at, line) in text.lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some("sh")) if !above.starts_with(SKIP) => open = Some((at + 2, String::new())),
            (Some(block), Some(_)) => {
                found.push(std::mem::take(block));
                open = None;
            }
            (Some((_, block)), None) => block.push_str(&format!("{line}\n")),
            (None, _) => {}
        }
        above = line.trim();
    }
    found
}

/// The commands of a block as a shell takes them apart, in words; what is read or written by
/// redirection is left out.
pub fn commands(block: &str) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let (mut word, mut is_word, mut quote) = (String::new(), false, None);
    let mut chars = block.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, is_word) = (Some(c), true),
            (None, '\\') if chars.next_if_eq(&'\n').is_some() => {}
            (None, '\\') => word.extend(chars.next()),
            (None, '#') if !is_word => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, ' ' | '\t' | '\n' | ';' | '|' | '&') if !word.ends_with('>') || c != '&' => {
                if std::mem::take(&mut is_word) {
                    found.last_mut().unwrap().push(std::mem::take(&mut word));
                }
                if !" \t".contains(c) {
                    found.push(Vec::new());
                }
            }
            (None, c) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        found.last_mut().unwrap().push(word);
    }
    let is_redirection = |word: &String| word.starts_with(['>', '<']) || word.contains(">&");
    for words in &mut found {
        if let Some(at) = words.iter().position(is_redirection) {
            words.truncate(at);
        }
    }
    found.retain(|words| !words.is_empty());
    found
}

/// The arguments of the program in a command; `None` if it is another one.
fn arguments<'w>(words: &'w [String], program: &Program) -> Option<&'w [String]> {
    let name = program.name;
    let is_program = |word: &String| word == name || word.ends_with(&format!("/{name}"));
    if let ["cargo", "run", rest @ ..] =
        words.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
    {
        let is_other = rest.iter().any(|word| ["-p", "--example", "--bin"].contains(word));
        let is_package = rest.windows(2).any(|two| two == ["-p", name]);
        let dashes = words.iter().position(|word| word == "--")?;
        let is_meant = if name == "millpond" { !is_other } else { is_package };
        return is_meant.then(|| &words[dashes + 1..]);
    }
    let at = words.iter().position(is_program)?;
    // Behind a program that runs it, or by itself.
    let is_run = at == 0 || ["valgrind", "do", "time", "systemd-run"].contains(&words[0].as_str());
    (is_run || words[..at].iter().all(|word| word.contains('='))).then(|| &words[at + 1..])
}

/// `for NAME in VALUE …`: the name stands for its first value.
fn remember(words: &[String], values: &mut BTreeMap<String, String>) {
    let words = words.strip_prefix(&["do".to_string()]).unwrap_or(words);
    if let [first, name, into, value, ..] = words
        && first == "for"
        && into == "in"
    {
        let value = if value.starts_with('$') { "1" } else { value };
        values.insert(format!("${name}"), value.to_string());
    }
}

/// Why a command cannot be, if it cannot.
pub fn complaint(
    words: &[String],
    values: &mut BTreeMap<String, String>,
    program: &Program,
) -> Option<String> {
    remember(words, values);
    let words: Vec<String> = words
        .iter()
        .map(|word| {
            values.iter().fold(word.clone(), |word, (name, value)| word.replace(name, value))
        })
        .collect();
    if let ["cargo", "xtask", chore, ..] =
        words.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
    {
        let source = std::fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
        let is_known = source.contains(&format!("\"{chore}\" =>"));
        return (!is_known).then(|| format!("cargo xtask has no {chore}"));
    }
    let arguments = arguments(&words, program)?;
    let all = std::iter::once(program.name).chain(arguments.iter().map(String::as_str));
    let error = (program.command)().try_get_matches_from(all).err()?;
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    let is_shown = [DisplayHelp, DisplayVersion].contains(&error.kind());
    (!is_shown).then(|| format!("{} {}: {error}", program.name, arguments.join(" ")))
}

/// Asserts that the program knows each of its commands in every page; returns the number of
/// commands of all programs.
pub fn assert_known(program: &Program) -> usize {
    let (mut files, mut wrong, mut count) = (Vec::new(), Vec::new(), 0);
    pages(&root(), &mut files);
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        for (line, block) in blocks(&text) {
            // Another workspace's program.
            if block.contains("cd crates/compare") || file.ends_with("docs/compare.md") {
                continue;
            }
            let mut values = BTreeMap::new();
            for words in commands(&block) {
                count += 1;
                if let Some(what) = complaint(&words, &mut values, program) {
                    wrong.push(format!("{}:{line}: {what}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    count
}
