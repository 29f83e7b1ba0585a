//! The rows of the nine tables (clause 1.3), byte by byte.
//!
//! Fields that transactions change come before the long texts, if a table has both, so that they
//! share a cache line. A row does not repeat its key. Money is in cents, taxes and discounts in
//! hundredths of a per cent. Dates are logical times ([`super::Worker`] gives the reason); 0 is no
//! date. NEW-ORDER and the two indexes consist of keys only: their rows are empty.

use super::layout::{I64, Layout, Text, U8, U16, U32, U64, layout};

layout! {
    /// WAREHOUSE; key: warehouse.
    Warehouse, "warehouse";
    /// W_YTD, cents.
    YTD: I64,
    /// W_TAX, 1/100 %.
    TAX: U16,
    /// W_NAME.
    NAME: Text(10),
    /// W_STREET_1.
    STREET_1: Text(20),
    /// W_STREET_2.
    STREET_2: Text(20),
    /// W_CITY.
    CITY: Text(20),
    /// W_STATE.
    STATE: Text(2),
    /// W_ZIP.
    ZIP: Text(9),
}

layout! {
    /// DISTRICT; key: warehouse, district.
    District, "district";
    /// D_YTD, cents.
    YTD: I64,
    /// D_NEXT_O_ID.
    NEXT_O_ID: U32,
    /// D_TAX, 1/100 %.
    TAX: U16,
    /// D_NAME.
    NAME: Text(10),
    /// D_STREET_1.
    STREET_1: Text(20),
    /// D_STREET_2.
    STREET_2: Text(20),
    /// D_CITY.
    CITY: Text(20),
    /// D_STATE.
    STATE: Text(2),
    /// D_ZIP.
    ZIP: Text(9),
}

layout! {
    /// CUSTOMER; key: warehouse, district, customer.
    Customer, "customer";
    /// C_BALANCE, cents.
    BALANCE: I64,
    /// C_YTD_PAYMENT, cents.
    YTD_PAYMENT: I64,
    /// C_PAYMENT_CNT.
    PAYMENT_CNT: U32,
    /// C_DELIVERY_CNT.
    DELIVERY_CNT: U32,
    /// C_DISCOUNT, 1/100 %.
    DISCOUNT: U16,
    /// C_CREDIT: `GC` or `BC`.
    CREDIT: Text(2),
    /// C_LAST.
    LAST: Text(16),
    /// C_FIRST.
    FIRST: Text(16),
    /// C_MIDDLE.
    MIDDLE: Text(2),
    /// C_CREDIT_LIM, cents.
    CREDIT_LIM: I64,
    /// C_SINCE.
    SINCE: U64,
    /// C_PHONE.
    PHONE: Text(16),
    /// C_STREET_1.
    STREET_1: Text(20),
    /// C_STREET_2.
    STREET_2: Text(20),
    /// C_CITY.
    CITY: Text(20),
    /// C_STATE.
    STATE: Text(2),
    /// C_ZIP.
    ZIP: Text(9),
    /// C_DATA.
    DATA: Text(500),
}

layout! {
    /// HISTORY; key: the worker that wrote the row, and the row's number among that worker's rows
    /// (the specification gives the table no key).
    History, "history";
    /// H_C_ID.
    C_ID: U32,
    /// H_C_W_ID.
    C_W_ID: U32,
    /// H_W_ID.
    W_ID: U32,
    /// H_C_D_ID.
    C_D_ID: U8,
    /// H_D_ID.
    D_ID: U8,
    /// H_AMOUNT, cents.
    AMOUNT: U32,
    /// H_DATE.
    DATE: U64,
    /// H_DATA.
    DATA: Text(24),
}

layout! {
    /// NEW-ORDER; key: warehouse, district, order. The row is empty.
    NewOrder, "new_order";
}

layout! {
    /// ORDER; key: warehouse, district, order.
    Order, "orders";
    /// O_C_ID.
    C_ID: U32,
    /// O_ENTRY_D.
    ENTRY_D: U64,
    /// O_CARRIER_ID; 0 until the order is delivered.
    CARRIER_ID: U8,
    /// O_OL_CNT.
    OL_CNT: U8,
    /// O_ALL_LOCAL: 1 if all lines are supplied by the home warehouse.
    ALL_LOCAL: U8,
}

layout! {
    /// ORDER-LINE; key: warehouse, district, order, line.
    OrderLine, "order_line";
    /// OL_I_ID.
    I_ID: U32,
    /// OL_SUPPLY_W_ID.
    SUPPLY_W_ID: U32,
    /// OL_DELIVERY_D; 0 until the order is delivered.
    DELIVERY_D: U64,
    /// OL_AMOUNT, cents.
    AMOUNT: U32,
    /// OL_QUANTITY.
    QUANTITY: U8,
    /// OL_DIST_INFO.
    DIST_INFO: Text(24),
}

