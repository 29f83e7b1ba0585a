//! Types by name encode like the engine's typed trees, and their names are those that trees keep.

use millpond::codec::{DecodeKey, DecodeValue, EncodeKey, EncodeValue};
use millpond_handles::{Datum, DatumError, KeyType, TypeNameError, ValueType};
use proptest::prelude::*;

/// Converts a Rust value to a datum.
trait AsDatum {
    fn datum(&self) -> Datum;
}

macro_rules! data {
    ($($ty:ty: |$it:ident| $datum:expr;)*) => {$(
        impl AsDatum for $ty {
            fn datum(&self) -> Datum {
                let $it = self;
                $datum
            }
        }
    )*};
}
data! {
    u8: |it| Datum::Int((*it).into());
    u32: |it| Datum::Int((*it).into());
    u64: |it| Datum::Int((*it).into());
    i16: |it| Datum::Int((*it).into());
    i64: |it| Datum::Int((*it).into());
    i128: |it| Datum::Int(*it);
    u128: |it| i128::try_from(*it).map_or(Datum::Uint(*it), Datum::Int);
    f32: |it| Datum::Float((*it).into());
    f64: |it| Datum::Float(*it);
    bool: |it| Datum::Bool(*it);
    char: |it| Datum::Str(it.to_string());
    String: |it| Datum::Str(it.clone());
    Vec<u8>: |it| Datum::Bytes(it.clone());
    [u8; 5]: |it| Datum::Bytes(it.to_vec());
    (): |_it| Datum::None;
}
impl<T: AsDatum> AsDatum for Option<T> {
    fn datum(&self) -> Datum {
        self.as_ref().map_or(Datum::None, AsDatum::datum)
    }
}
macro_rules! tuples {
    ($(($($T:ident $at:tt),+))*) => {$(
        impl<$($T: AsDatum),+> AsDatum for ($($T,)+) {
            fn datum(&self) -> Datum {
                Datum::Tuple(vec![$(self.$at.datum()),+])
            }
        }
    )*};
}
tuples! { (A 0) (A 0, B 1) (A 0, B 1, C 2) }

fn key_agrees<K>(key: &K) -> Result<(), TestCaseError>
where
    K: AsDatum + EncodeKey + for<'a> DecodeKey<'a>,
{
    let name = K::type_name().expect("a type of the engine has a name");
    let of: KeyType = name.parse().expect("a type of the engine is known");
    prop_assert_eq!(of.to_string(), name);
    let bytes = of.encode(&key.datum()).expect("it is of the type");
    prop_assert_eq!(&bytes, &key.to_key_bytes());
    prop_assert_eq!(of.decode(&bytes).expect("it was just encoded"), key.datum());
    // Other bytes are refused exactly where the engine refuses them.
    for cut in 0..bytes.len() {
        let engine = K::decode(&bytes[..cut]).is_ok();
        prop_assert_eq!(of.decode(&bytes[..cut]).is_ok(), engine);
    }
    Ok(())
}

