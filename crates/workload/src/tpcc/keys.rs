//! The keys of the tables and indexes: big-endian numbers, so that bytes sort like the
//! numbers.
//!
//! ```text
//! warehouse        w:4
//! district         w:4 d:1
//! customer         w:4 d:1 c:4
//! customer_name    w:4 d:1 last:16 first:16 c:4
//! history          writer:4 n:8
//! new_order        w:4 d:1 o:4
//! orders           w:4 d:1 o:4
//! order_customer   w:4 d:1 c:4 o:4
//! order_line       w:4 d:1 o:4 line:1
//! item             i:4
//! stock            w:4 i:4
//! ```

/// The bytes of a customer's last or first name in a key.
pub const NAME_LEN: usize = 16;

/// Returns the writer number of a warehouse's loaded history rows; workers have lower
/// numbers.
#[inline]
pub fn loading_writer(warehouse: u32) -> u32 {
    warehouse | 1 << 31
}

/// Returns the key of a warehouse.
#[inline(always)]
pub fn warehouse(w: u32) -> [u8; 4] {
    w.to_be_bytes()
}

/// Returns the key of an item.
#[inline(always)]
pub fn item(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// Returns the key of a stock row.
#[inline(always)]
pub fn stock(w: u32, i: u32) -> [u8; 8] {
    (u64::from(w) << 32 | u64::from(i)).to_be_bytes()
}

/// Returns the key of a district.
#[inline(always)]
pub fn district(w: u32, d: u8) -> [u8; 5] {
    let mut key = [d; 5];
    key[..4].copy_from_slice(&w.to_be_bytes());
    key
}

/// Returns the key of a district's numbered rows: customers, orders, new orders.
#[inline(always)]
fn numbered(w: u32, d: u8, n: u32) -> [u8; 9] {
    let mut key = [d; 9];
    key[..4].copy_from_slice(&w.to_be_bytes());
    key[5..].copy_from_slice(&n.to_be_bytes());
    key
}

/// Returns the key of a customer.
#[inline(always)]
pub fn customer(w: u32, d: u8, c: u32) -> [u8; 9] {
    numbered(w, d, c)
}

/// Returns the key of an order, and of its new-order row.
#[inline(always)]
pub fn order(w: u32, d: u8, o: u32) -> [u8; 9] {
    numbered(w, d, o)
}

/// Returns the key of an order line.
#[inline(always)]
pub fn order_line(w: u32, d: u8, o: u32, line: u8) -> [u8; 10] {
    let mut key = [line; 10];
    key[..9].copy_from_slice(&numbered(w, d, o));
    key
}

/// Returns the key in the index of orders by customer.
#[inline(always)]
pub fn order_customer(w: u32, d: u8, c: u32, o: u32) -> [u8; 13] {
    let mut key = [0; 13];
    key[..9].copy_from_slice(&numbered(w, d, c));
    key[9..].copy_from_slice(&o.to_be_bytes());
    key
}

/// Returns the key in the index of customers by last name.
#[inline(always)]
pub fn customer_name(
    w: u32,
    d: u8,
    last: &[u8; NAME_LEN],
    first: &[u8; NAME_LEN],
    c: u32,
) -> [u8; 41] {
    let mut key = [d; 41];
    key[..4].copy_from_slice(&w.to_be_bytes());
    key[5..21].copy_from_slice(last);
    key[21..37].copy_from_slice(first);
    key[37..].copy_from_slice(&c.to_be_bytes());
    key
}

/// The part of a name index's key that all customers of a last name share.
pub const NAME_PREFIX_LEN: usize = 21;

/// Returns the key of the `n`th history row of a writer.
#[inline(always)]
pub fn history(writer: u32, n: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&writer.to_be_bytes());
    key[4..].copy_from_slice(&n.to_be_bytes());
    key
}

/// Returns the last four bytes of a key as a number (order, customer or item); 0 if the key
/// is shorter.
#[inline(always)]
pub fn last_number(key: &[u8]) -> u32 {
    key.last_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Returns the number at `at` of a key; 0 if the key is shorter.
#[inline(always)]
pub fn number_at(key: &[u8], at: usize) -> u32 {
    let bytes = key.get(at..).and_then(|rest| rest.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Returns warehouse and district of a key that begins with them; zeros if the key is
/// shorter.
#[inline(always)]
pub fn district_of(key: &[u8]) -> (u32, u8) {
    (number_at(key, 0), key.get(4).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_numbers_do() {
        assert!(district(1, 10) < district(2, 1));
        assert!(customer(1, 2, 255) < customer(1, 2, 256));
        assert!(stock(1, 70_000) < stock(2, 1));
        assert!(order_line(1, 1, 255, 15) < order_line(1, 1, 256, 1));
        assert!(order_customer(1, 1, 9, u32::MAX) < order_customer(1, 1, 10, 0));
        assert!(history(0, u64::MAX) < history(1, 0));
        let name = |text: &[u8]| {
            let mut name = [0; NAME_LEN];
            name[..text.len()].copy_from_slice(text);
            name
        };
        let key = |last: &[u8], first: &[u8], c| customer_name(1, 1, &name(last), &name(first), c);
        assert!(key(b"BAR", b"z", 9) < key(b"BARBAR", b"a", 1));
        assert!(key(b"BAR", b"a", 9) < key(b"BAR", b"b", 1));
        assert!(key(b"BAR", b"a", 1) < key(b"BAR", b"a", 2));
    }

    #[test]
    fn numbers_come_back_out_of_keys() {
        assert_eq!(last_number(&order(7, 3, 4711)), 4711);
        assert_eq!(last_number(&order_customer(7, 3, 12, 4711)), 4711);
        assert_eq!(number_at(&order_customer(7, 3, 12, 4711), 5), 12);
        assert_eq!(number_at(&order_line(7, 3, 99, 5), 5), 99);
        assert_eq!(district_of(&order_line(7, 3, 99, 5)), (7, 3));
        let name = [b'x'; NAME_LEN];
        assert_eq!(last_number(&customer_name(1, 2, &name, &name, 31)), 31);
        // Keys that are too short harm nothing.
        assert_eq!((last_number(b"abc"), number_at(b"abc", 9), district_of(b"")), (0, 0, (0, 0)));
    }

    #[test]
    fn loading_and_running_write_different_history_keys() {
        assert!(history(u32::MAX >> 1, u64::MAX) < history(loading_writer(1), 0));
    }
}
