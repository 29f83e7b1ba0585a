//! Types of keys and values that a structure was made with, and the types that may open it.

use std::fmt::Debug;

use millpond::error::DecodeError;
use millpond::internals::encoding::codec::{Reader, Sink};
use millpond::internals::encoding::key::{DecodeKey, EncodeKey, PartLike};
use millpond::{Db, Error, Options, Placement, Postcard, Structure, TypeNames};
use serde::{Deserialize, Serialize};

use super::place;

fn assert_other<T: Debug>(opened: Result<T, Error>, whose: &str, is: &str, is_not: &str) {
    let Err(Error::OtherType { what, found, wanted, .. }) = &opened else { panic!("{opened:?}") };
    assert_eq!((*what, found.as_str(), wanted.as_str()), (whose, is, is_not));
    assert!(opened.unwrap_err().to_string().contains("raw_tree"));
}

fn named(key: &str, value: &str) -> TypeNames {
    let some = |name: &str| (!name.is_empty()).then(|| name.to_string());
    TypeNames::new(some(key), some(value))
}

/// A key of a user's own, without a name.
struct Plain(u64);

impl EncodeKey for Plain {
    fn encode_part(&self, out: &mut impl Sink) {
        self.0.encode_part(out);
    }
}

impl<'a> DecodeKey<'a> for Plain {
    fn decode_part(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        u64::decode_part(reader).map(Plain)
    }
}

impl PartLike<Plain> for Plain {}

/// Asserts that the store has the types that the next test created it with.
fn assert_typed(db: &Db) {
    assert_other(db.tree::<String, String>("names"), "keys", "u64", "String");
    assert_other(db.tree::<i64, String>("names"), "keys", "u64", "i64");
    assert_other(db.tree::<u64, u64>("names"), "values", "String", "u64");
    let pair = "(String, Option<u32>)";
    assert_other(db.tree::<(String, u32), Vec<u8>>("pairs"), "keys", pair, "(String, u32)");
    assert_other(db.tree::<(String,), Vec<u8>>("pairs"), "keys", pair, "(String,)");
    assert_other(db.hash_index::<[u8; 8], f64>("index"), "keys", "[u8; 16]", "[u8; 8]");
    assert_other(db.heap::<String>("heap"), "values", "(u8, String)", "String");
    let names = db.tree::<u64, String>("names").unwrap();
    assert_eq!(names.get(&7).unwrap().as_deref(), Some("Ada"));
    db.tree::<(String, Option<u32>), Vec<u8>>("pairs").unwrap();
    db.hash_index::<[u8; 16], f64>("index").unwrap();
    db.heap::<(u8, String)>("heap").unwrap();
    assert_eq!(db.types("names").unwrap(), named("u64", "String"));
    assert_eq!(db.types("heap").unwrap(), named("", "(u8, String)"));
    // A raw handle and an explicit `typed` are not checked.
    let raw = db.raw_tree("names").unwrap();
    assert_eq!(raw.get(&7u64.to_be_bytes()).unwrap().as_deref(), Some(&b"Ada"[..]));
    assert!(raw.typed::<i64, Vec<u8>>().iter().next().is_some());
    db.open_hash_index("index").unwrap();
}

#[test]
fn a_tree_is_opened_with_the_types_that_it_was_made_with_and_with_no_others() {
    let (_dir, path) = place();
    let options = || Options::new().memory(16 << 20);
    let db = Db::open(&path, options()).unwrap();
    db.tree::<u64, String>("names").unwrap().put(&7, "Ada").unwrap();
    db.tree::<(String, Option<u32>), Vec<u8>>("pairs").unwrap();
    db.hash_index::<[u8; 16], f64>("index").unwrap();
    db.heap::<(u8, String)>("heap").unwrap();
    assert_typed(&db);
    db.close().unwrap();
    assert_typed(&Db::open(&path, options().read_only(true)).unwrap());
}

