//! Step of the target of ARC, CAR and CART on a ghost hit.

choice! {
    /// Size of a step of the target.
    pub enum Adaptation {
        /// The quotient of two lengths, at least 1.
        Real = "real",
        /// The whole part of the quotient, at least 1.
        Integer = "integer",
    }
}

impl Adaptation {
    /// Returns the step `max(1, other / own)`, where `own` is the length of the hit list.
    #[inline(always)]
    pub fn step(self, other: u32, own: u32) -> f64 {
        let own = own.max(1);
        match self {
            Adaptation::Real => (f64::from(other) / f64::from(own)).max(1.0),
            Adaptation::Integer => f64::from((other / own).max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_the_quotient_but_never_less_than_one() {
        assert_eq!(Adaptation::Real.step(7, 2), 3.5);
        assert_eq!(Adaptation::Integer.step(7, 2), 3.0);
        for adaptation in [Adaptation::Real, Adaptation::Integer] {
            assert_eq!(adaptation.step(1, 9), 1.0);
            assert_eq!(adaptation.step(3, 0), 3.0);
        }
    }
}
