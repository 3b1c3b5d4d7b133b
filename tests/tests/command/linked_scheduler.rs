//! A scheduler in a crate of its own, outside of this workspace: `examples/linked`, somewhere else.
//!
//! It takes a minute and a half: what is of this workspace is compiled again for the other one.

use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::{checks_and_replays, dormouse, refused, run_in, summary, text};

#[test]
fn a_scheduler_of_another_crate_is_one_like_any_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let target = dormouse().parent().unwrap().parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let example = root.join("examples/linked");
    fs::create_dir(folder.join("src")).unwrap();
    for file in ["src/main.rs", "src/one_vm.rs"] {
        fs::copy(example.join(file), folder.join(file)).unwrap();
    }
    let manifest = fs::read_to_string(example.join("Cargo.toml")).unwrap();
    let testbed = root.join("testbed");
    let elsewhere = manifest.replace("../../testbed", testbed.to_str().unwrap());
    assert_ne!(manifest, elsewhere);
    fs::write(folder.join("Cargo.toml"), elsewhere).unwrap();
    // The same versions of everything, which are here already.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let cargo = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--quiet"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", text(&cargo));

    let own = |args: &[&str]| {
        let output = Command::new(target.join("debug/my-dormouse"))
            .args(args)
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {}", text(&output));
        text(&output)
    };
    assert!(own(&["list"]).contains("one-vm"));
    own(&["run", "j60-sc2", "--scheduler", "one-vm", "--out", "out", "--quiet"]);
    let out = folder.join("out");
    let made = summary(&out);
    assert_eq!((&made["scheduler"], &made["tasks"]["completed"]), (&"one-vm".into(), &60.into()));
    // Whoever lacks the scheduler needs it for nothing but to run it.
    checks_and_replays(&out);
    let run = ["run", "j60", "--scheduler", "one-vm"];
    refused(folder, &run, 2, &["one-vm"]);
    let compare =
        ["compare", "--schedulers", "one-vm,ils-on-demand", "--on", "j60", "--seeds", "2"];
    own(&[&compare[..], &["--quiet", "--out", "compared"]].concat());
    let resumed = run_in(folder, &["resume", "out"]);
    assert_eq!(resumed.status.code(), Some(2), "it came to its end: {}", text(&resumed));
}
