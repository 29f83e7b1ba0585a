//! Charging a policy for its ghosts, the records of pages that left (li 3.4.1).

use millpond_policies::config::Spec;

use crate::registry::{Entry, PolicyError};

/// Default bytes per page.
pub const PAGE_BYTES: u64 = 4096;

/// Policies with an out queue that is charged: the multi-queues and the type queues. ARC's ghosts
/// are free, as in the source.
const CHARGED: [&str; 5] = ["mq", "t2-mq", "mq-hints", "tq", "tq-io"];

/// Returns `true` if the policy has an out queue that is charged.
pub fn is_charged(id: &str) -> bool {
    CHARGED.contains(&id)
}

/// Returns the largest cache, at least 1 frame, that fits with its out queue into the space of
/// `frames` frames. A ghost takes `ghost_bytes` and a page `page_bytes`. Policies that are not
/// charged get `frames`.
///
/// # Errors
/// [`PolicyError::Param`].
pub fn charged_frames(
    entry: &Entry,
    spec: &Spec,
    frames: u32,
    ghost_bytes: u64,
    page_bytes: u64,
) -> Result<u32, PolicyError> {
    if !is_charged(entry.info.id) || ghost_bytes == 0 {
        return Ok(frames);
    }
    let space = u128::from(frames) * u128::from(page_bytes.max(1));
    let (mut fits, mut too_many) = (1, u64::from(frames) + 1);
    while too_many - fits > 1 {
        let middle = fits.midpoint(too_many);
        let ghosts = entry.ghosts_max(spec, middle as u32)?;
        let needed = u128::from(middle) * u128::from(page_bytes.max(1))
            + u128::from(ghosts) * u128::from(ghost_bytes);
        if needed <= space { fits = middle } else { too_many = middle }
    }
    Ok(fits as u32)
}
