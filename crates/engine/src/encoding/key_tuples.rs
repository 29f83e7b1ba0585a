//! Tuples of keys, and their prefixes: see [`key`](crate::encoding::key) for the encoding.

use crate::encoding::codec::{DecodeError, Reader, Sink, tuple_name};
use crate::encoding::key::{DecodeKey, EncodeKey, PartLike, PrefixOf};

macro_rules! tuple {
    ($($K:ident $Q:ident $at:tt),+) => {
        impl<$($K: EncodeKey),+> EncodeKey for ($($K,)+) {
            #[inline]
            fn encode_part(&self, out: &mut impl Sink) {
                $(self.$at.encode_part(out);)+
            }
        }

        impl<'a, $($K: DecodeKey<'a>),+> DecodeKey<'a> for ($($K,)+) {
            #[inline]
            fn decode_part(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                Ok(($($K::decode_part(reader)?,)+))
            }

            fn type_name() -> Option<String> {
                tuple_name(&[$($K::type_name()),+])
            }
        }

        impl<$($K, $Q: PartLike<$K>),+> PartLike<($($K,)+)> for ($($Q,)+) {}
    };
}

/// Implements `$Q …` as a prefix of `($K …, $rest …)`.
macro_rules! prefix {
    ([$($K:ident $Q:ident $at:tt),+] [$($rest:ident),*]) => {
        impl<$($K, $Q: PartLike<$K>,)+ $($rest),*> PrefixOf<($($K,)+ $($rest,)*)> for ($($Q,)+) {
            fn encode_prefix(&self, out: &mut impl Sink) {
                $(self.$at.encode_part(out);)+
            }
        }
    };
}

/// Implements the prefix of the tuple with no element more, with one, with two, and so on.
macro_rules! prefix_of_all {
    ($first:tt [$($rest:ident),*] []) => {
        prefix!($first [$($rest),*]);
    };
    ($first:tt [$($rest:ident),*] [$next:ident $($more:ident)*]) => {
        prefix!($first [$($rest),*]);
        prefix_of_all!($first [$($rest,)* $next] [$($more)*]);
    };
}

