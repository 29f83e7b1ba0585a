//! Profiles for other programs: flame graphs, speedscope, pprof.

use std::collections::HashMap;

use serde_json::json;

use crate::profile::{Frame, Profile, Stack};

/// A frame that stands for the kernel, called by the innermost one.
const KERNEL: &str = "[kernel]";

impl Profile {
    /// Returns the stacks for flame-graph programs: frames from the outside in, separated by
    /// semicolons, and a count.
    pub fn folded(&self) -> String {
        folded(self)
    }

    /// Returns the profile for speedscope.app, as JSON.
    pub fn speedscope(&self, name: &str) -> String {
        speedscope(self, name)
    }

    /// Returns the profile for `pprof`, not compressed.
    pub fn pprof(&self) -> Vec<u8> {
        pprof(self)
    }
}

/// Returns each stack with its number of samples, once for user mode and once for the kernel
/// (`true`).
fn each(profile: &Profile) -> impl Iterator<Item = (&Stack, bool, u64)> {
    let both = |stack| [(stack, false), (stack, true)];
    let all = profile.stacks.iter().flat_map(both);
    let counted = all.map(|(stack, kernel): (&Stack, bool)| {
        (stack, kernel, if kernel { stack.kernel } else { stack.user })
    });
    counted.filter(|(_, _, samples)| *samples > 0)
}

fn folded(profile: &Profile) -> String {
    let mut text = String::new();
    for (stack, kernel, samples) in each(profile) {
        let names = stack.frames.iter().rev().map(|frame| frame.function.as_str());
        let names: Vec<String> =
            names.chain(kernel.then_some(KERNEL)).map(|name| name.replace(';', ":")).collect();
        text.push_str(&format!("{} {samples}\n", names.join(";")));
    }
    text
}

/// Numbers the frames; the kernel's frame is the last.
fn numbered(profile: &Profile) -> (Vec<&Frame>, HashMap<&Frame, usize>) {
    let (mut all, mut numbers) = (Vec::new(), HashMap::new());
    for frame in profile.stacks.iter().flat_map(|stack| &stack.frames) {
        numbers.entry(&**frame).or_insert_with(|| {
            all.push(&**frame);
            all.len() - 1
        });
    }
    (all, numbers)
}

fn speedscope(profile: &Profile, name: &str) -> String {
    let (all, numbers) = numbered(profile);
    let frame = |frame: &&Frame| match frame.file.is_empty() {
        true => json!({ "name": frame.function }),
        false => json!({ "name": frame.function, "file": frame.file, "line": frame.line }),
    };
    let mut frames: Vec<_> = all.iter().map(frame).collect();
    let kernel_frame = frames.len();
    frames.push(json!({ "name": KERNEL }));
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    for (stack, kernel, count) in each(profile) {
        let mut sample: Vec<usize> = stack.frames.iter().rev().map(|f| numbers[&**f]).collect();
        sample.extend(kernel.then_some(kernel_frame));
        samples.push(sample);
        weights.push(count as f64 * profile.period.as_secs_f64());
    }
    let end: f64 = weights.iter().sum();
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "shared": { "frames": frames },
        "profiles": [{
            "type": "sampled",
            "name": name,
            "unit": "seconds",
            "startValue": 0,
            "endValue": end,
            "samples": samples,
            "weights": weights,
        }],
    })
    .to_string()
}

/// A protocol-buffers message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn packed(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut inner = Message::default();
        values.into_iter().for_each(|value| inner.varint(value));
        self.bytes(field, &inner.0);
    }
}

/// Strings by number; number 0 is the empty string, as the format requires.
struct Strings<'s> {
    all: Vec<&'s str>,
    numbers: HashMap<&'s str, u64>,
}

impl<'s> Strings<'s> {
    fn number(&mut self, text: &'s str) -> u64 {
        *self.numbers.entry(text).or_insert_with(|| {
            self.all.push(text);
            self.all.len() as u64 - 1
        })
    }
}

