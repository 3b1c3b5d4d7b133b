//! What a benchmark needs from its host.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use dormouse_worker::criu::find_criu;
use serde::Deserialize;

/// Something that a host has to have for a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Root rights, for control groups.
    Root,
    /// A CRIU that works on this kernel.
    Criu,
    /// Chromium and its WebDriver.
    Chromium,
}

impl Need {
    /// The word that stands for this need in the file of benchmarks.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Criu => "criu",
            Self::Chromium => "chromium",
        }
    }

    /// Why this host does not meet the need, with the remedy; `None` if it does.
    #[must_use]
    pub fn lacking(self) -> Option<String> {
        let lacks = match self {
            Self::Root => {
                (!nix::unistd::geteuid().is_root()).then_some("root, for control groups: run it as root")
            }
            Self::Criu => (!find_criu(None).is_some_and(|criu| criu_works(&criu)))
                .then_some("a CRIU that works on this kernel: scripts/get-criu finds one, as root"),
            Self::Chromium => ["chromium", "chromedriver"].into_iter().any(|name| !is_on_path(name)).then_some(
                "chromium and chromedriver on the PATH: install Debian's chromium and chromium-driver",
            ),
        };
        lacks.map(|what| format!("not run: it needs {what}"))
    }
}

/// Whether the program at this path is CRIU and its own check says that it works on this host.
fn criu_works(program: &Path) -> bool {
    let mut check = Command::new(program);
    check.arg("check").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    check.status().is_ok_and(|status| status.success())
}

fn is_on_path(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_or_fails_is_no_criu() {
        for program in ["/no/such/criu", "/bin/false"] {
            assert!(!criu_works(Path::new(program)), "{program}");
        }
        assert!(criu_works(Path::new("/bin/true")));
    }
}
