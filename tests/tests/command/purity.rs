//! Rules of dependencies between crates: pure crates depend on nothing that does I/O, and no crate depends on those
//! above it (DESIGN: the house).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// The pure crates, each with the crates of this workspace that it may use.
const PURE: &[(&str, &[&str])] = &[
    ("dormouse-estimate", &["dormouse-units"]),
    ("dormouse-input", &[]),
    ("dormouse-metadata", &[]),
    ("dormouse-units", &[]),
    ("dormouse-documents", &["dormouse-units"]),
    ("dormouse-cloud", &["dormouse-input", "dormouse-units"]),
    ("dormouse-ec2-wire", &[]),
    ("dormouse-vm", &["dormouse-units"]),
    ("dormouse-model", &["dormouse-cloud", "dormouse-input", "dormouse-units"]),
    ("dormouse-spot", &["dormouse-cloud", "dormouse-input", "dormouse-model", "dormouse-units"]),
    (
        "dormouse-policies",
        &["dormouse-cloud", "dormouse-input", "dormouse-model", "dormouse-spot", "dormouse-units"],
    ),
    (
        "dormouse-engine",
        &[
            "dormouse-cloud",
            "dormouse-input",
            "dormouse-model",
            "dormouse-policies",
            "dormouse-spot",
            "dormouse-units",
            "dormouse-vm",
        ],
    ),
    (
        "dormouse-ec2",
        &[
            "dormouse-cloud",
            "dormouse-ec2-wire",
            "dormouse-engine",
            "dormouse-input",
            "dormouse-model",
            "dormouse-policies",
            "dormouse-spot",
            "dormouse-units",
            "dormouse-vm",
            // Key pairs follow from a secret that the desk is given; getrandom is what ring would draw one from.
            "getrandom",
            "ring",
            "untrusted",
        ],
    ),
    (
        "dormouse-analysis",
        &[
            "dormouse-cloud",
            "dormouse-engine",
            "dormouse-documents",
            "dormouse-estimate",
            "dormouse-input",
            "dormouse-model",
            "dormouse-policies",
            "dormouse-spot",
            "dormouse-units",
            "dormouse-vm",
            "dormouse-workload",
        ],
    ),
    (
        "dormouse-fit",
        &[
            "dormouse-cloud",
            "dormouse-documents",
            "dormouse-estimate",
            "dormouse-input",
            "dormouse-units",
        ],
    ),
    (
        "dormouse-workload",
        &[
            "dormouse-cloud",
            "dormouse-documents",
            "dormouse-input",
            "dormouse-model",
            "dormouse-units",
        ],
    ),
];

/// Everything outside the workspace that a pure crate may come to depend on: data formats,
/// compression, hashes, random bits, statistics, and notes for whoever listens (`tracing`). None of
/// these opens, waits or listens.
const HARMLESS: &[&str] = &[
    "adler2",
    "approx",
    "arraydeque",
    "arrayref",
    "arrayvec",
    "base64",
    "blake3",
    "block-buffer",
    "cfg-if",
    "cmov",
    "const-oid",
    "constant_time_eq",
    "cpufeatures",
    "crc32fast",
    "crypto-common",
    "csv",
    "csv-core",
    "ctutils",
    "digest",
    "dyn-clone",
    "equivalent",
    "flate2",
    "foldhash",
    "generic-array",
    "hashbrown",
    "hashlink",
    "hybrid-array",
    "indexmap",
    "itoa",
    "libc",
    "libm",
    "lzma-rust2",
    "md-5",
    "memchr",
    "miniz_oxide",
    "num-traits",
    "once_cell",
    "pin-project-lite",
    "ppv-lite86",
    "proc-macro2",
    "quote",
    "rand_chacha",
    "rand_core",
    "rawzip",
    "ref-cast",
    "ref-cast-impl",
    "ruzstd",
    "ryu",
    "schemars",
    "schemars_derive",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_derive_internals",
    "serde_json",
    "serde_spanned",
    "sha2",
    "simd-adler32",
    "statrs",
    "strsim",
    "syn",
    "thin-vec",
    "thiserror",
    "thiserror-impl",
    "toml",
    "toml_datetime",
    "toml_parser",
    "toml_writer",
    "tracing",
    "tracing-attributes",
    "tracing-core",
    "twox-hash",
    "typenum",
    "unicode-ident",
    "version_check",
    "winnow",
    "yaml-rust2",
    "zerocopy",
    "zerocopy-derive",
    "zlib-rs",
    "zmij",
];

/// Name of every package and, per package id, the ids it normally depends on.
fn graph() -> (BTreeMap<String, String>, BTreeMap<String, Vec<String>>) {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform"])
        .arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let each = |value: &Value| value.as_array().expect("a list").clone();
    let names =
        each(&metadata["packages"]).iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
    let is_normal = |dep: &Value| each(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
    let arrows = each(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let deps = each(&node["deps"])
                .into_iter()
                .filter(is_normal)
                .map(|d| text(&d["pkg"]))
                .collect();
            (text(&node["id"]), deps)
        })
        .collect();
    (names, arrows)
}

#[test]
fn pure_crates_depend_on_nothing_that_does_io() {
    let (names, arrows) = graph();
    for (pure, may) in PURE {
        let id =
            names.iter().find(|(_, name)| name == pure).map(|(id, _)| id).expect("it is a member");
        let (mut seen, mut open) = (BTreeSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                open.extend(&arrows[id]);
            }
        }
        let wrong: Vec<_> = seen
            .into_iter()
            .map(|id| names[id].as_str())
            .filter(|name| name != pure && !may.contains(name) && !HARMLESS.contains(name))
            .collect();
        assert!(
            wrong.is_empty(),
            "{pure} must stay pure but has come to depend on {wrong:?}: if one of them does no I/O, \
             name it in HARMLESS with its reason, else move the code that needs it to a service"
        );
    }
}

#[test]
fn every_pure_crate_bans_clocks_and_io() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for dir in [
        "proto/documents",
        "proto/estimate",
        "proto/input",
        "proto/units",
        "coordinator/cloud",
        "coordinator/ec2/wire",
        "coordinator/policies",
        "coordinator/engine",
        "coordinator/ec2",
        "coordinator/fit",
        "coordinator/model",
        "coordinator/analysis",
        "coordinator/spot",
        "coordinator/workload",
        "testbed/view",
        "worker/metadata",
        "worker/vm",
    ] {
        let file = root.join(dir).join("clippy.toml");
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for banned in ["Instant::now", "SystemTime::now", "thread::sleep", "std::fs::", "HashMap"] {
            assert!(text.contains(banned), "{} no longer bans {banned}", file.display());
        }
    }
}
