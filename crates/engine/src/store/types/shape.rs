//! The shape of a type with serde's traits, as text: the names and types of its fields.
//!
//! The shape comes from `T`'s own `Deserialize`: it runs once on made-up values, and its requests
//! are recorded.
//!
//! ```text
//! struct            Name{field:type,field:type}; of a tuple struct Name(type,type)
//! enum              Name⟨variant|variant⟩: names only, as more may be added at the end
//! bool u8 … f64     as Rust writes them; str, bytes, ()
//! option, sequence  ?type, [type]
//! map, tuple        {type:type}, (type,type)
//! ```
//! A type that refuses a made-up value, or contains itself, ends the description there. The names
//! of all fields of the structs begun before are in it.

use serde::de::value::Error as Refused;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};

use super::recorded::VARIANTS;

/// Deepest nesting of types, at which the description ends.
const DEPTH_MAX: usize = 24;

/// Returns the shape of `T`.
pub(crate) fn shape_of<T: DeserializeOwned>() -> String {
    let mut text = String::new();
    let mut trace = || T::deserialize(Tracer { text: &mut text, depth: 0 }).map(drop);
    // A value that was refused, in whatever way, has ended the description.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut trace));
    // A reader would take these for the end of the shape.
    text.replace(['<', '>'], "")
}

fn refused(why: &str) -> Refused {
    serde::de::Error::custom(why)
}

/// The brackets around the elements of a sequence, a tuple or a struct.
struct Brackets {
    open: &'static str,
    close: &'static str,
}

const SQUARE: Brackets = Brackets { open: "[", close: "]" };
const ROUND: Brackets = Brackets { open: "(", close: ")" };
const CURLY: Brackets = Brackets { open: "{", close: "}" };

/// Number of elements, and their names if they have any.
struct Fields<'n> {
    names: &'n [&'n str],
    count: usize,
}

impl Fields<'_> {
    fn unnamed(count: usize) -> Self {
        Fields { names: &[], count }
    }
}

/// Records the requests, and returns made-up values.
struct Tracer<'t> {
    text: &'t mut String,
    depth: usize,
}

impl Tracer<'_> {
    fn inner(&mut self) -> Tracer<'_> {
        Tracer { text: self.text, depth: self.depth + 1 }
    }

    fn note(&mut self, text: &str) -> Result<(), Refused> {
        self.text.push_str(text);
        if self.depth > DEPTH_MAX { Err(refused("it contains itself")) } else { Ok(()) }
    }

    /// Describes elements between two brackets, each after its name.
    fn elements<'de, V: Visitor<'de>>(
        mut self,
        brackets: Brackets,
        fields: Fields<'_>,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.note(brackets.open)?;
        let names = fields.names;
        let mut elements = Elements { tracer: self.inner(), fields, at: 0 };
        let done = visitor.visit_seq(&mut elements);
        let at = elements.at;
        if done.is_err() {
            let rest = names.get(at..).unwrap_or_default();
            rest.iter().for_each(|name| self.text.extend([",", name]));
        }
        self.text.push_str(brackets.close);
        done
    }
}

