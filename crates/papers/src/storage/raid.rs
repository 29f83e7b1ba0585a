//! Layout of a RAID-5 array, and the cost of writing a part of a stripe.

use std::ops::Range;

/// Consecutive sectors on one disk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// Number of the disk.
    pub disk: usize,
    /// First sector on that disk.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u64,
}

/// The layout. A stripe has one unit on each disk, and one of these units holds parity, which moves
/// from disk to disk (left-symmetric).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raid {
    /// Number of disks, at least 3.
    pub disks: usize,
    /// Sectors of a unit.
    pub unit: u64,
}

/// Writes to a stripe, and the reads that precede them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StripeWrite {
    /// Old data and parity.
    pub reads: Vec<Part>,
    /// New data and parity.
    pub writes: Vec<Part>,
}

impl Raid {
    /// Returns the number of data sectors in a stripe.
    pub fn stripe_sectors(&self) -> u64 {
        self.unit * (self.disks as u64 - 1)
    }

    /// Returns the disk with a stripe's parity.
    pub fn parity_disk(&self, stripe: u64) -> usize {
        self.disks - 1 - (stripe % self.disks as u64) as usize
    }

    /// Returns the disk with a stripe's data unit number `unit`.
    fn data_disk(&self, stripe: u64, unit: u64) -> usize {
        (self.parity_disk(stripe) + 1 + unit as usize) % self.disks
    }

    /// Returns the places of sectors, one part for each unit.
    pub fn parts(&self, sector: u64, sectors: u64) -> Vec<Part> {
        let (mut at, end) = (sector, sector + sectors);
        let mut parts = Vec::new();
        while at < end {
            let (stripe, within) = (at / self.stripe_sectors(), at % self.stripe_sectors());
            let offset = within % self.unit;
            let count = (self.unit - offset).min(end - at);
            let disk = self.data_disk(stripe, within / self.unit);
            parts.push(Part { disk, sector: stripe * self.unit + offset, sectors: count });
            at += count;
        }
        parts
    }

    /// Returns the reads and writes that store the sectors `dirty` of a stripe. The ranges ascend,
    /// are relative to the stripe, and do not cross units. The reads are the smaller of two sets:
    /// the old data and parity (two reads and two writes for a page), or the rest of the stripe. A
    /// whole stripe needs no read.
    pub fn write(&self, stripe: u64, dirty: &[Range<u64>]) -> StripeWrite {
        let units = self.disks as u64 - 1;
        // Written span of each unit, and its number of written sectors, which reveals gaps.
        let mut spans: Vec<Option<(Range<u64>, u64)>> = vec![None; units as usize];
        for range in dirty {
            let at = (range.start / self.unit) as usize;
            let base = at as u64 * self.unit;
            let (start, end) = (range.start - base, range.end - base);
            let span = spans[at].get_or_insert((start..end, 0));
            span.0.end = end;
            span.1 += end - start;
        }
        let low = spans.iter().flatten().map(|(span, _)| span.start).min();
        let high = spans.iter().flatten().map(|(span, _)| span.end).max();
        let (Some(low), Some(high)) = (low, high) else { return StripeWrite::default() };
        let part = |disk, span: &Range<u64>| Part {
            disk,
            sector: stripe * self.unit + span.start,
            sectors: span.end - span.start,
        };
        let parity = part(self.parity_disk(stripe), &(low..high));
        let touched = || spans.iter().enumerate().filter_map(|(at, s)| Some((at, s.as_ref()?)));
        let of = |at: usize, span: &Range<u64>| part(self.data_disk(stripe, at as u64), span);
        let mut writes: Vec<Part> = touched().map(|(at, (span, _))| of(at, span)).collect();
        let mut modify = writes.clone();
        modify.push(parity);
        let is_whole = |span: &Option<(Range<u64>, u64)>| {
            span.as_ref().is_some_and(|(_, count)| *count == high - low)
        };
        let missing = spans.iter().enumerate().filter(|(_, span)| !is_whole(span));
        let rebuild: Vec<Part> = missing.map(|(at, _)| of(at, &(low..high))).collect();
        writes.push(parity);
        let reads = if rebuild.len() < modify.len() { rebuild } else { modify };
        StripeWrite { reads, writes }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const RAID: Raid = Raid { disks: 4, unit: 128 };

    fn counts(dirty: &[Range<u64>]) -> (usize, usize) {
        let write = RAID.write(5, dirty);
        (write.reads.len(), write.writes.len())
    }

    #[test]
    fn each_sector_has_its_own_place_and_parity_takes_turns() {
        let mut places = HashSet::new();
        for sector in (0..RAID.stripe_sectors() * 8).step_by(32) {
            let parts = RAID.parts(sector, 32);
            assert_eq!((parts.len(), parts[0].sectors), (1, 32));
            assert!(places.insert((parts[0].disk, parts[0].sector)));
            let stripe = sector / RAID.stripe_sectors();
            assert_eq!(parts[0].sector / 128, stripe);
            assert_ne!(parts[0].disk, RAID.parity_disk(stripe));
        }
        let parity: Vec<usize> = (0..5).map(|stripe| RAID.parity_disk(stripe)).collect();
        assert_eq!(parity, [3, 2, 1, 0, 3]);
        let across = RAID.parts(96, 64);
        let part = |disk, sector, sectors| Part { disk, sector, sectors };
        assert_eq!(across, [part(0, 96, 32), part(1, 0, 32)]);
        assert_eq!(RAID.parts(384, 8), [part(3, 128, 8)], "stripe 1 has its parity on disk 2");
    }

    #[test]
    fn a_small_write_is_two_reads_and_two_writes_and_a_whole_stripe_four_writes() {
        assert_eq!(counts(std::slice::from_ref(&(32..64))), (2, 2));
        let whole: Vec<Range<u64>> = (0..12).map(|at| at * 32..at * 32 + 32).collect();
        assert_eq!(counts(&whole), (0, 4));
        // Two whole units: the third unit is read, instead of two and the parity.
        assert_eq!(counts(&whole[..8]), (1, 3));
        // The same page of two units: two reads of data and one of parity, or one read of the third
        // unit.
        assert_eq!(counts(&[0..32, 128..160]), (1, 3));
        // Different pages of two units: three reads either way, so old data and parity.
        assert_eq!(counts(&[0..32, 160..192]), (3, 3));
        let write = RAID.write(0, &[0..32, 160..192]);
        assert_eq!(write.reads, write.writes);
        assert_eq!(write.writes[2], Part { disk: 3, sector: 0, sectors: 64 });
        // Two pages of a unit with a gap: the gap is written too.
        let write = RAID.write(0, &[0..32, 64..96]);
        assert_eq!(write.writes[0], Part { disk: 0, sector: 0, sectors: 96 });
        assert_eq!(write.reads.len(), 2);
        assert_eq!(RAID.write(0, &[]), StripeWrite::default());
    }
}
