//! The nine tables and two indexes of a store.

use super::layout::Layout;
use super::rows::{
    Customer, CustomerName, District, History, Item, NewOrder, Order, OrderCustomer, OrderLine,
    Stock, Warehouse,
};
use crate::live::{DriveError, Store, TableId};

/// Returns the names of all tables and indexes, in the order of [`Tables::all`].
pub fn tables() -> [&'static str; 11] {
    [
        Warehouse::TABLE,
        District::TABLE,
        Customer::TABLE,
        CustomerName::TABLE,
        History::TABLE,
        NewOrder::TABLE,
        Order::TABLE,
        OrderCustomer::TABLE,
        OrderLine::TABLE,
        Item::TABLE,
        Stock::TABLE,
    ]
}

/// Ids of the tables in a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tables {
    /// WAREHOUSE.
    pub warehouse: TableId,
    /// DISTRICT.
    pub district: TableId,
    /// CUSTOMER.
    pub customer: TableId,
    /// The index of customers by last name.
    pub customer_name: TableId,
    /// HISTORY.
    pub history: TableId,
    /// NEW-ORDER.
    pub new_order: TableId,
    /// ORDER.
    pub order: TableId,
    /// The index of orders by customer.
    pub order_customer: TableId,
    /// ORDER-LINE.
    pub order_line: TableId,
    /// ITEM.
    pub item: TableId,
    /// STOCK.
    pub stock: TableId,
}

impl Tables {
    /// Creates all tables that do not exist yet.
    pub fn create<S: Store>(store: &S) -> Result<Tables, DriveError<S::Error>> {
        Tables::with(|name| Ok(store.create_table(name)?))
    }

    /// Finds the tables of a store that was loaded before.
    pub fn open<S: Store>(store: &S) -> Result<Tables, DriveError<S::Error>> {
        Tables::with(|table| store.table(table)?.ok_or(DriveError::NoTable { table }))
    }

    fn with<E>(mut table: impl FnMut(&'static str) -> Result<TableId, E>) -> Result<Tables, E> {
        Ok(Tables {
            warehouse: table(Warehouse::TABLE)?,
            district: table(District::TABLE)?,
            customer: table(Customer::TABLE)?,
            customer_name: table(CustomerName::TABLE)?,
            history: table(History::TABLE)?,
            new_order: table(NewOrder::TABLE)?,
            order: table(Order::TABLE)?,
            order_customer: table(OrderCustomer::TABLE)?,
            order_line: table(OrderLine::TABLE)?,
            item: table(Item::TABLE)?,
            stock: table(Stock::TABLE)?,
        })
    }

    /// Returns all ids, in the order of [`tables`].
    pub fn all(&self) -> [TableId; 11] {
        [
            self.warehouse,
            self.district,
            self.customer,
            self.customer_name,
            self.history,
            self.new_order,
            self.order,
            self.order_customer,
            self.order_line,
            self.item,
            self.stock,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::MemoryStore;

    #[test]
    fn tables_are_found_again_and_a_missing_one_is_named() {
        let store = MemoryStore::new();
        let error = Tables::open(&store).unwrap_err();
        assert!(error.to_string().contains("warehouse"), "{error}");
        let made = Tables::create(&store).unwrap();
        assert_eq!(Tables::open(&store).unwrap(), made);
        for (name, id) in tables().into_iter().zip(made.all()) {
            assert_eq!(store.table(name).unwrap(), Some(id));
        }
    }
}
