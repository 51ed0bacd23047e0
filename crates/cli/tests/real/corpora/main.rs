//! What fuzzing has found, and the seeds that it starts from, through the fuzz targets without a
//! fuzzer: every file of `fuzz/corpus` is read as its target reads it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]
#![allow(clippy::duplicate_mod, reason = "each target has what several share")]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

// The targets name libFuzzer's macro; here the same words make a function.
extern crate self as libfuzzer_sys;

mod in_place_of_libfuzzer {
    macro_rules! fuzz_target {
        (|$octets:ident: &[u8]| $body:block) => {
            pub(crate) fn fuzz_one($octets: &[u8]) $body
        };
    }
    pub(crate) use fuzz_target;
}
pub(crate) use in_place_of_libfuzzer::fuzz_target;

macro_rules! targets {
    ($($file:tt $target:ident;)*) => {
        $(
            #[path = $file]
            #[allow(unused_attributes, reason = "`no_main` is for the fuzzer")]
            mod $target;
        )*
        const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($target), $target::fuzz_one)),*];
    };
}

targets! {
    "../../../../../fuzz/targets/capture.rs" capture;
    "../../../../../fuzz/targets/doq.rs" doq;
    "../../../../../fuzz/targets/experiment.rs" experiment;
    "../../../../../fuzz/targets/expositions.rs" expositions;
    "../../../../../fuzz/targets/hpack.rs" hpack;
    "../../../../../fuzz/targets/http2_client.rs" http2_client;
    "../../../../../fuzz/targets/http2_server.rs" http2_server;
    "../../../../../fuzz/targets/http3.rs" http3;
    "../../../../../fuzz/targets/metrics_requests.rs" metrics_requests;
    "../../../../../fuzz/targets/profile.rs" profile;
    "../../../../../fuzz/targets/qpack.rs" qpack;
    "../../../../../fuzz/targets/question_files.rs" question_files;
    "../../../../../fuzz/targets/quic_datagrams.rs" quic_datagrams;
    "../../../../../fuzz/targets/response_matching.rs" response_matching;
    "../../../../../fuzz/targets/run_record.rs" run_record;
    "../../../../../fuzz/targets/scenario.rs" scenario;
    "../../../../../fuzz/targets/stream_framing.rs" stream_framing;
    "../../../../../fuzz/targets/tls_record_layer.rs" tls_record_layer;
    "../../../../../fuzz/targets/tls_records.rs" tls_records;
    "../../../../../fuzz/targets/tsig_key.rs" tsig_key;
    "../../../../../fuzz/targets/xdp_frame.rs" xdp_frame;
    "../../../../../fuzz/targets/zone.rs" zone;
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz")
        .join(name)
}

/// Files in a folder, without what else is in it.
fn files(name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(name)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

#[test]
fn every_file_of_a_corpus_passes_its_target() {
    let mut failed = Vec::new();
    for (target, fuzz_one) in TARGETS {
        let files = files(&format!("corpus/{target}"));
        assert!(
            !files.is_empty(),
            "{target}: a target starts from something"
        );
        for file in files {
            let octets = fs::read(&file).unwrap();
            if catch_unwind(|| fuzz_one(&octets)).is_err() {
                failed.push(file);
            }
        }
    }
    assert_eq!(failed, Vec::<PathBuf>::new());
}

#[test]
fn every_target_is_here_and_in_the_manifest() {
    let files = files("targets");
    let stem = |file: &PathBuf| file.file_stem().unwrap().to_str().unwrap().to_owned();
    let on_disk: Vec<String> = files.iter().map(stem).collect();
    let here: Vec<&str> = TARGETS.iter().map(|(target, _)| *target).collect();
    assert_eq!(on_disk, here);
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    for target in here {
        let path = format!("path = \"targets/{target}.rs\"");
        assert!(
            manifest.contains(&path),
            "{target} is not built by fuzz/run"
        );
    }
}
