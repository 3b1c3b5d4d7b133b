//! The identity of the host that was calibrated.

use std::time::Duration;

use dormouse_worker::agent::available_millicores;
use dormouse_worker::cgroup::CgroupHierarchy;
use dormouse_worker::criu::CriuProgram;
use serde::{Deserialize, Serialize};

use crate::programs::criu_program;

/// Time limit for CRIU to report its version.
const DEADLINE: Duration = Duration::from_secs(10);

/// Properties of a host and its software that timing errors depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HostIdentity {
    /// Cores that workers may use, in thousandths.
    pub millicores: u32,
    /// Model name of the host's processors, if they report one.
    pub processor: Option<String>,
    /// The kernel's release.
    pub kernel: String,
    /// Version of the host's control groups; `None` without any.
    pub cgroups: Option<u32>,
    /// Version of CRIU; `None` without one.
    pub criu: Option<String>,
    /// Version of this program.
    pub dormouse: String,
}

impl HostIdentity {
    /// Identifies this host. Takes about a tenth of a second.
    #[must_use]
    pub fn of_this() -> Self {
        let uts = nix::sys::utsname::uname();
        let kernel =
            uts.map_or_else(|_| "unknown".into(), |u| u.release().to_string_lossy().into_owned());
        let criu = CriuProgram::new(criu_program()).read_version(DEADLINE).ok();
        Self {
            millicores: available_millicores(),
            processor: processor_name(
                &std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default(),
            ),
            kernel,
            cgroups: CgroupHierarchy::detect_version().ok().map(|h| if h.is_v2() { 2 } else { 1 }),
            criu: criu.map(|version| version.to_string()),
            dormouse: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Description of the first difference from `now`, as a clause; `None`: both hosts are equal.
    #[must_use]
    pub fn first_difference(&self, now: &Self) -> Option<String> {
        let cores = |h: &Self| (f64::from(h.millicores) / 1e3).to_string();
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".into());
        let groups = |h: &Self| h.cgroups.map_or_else(|| "none".into(), |v| format!("v{v}"));
        [
            ("cores", cores(self), cores(now)),
            ("processor", or_none(&self.processor), or_none(&now.processor)),
            ("kernel", self.kernel.clone(), now.kernel.clone()),
            ("control groups", groups(self), groups(now)),
            ("CRIU", or_none(&self.criu), or_none(&now.criu)),
            ("dormouse", self.dormouse.clone(), now.dormouse.clone()),
        ]
        .into_iter()
        .find(|(_, was, is)| was != is)
        .map(|(what, was, is)| format!("{what} {was} then, {is} now"))
    }
}

/// Name of the first processor (proc(5)); some kinds of machine report none.
fn processor_name(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn host_for_tests() -> HostIdentity {
        HostIdentity {
            millicores: 2_000,
            processor: Some("a processor".into()),
            kernel: "6.18.0".into(),
            cgroups: Some(2),
            criu: Some("4.1.1".into()),
            dormouse: "0.1.0".into(),
        }
    }

    #[test]
    fn what_differs_is_named() {
        let (then, changed) = (host_for_tests(), |change: fn(&mut HostIdentity)| {
            let mut now = host_for_tests();
            change(&mut now);
            now
        });
        assert_eq!(then.first_difference(&host_for_tests()), None);
        let differs = |change| then.first_difference(&changed(change)).unwrap_or_default();
        assert_eq!(differs(|h| h.millicores = 4_000), "cores 2 then, 4 now");
        assert_eq!(differs(|h| h.kernel = "6.19.0".into()), "kernel 6.18.0 then, 6.19.0 now");
        assert_eq!(differs(|h| h.cgroups = Some(1)), "control groups v2 then, v1 now");
        assert_eq!(differs(|h| h.criu = None), "CRIU 4.1.1 then, none now");
        assert_eq!(differs(|h| h.dormouse = "0.2.0".into()), "dormouse 0.1.0 then, 0.2.0 now");
        assert_eq!(differs(|h| h.processor = None), "processor a processor then, none now");
    }

    #[test]
    fn a_processor_is_named_where_it_says_so() {
        let intel = "processor\t: 0\nmodel name\t: Some(R) CPU @ 2.50GHz\nmodel name\t: other\n";
        assert_eq!(processor_name(intel).as_deref(), Some("Some(R) CPU @ 2.50GHz"));
        assert_eq!(processor_name("processor\t: 0\nBogoMIPS\t: 50.00\n"), None);
    }
}
