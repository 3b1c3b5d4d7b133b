//! A scheduler in a crate of its own, outside of this workspace: `examples/linked`.
//!
//! Its sources are built as an example of this package, from what is built for all tests; as a crate of its own, it
//! would have all of this workspace compiled again. A test of its manifest shows that it can be such a crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dormouse_tests::{cargo_command, checks_and_replays, dormouse, refused, run_in, summary, text};
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Path of the linked program, built in the same folder as `dormouse` and with the same features.
fn my_dormouse() -> PathBuf {
    let profile = dormouse().parent().unwrap();
    let mut build = cargo_command();
    build.args(["build", "--offline", "--quiet", "--workspace", "--example", "my-dormouse"]);
    build.args(["--message-format", "json"]);
    build.arg("--target-dir").arg(profile.parent().unwrap()).current_dir(root());
    // That of `dev` is called otherwise.
    if let Some(name) = profile.file_name().filter(|name| *name != "debug") {
        build.arg("--profile").arg(name);
    }
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}", text(&built));
    // Where all is built already, the example alone is compiled: nothing in how it is asked for makes other units of the rest.
    if std::env::var_os("DORMOUSE_TESTS_BUILT").is_some() {
        let said = String::from_utf8_lossy(&built.stdout);
        let artifacts = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let compiled: Vec<String> = artifacts
            .filter(|it| it["reason"] == "compiler-artifact" && it["fresh"] == false)
            .map(|it| it["target"]["name"].as_str().unwrap().to_owned())
            .filter(|name| name != "my-dormouse")
            .collect();
        assert!(compiled.is_empty(), "compiled once more: {compiled:?}");
    }
    profile.join("examples/my-dormouse")
}

#[test]
fn a_scheduler_of_another_crate_is_one_like_any_other() {
    let program = my_dormouse();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let own = |args: &[&str]| {
        let output = Command::new(&program).args(args).current_dir(folder).output().unwrap();
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

/// Cargo finds everything that the crate needs when it is elsewhere, with the versions of this workspace; the crate
/// depends on dormouse alone, with its default features.
#[test]
fn a_crate_outside_of_this_workspace_depends_on_dormouse_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let example = root().join("examples/linked");
    fs::create_dir(folder.join("src")).unwrap();
    for file in ["src/main.rs", "src/one_vm.rs"] {
        fs::copy(example.join(file), folder.join(file)).unwrap();
    }
    let manifest = fs::read_to_string(example.join("Cargo.toml")).unwrap();
    let elsewhere = manifest.replace("../../testbed", root().join("testbed").to_str().unwrap());
    assert_ne!(manifest, elsewhere);
    fs::write(folder.join("Cargo.toml"), elsewhere).unwrap();
    // The same versions of everything, which are here already.
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    fs::write(folder.join("Cargo.lock"), &lock).unwrap();
    // Of other systems not all is here.
    let here = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let said = cargo_command()
        .args(["metadata", "--offline", "--format-version", "1", "--filter-platform", &here])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(said.status.success(), "{}", text(&said));
    let metadata: Value = serde_json::from_slice(&said.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let of = |name: &str| packages.iter().find(|it| it["name"] == name).unwrap();
    let needs = of("my-dormouse")["dependencies"].as_array().unwrap();
    let [dormouse] = &needs[..] else { panic!("it needs more than dormouse: {needs:#?}") };
    assert_eq!(
        (&dormouse["name"], &dormouse["features"]),
        (&"dormouse".into(), &Value::Array([].into()))
    );
    for package in packages.iter().filter(|it| it["name"] != "my-dormouse") {
        let [name, version] = ["name", "version"].map(|key| package[key].as_str().unwrap());
        let locked = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&locked), "{name} {version} is another one than here");
    }
}
