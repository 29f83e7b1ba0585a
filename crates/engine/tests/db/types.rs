//! What keys and values a structure was made with, and who may open it.

use std::fmt::Debug;

use millpond::DecodeError;
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
