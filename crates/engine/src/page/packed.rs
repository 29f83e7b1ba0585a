//! Compressed pages: the stored form of a page where the store compresses.
//!
//! ```text
//! offset size
//!      0    8  checksum of the page's header
//!      8    4  "LZ4p"
//!     12    4  length n of the block
//!     16    n  an LZ4 block of all of the page behind its checksum
//! 16 + n       zeros to the end of the last unit
//! ```
//! The checksum is that of the uncompressed page. A stored page is unpacked first and then
//! verified, so damaged bytes are detected as for uncompressed pages. A page that compression does
//! not shorten by at least a unit is stored uncompressed.

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use super::header::PageHeader;
use super::size::PageSize;

const MAGIC: [u8; 4] = *b"LZ4p";
/// Number of bytes before the block.
const HEAD: usize = 16;
/// Number of bytes of a page that are stored uncompressed: its checksum.
const CHECKSUM: usize = 8;

/// Compresses pages of one size, one after the other.
pub struct Packer {
    size: PageSize,
    table: CompressTable,
    /// Buffer for the longest possible block.
    block: Vec<u8>,
}

impl Packer {
    /// Returns a packer for pages of `size`.
    pub fn new(size: PageSize) -> Packer {
        let block = vec![0; get_maximum_output_size(size.bytes())];
        Packer { size, table: CompressTable::small(), block }
    }

    /// Compresses the sealed `page` into `into`, which is as long. Returns the number of units of
    /// `into` to write, or `None` if the page does not get shorter by at least a unit, and is
    /// written uncompressed.
    pub fn pack(&mut self, page: &[u8], into: &mut [u8]) -> Option<u64> {
        let (unit, most) = (self.size.unit(), self.size.bytes() - self.size.unit());
        let table = &mut self.table;
        let length =
            compress_into_with_table(page.get(CHECKSUM..)?, &mut self.block, table).ok()?;
        let units = (HEAD + length).div_ceil(unit);
        let (head, body) = into.get_mut(..units * unit)?.split_at_mut_checked(HEAD)?;
        if units * unit > most {
            return None;
        }
        head[..CHECKSUM].copy_from_slice(page.get(..CHECKSUM)?);
        head[8..12].copy_from_slice(&MAGIC);
        head[12..].copy_from_slice(&(length as u32).to_le_bytes());
        let (block, rest) = body.split_at_mut_checked(length)?;
        block.copy_from_slice(self.block.get(..length)?);
        rest.fill(0);
        Some(units as u64)
    }
}

/// Returns the number of units that a packed page occupies, read from its beginning; `None` if it
/// is not packed.
pub fn units_of(size: PageSize, stored: &[u8]) -> Option<u64> {
    let length = length_of(stored)?;
    let units = (HEAD + length).div_ceil(size.unit()) as u64;
    (units < size.units()).then_some(units)
}

/// Returns the length of the block, if there is one.
fn length_of(stored: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*stored.get(12..HEAD)?.first_chunk()?) as usize;
    let is_packed = stored.get(8..12)? == MAGIC;
    (is_packed && HEAD + length <= stored.len()).then_some(length)
}

/// Unpacks `stored` into `page`. Returns `false` if it is not a packed page; `page` then fails
/// verification.
pub fn unpack(stored: &[u8], page: &mut [u8]) -> bool {
    let is_whole = length_of(stored).is_some_and(|length| {
        let Some((checksum, rest)) = page.split_at_mut_checked(CHECKSUM) else { return false };
        checksum.copy_from_slice(&stored[..CHECKSUM]);
        decompress_into(&stored[HEAD..HEAD + length], rest).is_ok_and(|length| length == rest.len())
    });
    if !is_whole {
        page.fill(0);
        // Any checksum except that of an empty page.
        let other = !PageHeader::checksum_of(PageHeader::read(page).page, page);
        if let Some(checksum) = page.get_mut(..CHECKSUM) {
            checksum.copy_from_slice(&other.to_le_bytes());
        }
    }
    is_whole
}

#[cfg(test)]
mod tests {
    use millpond_base::{Lsn, PageId};

    use super::super::header::PageType;
    use super::*;

    fn page(size: PageSize, noise: usize) -> Vec<u8> {
        let mut page = vec![7; size.bytes()];
        let mut random = fastrand::Rng::with_seed(noise as u64);
        page[size.bytes() - noise..].fill_with(|| random.u8(..));
        let (lsn, kind) = (Lsn(8), PageType::BTREE_LEAF);
        PageHeader { checksum: 0, lsn, page: PageId(5), owner: 3, kind, level: 0 }.write(&mut page);
        PageHeader::seal(PageId(5), &mut page);
        page
    }

    #[test]
    fn a_page_comes_back_as_it_was_packed_or_is_not_packed() {
        for size in PageSize::ALL.into_iter().chain([PageSize::TINY]) {
            let (mut into, mut back) = (vec![0xEE; size.bytes()], vec![0xEE; size.bytes()]);
            let (mut last, mut packer) = (0, Packer::new(size));
            for eighths in 0..=7 {
                let page = page(size, eighths * (size.bytes() - 32) / 8);
                match packer.pack(&page, &mut into) {
                    Some(units) => {
                        assert!(units >= last && units < size.units(), "{units} units");
                        let length = units as usize * size.unit();
                        assert!(unpack(&into[..length], &mut back));
                        assert_eq!(page, back);
                        // No bytes of another page are written behind it.
                        assert!(!into[length - 8..length].contains(&0xEE));
                        last = units;
                    }
                    None => assert!(eighths > 4, "{size:?}: {eighths} eighths of noise"),
                }
            }
            assert!(last > 1, "{size:?}: {last}");
        }
    }

    #[test]
    fn no_damage_is_taken_for_a_page() {
        let size = PageSize::KIB_4;
        let page = page(size, 900);
        let (mut into, mut back) = (vec![0; size.bytes()], vec![0; size.bytes()]);
        let units = Packer::new(size).pack(&page, &mut into).unwrap();
        let stored = &mut into[..units as usize * size.unit()];
        let used = HEAD + u32::from_le_bytes(*stored[12..].first_chunk().unwrap()) as usize;
        for bit in 0..8 * used {
            stored[bit / 8] ^= 1 << (bit % 8);
            unpack(stored, &mut back);
            // Some bits do not affect the unpacked page.
            assert!(!PageHeader::is_sound(PageId(5), &back) || back == page, "bit {bit}");
            stored[bit / 8] ^= 1 << (bit % 8);
        }
        for length in [0, 7, 15, 16, 17, used - 1] {
            assert!(!unpack(&stored[..length], &mut back), "{length} bytes");
            assert!(!PageHeader::is_sound(PageHeader::read(&back).page, &back));
        }
    }
}
