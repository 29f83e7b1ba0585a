//! A disk with a seeking arm, turning platters, and transfers.
//!
//! The time of a seek over `d` cylinders is `c + a √(d − 1) + b (d − 1)`, with three constants that
//! follow from a data sheet (Lee and Katz, 1993). The sheet has the times of seeks over one
//! cylinder, over a third of the cylinders (the average of random ones) and over all of them. The
//! platters' position is the time modulo a turn. Sectors are skewed from track to track, so that
//! sequential reads across tracks lose no turn. The model has one zone of tracks, since a file of 1
//! GB fits into one. It has no drive buffer: reads are of random pages, and a write is done when it
//! is on the platter, the factory setting of server drives.

use super::request::{Nanos, Request};

/// Specification of a disk.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DiskSpec {
    /// One turn.
    pub turn: Nanos,
    /// Sectors of a track.
    pub track: u64,
    /// Tracks of a cylinder.
    pub heads: u64,
    /// Cylinders.
    pub cylinders: u64,
    /// Times of a seek over one cylinder, of an average random seek, and of a seek over all
    /// cylinders.
    pub seeks: [Nanos; 3],
    /// Extra time of a write after a change of arm position or head.
    pub write_settle: Nanos,
    /// Change of head.
    pub switch: Nanos,
    /// Time before the drive starts a request.
    pub overhead: Nanos,
}

const MICROS: Nanos = 1_000;

impl Default for DiskSpec {
    /// Returns a SCSI disk of 10,000 turns a minute and 73 GB, typical of servers of 2004 to 2006;
    /// the thesis names no model. Seeks of 0.2, 4.7 and 9.7 ms for reads and 0.5 ms more for writes
    /// are from data sheets of that class; 460 KB a track are 77 MB/s on the outer tracks.
    fn default() -> DiskSpec {
        DiskSpec {
            turn: 6_000 * MICROS,
            track: 900,
            heads: 2,
            cylinders: 80_000,
            seeks: [200 * MICROS, 4_700 * MICROS, 9_700 * MICROS],
            write_settle: 500 * MICROS,
            switch: 300 * MICROS,
            overhead: 100 * MICROS,
        }
    }
}

impl DiskSpec {
    /// Returns the time of a seek over `distance` cylinders.
    pub fn seek(&self, distance: u64) -> Nanos {
        if distance == 0 {
            return 0;
        }
        let [single, average, full] = self.seeks.map(|seek| seek as f64);
        let cylinders = self.cylinders as f64;
        let a = (-10.0 * single + 15.0 * average - 5.0 * full) / (3.0 * cylinders.sqrt());
        let b = (7.0 * single - 15.0 * average + 8.0 * full) / (3.0 * cylinders);
        let over = (distance - 1) as f64;
        (single + a * over.sqrt() + b * over).round() as Nanos
    }

    /// Returns the offset of a track's start to that of the previous track: the sectors that pass
    /// while the head changes or the arm moves by one cylinder.
    fn skew(&self) -> u64 {
        let longest = self.switch.max(self.seeks[0]);
        (longest * self.track).div_ceil(self.turn)
    }

    /// Returns the time in which `sectors` pass.
    fn passing(&self, sectors: u64) -> Nanos {
        sectors * self.turn / self.track
    }

    /// Returns the position of a sector on its track, as a time within a turn.
    fn angle(&self, sector: u64) -> Nanos {
        let (track, at) = (sector / self.track, sector % self.track);
        self.passing((at + track * self.skew()) % self.track)
    }

    fn cylinder(&self, sector: u64) -> u64 {
        sector / self.track / self.heads
    }
}

/// A disk with the position of its arm.
#[derive(Clone, Debug)]
pub struct Disk {
    spec: DiskSpec,
    /// Track below the head.
    track: u64,
}

impl Disk {
    /// Creates a disk whose arm is at the first cylinder.
    pub fn new(spec: DiskSpec) -> Disk {
        Disk { spec, track: 0 }
    }

    /// Returns the completion time of a request that arrived at `arrived` and starts at `now`. The
    /// overhead of a request overlaps with the request before it.
    pub fn done_at(&self, now: Nanos, arrived: Nanos, request: &Request) -> Nanos {
        let spec = &self.spec;
        let begun = now.max(arrived + spec.overhead);
        let track = request.sector / spec.track;
        let distance = (track / spec.heads).abs_diff(self.track / spec.heads);
        let mut moved = if distance > 0 { spec.seek(distance) } else { 0 };
        if distance == 0 && track != self.track {
            moved = spec.switch;
        }
        if moved > 0 && request.is_write {
            moved += spec.write_settle;
        }
        let there = begun + moved;
        let wait = (spec.angle(request.sector) + spec.turn - there % spec.turn) % spec.turn;
        let crossed = (request.sector % spec.track + request.sectors.max(1) - 1) / spec.track;
        there + wait + spec.passing(request.sectors + crossed * spec.skew())
    }

