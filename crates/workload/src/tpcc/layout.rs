//! The layout of rows in bytes: typed fields at fixed places.
//!
//! Each table has one row length, and each field one offset. So an update in place touches only
//! the bytes of its fields, and a read decodes only the fields that it needs. Numbers are
//! little-endian and not aligned. Texts have their maximum length and are padded with zeros.
//!
//! A field's methods take a row whose length [`Layout::view`] has checked. Since offsets are
//! constants, the compiler then drops the bounds checks.

/// A table's rows: their length and the table's name.
pub trait Layout {
    /// The table.
    const TABLE: &'static str;

    /// The length of each row, in bytes.
    const LEN: usize;

    /// Returns `bytes` as a row, or their length if it is wrong.
    #[inline(always)]
    fn view(bytes: &[u8]) -> Result<&[u8], usize> {
        if bytes.len() == Self::LEN { Ok(bytes) } else { Err(bytes.len()) }
    }

    /// Returns `bytes` as a mutable row, or their length if it is wrong.
    #[inline(always)]
    fn view_mut(bytes: &mut [u8]) -> Result<&mut [u8], usize> {
        if bytes.len() == Self::LEN { Ok(bytes) } else { Err(bytes.len()) }
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $type:ty, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name(usize);

        impl $name {
            pub(super) const fn at(offset: usize) -> $name {
                $name(offset)
            }

            pub(super) const fn end(self) -> usize {
                self.0 + $len
            }

            /// Returns the field's value in `row`.
            #[inline(always)]
            pub fn get(self, row: &[u8]) -> $type {
                let mut bytes = [0; $len];
                bytes.copy_from_slice(&row[self.0..self.0 + $len]);
                <$type>::from_le_bytes(bytes)
            }

            /// Sets it in `row`.
            #[inline(always)]
            pub fn set(self, row: &mut [u8], value: $type) {
                row[self.0..self.0 + $len].copy_from_slice(&value.to_le_bytes());
            }

            /// Adds to the field in `row`, wrapping around, and returns the sum.
            #[inline(always)]
            pub fn add(self, row: &mut [u8], value: $type) -> $type {
                let sum = self.get(row).wrapping_add(value);
                self.set(row, sum);
                sum
            }
        }
    };
}

number!(
    /// A field of one byte.
    U8, u8, 1
);
number!(
    /// An unsigned field of two bytes.
    U16, u16, 2
);
number!(
    /// An unsigned field of four bytes.
    U32, u32, 4
);
number!(
    /// An unsigned field of eight bytes.
    U64, u64, 8
);
number!(
    /// A signed field of eight bytes.
    I64, i64, 8
);

/// A text field of at most `len` bytes, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    at: usize,
    len: usize,
}

impl Text {
    pub(super) const fn at(offset: usize, len: usize) -> Text {
        Text { at: offset, len }
    }

    pub(super) const fn end(self) -> usize {
        self.at + self.len
    }

    /// Returns the field's maximum length.
    #[expect(clippy::len_without_is_empty, reason = "a field's place is never empty")]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Returns the field's bytes in `row`, padding included.
    #[inline(always)]
    pub fn get(self, row: &[u8]) -> &[u8] {
        &row[self.at..self.at + self.len]
    }

    /// Returns the field's bytes in `row`, to be changed in place.
    #[inline(always)]
    pub fn get_mut(self, row: &mut [u8]) -> &mut [u8] {
        &mut row[self.at..self.at + self.len]
    }

    /// Returns the text in `row` without its padding.
    pub fn trimmed(self, row: &[u8]) -> &[u8] {
        let bytes = self.get(row);
        let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        &bytes[..len]
    }

    /// Sets the field in `row`; an excess is cut off.
    #[inline(always)]
    pub fn set(self, row: &mut [u8], text: &[u8]) {
        let field = self.get_mut(row);
        let len = text.len().min(field.len());
        field[..len].copy_from_slice(&text[..len]);
        field[len..].fill(0);
    }
}

/// Declares a table's row as a sequence of fields.
macro_rules! layout {
    (
        $(#[$doc:meta])*
        $row:ident, $table:literal;
        $($(#[$field_doc:meta])* $name:ident: $kind:ident $(($len:literal))?,)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $row;

        impl $row {
            $crate::tpcc::layout::fields!(
                0; $($(#[$field_doc])* $name: $kind $(($len))?,)*
            );
        }

        impl Layout for $row {
            const TABLE: &'static str = $table;
            const LEN: usize = $row::END;
        }
    };
}

/// Places the fields of a row one after the other.
macro_rules! fields {
    ($at:expr;) => {
        /// Length of a row in bytes.
        pub const END: usize = $at;
    };
    (
        $at:expr;
        $(#[$doc:meta])* $name:ident: $kind:ident $(($len:literal))?, $($rest:tt)*
    ) => {
        $(#[$doc])*
        pub const $name: $kind = $kind::at($at $(, $len)?);
        $crate::tpcc::layout::fields!(Self::$name.end(); $($rest)*);
    };
}

pub(crate) use {fields, layout};