#[test]
fn a_structure_is_made_with_types_that_are_known_by_name_only() {
    let db = Db::in_memory(Options::new().memory(16 << 20)).unwrap();
    for (kind, name) in
        [(Structure::Tree, "tree"), (Structure::Hash, "index"), (Structure::Heap, "heap")]
    {
        let types = named(if kind == Structure::Heap { "" } else { "u64" }, "String");
        db.make(kind, name, &types).unwrap();
        // It exists, and stays as it is.
        db.make(kind, name, &types).unwrap();
        assert_eq!(db.types(name).unwrap(), types);
        assert_other(db.make(kind, name, &named("", "u8")), "values", "String", "u8");
    }
    db.tree::<u64, String>("tree").unwrap();
    assert_other(db.tree::<String, String>("tree"), "keys", "u64", "String");
    let is_other = db.make(Structure::Heap, "tree", &TypeNames::default());
    assert!(matches!(is_other, Err(Error::OtherKind { .. })), "{is_other:?}");
}

#[test]
fn what_was_made_without_types_or_with_types_without_names_is_opened_with_any() {
    let db = Db::in_memory(Options::new().memory(16 << 20)).unwrap();
    db.raw_tree("raw").unwrap();
    db.tree::<u64, String>("raw").unwrap();
    db.tree::<String, u8>("raw").unwrap();
    assert_eq!(db.types("raw").unwrap(), TypeNames::default());
    db.tree::<Plain, u32>("half").unwrap().put(&Plain(5), &6).unwrap();
    assert_eq!(db.types("half").unwrap(), named("", "u32"));
    assert_eq!(db.tree::<u64, u32>("half").unwrap().get(&5).unwrap(), Some(6));
    assert_other(db.tree::<u64, i32>("half"), "values", "u32", "i32");
    // A part without a name leaves the whole without one.
    db.tree::<(u8, Plain), ()>("tuple").unwrap();
    assert_eq!(db.types("tuple").unwrap(), named("", "()"));
    // And what a tree has that knows its types, those without a name may have, too.
    db.tree::<u64, ()>("known").unwrap();
    db.tree::<Plain, ()>("known").unwrap();
    // A name that is free again is free of its types.
    db.drop_tree("known").unwrap();
    db.tree::<String, ()>("known").unwrap();
    assert_eq!(db.types("known").unwrap(), named("String", "()"));
    assert_eq!(db.types("nothing").unwrap(), TypeNames::default());
}

#[test]
fn the_types_of_a_tree_stay_when_its_root_moves_and_go_into_a_backup() {
    let (dir, path) = place();
    // Out of place, roots stay where they are.
    let in_place = Options::new().memory(16 << 20).lab(|lab| lab.placement = Placement::InPlace);
    let db = Db::open(&path, in_place).unwrap();
    let old = db.raw_tree("old").unwrap();
    (0..3000u32).for_each(|key| drop(old.insert(&key.to_be_bytes(), &[7; 300]).unwrap()));
    db.tree::<u64, String>("names").unwrap().put(&7, "Ada").unwrap();
    drop(old);
    db.drop_tree("old").unwrap();
    assert!(db.shrink().unwrap().pages_moved > 0);
    assert_other(db.tree::<u32, String>("names"), "keys", "u64", "u32");
    db.backup_to(dir.path().join("copy")).unwrap();
    let copy = Db::open(dir.path().join("copy"), Options::new().memory(16 << 20)).unwrap();
    assert_other(copy.tree::<u32, String>("names"), "keys", "u64", "u32");
    assert_eq!(copy.tree::<u64, String>("names").unwrap().get(&7).unwrap().as_deref(), Some("Ada"));
}

#[derive(Serialize, Deserialize)]
struct Account {
    owner: String,
    cents: u64,
}

mod later {
    #[derive(serde::Serialize, serde::Deserialize)]
    pub struct Account {
        pub owner: String,
        pub cents: u64,
        pub is_open: bool,
    }
}

#[derive(Serialize, Deserialize)]
struct Sensor {
    name: String,
    reading: u64,
}

