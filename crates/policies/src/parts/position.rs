//! Positions in a request stream, which do not wrap, from a host's ticks, which do.

use millpond_base::Tick;

/// Counts a host's 32-bit ticks in 64 bits.
#[derive(Clone, Debug, Default)]
pub struct Position {
    now: u64,
    last: Tick,
}

impl Position {
    /// Returns the last position seen.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Returns the position at `tick`. A tick before the last one counts as the last one.
    #[inline(always)]
    pub fn at(&mut self, tick: Tick) -> u64 {
        let ahead = tick.wrapping_sub(self.last);
        if ahead < 1 << 31 {
            self.now += u64::from(ahead);
            self.last = tick;
        }
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_that_wrap_keep_counting_and_never_go_back() {
        let mut position = Position::default();
        assert_eq!(position.at(5), 5);
        assert_eq!(position.at(4), 5);
        assert_eq!(position.at(1 << 30), 1 << 30);
        assert_eq!(position.at(2 << 30), 2 << 30);
        assert_eq!(position.at(3 << 30), 3 << 30);
        assert_eq!(position.at(7), (1 << 32) + 7);
    }
}
