//! Reasons of writes, sent by a client to a server: an extension of ours.
//!
//! A client that has chosen the metadata context [`REASON_CONTEXT`] puts the number of a reason
//! into the two highest bits of each cookie: 0 for the export's own reason, 1 for SYNCH, 2 for
//! REPLACE, 3 for RECOV. CACHE with FUA makes earlier writes into its range durable (dsync). A
//! server without the context does not offer it, and a client then leaves these bits alone. Clients
//! without it use the exports of a class instead.

use millpond_base::Reason;

/// Classes of writes that have their own export and number; the first has number 1.
pub const CLASSES: [Reason; 3] = [Reason::Synch, Reason::Replace, Reason::Recov];

/// The metadata context of a client whose cookies carry reasons in their two highest bits.
pub const REASON_CONTEXT: &str = "x-millpond:reason";

/// Returns the reason with this number: 0 none, 1 synch, 2 replace, 3 recov.
pub fn reason_of(number: u64) -> Option<Reason> {
    CLASSES.into_iter().zip(1..).find(|(_, at)| *at == number).map(|(reason, _)| reason)
}

/// Returns the number of a reason.
pub fn number_of(reason: Reason) -> u64 {
    let found = CLASSES.into_iter().zip(1..).find(|(class, _)| *class == reason);
    found.map_or(0, |(_, at)| at)
}

/// Number of bits of a cookie below those of the reason.
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
