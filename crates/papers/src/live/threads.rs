//! Numbers of threads to run with: 1, 2, 4 and so on, and as many as there are cores.

use super::cores;

/// Returns the powers of two below the machine's number of cores, and that number.
pub(crate) fn thread_counts() -> Vec<u32> {
    counts_up_to(cores())
}

fn counts_up_to(cores: u32) -> Vec<u32> {
    let powers = (0..31).map(|power| 1 << power);
    powers.take_while(|count| *count < cores).chain([cores]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_double_and_end_with_all_cores() {
        assert_eq!(counts_up_to(1), [1]);
        assert_eq!(counts_up_to(2), [1, 2]);
        assert_eq!(counts_up_to(12), [1, 2, 4, 8, 12]);
        assert_eq!(counts_up_to(16), [1, 2, 4, 8, 16]);
    }
}
