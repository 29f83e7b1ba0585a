//! "Did you mean": the nearest known name to one that was mistyped.

/// The name among `known` that is nearest to `given`, if any is near enough to be a typo.
///
/// Distance counts inserted, deleted, replaced and swapped characters, ignoring case; a name
/// farther than a third of its length (at least 2) is not offered.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    known
        .into_iter()
        .map(|name| (distance(&given, &name.to_lowercase()), name))
        .filter(|(d, name)| *d <= (name.len() / 3).max(2))
        .min_by_key(|(d, _)| *d)
        .map(|(_, name)| name)
}

/// Returns ` (did you mean 'NAME'?)` with the [`nearest`] name among `known`, or an empty string:
/// the end of an error message.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map_or(String::new(), |near| format!(" (did you mean '{near}'?)"))
}

fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_name_and_nonsense_finds_none() {
        let known = ["lru", "clock", "lean-evict", "arc"];
        assert_eq!(nearest("lurc", known), Some("lru"));
        assert_eq!(nearest("clokc", known), Some("clock"));
        assert_eq!(nearest("leanevict", known), Some("lean-evict"));
        assert_eq!(nearest("something-else", known), None);
    }
}
