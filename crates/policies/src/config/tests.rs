use millpond_base::Share;

use super::*;

choice! {
    /// A choice.
    pub enum Tie {
        /// By recency.
        Recency = "recency",
        /// By frame.
        Frame = "frame",
    }
}

config! {
    /// Something of everything.
    pub struct AllKinds {
        /// A count.
        count: u32 = 8, in 1..=64;
        /// A share.
        share: Share = Share(0.1);
        /// A part,
        /// said on two lines.
        part: Part = Part::Times(0.5);
        /// A choice.
        tie: Tie = Tie::Recency;
    }
}

#[test]
fn parameters_are_set_listed_and_written_as_they_are_read() {
    let spec = Spec::parse("x(count=3, part=2x,tie=frame,share=25%)").unwrap();
    let config: AllKinds = spec.config().unwrap();
    assert_eq!(config.count, 3);
    assert_eq!(config.part, Part::Times(2.0));
    assert_eq!(config.tie, Tie::Frame);
    let mut again = AllKinds::default();
    for (name, value) in config.values() {
        again.set("x", name, &value).unwrap();
    }
    assert_eq!(format!("{again:?}"), format!("{config:?}"));
    assert_eq!(AllKinds::list()[2].help, "A part, said on two lines.");
    assert_eq!(AllKinds::list()[2].default, "50%");
}

#[test]
fn wrong_parameters_say_what_would_be_right() {
    let error = |text: &str| Spec::parse(text).and_then(|s| s.config::<AllKinds>()).unwrap_err();
    let text = error("x(cuont=1)").to_string();
    assert!(text.contains("did you mean 'count'"), "{text}");
    assert!(matches!(error("x(count=0)"), ParamError::Impossible { .. }));
    assert!(matches!(error("x(count=many)"), ParamError::Unreadable { .. }));
    assert!(error("x(tie=left)").to_string().contains("one of recency frame"));
    for broken in ["x(", "(a=1)", "x(a)", "x)", "x(a=1,a=2)", "x(a=(1))"] {
        assert!(matches!(Spec::parse(broken), Err(ParamError::Syntax { .. })), "{broken}");
    }
}

#[test]
fn lists_of_policies_split_outside_parentheses_only() {
    let specs = Spec::parse_list("lru,clock(variant=fix,x=1),arc").unwrap();
    let texts: Vec<String> = specs.iter().map(Spec::to_string).collect();
    assert_eq!(texts, ["lru", "clock(variant=fix,x=1)", "arc"]);
    assert!(Spec::parse_list("lru,,arc").is_err());
}

#[test]
fn multiples_of_a_pool_need_no_unit() {
    for (text, expected) in [("4", 40), ("0.5", 5), ("50%", 5), ("1x", 10), ("0", 0)] {
        let multiple = Multiple::read(text).unwrap();
        assert_eq!(multiple.of(10), expected);
        assert_eq!(Multiple::read(&multiple.write()), Some(multiple));
    }
    assert_eq!((Multiple::read("-1"), Multiple::read("many")), (None, None));
}

#[test]
fn amounts_scale_with_a_sample_and_what_is_relative_stays() {
    config! {
        /// An example.
        pub struct Sampled {
            /// A part.
            kin: Part = Part::Count(1000);
            /// A share.
            old: Part = Part::Times(0.25);
            /// Frames.
            walk: u32 = 3, in 1..=100, counts frames;
            /// References.
            life: u64 = 20_000, counts references;
            /// Each.
            lambda: f64 = 0.25, in 0.0..=1.0, per reference;
            /// Neither.
            k: u32 = 8;
        }
    }
    let scaled = Sampled::default().scaled(0.1);
    assert_eq!((scaled.kin, scaled.old), (Part::Count(100), Part::Times(0.25)));
    assert_eq!((scaled.walk, scaled.life, scaled.k), (1, 2_000, 8), "at least the least");
    assert_eq!(scaled.lambda, 1.0, "at most the most");
}

#[test]
fn parts_of_a_pool_round_down() {
    assert_eq!(Part::read("25%").unwrap().of(10), 2);
    assert_eq!(Part::read("2x").unwrap().of(10), 20);
    assert_eq!(Part::read("7").unwrap().of(10), 7);
    assert_eq!(Part::read("all").unwrap().of(10), u64::MAX);
    assert_eq!(Part::read("2x").unwrap().frames_of(10), 10);
    assert_eq!(Part::read("-1"), None);
}
