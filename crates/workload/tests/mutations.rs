//! The fuzz targets' bodies over mutated examples of every format: no panic, and the same
//! outcome whatever the batch size. Seeds are fixed; a failure prints seed and round.

use std::io::Write;

use millpond_base::{Mark, Seed};
use millpond_workload::generate::Random;
use millpond_workload::trace::Batch;
use millpond_workload::write::{WriteOptions, create};

#[path = "../../../fuzz/bodies/trace.rs"]
mod body;

/// Changes a copy of `example` in one to eight places.
fn mutate(example: &[u8], random: &mut Random) -> Vec<u8> {
    const TOKENS: [&[u8]; 14] = [
        b"\n",
        b",",
        b" ",
        b"-",
        b"\"",
        b"#",
        b"*",
        b"18446744073709551615",
        b"99999999999",
        b"W",
        b"\r\n",
        b"0",
        b"\xff",
        b"\0",
    ];
    let mut bytes = example.to_vec();
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => {
                let token = TOKENS[random.below(TOKENS.len() as u64) as usize];
                bytes.splice(at..at, token.iter().copied());
            }
            2 => {
                let end = (at + random.below(24) as usize).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            3 => {
                let end = (at + random.below(24) as usize).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.below(256) as u8;
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
    bytes
}

/// Runs `body` over mutations of the examples; a panic names the seed and the round.
fn rounds(seed: u64, count: u64, examples: &[Vec<u8>], body: fn(&[u8])) {
    for round in 0..count {
        let mut random = Random::new(Seed(seed).derive(&round.to_string()));
        let example = &examples[random.below(examples.len() as u64) as usize];
        let bytes = mutate(example, &mut random);
        let outcome = std::panic::catch_unwind(|| body(&bytes));
        assert!(outcome.is_ok(), "seed {seed} round {round}: {}", bytes.escape_ascii());
    }
}

fn texts() -> Vec<Vec<u8>> {
    let texts: [&str; 10] = [
        "# c\n1\n2 W\n33333333333 R\n4\n",
        "a\nb\na\n",
        "10 3\n20 1\n",
        "10 3 0 0\n20 1 0 1\n",
        "1\n*\n2\n",
        "0,8,4096,W,0.5\n1,0,512,r,0.6\n",
        "128166372003061629,usr,0,Read,8192,4097,41286\n128166372003061630,usr,1,Write,0,5,1\n",
        "page,op,reason,kind,depth,scan,lsn\n9,W,recov,3,2,1,77\n8,R,none,0,0,0,78\n",
        "id,size,op\n5,10000,W\n\"6\",1,R\n",
        "R;7;1\nW;8;1\n",
    ];
    texts.iter().map(|t| t.as_bytes().to_vec()).collect()
}

fn oracle() -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..20u64 {
        bytes.extend((i as u32).to_le_bytes());
        bytes.extend((i % 7).to_le_bytes());
        bytes.extend(5000u32.to_le_bytes());
        bytes.extend((i as i64 + 8).to_le_bytes());
    }
    bytes
}

#[test]
fn mutated_traces_never_panic_under_detection() {
    let mut examples = texts();
    examples.push(oracle());
    rounds(1, 6000, &examples, body::detect);
}

#[test]
fn mutated_traces_never_panic_in_any_format() {
    let mut examples = Vec::new();
    for data in texts().into_iter().chain([oracle()]) {
        for which in 0..9u8 {
            for flags in [0u8, 0x13, 0x22, 0x31, 0x46] {
                examples.push([&[which, flags], &data[..]].concat());
            }
        }
    }
    rounds(2, 10_000, &examples, body::formats);
}

#[test]
fn mutated_compressed_traces_never_panic() {
    let text: String = (0..2000u32).map(|i| format!("{}\n", i * 7919 % 1009)).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let examples =
        [[&[0], &gzip[3..]].concat(), [&[1], &zstd[4..]].concat(), [&[2], &gzip[..]].concat()];
    rounds(3, 3000, &examples, body::packed);
}

#[test]
fn mutated_parquet_never_panics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let mut batch = Batch::default();
    (0..500u64)
        .for_each(|i| batch.push(i * i % 101, if i % 3 == 0 { Mark::WRITE } else { Mark::READ }));
    let mut sink = create(&path, &WriteOptions::default()).unwrap();
    sink.write(&batch).unwrap();
    sink.finish().unwrap();
    let examples = [std::fs::read(&path).unwrap()];
    rounds(4, 800, &examples, body::parquet);
}