/// Writes pprof's `profile.proto`: a location and a function for each frame.
fn pprof(profile: &Profile) -> Vec<u8> {
    let (mut frames, numbers) = numbered(profile);
    let kernel = Frame { function: KERNEL.to_string(), ..Frame::default() };
    let kernel_location = frames.len() as u64 + 1;
    frames.push(&kernel);
    let mut strings = Strings { all: vec![""], numbers: HashMap::from([("", 0)]) };
    let mut out = Message::default();
    for (kind, unit) in [("samples", "count"), ("cpu", "nanoseconds")] {
        let mut value_type = Message::default();
        value_type.number(1, strings.number(kind));
        value_type.number(2, strings.number(unit));
        out.bytes(1, &value_type.0);
    }
    let period = profile.period.as_nanos() as u64;
    for (stack, kernel, samples) in each(profile) {
        let mut sample = Message::default();
        let locations = stack.frames.iter().map(|frame| numbers[&**frame] as u64 + 1);
        sample.packed(1, kernel.then_some(kernel_location).into_iter().chain(locations));
        sample.packed(2, [samples, samples * period]);
        out.bytes(2, &sample.0);
    }
    for (at, frame) in frames.iter().enumerate() {
        let id = at as u64 + 1;
        let (mut line, mut location, mut function) =
            (Message::default(), Message::default(), Message::default());
        line.number(1, id);
        line.number(2, u64::from(frame.line));
        location.number(1, id);
        location.bytes(4, &line.0);
        out.bytes(4, &location.0);
        function.number(1, id);
        function.number(2, strings.number(&frame.function));
        function.number(4, strings.number(&frame.file));
        out.bytes(5, &function.0);
    }
    let mut period_type = Message::default();
    period_type.number(1, strings.number("cpu"));
    period_type.number(2, strings.number("nanoseconds"));
    for text in &strings.all {
        out.bytes(6, text.as_bytes());
    }
    out.number(10, profile.wall.as_nanos() as u64);
    out.bytes(11, &period_type.0);
    out.number(12, period);
    out.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    fn profile() -> Profile {
        let frame = |function: &str, line| {
            let (function, file) = (function.to_string(), "f.rs".to_string());
            Arc::new(Frame { function, file, line, module: String::new() })
        };
        let (main, work, inner) = (frame("main", 1), frame("work;er", 2), frame("inner", 3));
        let stacks = vec![
            Stack {
                frames: vec![inner, work.clone(), main.clone()],
                user: 5,
                kernel: 2,
                is_cut: false,
            },
            Stack { frames: vec![work, main], user: 3, kernel: 0, is_cut: false },
        ];
        Profile { stacks, period: Duration::from_millis(2), ..Profile::default() }
    }

    #[test]
    fn folded_stacks_go_from_the_outside_in() {
        let expected = "main;work:er;inner 5\nmain;work:er;inner;[kernel] 2\nmain;work:er 3\n";
        assert_eq!(folded(&profile()), expected);
    }

    #[test]
    fn speedscope_has_a_weight_for_each_stack() {
        let text = speedscope(&profile(), "a run");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let sampled = &value["profiles"][0];
        assert_eq!(sampled["samples"].as_array().unwrap().len(), 3);
        assert_eq!(sampled["samples"][1].as_array().unwrap().len(), 4);
        let weights = sampled["weights"].as_array().unwrap();
        let sum: f64 = weights.iter().map(|weight| weight.as_f64().unwrap()).sum();
        assert!((sum - 0.020).abs() < 1e-9);
        assert_eq!(value["shared"]["frames"].as_array().unwrap().len(), 4);
    }

    /// Reads the fields of a message: a number, and a varint or bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Result<u64, &[u8]>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let (mut value, mut shift) = (0, 0);
            loop {
                let (byte, rest) = bytes.split_first().unwrap();
                *bytes = rest;
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    return value;
                }
            }
        }
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = varint(&mut bytes);
            if key & 7 == 2 {
                let (inner, rest) = bytes.split_at(value as usize);
                bytes = rest;
                all.push((key >> 3, Err(inner)));
            } else {
                all.push((key >> 3, Ok(value)));
            }
        }
        all
    }

    #[test]
    fn pprof_s_message_has_its_samples_locations_functions_and_strings() {
        let bytes = pprof(&profile());
        let all = fields(&bytes);
        let count = |field| all.iter().filter(|(number, _)| *number == field).count();
        assert_eq!((count(1), count(2), count(4), count(5)), (2, 3, 4, 4));
        let strings: Vec<&[u8]> =
            all.iter().filter(|(number, _)| *number == 6).filter_map(|(_, v)| v.err()).collect();
        assert_eq!(strings[0], b"");
        assert!(strings.contains(&&b"work;er"[..]) && strings.contains(&&b"cpu"[..]));
        let sample = all.iter().find(|(number, _)| *number == 2).unwrap().1.unwrap_err();
        let values = fields(sample)[1].1.unwrap_err();
        assert_eq!(values[0], 5);
    }
}