// A type parameter cannot name a method, and serde has one for each scalar.
macro_rules! scalars {
    ($($method:ident $visit:ident $name:literal $value:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
            self.note($name)?;
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Refused;

    scalars! {
        deserialize_bool visit_bool "bool" false;
        deserialize_i8 visit_i8 "i8" 1;
        deserialize_i16 visit_i16 "i16" 1;
        deserialize_i32 visit_i32 "i32" 1;
        deserialize_i64 visit_i64 "i64" 1;
        deserialize_i128 visit_i128 "i128" 1;
        deserialize_u8 visit_u8 "u8" 1;
        deserialize_u16 visit_u16 "u16" 1;
        deserialize_u32 visit_u32 "u32" 1;
        deserialize_u64 visit_u64 "u64" 1;
        deserialize_u128 visit_u128 "u128" 1;
        deserialize_f32 visit_f32 "f32" 1.0;
        deserialize_f64 visit_f64 "f64" 1.0;
        deserialize_char visit_char "char" 'a';
        deserialize_str visit_str "str" "";
        deserialize_string visit_str "str" "";
        deserialize_bytes visit_bytes "bytes" b"";
        deserialize_byte_buf visit_bytes "bytes" b"";
    }

    fn deserialize_any<V: Visitor<'de>>(mut self, _: V) -> Result<V::Value, Refused> {
        self.note("any")?;
        Err(refused("postcard has no such values"))
    }

    fn deserialize_unit<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
        self.note("()")?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.note(name)?;
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
        self.note("?")?;
        visitor.visit_some(self.inner())
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.note(name)?;
        self.note("(")?;
        let done = visitor.visit_newtype_struct(self.inner());
        self.text.push(')');
        done
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.elements(SQUARE, Fields::unnamed(1), visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.elements(ROUND, Fields::unnamed(len), visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.note(name)?;
        self.elements(ROUND, Fields::unnamed(len), visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.note(name)?;
        self.elements(CURLY, Fields { names: fields, count: fields.len() }, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
        self.note("{")?;
        let done = visitor.visit_map(Once(self.inner(), false));
        self.text.push('}');
        done
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.note(name)?;
        let [open, between, close] = VARIANTS;
        self.text.push(open);
        for (at, variant) in variants.iter().enumerate() {
            self.text.extend((at > 0).then_some(between));
            self.text.extend(variant.split(VARIANTS));
        }
        self.text.push(close);
        let mut unseen = String::new();
        visitor.visit_enum(Tracer { text: &mut unseen, depth: self.depth + 1 })
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_u64(0)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Elements of a sequence, a tuple or a struct.
struct Elements<'t> {
    tracer: Tracer<'t>,
    fields: Fields<'t>,
    at: usize,
}

impl<'de> SeqAccess<'de> for &mut Elements<'_> {
    type Error = Refused;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Refused> {
        if self.at == self.fields.count {
            return Ok(None);
        }
        if self.at > 0 {
            self.tracer.text.push(',');
        }
        if let Some(name) = self.fields.names.get(self.at) {
            self.tracer.text.extend([name, ":"]);
        }
        self.at += 1;
        seed.deserialize(self.tracer.inner()).map(Some)
    }
}

/// One entry of a map.
struct Once<'t>(Tracer<'t>, bool);

impl<'de> MapAccess<'de> for Once<'_> {
    type Error = Refused;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Refused> {
        if std::mem::replace(&mut self.1, true) {
            return Ok(None);
        }
        seed.deserialize(self.0.inner()).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refused> {
        self.0.text.push(':');
        seed.deserialize(self.0.inner())
    }
}

/// Chooses the first variant of an enum.
impl<'de> EnumAccess<'de> for Tracer<'_> {
    type Error = Refused;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Refused> {
        let first: serde::de::value::U32Deserializer<Refused> = 0u32.into_deserializer();
        Ok((seed.deserialize(first)?, self))
    }
}

impl<'de> VariantAccess<'de> for Tracer<'_> {
    type Error = Refused;

    fn unit_variant(self) -> Result<(), Refused> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Refused> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_struct("", fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is of interest")]
    struct Account {
        id: u64,
        owner: Option<String>,
        kind: Kind,
        tags: Vec<(u8, char)>,
        more: BTreeMap<String, NonZeroU32>,
        unit: (),
        meters: Meters,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "as above")]
    struct Meters(f64);

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "as above")]
    enum Kind {
        Line { from: (i32, i32), to: i32 },
        Dot,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "as above")]
    struct Node {
        value: i32,
        next: Option<Box<Node>>,
        last: bool,
    }

    #[test]
    fn a_shape_has_the_names_and_types_of_all_fields() {
        let all = shape_of::<(Kind, Meters, Option<u8>, BTreeMap<String, bool>)>();
        assert_eq!(all, "(Kind⟨Line|Dot⟩,Meters(f64),?u8,{str:bool})");
        let account = shape_of::<Account>();
        assert!(
            account.starts_with("Account{id:u64,owner:?str,kind:Kind⟨Line|Dot⟩,tags:[(u8,char)],")
        );
    }

    #[test]
    fn a_type_that_contains_itself_has_a_shape_with_all_its_fields() {
        let node = shape_of::<Node>();
        assert!(node.starts_with("Node{value:i32,next:?Node{value:i32,next:"), "{node}");
    }
}
