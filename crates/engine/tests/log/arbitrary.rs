//! The fuzz target's body over bytes drawn by seed.

use super::body;

/// A failure prints its round.
fn rounds(count: usize, mut bytes: impl FnMut(&mut fastrand::Rng) -> Vec<u8>) {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..count {
        let data = bytes(&mut random);
        let done = std::panic::catch_unwind(|| body::log(&data));
        assert!(done.is_ok(), "in round {round}");
    }
}

#[test]
fn damaged_logs_give_errors_or_logs_that_work() {
    let length = body::LOG.len();
    rounds(250, |random| {
        let mut data = vec![random.u8(..) / 4 * 4 + 2];
        if random.u8(..4) == 0 {
            data[0] |= 1;
        }
        for _ in 0..random.usize(..6) {
            // Half of them in headers of slots and the log.
            let at = match random.bool() {
                true => random.usize(..length),
                false => {
                    (4096 + random.usize(..5) * (20 << 10)) * random.usize(..2) + random.usize(..48)
                }
            };
            let [low, middle, high, _] = (at as u32).to_le_bytes();
            data.extend([low, middle, high, random.u8(..)]);
        }
        data
    });
}

#[test]
fn any_bytes_are_refused_as_a_log_or_are_an_empty_one() {
    rounds(60, |random| {
        let mut data: Vec<u8> = (0..random.usize(..90_000)).map(|_| random.u8(..)).collect();
        // Lengths and flags that could be a record's.
        for at in (0..data.len() / 512).map(|sector| sector * 512) {
            data[at + 2..at + 4].fill(0);
            data[at + 13] = 0;
        }
        data.insert(0, random.u8(..2));
        data
    });
}
