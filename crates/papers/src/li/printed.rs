//! Numbers printed in tables 3.2 and 5.2 to 5.5.

/// Printed numbers of a trace: shares of READ, REPLACE and RECOV among its reads and writes, READs
/// that follow a write, REPLACEs that follow a READ.
pub(super) type Printed = (&'static str, [Option<f64>; 5]);

/// Printed numbers in per cent; those of chapter 5 are without its dsync requests. The two middle
/// traces of chapter 3 have no next requests.
pub(super) const PRINTED: [Printed; 12] = [
    ("300k_400", [Some(33.83), Some(62.57), Some(3.60), Some(82.1), Some(45.0)]),
    ("60k_400", [Some(50.85), Some(48.89), Some(0.18), None, None]),
    ("540k_400", [Some(14.33), Some(35.78), Some(49.89), None, None]),
    ("300k_4000", [Some(34.51), Some(65.37), Some(0.11), Some(81.9), Some(44.9)]),
    ("300k_50", [Some(25.64), Some(0.03), Some(74.33), None, None]),
    ("60k_4000", [Some(51.19), Some(48.76), Some(0.0), Some(83.3), Some(86.9)]),
    ("540k_4000", [Some(18.58), Some(80.76), Some(0.63), Some(63.4), Some(16.9)]),
    ("300k_40", [Some(24.89), Some(0.0), Some(75.11), Some(83.3), None]),
    ("120mbuf", [Some(86.56), Some(13.44), Some(0.0), Some(2.35), Some(15.1)]),
    ("240mbuf", [Some(71.81), Some(28.18), Some(0.01), Some(8.15), Some(20.78)]),
    ("480mbuf", [Some(36.62), Some(51.24), Some(12.13), Some(50.9), Some(35.9)]),
    ("960mbuf", [Some(1.41), Some(1.63), Some(96.96), Some(87.4), Some(2.2)]),
];

/// Our columns for these numbers.
pub(super) const COLUMNS: [&str; 5] =
    ["read_share", "replace_share", "recov_share", "read_then_write", "replace_then_read"];