/// Implements tuples of one element, of two, and so on.
macro_rules! tuples {
    ([$($first:tt)+]) => {
        tuple!($($first)+);
        prefix_of_all!([$($first)+] [] []);
    };
    ([$($first:tt)+] $K:ident $Q:ident $at:tt $(, $K2:ident $Q2:ident $at2:tt)*) => {
        tuple!($($first)+);
        prefix_of_all!([$($first)+] [] [$K $($K2)*]);
        tuples!([$($first)+, $K $Q $at] $($K2 $Q2 $at2),*);
    };
}
tuples!([A QA 0] B QB 1, C QC 2, D QD 3, E QE 4, F QF 5, G QG 6, H QH 7);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::key::{Key, KeyLike, prefix_end};
    use std::fmt::Debug;

    fn nasty(random: &mut fastrand::Rng) -> Vec<u8> {
        let alphabet = [0x00, 0x00, 0x01, 0xFE, 0xFF, 0xFF];
        (0..random.usize(..4)).map(|_| alphabet[random.usize(..alphabet.len())]).collect()
    }

    fn text(random: &mut fastrand::Rng) -> String {
        (0..random.usize(..4)).map(|_| ['\0', '\u{1}', 'ÿ', char::MAX][random.usize(..4)]).collect()
    }

    fn assert_ordered<T: Key + Ord + Debug>(values: &[T]) {
        let encoded: Vec<Vec<u8>> = values.iter().map(EncodeKey::to_key_bytes).collect();
        for (v, v_bytes) in values.iter().zip(&encoded) {
            assert_eq!(&T::decode(v_bytes).unwrap(), v);
            for (w, w_bytes) in values.iter().zip(&encoded) {
                assert_eq!(v_bytes.cmp(w_bytes), v.cmp(w), "{v:?} and {w:?}");
            }
        }
    }

    #[test]
    fn tuples_of_strings_are_ordered_like_tuples() {
        let mut random = fastrand::Rng::with_seed(21);
        let r = &mut random;
        let pairs: Vec<_> = (0..300).map(|_| (nasty(r), nasty(r))).collect();
        assert_ordered(&pairs);
        let mixed: Vec<_> = (0..300).map(|_| (text(r), r.i8(-1..2), nasty(r))).collect();
        assert_ordered(&mixed);
        let optional: Vec<_> =
            (0..300).map(|_| (r.bool().then(|| nasty(r)), r.bool().then(|| r.u8(..3)))).collect();
        assert_ordered(&optional);
    }

    #[test]
    fn tuples_in_tuples_are_ordered_wherever_their_strings_end() {
        let mut random = fastrand::Rng::with_seed(22);
        let r = &mut random;
        let nested: Vec<_> =
            (0..300).map(|_| ((r.u8(..2), nasty(r)), (nasty(r),), Some((nasty(r), 'x')))).collect();
        assert_ordered(&nested);
        let eight: Vec<_> = (0..200)
            .map(|_| {
                let (a, b, c, d) = (r.u8(..2), nasty(r), r.i64(-1..1), text(r));
                (a, b, c, d, r.bool(), [r.u8(..2)], nasty(r), r.i128(..))
            })
            .collect();
        assert_ordered(&eight);
    }

    #[test]
    fn the_first_elements_are_a_prefix_of_the_keys_that_begin_with_them_and_of_no_others() {
        let mut random = fastrand::Rng::with_seed(23);
        let r = &mut random;
        let keys: Vec<_> = (0..400).map(|_| (nasty(r), text(r), r.u16(..3))).collect();
        for (a, b, _) in keys.iter().take(100) {
            let one = PrefixOf::<(Vec<u8>, String, u16)>::to_prefix_bytes(&(&a[..],));
            let two = PrefixOf::<(Vec<u8>, String, u16)>::to_prefix_bytes(&(&a[..], &b[..]));
            let (one_end, two_end) = (prefix_end(&one), prefix_end(&two));
            for key in &keys {
                let bytes = key.to_key_bytes();
                assert_eq!(bytes.starts_with(&one), key.0 == *a);
                assert_eq!(bytes.starts_with(&two), key.0 == *a && key.1 == *b);
                let is_in = |start: &[u8], end: &Option<Vec<u8>>| {
                    *bytes >= *start && end.as_ref().is_none_or(|end| bytes < *end)
                };
                assert_eq!(is_in(&one, &one_end), key.0 == *a);
                assert_eq!(is_in(&two, &two_end), key.0 == *a && key.1 == *b);
            }
        }
    }

    #[test]
    fn borrowed_forms_find_owned_keys() {
        fn bytes_for<K: Key>(key: &(impl KeyLike<K> + ?Sized)) -> Vec<u8> {
            key.to_key_bytes()
        }
        let owned = ("ab\0".to_string(), vec![0, 1], Some(7u8));
        assert_eq!(
            bytes_for::<(String, Vec<u8>, Option<u8>)>(&("ab\0", &[0u8, 1][..], Some(&7))),
            owned.to_key_bytes()
        );
        assert_eq!(bytes_for::<String>("x\0"), "x\0".to_string().to_key_bytes());
        assert_eq!(bytes_for::<Vec<u8>>(b"x\0"), b"x\0".to_vec().to_key_bytes());
    }

    #[test]
    fn garbage_gives_an_error_or_a_key_and_never_a_panic() {
        type Everything = (Vec<u8>, Option<String>, (bool, char), f64, [u8; 3], Option<i16>);
        let mut random = fastrand::Rng::with_seed(24);
        let mut decoded = 0;
        for _ in 0..50_000 {
            let r = &mut random;
            let mut bytes = (
                nasty(r),
                r.bool().then(|| text(r)),
                (r.bool(), r.char(..)),
                f64::from_bits(r.u64(..)),
                [r.u8(..); 3],
                r.bool().then(|| r.i16(..)),
            )
                .to_key_bytes();
            for _ in 0..r.usize(..3) {
                let at = r.usize(..bytes.len());
                bytes[at] = [0, 1, 0xFF, r.u8(..)][r.usize(..4)];
            }
            bytes.truncate(r.usize(..bytes.len() * 4));
            if let Ok(key) = Everything::decode(&bytes) {
                // An accepted key is the only form of its value.
                assert_eq!(key.to_key_bytes(), bytes);
                decoded += 1;
            }
        }
        assert!((1000..49_000).contains(&decoded), "{decoded}");
    }
}
