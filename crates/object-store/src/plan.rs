//! Plan of a get: the parts that it needs, and the bytes of each.

use std::ops::Range;

use bytes::Bytes;

/// Parts that `range` overlaps.
pub(crate) fn parts_of(range: &Range<u64>, part: u64) -> Range<u64> {
    if range.is_empty() {
        return 0..0;
    }
    range.start / part..range.end.div_ceil(part)
}

/// Cuts `range` out of `parts`, the bytes of adjacent parts from `first` on.
pub(crate) fn cut(parts: Vec<Bytes>, first: u64, part: u64, range: &Range<u64>) -> Vec<Bytes> {
    let slice = |(index, bytes): (u64, Bytes)| {
        let start = index * part;
        let from = range.start.saturating_sub(start).min(bytes.len() as u64);
        let to = range.end.saturating_sub(start).min(bytes.len() as u64);
        let range = from as usize..to.max(from) as usize;
        // A small slice would keep the whole part in memory.
        match range.len() * 2 < bytes.len() {
            true => Bytes::copy_from_slice(&bytes[range]),
            false => bytes.slice(range),
        }
    };
    (first..).zip(parts).map(slice).filter(|bytes| !bytes.is_empty()).collect()
}

/// Splits `parts` into windows of at most `most` parts, in order.
pub(crate) fn windows(parts: Range<u64>, most: u64) -> impl Iterator<Item = Range<u64>> + Send {
    let most = most.max(1);
    let starts = (parts.start..parts.end).step_by(most as usize);
    starts.map(move |start| start..(start + most).min(parts.end))
}

/// Groups adjacent numbers into ranges.
pub(crate) fn runs(numbers: impl IntoIterator<Item = u64>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_what_is_cut_of_its_parts() {
        let all: Bytes = (0..100u8).collect();
        for start in 0..100u64 {
            for end in start + 1..=100 {
                let needed = parts_of(&(start..end), 16);
                let part = |index: u64| {
                    all.slice(index as usize * 16..(index as usize * 16 + 16).min(100))
                };
                let parts = needed.clone().map(part).collect();
                let cut = cut(parts, needed.start, 16, &(start..end)).concat();
                assert_eq!(cut, all[start as usize..end as usize]);
            }
        }
        assert_eq!(parts_of(&(5..5), 16), 0..0);
    }

    #[test]
    fn what_is_kept_of_a_run_keeps_nothing_else_in_memory() {
        let run: Bytes = vec![7; 100].into();
        let parts = crate::read::split(&run, 16);
        assert_eq!((parts.len(), parts.concat()), (7, vec![7; 100]));
        let first = parts[0].clone();
        let small = cut(parts, 0, 16, &(20..25));
        drop(run);
        assert!(small[0].is_unique(), "five bytes, and not a part");
        let is_alone = |bytes: Bytes| bytes.try_into_mut().is_ok_and(|own| own.capacity() <= 16);
        assert!(is_alone(first), "a part, and not the run");
        assert_eq!(crate::read::split(&Bytes::new(), 16).len(), 0);
    }

    #[test]
    fn windows_and_runs_cover_what_they_are_made_of() {
        let cover: Vec<_> = windows(3..14, 4).collect();
        assert_eq!(cover, [3..7, 7..11, 11..14]);
        assert_eq!(windows(5..5, 4).count(), 0);
        assert_eq!(runs([1, 2, 3, 7, 9, 10]), [1..4, 7..8, 9..11]);
    }
}
