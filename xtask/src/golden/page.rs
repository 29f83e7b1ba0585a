//! The part of a page that a program writes, between two marks.

/// The line above the generated part.
pub const BEGIN: &str = "<!-- generated: begin -->";
/// The line below it.
pub const END: &str = "<!-- generated: end -->";

/// Returns the page with `text` between the marks; `None` if a mark is missing or they are
/// out of order.
pub fn replace(page: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = format!("above\n{BEGIN}\nold\n{END}\nbelow\n");
        let new = replace(&page, "\nnew\n").unwrap();
        assert_eq!(new, format!("above\n{BEGIN}\n\nnew\n\n{END}\nbelow\n"));
        assert_eq!(replace(&new, "new").unwrap(), new);
    }

    #[test]
    fn a_page_without_marks_is_left_alone() {
        assert_eq!(replace("text", "new"), None);
        assert_eq!(replace(&format!("{END}\n{BEGIN}"), "new"), None);
    }
}
