//! Rights of this process: its user, capabilities and system call filter.

use dormouse_worker::place::ProcessPlace;

use super::{Finding, FindingState};

/// A capability that live runs use: its name without `CAP_`, its bit number, and its use.
struct LiveCapability {
    name: &'static str,
    bit: u32,
    what: &'static str,
    /// True if only checkpoints need the right.
    for_checkpoints: bool,
}

/// Name of the finding on capabilities.
const CAPABILITIES_NAME: &str = "capabilities";

const CAPABILITIES: [LiveCapability; 9] = [
    LiveCapability {
        name: "SYS_ADMIN",
        bit: 21,
        what: "namespaces, mounts, control groups",
        for_checkpoints: false,
    },
    LiveCapability {
        name: "DAC_OVERRIDE",
        bit: 1,
        what: "files of other users",
        for_checkpoints: false,
    },
    LiveCapability {
        name: "KILL",
        bit: 5,
        what: "ending tasks of other users",
        for_checkpoints: false,
    },
    LiveCapability {
        name: "SETUID",
        bit: 7,
        what: "tasks as users of their own",
        for_checkpoints: false,
    },
    LiveCapability {
        name: "SETGID",
        bit: 6,
        what: "tasks as users of their own",
        for_checkpoints: false,
    },
    LiveCapability {
        name: "CHOWN",
        bit: 0,
        what: "the files of those users",
        for_checkpoints: false,
    },
    LiveCapability {
        name: "SYS_PTRACE",
        bit: 19,
        what: "dumps of running tasks",
        for_checkpoints: true,
    },
    LiveCapability {
        name: "NET_ADMIN",
        bit: 12,
        what: "CRIU's view of the network",
        for_checkpoints: true,
    },
    LiveCapability {
        name: "SYS_TIME",
        bit: 25,
        what: "the clock of a restored task",
        for_checkpoints: true,
    },
];

/// Rights of this process as the kernel reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessRights {
    /// True if the process is root in its user namespace.
    pub(super) is_root: bool,
    /// Bit set of the effective capabilities.
    pub(super) effective: u64,
    /// True if system calls are filtered (seccomp).
    pub(super) is_filtered: bool,
}

