//! The eviction loop of most policies: one candidate after another, until the request is met.

use millpond_base::{FrameId, PageId};

use crate::contract::{EvictRequest, Host, RefusalReason};

/// Offers one frame of `state` after another; returns the number taken. `candidate` returns the
/// next one, or None if nothing is left to offer. `taken` unlinks the evicted frame, which may not
/// be the offered one. `refused` moves the offered one, so that it is not the next candidate again
/// if another can be.
#[inline(always)]
pub fn offer_in_turn<S: ?Sized, H: Host + ?Sized>(
    request: &EvictRequest,
    host: &mut H,
    state: &mut S,
    candidate: impl FnMut(&mut S) -> Option<FrameId>,
    taken: impl FnMut(&mut S, FrameId, PageId),
    refused: impl FnMut(&mut S, FrameId, RefusalReason),
) -> u32 {
    offer_from_queue(request, host, state, candidate, taken, refused, |_, _| ())
}

/// Like `offer_in_turn`, for an order that hits do not change. In such an order, an inner page
/// that stays because a swizzled child is evicted instead would be the next candidate again, and a
/// root forever. Each victim would then be random. `stayed` moves such a page elsewhere.
#[inline(always)]
pub fn offer_from_queue<S: ?Sized, H: Host + ?Sized>(
    request: &EvictRequest,
    host: &mut H,
    state: &mut S,
    mut candidate: impl FnMut(&mut S) -> Option<FrameId>,
    mut taken: impl FnMut(&mut S, FrameId, PageId),
    mut refused: impl FnMut(&mut S, FrameId, RefusalReason),
    mut stayed: impl FnMut(&mut S, FrameId),
) -> u32 {
    let (mut count, mut steps) = (0, 0);
    while count < request.frames && steps < request.steps_max {
        let Some(offered) = candidate(state) else { break };
        steps += 1;
        match host.take(offered) {
            Ok((frame, page)) => {
                taken(state, frame, page);
                count += 1;
                if frame != offered {
                    stayed(state, offered);
                }
            }
            Err(why) => {
                refused(state, offered, why);
                if host.has_enough() {
                    break;
                }
            }
        }
    }
    count
}

/// Offers the frames that `draw` returns, for a policy without records of frames; returns the
/// number taken.
#[inline(always)]
pub fn offer_drawn<H: Host + ?Sized>(
    request: &EvictRequest,
    host: &mut H,
    mut draw: impl FnMut() -> FrameId,
) -> u32 {
    offer_in_turn(request, host, &mut (), |()| Some(draw()), |(), _, _| (), |(), _, _| ())
}

/// Like `offer_drawn`, for a `draw` that returns several frames at a time. All drawn frames are
/// offered, unless the host has enough.
#[inline(always)]
pub fn offer_sampled<H: Host + ?Sized, I: Iterator<Item = u32>>(
    request: &EvictRequest,
    host: &mut H,
    mut draw: impl FnMut(usize) -> I,
) -> u32 {
    let (mut count, mut steps) = (0, 0);
    while count < request.frames && steps < request.steps_max {
        let drawn = (request.frames - count).min(request.steps_max - steps);
        steps += drawn;
        let mut frames = draw(drawn as usize);
        let mut coming = [frames.next(), frames.next(), frames.next()];
        while let [Some(frame), second, third] = coming {
            let next = frames.next();
            coming = [second, third, next];
            if let Some(next) = next {
                host.will_offer(FrameId(next));
            }
            if host.take(FrameId(frame)).is_ok() {
                count += 1;
            } else if host.has_enough() {
                return count;
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;

    fn request(frames: u32, steps_max: u32) -> EvictRequest {
        EvictRequest { frames, steps_max, now: 0, incoming: None }
    }

    fn full(frames: u32) -> TestHost {
        let mut host = TestHost::new(frames);
        (0..).zip(&mut host.frames).for_each(|(page, slot)| slot.page = Some(page));
        host
    }

    #[test]
    fn offers_end_with_the_goal_the_steps_or_the_candidates() {
        for (frames, steps_max, queued, gone, offered) in
            [(2, 9, 5, 2, 3), (9, 2, 5, 1, 2), (9, 9, 4, 3, 4), (1, 0, 4, 0, 0)]
        {
            let mut host = full(5);
            host.frames[1].refuse = Some(RefusalReason::Pinned);
            let mut queue: Vec<u32> = (0..queued).rev().collect();
            let mut refusals = Vec::new();
            let count = offer_in_turn(
                &request(frames, steps_max),
                &mut host,
                &mut queue,
                |queue| queue.pop().map(FrameId),
                |_, frame, page| assert_eq!(u64::from(frame.0), page.0),
                |_, frame, why| refusals.push((frame.0, why)),
            );
            assert_eq!(
                (count, host.gone.len(), host.offered.len()),
                (gone, gone as usize, offered)
            );
            assert!(refusals.iter().all(|refusal| *refusal == (1, RefusalReason::Pinned)));
            assert_eq!(refusals.len() + gone as usize, offered);
        }
    }

    #[test]
    fn draws_go_on_past_frames_that_are_refused_or_gone() {
        let (mut host, mut at) = (full(3), 0);
        host.frames[1].refuse = Some(RefusalReason::Permanent);
        let mut draw = || {
            at += 1;
            FrameId((at - 1) / 2 % 3)
        };
        assert_eq!(offer_drawn(&request(3, 12), &mut host, &mut draw), 2);
        assert_eq!((host.gone, host.offered.len()), (vec![0, 2], 12));
        let (mut host, mut at) = (full(3), 0);
        host.frames[1].refuse = Some(RefusalReason::Permanent);
        let mut draw = |count: usize| {
            let from = at;
            at += count as u32;
            (from..at).map(|at| at / 2 % 3)
        };
        assert_eq!(offer_sampled(&request(3, 12), &mut host, &mut draw), 2);
        assert_eq!((host.gone, host.offered.len(), at), (vec![0, 2], 12, 12));
    }
}