fn value_agrees<V>(value: &V) -> Result<(), TestCaseError>
where
    V: AsDatum + EncodeValue + for<'a> DecodeValue<'a>,
{
    let name = V::type_name().expect("a type of the engine has a name");
    let of: ValueType = name.parse().expect("a type of the engine is known");
    prop_assert_eq!(of.to_string(), name);
    let bytes = of.encode(&value.datum()).expect("it is of the type");
    prop_assert_eq!(&bytes, &value.to_value_bytes());
    prop_assert_eq!(of.decode(&bytes).expect("it was just encoded"), value.datum());
    for cut in 0..bytes.len() {
        let engine = V::decode(&bytes[..cut]).is_ok();
        prop_assert_eq!(of.decode(&bytes[..cut]).is_ok(), engine);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn keys(
        a: u8, b: u32, c: i64, d: i128, e: u128, f: f64, g: bool, h: char, i: String,
        j: Vec<u8>, k: Option<i16>, l: [u8; 5],
    ) {
        prop_assume!(!f.is_nan());
        key_agrees(&a)?;
        key_agrees(&d)?;
        key_agrees(&e)?;
        key_agrees(&f)?;
        key_agrees(&(f as f32,))?;
        key_agrees(&i)?;
        key_agrees(&j)?;
        key_agrees(&(i.clone(), b))?;
        key_agrees(&(j.clone(), (g, h), k))?;
        key_agrees(&(l, Some(i), c))?;
    }

    #[test]
    fn values(
        a: u8, b: u32, c: i64, d: i128, e: u128, f: f64, g: bool, h: char, i: String,
        j: Vec<u8>, k: Option<u64>, l: [u8; 5],
    ) {
        prop_assume!(!f.is_nan());
        value_agrees(&a)?;
        value_agrees(&d)?;
        value_agrees(&e)?;
        value_agrees(&())?;
        value_agrees(&i)?;
        value_agrees(&k)?;
        value_agrees(&l)?;
        value_agrees(&(i.clone(), b))?;
        value_agrees(&(j.clone(), (g, h), k))?;
        value_agrees(&((i, j), f, Some((f as f32, c))))?;
    }

    #[test]
    fn no_bytes_are_a_panic(bytes: Vec<u8>, name in "[a-z0-9<>()\\[\\];, ]{0,40}") {
        let tuple = "(String, Option<u32>, [u8; 3])";
        for known in [tuple, "(f32, char)", "Vec<u8>", "(Vec<u8>, bool)"] {
            let _ = known.parse::<KeyType>().expect("known").decode(&bytes);
            let _ = known.parse::<ValueType>().expect("known").decode(&bytes);
        }
        let _ = name.parse::<KeyType>();
    }
}

#[test]
fn names_that_are_none() {
    for name in [
        "",
        "Postcard<Bird>",
        "u7",
        "u+8",
        "(u8",
        "(u8)",
        "[u16; 4]",
        "Option<()>",
        "u8 u8",
        "Option<Option<u8>>",
        "(u8,u8,u8,u8,u8,u8,u8,u8,u8)",
        "usize",
    ] {
        assert!(name.parse::<ValueType>().is_err(), "{name}");
    }
    let deep = format!("{}u8{}", "(".repeat(400), ",)".repeat(400));
    assert!(deep.parse::<ValueType>().is_err());
    assert!(matches!("()".parse::<KeyType>(), Err(TypeNameError::NoKey { .. })));
    let spaced: KeyType = "( String,u32 ,[u8;4] )".parse().expect("spaces do not matter");
    assert_eq!(spaced.to_string(), "(String, u32, [u8; 4])");
}

#[test]
fn data_that_do_not_fit() {
    let key = |name: &str| name.parse::<KeyType>().expect("a name");
    assert!(matches!(key("u8").encode(&Datum::Int(256)), Err(DatumError::OutOfRange { .. })));
    assert!(matches!(key("u8").encode(&Datum::Int(-1)), Err(DatumError::OutOfRange { .. })));
    assert!(matches!(
        key("i128").encode(&Datum::Uint(u128::MAX)),
        Err(DatumError::OutOfRange { .. })
    ));
    assert!(matches!(key("u8").encode(&Datum::Bool(true)), Err(DatumError::OtherType { .. })));
    assert!(matches!(
        key("f64").encode(&Datum::Int((1 << 53) + 1)),
        Err(DatumError::OutOfRange { .. })
    ));
    assert!(matches!(key("f32").encode(&Datum::Float(1e300)), Err(DatumError::OutOfRange { .. })));
    let one = Datum::Tuple(vec![Datum::Int(1)]);
    assert!(matches!(key("(u8, u8)").encode(&one), Err(DatumError::Length { found: 1, .. })));
    assert_eq!(key("(u8, u8)").encode_prefix(&one), Ok(vec![1]));
    assert!(matches!(
        key("[u8; 2]").encode(&Datum::Bytes(vec![1])),
        Err(DatumError::Length { .. })
    ));
    assert!(matches!(key("char").encode(&Datum::Str("ab".into())), Err(DatumError::Length { .. })));
}
