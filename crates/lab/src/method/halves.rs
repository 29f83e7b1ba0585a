//! The halves of a set of traces: one half chooses parameters, and the other half judges the
//! choice.

/// The half to which a trace belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// Parameters may be chosen on this half.
    Tuning,
    /// Choices are judged on this half.
    HeldOut,
}

impl Half {
    /// Returns *tuning* or *held-out*.
    pub fn name(self) -> &'static str {
        match self {
            Half::Tuning => "tuning",
            Half::HeldOut => "held-out",
        }
    }
}

/// Returns the half of each trace, in the order given, by a rule that knows only the names. The
/// names are sorted by the last part of the path, then by the whole path, by bytes. Sorted traces
/// alternate between tuning and held-out; the first one is for tuning.
///
/// ```
/// # use millpond_lab::method::{Half, halves};
/// assert_eq!(halves(&["b/1", "a/2", "c/0"]), [Half::HeldOut, Half::Tuning, Half::Tuning]);
/// ```
pub fn halves<S: AsRef<str>>(names: &[S]) -> Vec<Half> {
    let key = |at: usize| {
        let whole = names[at].as_ref();
        (whole.rsplit(['/', '\\']).next().unwrap_or(whole), whole)
    };
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|a, b| key(*a).cmp(&key(*b)));
    let mut halves = vec![Half::Tuning; names.len()];
    order.iter().skip(1).step_by(2).for_each(|at| halves[*at] = Half::HeldOut);
    halves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_alternate_by_the_sorted_name_whatever_the_folder_and_the_order() {
        use Half::{HeldOut, Tuning};
        let names = ["z/a.gz", "a/d.gz", "c.gz", "b/b.gz"];
        assert_eq!(halves(&names), [Tuning, HeldOut, Tuning, HeldOut]);
        assert_eq!(halves(&["c.gz", "b/b.gz", "z/a.gz"]), [Tuning, HeldOut, Tuning]);
        // Traces of equal names are distinguished by their folders.
        assert_eq!(halves(&["y/a", "x/a"]), [HeldOut, Tuning]);
        assert_eq!(halves::<&str>(&[]), []);
        assert_eq!((Tuning.name(), HeldOut.name()), ("tuning", "held-out"));
    }
}
