//! The programs under test: `dormouse`, and those that it needs.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Name of the environment variable with the path of the `dormouse` that tests run.
pub(crate) const GIVEN: &str = "DORMOUSE_BINARY";

/// Name of an environment variable that is set if both programs are built already, so that not every test program has
/// to ask cargo.
const BUILT: &str = "DORMOUSE_TESTS_BUILT";

/// Path of this workspace's `dormouse` binary in the profile of this test, with `dormouse-task` beside it. Both are
/// built if necessary: without the program of tasks, live runs would be skipped. If `DORMOUSE_BINARY` is set, that
/// path is used instead: a soak runs copies, which no build changes.
///
/// # Panics
///
/// It can't be built.
#[must_use]
pub fn dormouse() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(given) = std::env::var_os(GIVEN) {
            return given.into();
        }
        let test = std::env::current_exe().unwrap_or_default();
        // target/PROFILE/deps/TEST
        let profile = test.ancestors().nth(2).map(PathBuf::from).unwrap_or_default();
        if std::env::var_os(BUILT).is_some() {
            return profile.join("dormouse");
        }
        let mut build = cargo_command();
        build.args(["build", "--quiet", "--bin", "dormouse", "--bin", "dormouse-task"]);
        // As in a build of all tests.
        build.args(["--features", "dormouse/bucket,dormouse/parquet"]);
        build.arg("--manifest-path");
        build.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"));
        // That of `dev` is called otherwise.
        if let Some(name) = profile.file_name().filter(|name| *name != "debug") {
            build.arg("--profile").arg(name);
        }
        let built = build.status();
        assert!(built.as_ref().is_ok_and(|s| s.success()), "dormouse can't be built: {built:?}");
        profile.join("dormouse")
    })
}

/// A cargo command for use in a test, without the variables (`CARGO_MANIFEST_DIR`, `CARGO_PKG_NAME`) by which cargo,
/// or `scripts/run-tests`, tells a test about its own package. The build script of `ring` depends on these: a build
/// that inherited them would compile `ring` and its dependents again, and so would the next build without them.
#[must_use]
pub fn cargo_command() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let about_package = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_CFG_", "OUT_DIR"];
        if name.to_str().is_some_and(|name| about_package.iter().any(|it| name.starts_with(it))) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Whether a program of this name is in a folder of PATH.
#[must_use]
pub fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
