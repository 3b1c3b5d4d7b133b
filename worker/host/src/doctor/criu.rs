//! CRIU: where it is, and what it can do on this kernel.

use std::path::PathBuf;
use std::time::Duration;

use dormouse_worker::criu::Criu;

use super::Finding;

/// Longer than any healthy CRIU takes to look at a kernel.
const DEADLINE: Duration = Duration::from_secs(10);

/// The CRIU to use: `$DORMOUSE_CRIU`, the one that `scripts/get-criu` unpacked (below
/// `$DORMOUSE_HOME`, or `.dormouse` here or above the program), or `criu` on the path.
#[must_use]
pub fn criu_program() -> PathBuf {
    if let Some(given) = std::env::var_os("DORMOUSE_CRIU").filter(|v| !v.is_empty()) {
        return given.into();
    }
    let home = std::env::var_os("DORMOUSE_HOME").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let program = std::env::current_exe().ok();
    let above = [here, program]
        .into_iter()
        .flatten()
        .flat_map(|path| path.ancestors().map(|p| p.join(".dormouse")).collect::<Vec<_>>());
    home.into_iter()
        .chain(above)
        .map(|folder| folder.join("criu/criu"))
        .find(|path| path.is_file())
        .unwrap_or_else(|| "criu".into())
}

pub(super) fn criu() -> Vec<Finding> {
    let name = "CRIU";
    let fix = "run scripts/get-criu, or set DORMOUSE_CRIU to one that passes `criu check`";
    let probe = Criu::new(criu_program()).probe(DEADLINE);
    let program = probe.program.display();
    let version = probe.version.map_or("no version".to_owned(), |v| v.to_string());
    if let Err(error) = &probe.check {
        let found = format!("{program}, {version}: {error}").replace('\n', " ");
        return vec![Finding::missing(name, found, fix)];
    }
    let has = |has| if has { "yes" } else { "no" };
    let features = format!(
        "incremental dumps {}, lazy pages {}, pidfd store {}",
        has(probe.mem_track),
        has(probe.lazy_pages),
        has(probe.pidfd_store)
    );
    vec![
        Finding::found(name, format!("{program}, version {version}, passes its check")),
        Finding::found("CRIU features", features),
    ]
}
