//! Dumps come back as they were written, and damage in them is reported.

use std::collections::BTreeMap;

use millpond::internals::admin::dump::{
    DumpError, DumpFault, DumpReader, DumpWriter, Form, LoadError, Loaded, Loader, load,
};
use millpond::{Structure, TypeNames};

type Row = (Vec<u8>, Vec<u8>);

/// A store of maps.
#[derive(Default, PartialEq, Debug)]
struct Maps {
    trees: BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>,
    others: Vec<(Structure, String, Vec<Row>)>,
    types: Vec<(Structure, String, TypeNames)>,
}

impl Loader for Maps {
    type Error = String;

    fn make(&mut self, kind: Structure, name: &str, types: &TypeNames) -> Result<(), String> {
        if *types != TypeNames::default() {
            self.types.push((kind, name.to_string(), types.clone()));
        }
        Ok(())
    }

    fn sorted(
        &mut self,
        name: &str,
        rows: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<u64, String> {
        let tree = self.trees.entry(name.to_string()).or_default();
        let (mut count, mut last) = (0, None);
        for (key, value) in rows {
            assert!(last < Some(key.clone()), "in order");
            last = Some(key.clone());
            tree.insert(key, value);
            count += 1;
        }
        Ok(count)
    }

    fn put(&mut self, name: &str, key: &[u8], value: &[u8]) -> Result<(), String> {
        if key == b"refused" {
            return Err("no".to_string());
        }
        self.trees.entry(name.to_string()).or_default().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn begin(&mut self, kind: Structure, name: &str) -> Result<(), String> {
        self.others.push((kind, name.to_string(), Vec::new()));
        Ok(())
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.others.last_mut().unwrap().2.push((key.to_vec(), value.to_vec()));
        Ok(())
    }
}

fn loaded(dump: &[u8]) -> Result<(Maps, Loaded), LoadError<String>> {
    let mut maps = Maps::default();
    let mut reader = DumpReader::new(dump)?;
    let loaded = load(&mut reader, &mut maps, |_| {})?;
    Ok((maps, loaded))
}

const FORMS: [Form; 3] = [Form::Text, Form::Hex, Form::Json];

#[test]
fn every_key_and_value_comes_back_in_every_form() {
    let mut random = fastrand::Rng::with_seed(21);
    for form in FORMS {
        let mut maps = Maps::default();
        for name in ["users", "empty", "tab\tand\nline", "#1", "@end 3"] {
            maps.trees.insert(name.to_string(), BTreeMap::new());
        }
        let tree = maps.trees.get_mut("users").unwrap();
        for key in [&b""[..], b"@tree x", b"#", b"a\tb", b"\\", b"0x00", &[0xff, 0, b'\n'], b" "] {
            tree.insert(key.to_vec(), key.to_vec());
        }
        for _ in 0..300 {
            let bytes = |random: &mut fastrand::Rng| -> Vec<u8> {
                (0..random.usize(..20)).map(|_| random.u8(..)).collect()
            };
            tree.insert(bytes(&mut random), bytes(&mut random));
        }
        let mut out = DumpWriter::new(Vec::new(), form).unwrap();
        out.remark("made for a test\nin two lines").unwrap();
        for (name, tree) in &maps.trees {
            out.tree(name).unwrap();
            for (key, value) in tree {
                out.entry(key, value).unwrap();
            }
        }
        let entries = out.entries();
        let dump = out.finish().unwrap();
        let (back, loaded) = loaded(&dump).unwrap();
        assert_eq!(back, maps);
        assert_eq!(loaded, Loaded { trees: 5, entries, sorted: entries });
    }
}

#[test]
fn indexes_and_heaps_come_back_in_every_form_between_trees() {
    let row = |key: &str| (key.as_bytes().to_vec(), b"value".to_vec());
    for form in FORMS {
        let mut out = DumpWriter::new(Vec::new(), form).unwrap();
        let mut write = |kind, name, keys: &[&str]| {
            out.structure(kind, name).unwrap();
            keys.iter().for_each(|key| out.entry(key.as_bytes(), b"value").unwrap());
        };
        write(Structure::Hash, "@hash ix", &["z", "a", "\t"]);
        write(Structure::Tree, "t", &["a", "b"]);
        write(Structure::Heap, "log", &["65536", "65537"]);
        write(Structure::Tree, "u", &[]);
        write(Structure::Heap, "nothing", &[]);
        let (maps, loaded) = loaded(&out.finish().unwrap()).unwrap();
        assert_eq!(loaded, Loaded { trees: 5, entries: 7, sorted: 2 });
        let names: Vec<&str> = maps.trees.keys().map(String::as_str).collect();
        assert_eq!(names, ["t", "u"]);
        let index = vec![row("z"), row("a"), row("\t")];
        let expected = [
            (Structure::Hash, "@hash ix".to_string(), index),
            (Structure::Heap, "log".to_string(), vec![row("65536"), row("65537")]),
            (Structure::Heap, "nothing".to_string(), Vec::new()),
        ];
        assert_eq!(maps.others, expected);
    }
}

#[test]
fn the_types_of_keys_and_values_come_back_in_every_form() {
    let names = |key: Option<&str>, value: Option<&str>| {
        TypeNames::new(key.map(str::to_string), value.map(str::to_string))
    };
    let all = [
        (Structure::Tree, "t".to_string(), names(Some("(String, u32)"), Some("u8"))),
        (Structure::Tree, "tab\there".to_string(), names(Some("a\tb\\"), None)),
        (Structure::Hash, "h".to_string(), names(Some("u64"), Some("Ä"))),
        (Structure::Heap, "p".to_string(), names(None, Some("Vec<u8>"))),
    ];
    for form in FORMS {
        let mut out = DumpWriter::new(Vec::new(), form).unwrap();
        for (kind, name, types) in &all {
            out.structure_of(*kind, name, types).unwrap();
            out.entry(b"7", b"value").unwrap();
            out.structure(*kind, &format!("{name} of bytes")).unwrap();
        }
        let (maps, loaded) = loaded(&out.finish().unwrap()).unwrap();
        assert_eq!((loaded.trees, loaded.entries), (8, 4));
        assert_eq!(maps.types, all);
        assert!(maps.trees.contains_key("tab\there of bytes"));
    }
}

#[test]
fn entries_out_of_order_are_loaded_and_the_last_of_a_key_counts() {
    let dump =
        b"@millpond-dump 1 text\n@tree t\na\t1\nb\t2\na\t3\nc\t4\n@tree u\r\n\nx\ty\n@end 5\n";
    let (maps, loaded) = loaded(dump).unwrap();
    assert_eq!(loaded, Loaded { trees: 2, entries: 5, sorted: 3 });
    assert_eq!(maps.trees["t"][&b"a"[..]], b"3");
    assert_eq!((maps.trees["t"].len(), maps.trees["u"].len()), (3, 1));
}

fn fails(dump: &str, line: u64, wanted: impl Fn(&DumpFault) -> bool) {
    match loaded(dump.as_bytes()) {
        Err(LoadError::Dump(DumpError { line: at, fault })) if at == line && wanted(&fault) => {
            let text = DumpError { line: at, fault }.to_string();
            assert!(text.contains(&format!("line {line}")), "{text}");
        }
        other => panic!("{dump:?}: {other:?}"),
    }
}

#[test]
fn a_dump_that_is_none_or_not_whole_says_in_which_line() {
    let head = "@millpond-dump 1 text\n@tree t\n";
    fails("", 1, |f| matches!(f, DumpFault::Header));
    fails("hello\n", 1, |f| matches!(f, DumpFault::Header));
    fails("{\"a\":1}\n", 1, |f| matches!(f, DumpFault::Header));
    fails("@millpond-dump 1 morse\n", 1, |f| matches!(f, DumpFault::Header));
    fails("@millpond-dump 2 text\n", 1, |f| matches!(f, DumpFault::Version { .. }));
    fails("{\"millpond_dump\":9}\n", 1, |f| matches!(f, DumpFault::Version { .. }));
    fails(head, 3, |f| matches!(f, DumpFault::Cut));
    fails(&format!("{head}a\tb\n@end 2\n"), 4, |f| {
        matches!(f, DumpFault::Count { said: 2, found: 1 })
    });
    fails(&format!("{head}@tree u\tu8\tu8\tu8\n"), 3, |f| matches!(f, DumpFault::Line));
    fails(&format!("{head}@heap p\t\tu\\q\n"), 3, |f| matches!(f, DumpFault::Notation(_)));
    fails(&format!("{head}no tab\n"), 3, |f| matches!(f, DumpFault::Line));
    fails(&format!("{head}@what\tb\n"), 3, |f| matches!(f, DumpFault::Line));
    fails(&format!("{head}a\\q\tb\n"), 3, |f| matches!(f, DumpFault::Notation(_)));
    fails("@millpond-dump 1 text\na\tb\n", 2, |f| matches!(f, DumpFault::NoTree));
    fails("@millpond-dump 1 hex\n@tree t\n6\t\n", 3, |f| matches!(f, DumpFault::Notation(_)));
    fails("{\"millpond_dump\":1}\n{\"tree\":\"t\"}\n{\"key\":\"a\"}\n", 3, |f| {
        matches!(f, DumpFault::Json(_))
    });
    let refused = format!("{head}z\t1\nrefused\t2\n@end 2\n");
    match loaded(refused.as_bytes()) {
        Err(LoadError::Store { line: 4, error }) => assert_eq!(error, "no"),
        other => panic!("{other:?}"),
    }
}