    /// Serves a request; returns its completion time.
    pub fn serve(&mut self, now: Nanos, arrived: Nanos, request: &Request) -> Nanos {
        let done = self.done_at(now, arrived, request);
        self.track = (request.sector + request.sectors.max(1) - 1) / self.spec.track;
        done
    }

    /// Returns the cylinder below the arm.
    pub fn cylinder(&self) -> u64 {
        self.spec.cylinder(self.track * self.spec.track)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a disk with round numbers: 100 sectors a track in 10 ms, and only the skew of a
    /// switch of 1 ms.
    fn spec() -> DiskSpec {
        DiskSpec {
            turn: 10_000_000,
            track: 100,
            heads: 2,
            cylinders: 10_000,
            seeks: [1_000_000, 5_000_000, 9_000_000],
            write_settle: 500_000,
            switch: 1_000_000,
            overhead: 0,
        }
    }

    fn read(sector: u64, sectors: u64) -> Request {
        Request { sector, sectors, is_write: false, id: 0 }
    }

    #[test]
    fn seeks_are_those_of_the_data_sheet() {
        let spec = spec();
        assert_eq!((spec.seek(0), spec.seek(1)), (0, 1_000_000));
        // Over all cylinders: c + a √C + b C with a = (−10 + 75 − 45) / 300 and b = (7 − 75 + 72) /
        // 30,000.
        let full = spec.seek(10_001);
        assert!(full.abs_diff(1_000_000 + 6_666_667 + 1_333_333) < 10, "{full}");
        let third = spec.seek(10_000 / 3);
        assert!(third.abs_diff(5_300_000) < 50_000, "near the average: {third}");
        let disk = DiskSpec::default();
        assert!((1..2_000).all(|d| disk.seek(d) <= disk.seek(d + 1)));
    }

    #[test]
    fn times_are_those_of_hand() {
        let mut disk = Disk::new(spec());
        // Sector 50 of track 0 is half a turn away; ten sectors pass in 1 ms.
        assert_eq!(disk.serve(0, 0, &read(50, 10)), 6_000_000);
        // The next sector is below the head.
        assert_eq!(disk.serve(6_000_000, 6_000_000, &read(60, 10)), 7_000_000);
        // A moment too late, the sector is missed and comes after a turn.
        assert_eq!(disk.done_at(7_000_001, 7_000_001, &read(70, 10)), 18_000_000);
        // Track 1 begins ten sectors later: a switch of 1 ms, then sector 0 of it at 11 ms.
        assert_eq!(disk.serve(7_000_000, 7_000_000, &read(100, 10)), 12_000_000);
        // Cylinder 1 is track 2: 1 ms of seek; its sector 0 passes at 2 ms of each turn.
        assert_eq!(disk.done_at(12_000_000, 12_000_000, &read(200, 10)), 23_000_000);
        let write = Request { is_write: true, ..read(200, 10) };
        assert_eq!(disk.done_at(12_000_000, 12_000_000, &write), 23_000_000, "0.5 ms do not show");
        // At 10.4 ms a read gets there at 11.4 ms, a write at 11.9 ms: both before 12 ms.
        assert_eq!(disk.done_at(10_400_000, 0, &read(200, 10)), 13_000_000);
        assert_eq!(disk.done_at(10_400_000, 0, &write), 13_000_000);
        assert_eq!(disk.done_at(10_600_000, 0, &write), 23_000_000, "the write misses it");
        // Both tracks of a cylinder: 200 sectors and one crossing of ten sectors.
        assert_eq!(Disk::new(spec()).serve(0, 0, &read(0, 200)), 21_000_000);
    }

    #[test]
    fn what_waits_in_the_drive_has_no_overhead() {
        let disk = Disk::new(DiskSpec { overhead: 500_000, ..spec() });
        assert_eq!(disk.done_at(0, 0, &read(10, 10)), 2_000_000);
        assert_eq!(disk.done_at(700_000, 700_000, &read(10, 10)), 12_000_000, "missed");
        assert_eq!(disk.done_at(700_000, 100_000, &read(10, 10)), 2_000_000, "not missed");
        let mut disk = Disk::new(spec());
        disk.serve(0, 0, &read(450, 10));
        assert_eq!(disk.cylinder(), 2);
    }
}