impl ProcessRights {
    pub(super) fn of_this_process() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self { is_root: nix::unistd::geteuid().is_root(), ..Self::read(&status) }
    }

    /// Parses the rights of this process from the text of `/proc/self/status` (proc(5)).
    fn read(status: &str) -> Self {
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
                .unwrap_or_default()
        };
        Self {
            is_root: false,
            effective: u64::from_str_radix(field("CapEff:"), 16).unwrap_or(0),
            is_filtered: field("Seccomp:") == "2",
        }
    }

    fn lacks_capability(&self, of: &LiveCapability) -> bool {
        self.effective >> of.bit & 1 == 0
    }

    /// Names of the missing capabilities that live runs use.
    pub(super) fn lacking_names(&self) -> Vec<&'static str> {
        CAPABILITIES.iter().filter(|of| self.lacks_capability(of)).map(|of| of.name).collect()
    }

    /// True if mounts, groups and CRIU can be tried at all.
    pub(super) fn can_mount(&self) -> bool {
        self.is_root && !self.lacking_names().contains(&"SYS_ADMIN")
    }

    /// Findings on the rights of this process. `proved` says whether doctor's live test succeeded despite missing rights; `None`:
    /// no test was made.
    pub(super) fn rights_findings(
        &self,
        place: ProcessPlace,
        proved: Option<bool>,
    ) -> Vec<Finding> {
        if !self.is_root {
            let found = "this process does not run as root, which control groups and CRIU need";
            return vec![Finding::missing_finding(CAPABILITIES_NAME, found, place.to_be_root())];
        }
        vec![self.capabilities_finding(place, proved), self.filter_finding(place, proved)]
    }

    fn capabilities_finding(&self, place: ProcessPlace, proved: Option<bool>) -> Finding {
        let name = CAPABILITIES_NAME;
        let lacking: Vec<_> = CAPABILITIES.iter().filter(|of| self.lacks_capability(of)).collect();
        if lacking.is_empty() {
            let names: Vec<_> = CAPABILITIES.iter().map(|of| of.name).collect();
            return Finding::found_finding(name, names.join(", "));
        }
        let words: Vec<_> = lacking.iter().map(|of| format!("{} ({})", of.name, of.what)).collect();
        let mut found = format!("lacking {}", words.join(", "));
        let names: Vec<_> = lacking.iter().map(|of| of.name).collect();
        let fix = Some(place.to_add_capabilities(&names));
        let state = match proved {
            // The proof succeeded without these capabilities.
            Some(true) => {
                found += ", without which the proof went well";
                FindingState::Doubtful
            }
            _ if names.contains(&"SYS_ADMIN") => FindingState::Missing,
            // The steps that need them say so.
            Some(false) => FindingState::Doubtful,
            None => FindingState::Missing,
        };
        let of_checkpoints = lacking.iter().all(|of| of.for_checkpoints);
        Finding { for_checkpoints: of_checkpoints, ..Finding::new(name, state, found, fix) }
    }

    fn filter_finding(&self, place: ProcessPlace, proved: Option<bool>) -> Finding {
        let name = "system calls";
        match (self.is_filtered, proved) {
            (false, _) => Finding::found_finding(name, "not filtered"),
            (true, Some(true)) => {
                Finding::found_finding(name, "filtered; what is needed is let through")
            }
            (true, _) => {
                let found =
                    "filtered (seccomp): the default profiles of engines forbid what CRIU needs";
                let fix = Some(place.to_lift_seccomp());
                Finding::new(name, FindingState::Doubtful, found, fix).of_checkpoints()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(effective: u64) -> ProcessRights {
        ProcessRights { is_root: true, effective, is_filtered: false }
    }

    const ALL: u64 = 1 << 21 | 1 << 1 | 1 << 5 | 1 << 7 | 1 << 6 | 1 | 1 << 19 | 1 << 12 | 1 << 25;

    #[test]
    fn rights_are_read_from_the_status() {
        let read = ProcessRights::read("Name:\tx\nCapEff:\t0000000000200000\nSeccomp:\t2\n");
        assert_eq!((read.effective, read.is_filtered), (1 << 21, true));
        assert_eq!(ProcessRights::read("Name:\tx\n"), ProcessRights::default());
    }

    #[test]
    fn what_is_lacking_is_named_with_the_line_to_add() {
        assert_eq!(rights(ALL).lacking_names(), Vec::<&str>::new());
        let less = rights(ALL & !(1 << 25));
        assert_eq!(less.lacking_names(), ["SYS_TIME"]);
        let [capabilities, _] = &less.rights_findings(ProcessPlace::Docker, None)[..] else {
            panic!("two")
        };
        assert_eq!(capabilities.state, FindingState::Missing);
        assert!(capabilities.for_checkpoints);
        assert!(capabilities.fix.as_ref().is_some_and(|fix| fix.contains("--cap-add SYS_TIME")));
        let proved = less.capabilities_finding(ProcessPlace::Docker, Some(true));
        assert_eq!(proved.state, FindingState::Doubtful);
        assert!(proved.found.contains("went well"), "{}", proved.found);
        let none = rights(0).capabilities_finding(ProcessPlace::Host, Some(false));
        assert!(none.state == FindingState::Missing && !none.for_checkpoints);
    }

    #[test]
    fn who_is_not_root_hears_of_that_alone() {
        let user = ProcessRights { is_root: false, ..rights(0) };
        let findings = user.rights_findings(ProcessPlace::Docker, None);
        assert!(
            matches!(&findings[..], [only] if only.found.contains("not run as root")),
            "{findings:?}"
        );
    }
}
