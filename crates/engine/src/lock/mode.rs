//! Lock modes and their compatibility (rule 1).

/// The access that a lock allows its owner. Keys are locked in `S` and `X`; the others are for
/// whole trees.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockMode {
    /// Intention to read: the owner locks single keys in `S`.
    IS,
    /// Intention to write: the owner locks single keys in `X`, or in `S`.
    IX,
    /// Shared: the owner reads.
    S,
    /// Shared with intention to write: the owner reads everything, and locks the keys that it
    /// writes in `X`.
    SIX,
    /// Exclusive: the owner reads and writes.
    X,
}

impl LockMode {
    /// All modes, the weaker ones first.
    pub const ALL: [LockMode; 5] =
        [LockMode::IS, LockMode::IX, LockMode::S, LockMode::SIX, LockMode::X];

    /// Returns whether the modes are compatible: two owners may hold them on the same object at a
    /// time.
    pub fn goes_with(self, other: LockMode) -> bool {
        // Bit m of row n: modes n and m are compatible.
        const ROWS: [u8; 5] = [0b01111, 0b00011, 0b00101, 0b00001, 0];
        ROWS[self as usize] & (1 << other as u8) != 0
    }

    /// Returns whether the owner of this mode needs no further lock for the access that `other`
    /// allows.
    #[inline]
    pub fn covers(self, other: LockMode) -> bool {
        // Bit m of row n: mode n allows everything that mode m allows.
        const ROWS: [u8; 5] = [0b00001, 0b00011, 0b00101, 0b01111, 0b11111];
        ROWS[self as usize] & (1 << other as u8) != 0
    }

    /// Returns the weakest mode that allows everything that either of the two allows.
    pub fn with(self, other: LockMode) -> LockMode {
        match (self, other) {
            (a, b) if a == b => a,
            (LockMode::IS, stronger) | (stronger, LockMode::IS) => stronger,
            (LockMode::X, _) | (_, LockMode::X) => LockMode::X,
            // S with IX, and SIX with either.
            _ => LockMode::SIX,
        }
    }

    /// Returns the mode for a single key: `S` or `X`.
    #[inline]
    pub fn of_key(self) -> LockMode {
        match self {
            LockMode::IS | LockMode::S => LockMode::S,
            LockMode::IX | LockMode::SIX | LockMode::X => LockMode::X,
        }
    }

    /// Returns the mode to hold on the tree before a key is locked in this mode.
    #[inline]
    pub fn intention(self) -> LockMode {
        match self.of_key() {
            LockMode::S => LockMode::IS,
            _ => LockMode::IX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode;

    #[test]
    fn modes_go_together_as_in_the_matrix() {
        let matrix = [
            [true, true, true, true, false],
            [true, true, false, false, false],
            [true, false, true, false, false],
            [true, false, false, false, false],
            [false; 5],
        ];
        for (row, a) in matrix.iter().zip(LockMode::ALL) {
            for (goes, b) in row.iter().zip(LockMode::ALL) {
                assert_eq!(a.goes_with(b), *goes, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn the_union_of_two_modes_goes_only_with_what_both_go_with() {
        for a in LockMode::ALL {
            for b in LockMode::ALL {
                let both = a.with(b);
                assert_eq!(both, b.with(a));
                assert!(both.covers(a) && both.covers(b));
                assert_eq!(a.covers(b), both == a, "{a:?} and {b:?}");
                for other in LockMode::ALL {
                    let goes = a.goes_with(other) && b.goes_with(other);
                    assert_eq!(both.goes_with(other), goes, "{a:?}, {b:?} and {other:?}");
                }
            }
        }
    }
}