#[test]
fn a_value_of_serde_is_read_as_no_other_type_and_the_error_says_what_changed() {
    let db = Db::in_memory(Options::new().memory(16 << 20)).unwrap();
    let accounts = db.tree::<u32, Postcard<Account>>("accounts").unwrap();
    let ada = Account { owner: "Ada".to_string(), cents: 7 };
    accounts.put(&1, &Postcard::new(ada).unwrap()).unwrap();
    let others = [
        db.tree::<u32, Postcard<Sensor>>("accounts").map(drop),
        db.tree::<u32, Postcard<later::Account>>("accounts").map(drop),
        db.tree::<u32, (Postcard<Account>, u8)>("accounts").map(drop),
    ];
    let texts = others.map(|other| {
        let error = other.unwrap_err();
        assert!(matches!(error, Error::OtherType { .. }), "{error:?}");
        error.to_string()
    });
    let all = |text: &str, parts: &[&str]| parts.iter().all(|part| text.contains(part));
    let was = "postcard<Account{owner:str,cents:u64}>";
    assert!(all(&texts[0], &[was, "postcard<Sensor{name:str,reading:u64}>"]), "{texts:?}");
    assert!(all(&texts[1], &[was, "Account{owner:str,cents:u64,is_open:bool}"]), "{texts:?}");
    let found = db.tree::<u32, Postcard<Account>>("accounts").unwrap().get(&1).unwrap();
    assert_eq!(found.unwrap().cents, 7);
}

#[test]
fn a_tree_that_recorded_no_shape_opens_as_any_type_of_serde() {
    let db = Db::in_memory(Options::new().memory(16 << 20)).unwrap();
    let older = TypeNames::new(Some("u32".to_string()), Some("postcard".to_string()));
    db.make(Structure::Tree, "accounts", &older).unwrap();
    let accounts = db.tree::<u32, Postcard<Account>>("accounts").unwrap();
    let ada = Account { owner: "Ada".to_string(), cents: 7 };
    accounts.put(&1, &Postcard::new(ada).unwrap()).unwrap();
    assert!(db.tree::<u32, u64>("accounts").is_err());
    // What it cannot be is told with its key.
    let sensors = db.tree::<u32, Postcard<(u64, u64, u64)>>("accounts").unwrap();
    let error = sensors.get(&1).map(drop).unwrap_err().to_string();
    assert!(error.contains("'accounts'") && error.contains(r"\x00\x00\x00\x01"), "{error}");
}

mod long {
    use serde::{Deserialize, Serialize};

    /// A struct whose shape is longer than what a tree records of one.
    macro_rules! long {
        ($($name:ident ends in $last:ident;)*) => {
            $(#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
            pub struct $name {
                pub identification_of_the_customer: u64,
                pub identification_of_the_account: u64,
                pub identification_of_the_branch: u64,
                pub $last: u64,
            })*
        };
    }
    long! {
        First ends in cents;
        Second ends in cents;
        Third ends in cents;
        ThirdToo ends in grams;
    }
}

#[test]
fn types_whose_names_are_too_long_to_be_recorded_whole_are_told_apart() {
    type Three<T> = (Postcard<long::First>, Postcard<long::Second>, Postcard<T>);
    let (_dir, path) = place();
    let open = || Db::open(&path, Options::new().memory(16 << 20)).unwrap();
    let db = open();
    db.tree::<u32, Three<long::Third>>("three").unwrap();
    db.close().unwrap();
    let db = open();
    let error = db.tree::<u32, Three<long::ThirdToo>>("three").map(drop).unwrap_err();
    assert!(matches!(error, Error::OtherType { .. }), "{error:?}");
    db.tree::<u32, Three<long::Third>>("three").unwrap();
    // What a tree has recorded makes another one, as loading a dump does.
    let recorded = db.types("three").unwrap();
    db.make(Structure::Tree, "copy", &recorded).unwrap();
    db.tree::<u32, Three<long::Third>>("copy").unwrap();
    db.tree::<u32, Three<long::ThirdToo>>("copy").map(drop).unwrap_err();
    // A name without shapes.
    let name = |last: &str| format!("({}{last})", "Option<String>, ".repeat(30));
    db.make(Structure::Tree, "wide", &named(&name("u8"), "u8")).unwrap();
    db.make(Structure::Tree, "wide", &named(&name("u8"), "u8")).unwrap();
    db.make(Structure::Tree, "wide", &named(&name("u16"), "u8")).unwrap_err();
}

