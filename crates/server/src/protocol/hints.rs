//! Why something is written, as a client may tell a server: an extension of ours.
//!
//! A client that has chosen the metadata context [`REASON_CONTEXT`] puts the number of a reason
//! into the two highest bits of each cookie: 0 for the export's own reason, 1 for SYNCH, 2 for
//! REPLACE, 3 for RECOV. CACHE with FUA makes earlier writes into its range durable (dsync). A
//! server that does not know the context does not offer it, and a client then leaves these bits
//! alone. Clients that know nothing of it use the exports of a class instead.

use millpond_base::Reason;

/// The classes of writes that have an export and a number of their own, beginning with 1.
pub const CLASSES: [Reason; 3] = [Reason::Synch, Reason::Replace, Reason::Recov];

/// The metadata context by which a client says that the two highest bits of its cookies are
/// reasons.
pub const REASON_CONTEXT: &str = "x-millpond:reason";

/// The reason with this number: 0 none, 1 synch, 2 replace, 3 recov.
pub fn reason_of(number: u64) -> Option<Reason> {
    CLASSES.into_iter().zip(1..).find(|(_, at)| *at == number).map(|(reason, _)| reason)
}

/// The number of a reason.
pub fn number_of(reason: Reason) -> u64 {
    let found = CLASSES.into_iter().zip(1..).find(|(class, _)| *class == reason);
    found.map_or(0, |(_, at)| at)
}

/// Number of bits of a cookie below its reason's.
pub const REASON_SHIFT: u32 = 62;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_numbers() {
        for (number, reason) in (1..).zip(CLASSES) {
            assert_eq!((number_of(reason), reason_of(number)), (number, Some(reason)));
        }
        assert_eq!((number_of(Reason::None), reason_of(0), reason_of(4)), (0, None, None));
    }
}
