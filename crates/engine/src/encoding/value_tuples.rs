//! Tuples of values: see [`value`](crate::encoding::value) for the encoding.

use crate::encoding::codec::{DecodeError, Expected, Reader, Sink, tuple_name};
use crate::encoding::value::{DecodeValue, EncodeValue, ValueLike};

/// Appends a length.
pub(crate) fn put_length(mut length: usize, out: &mut impl Sink) {
    while length > 0x7F {
        out.put(&[length as u8 | 0x80]);
        length >>= 7;
    }
    out.put(&[length as u8]);
}

/// Decodes a length, which must be in its shortest form.
pub(crate) fn take_length(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let mut length = 0u64;
    for shift in (0..63).step_by(7) {
        let at = reader.at();
        let [byte] = reader.array()?;
        length |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            if byte == 0 && shift > 0 {
                return Err(DecodeError::BadByte { at, byte, expected: Expected::Length });
            }
            // A length beyond memory is beyond the value, too.
            return Ok(usize::try_from(length).unwrap_or(usize::MAX));
        }
    }
    Err(DecodeError::BadByte { at: reader.at() - 1, byte: 0x80, expected: Expected::Length })
}

fn put_element<T: EncodeValue>(element: &T, is_last: bool, out: &mut impl Sink) {
    if is_last || T::LENGTH.is_some() {
        return element.encode(out);
    }
    element.with_encoded(|bytes| {
        put_length(bytes.len(), out);
        out.put(bytes);
    });
}

fn take_element<'a, T: DecodeValue<'a>>(
    reader: &mut Reader<'a>,
    is_last: bool,
) -> Result<T, DecodeError> {
    let length = match T::LENGTH {
        _ if is_last => reader.rest().len(),
        Some(length) => length,
        None => take_length(reader)?,
    };
    let at = reader.at();
    T::decode(reader.take(length)?).map_err(|error| error.further(at))
}

const fn sum(lengths: &[Option<usize>]) -> Option<usize> {
    let (mut sum, mut at) = (0, 0);
    while at < lengths.len() {
        match lengths[at] {
            Some(length) => sum += length,
            None => return None,
        }
        at += 1;
    }
    Some(sum)
}

macro_rules! tuple_value {
    ($last:tt: $($V:ident $Q:ident $at:tt),+) => {
        impl<$($V: EncodeValue),+> EncodeValue for ($($V,)+) {
            const LENGTH: Option<usize> = sum(&[$($V::LENGTH),+]);
            fn encode(&self, out: &mut impl Sink) {
                $(put_element(&self.$at, $at == $last, out);)+
            }
        }

        impl<'a, $($V: DecodeValue<'a>),+> DecodeValue<'a> for ($($V,)+) {
            const LENGTH: Option<usize> = sum(&[$($V::LENGTH),+]);
            fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
                let mut reader = Reader::new(bytes);
                Ok(($(take_element::<$V>(&mut reader, $at == $last)?,)+))
            }

            fn type_name() -> Option<String> {
                tuple_name(&[$($V::type_name()),+])
            }
        }

        impl<$($V, $Q: ValueLike<$V>),+> ValueLike<($($V,)+)> for ($($Q,)+) {}
    };
}
tuple_value!(0: A QA 0);
tuple_value!(1: A QA 0, B QB 1);
tuple_value!(2: A QA 0, B QB 1, C QC 2);
tuple_value!(3: A QA 0, B QB 1, C QC 2, D QD 3);
tuple_value!(4: A QA 0, B QB 1, C QC 2, D QD 3, E QE 4);
tuple_value!(5: A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5);
tuple_value!(6: A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5, G QG 6);
tuple_value!(7: A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5, G QG 6, H QH 7);