#[test]
fn two_types_of_which_only_the_fronts_are_shown_are_said_to_differ_behind_them() {
    let db = Db::in_memory(Options::new().memory(16 << 20)).unwrap();
    db.tree::<u32, Postcard<(long::First, long::Third)>>("pair").unwrap();
    let other = db.tree::<u32, Postcard<(long::First, long::ThirdToo)>>("pair");
    let text = other.map(drop).unwrap_err().to_string();
    assert!(text.contains("only their fronts are shown, and they differ behind"), "{text}");
    let text = db.tree::<u32, u64>("pair").map(drop).unwrap_err().to_string();
    assert!(!text.contains("differ behind"), "{text}");
}

/// Enums that are called the same, with other variants, alone and in a struct whose shape is long.
mod variants {
    macro_rules! variants {
        ($($module:ident: $($variant:ident)*;)*) => {
            $(pub mod $module {
                #[derive(serde::Serialize, serde::Deserialize)]
                pub enum Move { $($variant),* }

                #[derive(serde::Serialize, serde::Deserialize)]
                pub struct Entry {
                    pub identification_of_the_customer: u64,
                    pub identification_of_the_account: u64,
                    pub identification_of_the_branch: u64,
                    pub moves: Vec<Move>,
                    pub last: Move,
                    pub cents: u64,
                }
            })*
        };
    }
    variants! {
        first: Deposit Withdraw;
        reordered: Withdraw Deposit;
        shorter: Deposit;
        renamed: Deposit Withdrawal;
        longer: Deposit Withdraw Transfer;
    }
}

#[test]
fn an_enum_whose_variants_were_reordered_renamed_or_removed_is_another_type() {
    use variants::{first, longer, renamed, reordered, shorter};
    let db = Db::in_memory(Options::new().memory(16 << 20)).unwrap();
    db.tree::<u32, Postcard<first::Move>>("moves").unwrap();
    db.tree::<u32, Postcard<(first::Entry, first::Entry)>>("entries").unwrap();
    type Three<E> = (Postcard<E>, Postcard<E>, Postcard<E>);
    db.tree::<u32, Three<first::Entry>>("three").unwrap();
    macro_rules! refused {
        ($($module:ident)*) => {
            $(let opened = [
                db.tree::<u32, Postcard<$module::Move>>("moves").map(drop),
                db.tree::<u32, Postcard<($module::Entry, $module::Entry)>>("entries").map(drop),
                db.tree::<u32, Three<$module::Entry>>("three").map(drop),
            ];
            for opened in opened {
                let error = opened.expect_err(stringify!($module));
                assert!(matches!(error, Error::OtherType { .. }), "{error:?}");
            })*
        };
    }
    refused!(reordered renamed shorter);
    // A variant at the end is none.
    db.tree::<u32, Postcard<longer::Move>>("moves").unwrap();
    db.tree::<u32, Postcard<(longer::Entry, longer::Entry)>>("entries").unwrap();
    db.tree::<u32, Three<longer::Entry>>("three").unwrap();
    db.tree::<u32, Postcard<first::Move>>("moves").unwrap();
}

#[test]
fn a_shape_that_was_recorded_without_variants_opens_with_any() {
    use variants::{first, reordered};
    let db = Db::in_memory(Options::new().memory(16 << 20)).unwrap();
    let whole = "Entry{identification_of_the_customer:u64,identification_of_the_account:u64,\
                 identification_of_the_branch:u64,moves:[Move],last:Move,cents:u64}";
    let hash = xxhash_rust::xxh3::xxh3_64(whole.as_bytes());
    let entry = format!("postcard<{}…#{hash:016x}>", &whole[..90]);
    for (name, value) in [("moves", "postcard<[(u8,Move)]>"), ("entries", &entry)] {
        db.make(Structure::Tree, name, &named("u32", value)).unwrap();
    }
    db.tree::<u32, Postcard<Vec<(u8, first::Move)>>>("moves").unwrap();
    db.tree::<u32, Postcard<Vec<(u8, reordered::Move)>>>("moves").unwrap();
    db.tree::<u32, Postcard<Vec<(u16, first::Move)>>>("moves").map(drop).unwrap_err();
    db.tree::<u32, Postcard<first::Entry>>("entries").unwrap();
    db.tree::<u32, Postcard<reordered::Entry>>("entries").unwrap();
}