layout! {
    /// ITEM; key: item.
    Item, "item";
    /// I_PRICE, cents.
    PRICE: U32,
    /// I_IM_ID.
    IM_ID: U32,
    /// I_NAME.
    NAME: Text(24),
    /// I_DATA.
    DATA: Text(50),
}

layout! {
    /// STOCK; key: warehouse, item.
    Stock, "stock";
    /// S_QUANTITY.
    QUANTITY: U16,
    /// S_YTD.
    YTD: U32,
    /// S_ORDER_CNT.
    ORDER_CNT: U32,
    /// S_REMOTE_CNT.
    REMOTE_CNT: U32,
    /// S_DIST_01 to S_DIST_10, one after the other.
    DISTS: Text(240),
    /// S_DATA.
    DATA: Text(50),
}

impl Stock {
    /// Bytes of one S_DIST_xx.
    pub const DIST_LEN: usize = 24;

    /// Returns S_DIST_xx of `district`, from 1 to 10, in `row`; zeros for any other district.
    #[inline(always)]
    pub fn dist(row: &[u8], district: u8) -> [u8; Stock::DIST_LEN] {
        let (dists, _) = Stock::DISTS.get(row).as_chunks::<{ Stock::DIST_LEN }>();
        dists.get(usize::from(district).wrapping_sub(1)).copied().unwrap_or_default()
    }
}

layout! {
    /// The index of customers by last name; key: warehouse, district, last name, first name,
    /// customer. The row is empty.
    CustomerName, "customer_name";
}

layout! {
    /// The index of orders by customer; key: warehouse, district, customer, order. The row is
    /// empty.
    OrderCustomer, "order_customer";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_one_behind_the_other_and_rows_have_these_lengths() {
        assert_eq!(Warehouse::LEN, 91);
        assert_eq!(District::LEN, 95);
        assert_eq!(Customer::LEN, 665);
        assert_eq!(History::LEN, 50);
        assert_eq!(NewOrder::LEN, 0);
        assert_eq!(Order::LEN, 15);
        assert_eq!(OrderLine::LEN, 45);
        assert_eq!(Item::LEN, 82);
        assert_eq!(Stock::LEN, 304);
    }

    #[test]
    fn setting_a_field_changes_its_bytes_and_no_others() {
        let mut row = vec![0xaa; Stock::LEN];
        Stock::YTD.set(&mut row, 0x0403_0201);
        assert_eq!(&row[2..6], [1, 2, 3, 4]);
        assert_eq!(row.iter().filter(|byte| **byte != 0xaa).count(), 4);
        assert_eq!(Stock::YTD.add(&mut row, 0x10), 0x0403_0211);
        assert_eq!(Stock::YTD.get(&row), 0x0403_0211);
        let mut row = vec![0xff; Customer::LEN];
        Customer::BALANCE.set(&mut row, -1000);
        assert_eq!(Customer::BALANCE.get(&row), -1000);
        assert_eq!(Customer::BALANCE.add(&mut row, 2500), 1500);
        assert_eq!(Customer::YTD_PAYMENT.get(&row), -1);
    }

    #[test]
    fn texts_are_padded_cut_and_trimmed() {
        let mut row = vec![0xff; Warehouse::LEN];
        Warehouse::NAME.set(&mut row, b"short");
        assert_eq!(Warehouse::NAME.get(&row), b"short\0\0\0\0\0");
        assert_eq!(Warehouse::NAME.trimmed(&row), b"short");
        Warehouse::NAME.set(&mut row, b"much too long");
        assert_eq!(Warehouse::NAME.trimmed(&row), b"much too l");
        Warehouse::NAME.set(&mut row, b"");
        assert_eq!(Warehouse::NAME.trimmed(&row), b"");
        assert_eq!(Warehouse::STREET_1.get(&row), [0xff; 20]);
    }

    #[test]
    fn each_district_has_its_own_dist_text() {
        let mut row = vec![0; Stock::LEN];
        for (i, byte) in Stock::DISTS.get_mut(&mut row).iter_mut().enumerate() {
            *byte = (i / Stock::DIST_LEN) as u8 + 1;
        }
        for district in 1..=10 {
            assert_eq!(Stock::dist(&row, district), [district; 24]);
        }
        assert_eq!(Stock::dist(&row, 0), [0; 24]);
        assert_eq!(Stock::dist(&row, 11), [0; 24]);
    }

    #[test]
    fn a_row_of_another_length_is_not_viewed() {
        assert_eq!(Item::view(&[0; 81]), Err(81));
        assert!(Item::view(&[0; 82]).is_ok());
        assert_eq!(Item::view_mut(&mut [0; 83]), Err(83));
    }
}
