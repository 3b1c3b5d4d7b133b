//! Tests, under node, of the parts of the live page that need no browser.

use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testbed/watch/page");
const TESTS: &str = include_str!("../live/live_page/page.test.mjs");

#[test]
fn the_page_makes_of_changes_what_its_own_tests_say() {
    if let Err(error) = Command::new("node").arg("--version").output() {
        let why = format!("node: {error}; scripts/test installs it");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
        return println!("skipped: {why}");
    }
    // A folder whose files node takes for modules, as a browser does.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("package.json"), "{\"type\":\"module\"}").unwrap();
    fs::write(folder.path().join("page.test.js"), TESTS).unwrap();
    for file in fs::read_dir(PAGE).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "js") {
            fs::copy(&file, folder.path().join(file.file_name().unwrap())).unwrap();
        }
    }
    let tested = Command::new("node")
        .args(["--test", "--test-reporter=tap"])
        .arg(Path::new("page.test.js"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&tested.stdout);
    assert!(tested.status.success(), "{said}\n{}", String::from_utf8_lossy(&tested.stderr));
    assert!(said.contains("# fail 0") && !said.contains("# pass 0"), "{said}");
}
