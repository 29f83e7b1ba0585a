//! The amount of data.

/// Districts of a warehouse.
pub const DISTRICTS: u8 = 10;
/// Maximum lines of an order.
pub(super) const LINES_MAX: usize = 15;
/// Number of orders of a district that a StockLevel counts as recent.
pub(super) const ORDERS: u32 = 20;

/// Cardinalities (clause 1.2.1); only tests use smaller ones than the specification's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u32,
    /// Items, and stock rows of a warehouse; 100,000.
    pub items: u32,
    /// Customers, and loaded orders, of a district; 3000.
    pub customers: u32,
}

impl Scale {
    /// Returns the specification's scale: about 85 MB of rows per warehouse.
    pub fn full(warehouses: u32) -> Scale {
        Scale { warehouses, items: 100_000, customers: 3000 }
    }

    /// Returns a scale for tests: about 1/100 of the rows.
    pub fn tiny(warehouses: u32) -> Scale {
        Scale { warehouses, items: 1000, customers: 30 }
    }

    /// Returns the number of delivered orders among a district's loaded ones; the other 30 %
    /// are new.
    pub fn delivered(&self) -> u32 {
        (u64::from(self.customers) * 7 / 10) as u32
    }

    /// Checks that there is data to run on.
    pub fn validate(&self) -> Result<(), ScaleError> {
        if self.warehouses == 0 || self.items == 0 || self.customers == 0 {
            return Err(ScaleError::Empty { scale: *self });
        }
        // The top bit of a warehouse's number marks its loaded history rows. One item number
        // above the existing ones must be free for orders that are rolled back.
        if self.warehouses >= 1 << 31 || self.items == u32::MAX {
            return Err(ScaleError::Huge { scale: *self });
        }
        Ok(())
    }
}

/// Reason that a scale is impossible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// A table would be empty.
    #[error("{scale:?}: every number must be at least 1")]
    Empty {
        /// The scale.
        scale: Scale,
    },
    /// A number does not fit its key.
    #[error("{scale:?}: at most 2^31 - 1 warehouses and 2^32 - 2 items")]
    Huge {
        /// The scale.
        scale: Scale,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_scale_is_the_specification_s() {
        let scale = Scale::full(5);
        assert_eq!((scale.items, scale.customers, scale.delivered()), (100_000, 3000, 2100));
        assert_eq!(scale.validate(), Ok(()));
    }

    #[test]
    fn empty_and_huge_scales_are_refused() {
        assert!(matches!(Scale::full(0).validate(), Err(ScaleError::Empty { .. })));
        assert!(matches!(Scale::full(1 << 31).validate(), Err(ScaleError::Huge { .. })));
    }
}
