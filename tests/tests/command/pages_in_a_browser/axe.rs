//! The library axe-core, which checks pages for the needs of screen readers and keyboards.

use std::fs;
use std::path::{Path, PathBuf};

use dormouse_tests::Browser;

use super::findings::Finding;

const RUN: &str = r#"
const done = arguments[arguments.length - 1];
axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => {
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  done(grave.flatMap(({ id, nodes }) => nodes.map(({ target }) => [`axe ${id}`, target.join(" ")])));
}, (error) => done([["axe", String(error)]]));
"#;

/// The source text of axe-core.
pub(super) struct Axe(String);

impl Axe {
    /// Loads axe-core; `None`, after printing why, if it has not been downloaded. With `CI=true` that fails instead.
    pub(super) fn found() -> Option<Self> {
        let home = std::env::var_os("DORMOUSE_HOME").map(PathBuf::from);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let file = home.unwrap_or_else(|| root.join(".dormouse")).join("axe/axe.min.js");
        match fs::read_to_string(&file) {
            Ok(text) => Some(Self(text)),
            Err(error) => {
                let why = format!("{}: {error}; scripts/get-axe fetches it", file.display());
                assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
                println!("without axe-core: {why}");
                None
            }
        }
    }

    /// Findings of serious and critical impact on the page that is open.
    pub(super) fn finds(&self, browser: &Browser) -> Vec<Finding> {
        let _ = browser.script(&self.0, &[]);
        Finding::all(&browser.script_until(RUN, &[]))
    }
}
