//! The five transactions and their shares.

/// One of the five transactions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Clause 2.4.
    NewOrder,
    /// Clause 2.5.
    Payment,
    /// Clause 2.6.
    OrderStatus,
    /// Clause 2.7.
    Delivery,
    /// Clause 2.8.
    StockLevel,
}

impl Kind {
    /// All kinds, in the order of [`Mix`]'s shares.
    pub const ALL: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "new-order",
            Kind::Payment => "payment",
            Kind::OrderStatus => "order-status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock-level",
        }
    }
}

/// Shares of the transactions, in parts of their sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mix {
    /// NewOrder.
    pub new_order: u32,
    /// Payment.
    pub payment: u32,
    /// OrderStatus.
    pub order_status: u32,
    /// Delivery.
    pub delivery: u32,
    /// StockLevel.
    pub stock_level: u32,
}

impl Mix {
    /// The standard mix (clause 5.2.3): the four minima, and NewOrder for the rest.
    pub const STANDARD: Mix =
        Mix { new_order: 45, payment: 43, order_status: 4, delivery: 4, stock_level: 4 };

    /// The standard mix with Payment in Delivery's place (gilbert 1.3.2).
    pub const GILBERT: Mix =
        Mix { new_order: 45, payment: 47, order_status: 4, delivery: 0, stock_level: 4 };

    /// Returns a mix of only one kind of transaction.
    pub fn only(kind: Kind) -> Mix {
        let share = |of| u32::from(of == kind);
        Mix {
            new_order: share(Kind::NewOrder),
            payment: share(Kind::Payment),
            order_status: share(Kind::OrderStatus),
            delivery: share(Kind::Delivery),
            stock_level: share(Kind::StockLevel),
        }
    }

    /// Returns the upper borders of the shares; the last is their sum.
    pub(super) fn borders(&self) -> [u64; 5] {
        let parts =
            [self.new_order, self.payment, self.order_status, self.delivery, self.stock_level];
        let mut sum = 0;
        parts.map(|part| {
            sum += u64::from(part);
            sum
        })
    }
}
