//! Networks that may connect over TCP.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A text that is not a prefix of addresses.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is no prefix of addresses: write 10.1.0.0/16, fd00::/8 or one address")]
pub struct PrefixError {
    /// The rejected text.
    pub text: String,
}

/// Addresses that begin with the same bits: `10.1.0.0/16`, or one address.
///
/// ```
/// use millpond_server::serve::Prefix;
/// let house: Prefix = "10.1.0.0/16".parse().unwrap();
/// assert!(house.contains("10.1.2.3".parse().unwrap()));
/// assert!(house.contains("::ffff:10.1.2.3".parse().unwrap()));
/// assert!(!house.contains("10.2.0.1".parse().unwrap()));
/// assert!("10.1.0.0/33".parse::<Prefix>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    address: IpAddr,
    bits: u32,
}

/// Returns an address as a number, with its first bit highest, and its number of bits.
fn number(address: IpAddr) -> (u128, u32) {
    match address.to_canonical() {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    }
}

impl Prefix {
    /// Returns `true` if `address` is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let ((one, all), (other, others)) = (number(self.address), number(address));
        all == others && (one ^ other).checked_shr(128 - self.bits).unwrap_or(0) == 0
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let wrong = || PrefixError { text: text.to_string() };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let address = address.to_canonical();
        let most = number(address).1;
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?,
            None => most,
        };
        Ok(Prefix { address, bits })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_the_addresses_that_begin_like_it() {
        let cases = [
            ("0.0.0.0/0", "255.1.2.3", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "::1", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("192.168.4.0/22", "192.168.7.255", true),
            ("192.168.4.0/22", "192.168.8.0", false),
            ("fd00::/8", "fd12::9", true),
            ("fd00::/8", "fc00::9", false),
        ];
        for (prefix, address, is_in) in cases {
            let prefix: Prefix = prefix.parse().unwrap();
            assert_eq!(prefix.contains(address.parse().unwrap()), is_in, "{prefix} {address}");
        }
        for wrong in ["", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/33", "::/129", "host", "/8"] {
            assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
        }
    }
}
