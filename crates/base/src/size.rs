//! Sizes as people write them: `1000`, `64MiB`, `5%`.

use std::fmt;
use std::str::FromStr;

/// A size that was written wrongly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// Neither a count, nor bytes with a unit, nor a percentage.
    #[error("'{0}' is no size: write frames (1000, 64k), bytes (256MiB) or a percentage (5%)")]
    Unreadable(String),
    /// Nothing fits into a size of zero.
    #[error("size '{0}' is zero: at least one frame is needed")]
    Zero(String),
    /// A percentage outside (0, 100].
    #[error("share '{0}' is outside 0 to 100 %")]
    OutOfRange(String),
    /// Pages of no bytes.
    #[error("page size 0 is none: 4096, or what the pages of the trace have")]
    NoPage,
    /// Fewer bytes than a page has.
    #[error("a cache of {bytes} bytes holds no page: they have {page_size}")]
    Small {
        /// Bytes of the cache.
        bytes: u64,
        /// Bytes of a page.
        page_size: u64,
    },
}

/// The size of a cache, as given on a command line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Size {
    /// A number of frames.
    Frames(u64),
    /// A number of bytes, divided by the page size.
    Bytes(u64),
    /// A share of the trace's distinct pages, rounded up.
    Share(f64),
}

impl Size {
    /// Refuses pages of no bytes, and sizes in bytes that hold no page.
    ///
    /// # Errors
    /// [`SizeError::NoPage`], [`SizeError::Small`].
    pub fn check_all(sizes: &[Size], page_size: u64) -> Result<(), SizeError> {
        if page_size == 0 {
            return Err(SizeError::NoPage);
        }
        for size in sizes {
            match *size {
                Size::Bytes(bytes) if bytes < page_size => {
                    return Err(SizeError::Small { bytes, page_size });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the number of frames, at least 1, given the page size in bytes and the number of
    /// distinct pages of the trace. Shares round up, bytes round down. A size that
    /// [`check_all`](Size::check_all) refuses becomes one frame.
    pub fn frames(self, page_size: u64, distinct_pages: u64) -> u64 {
        let frames = match self {
            Size::Frames(n) => n,
            Size::Bytes(b) => b.checked_div(page_size).unwrap_or(0),
            Size::Share(s) => {
                // 5 % of 100 is 5, though 0.05 * 100.0 is a little more than 5 in binary.
                let exact = s * distinct_pages as f64;
                (exact - exact.abs() * 1e-12).ceil() as u64
            }
        };
        frames.max(1)
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        let unreadable = || SizeError::Unreadable(text.to_string());
        if let Some(percent) = text.strip_suffix('%') {
            let value: f64 = percent.trim().parse().map_err(|_| unreadable())?;
            if value == 0.0 {
                return Err(SizeError::Zero(text.to_string()));
            }
            if !(value > 0.0 && value <= 100.0) {
                return Err(SizeError::OutOfRange(text.to_string()));
            }
            return Ok(Size::Share(value / 100.0));
        }
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
        let number: u64 = text[..digits].replace('_', "").parse().map_err(|_| unreadable())?;
        let (unit, bytes) = unit_of(text[digits..].trim()).ok_or_else(unreadable)?;
        let value = number.checked_mul(unit).ok_or_else(unreadable)?;
        if value == 0 {
            return Err(SizeError::Zero(text.to_string()));
        }
        Ok(if bytes { Size::Bytes(value) } else { Size::Frames(value) })
    }
}

/// Returns the multiplier, and `true` if it counts bytes: `k` and `M` alone count frames, with `B`
/// bytes.
fn unit_of(unit: &str) -> Option<(u64, bool)> {
    Some(match unit {
        "" => (1, false),
        "k" | "K" => (1_000, false),
        "m" | "M" => (1_000_000, false),
        "B" => (1, true),
        "kB" | "KB" => (1_000, true),
        "MB" => (1_000_000, true),
        "GB" => (1_000_000_000, true),
        "TB" => (1_000_000_000_000, true),
        "KiB" => (1 << 10, true),
        "MiB" => (1 << 20, true),
        "GiB" => (1 << 30, true),
        "TiB" => (1 << 40, true),
        _ => return None,
    })
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Frames(n) => write!(f, "{n}"),
            Size::Bytes(b) => write!(f, "{b}B"),
            Size::Share(s) => write!(f, "{}", Share(*s)),
        }
    }
}

/// A share of a whole, 0 to 1, written as `10%` or `0.1`.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Share(pub f64);

impl Share {
    /// Returns the share of `whole`, rounded down.
    pub fn of(self, whole: u32) -> u32 {
        let exact = self.0 * whole as f64;
        (exact + exact.abs() * 1e-12).floor() as u32
    }
}

impl FromStr for Share {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        let (digits, whole) = match text.strip_suffix('%') {
            Some(percent) => (percent.trim(), 100.0),
            None => (text, 1.0),
        };
        let value: f64 = digits.parse().map_err(|_| SizeError::Unreadable(text.to_string()))?;
        if !(0.0..=whole).contains(&value) {
            return Err(SizeError::OutOfRange(text.to_string()));
        }
        Ok(Share(value / whole))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 0.07 * 100 prints as 7.000000000000001 unless rounded.
        let percent = (self.0 * 100.0 * 1e9).round() / 1e9;
        write!(f, "{percent}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_frames_bytes_or_shares() {
        assert_eq!("1000".parse(), Ok(Size::Frames(1000)));
        assert_eq!("64k".parse(), Ok(Size::Frames(64_000)));
        assert_eq!("1MiB".parse(), Ok(Size::Bytes(1 << 20)));
        assert_eq!("5%".parse(), Ok(Size::Share(0.05)));
        assert_eq!(Size::Bytes(1 << 20).frames(4096, 0), 256);
        assert_eq!(Size::Share(0.05).frames(4096, 100), 5);
        assert_eq!(Size::Share(0.05).frames(4096, 101), 6);
        assert_eq!(Size::Share(0.0001).frames(4096, 3), 1);
        assert_eq!(Size::Bytes(8192).frames(0, 0), 1, "no bytes are taken for frames");
    }

    #[test]
    fn pages_of_no_bytes_and_caches_without_a_page_are_refused() {
        let sizes = [Size::Frames(1), Size::Bytes(4096), Size::Share(0.01)];
        assert_eq!(Size::check_all(&sizes, 4096), Ok(()));
        assert_eq!(Size::check_all(&sizes[..1], 0), Err(SizeError::NoPage));
        assert_eq!(Size::check_all(&[], 0), Err(SizeError::NoPage));
        let small = SizeError::Small { bytes: 4096, page_size: 4097 };
        assert_eq!(Size::check_all(&sizes, 4097), Err(small));
    }

    #[test]
    fn every_percentage_of_a_round_number_is_exact() {
        for percent in 1..=100u64 {
            let size: Size = format!("{percent}%").parse().unwrap();
            assert_eq!(size.frames(4096, 100), percent);
            assert_eq!(size.to_string(), format!("{percent}%"));
            let share: Share = format!("{percent}%").parse().unwrap();
            assert_eq!(share.of(100), percent as u32);
        }
    }

    #[test]
    fn wrong_sizes_say_what_is_wrong() {
        assert!(matches!("0".parse::<Size>(), Err(SizeError::Zero(_))));
        assert!(matches!("0%".parse::<Size>(), Err(SizeError::Zero(_))));
        assert!(matches!("101%".parse::<Size>(), Err(SizeError::OutOfRange(_))));
        assert!(matches!("-5".parse::<Size>(), Err(SizeError::Unreadable(_))));
        assert!(matches!("10 apples".parse::<Size>(), Err(SizeError::Unreadable(_))));
        assert!(matches!("NaN%".parse::<Size>(), Err(SizeError::OutOfRange(_))));
        assert!(matches!("1.5".parse::<Share>(), Err(SizeError::OutOfRange(_))));
    }
}
