//! Checks of CRIU: its path, and its abilities on this kernel.

use std::time::Duration;

use dormouse_worker::criu::CriuProgram;

use super::cause::{FailureCircumstances, brief_failure};
use super::{Finding, criu_program};

/// Time limit for CRIU's check of the kernel.
const DEADLINE: Duration = Duration::from_secs(10);

/// Finding for CRIU if its check would fail for a reason reported elsewhere: no root, or no control groups.
pub(super) fn unchecked_criu() -> Finding {
    let program = criu_program();
    let found = format!("{}, not checked: that needs root and control groups", program.display());
    Finding::judged_finding("CRIU", false, found, "fix that first").of_checkpoints()
}

/// Checks the CRIU that live runs use. `circumstances` help to explain a failed check.
pub(super) fn check_criu(circumstances: &FailureCircumstances) -> Vec<Finding> {
    let name = "CRIU";
    let fix = "run scripts/get-criu (with --system for a dormouse that is installed), or set DORMOUSE_CRIU to \
               one that passes `criu check`; in an image of Debian 13: apt-get install criu";
    let probe = CriuProgram::new(criu_program()).probe_host(DEADLINE);
    let program = probe.program.display();
    let version = probe.version.map_or("no version".to_owned(), |v| v.to_string());
    if let Err(error) = &probe.check {
        let why = error.to_string();
        let mut found = format!("{program}, {version}: {}", brief_failure(&why));
        let mut fix = fix.to_owned();
        // CRIU exists but lacks permissions.
        if probe.version.is_some() && why.contains("not permitted") {
            let cause = circumstances.find_cause(&why);
            // The relevant part of CRIU's log is the operation that was not permitted.
            let said = why.lines().rfind(|line| line.contains("not permitted")).unwrap_or(&why);
            found = format!(
                "{}: {program}, {version}: criu check: {}",
                cause.what,
                brief_failure(said.trim())
            );
            fix = cause.fix;
        }
        return vec![Finding::missing_finding(name, found, fix).of_checkpoints()];
    }
    let has = |has| if has { "yes" } else { "no" };
    let features = format!(
        "incremental dumps {}, lazy pages {}, pidfd store {}",
        has(probe.mem_track),
        has(probe.lazy_pages),
        has(probe.pidfd_store)
    );
    vec![
        Finding::found_finding(name, format!("{program}, version {version}, passes its check")),
        Finding::found_finding("CRIU features", features),
    ]
}
