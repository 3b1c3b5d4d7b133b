//! The place that a process runs in: a bare host, a container of some engine, or a unit of systemd; and the settings
//! with which its owner can give a worker what is missing there.

use std::{env, fs, path::Path};

use crate::cgroup::CgroupHierarchy;

/// The environment that a process runs in: a host, or a kind of container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessPlace {
    /// The process runs directly on a host or in a virtual machine.
    Host,
    /// The process runs in a service of systemd.
    Unit,
    /// The process runs in a container of Docker.
    Docker,
    /// The process runs in a container of Podman.
    Podman,
    /// The process runs in a container of a pod of Kubernetes.
    Kubernetes,
    /// The process runs in a container of an unknown engine.
    Container,
}

/// Marks by which the worker recognises where a process runs.
#[derive(Debug, Default)]
struct PlaceMarks {
    dockerenv: bool,
    containerenv: bool,
    kubernetes: bool,
    /// True if the variable `$container` of this process or of PID 1 is set.
    container: bool,
    invocation: bool,
    /// True if the kernel's threads are visible, as in the first PID namespace only: marks of a container engine then
    /// came with the host's file system.
    kthreads: bool,
    /// The text of `/proc/self/cgroup`.
    groups: String,
}

impl PlaceMarks {
    fn read_marks() -> Self {
        let exists = |path: &str| Path::new(path).exists();
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let init = fs::read("/proc/1/environ").unwrap_or_default();
        Self {
            dockerenv: exists("/.dockerenv"),
            containerenv: exists("/run/.containerenv"),
            kubernetes: is_set("KUBERNETES_SERVICE_HOST")
                || exists("/var/run/secrets/kubernetes.io"),
            container: is_set("container")
                || init.split(|byte| *byte == 0).any(|var| var.starts_with(b"container=")),
            invocation: is_set("INVOCATION_ID"),
            kthreads: fs::read_to_string("/proc/2/comm")
                .is_ok_and(|name| name.trim() == "kthreadd"),
            groups: fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
        }
    }

    fn judge_place(&self) -> ProcessPlace {
        let in_group = |names: &[&str]| names.iter().any(|name| self.groups.contains(name));
        // A shell of a unit has its variable, too, but is in a scope.
        let is_service = || self.groups.lines().any(|line| line.ends_with(".service"));
        match self {
            Self { kubernetes: true, .. } => ProcessPlace::Kubernetes,
            Self { containerenv: true, kthreads: false, .. } => ProcessPlace::Podman,
            Self { dockerenv: true, kthreads: false, .. } => ProcessPlace::Docker,
            _ if in_group(&["/kubepods", "/kubelet"]) => ProcessPlace::Kubernetes,
            _ if in_group(&["/libpod"]) => ProcessPlace::Podman,
            _ if in_group(&["/docker/", "/docker-"]) => ProcessPlace::Docker,
            Self { container: true, kthreads: false, .. } => ProcessPlace::Container,
            _ if in_group(&["/lxc", "/machine.slice"]) => ProcessPlace::Container,
            Self { invocation: true, .. } if is_service() => ProcessPlace::Unit,
            _ => ProcessPlace::Host,
        }
    }
}

impl ProcessPlace {
    /// Returns the environment that this process runs in. Must be called before a worker hides `/run`, where the mark of Podman is.
    #[must_use]
    pub fn detect_place() -> Self {
        PlaceMarks::read_marks().judge_place()
    }

    /// Returns whether the process runs in a container.
    #[must_use]
    pub fn is_container(self) -> bool {
        !matches!(self, Self::Host | Self::Unit)
    }

    /// Describes the environment in words, with its kind of control groups; `has_both`: the host has control groups of versions 1
    /// and 2.
    #[must_use]
    pub fn place_words(self, hierarchy: Option<&CgroupHierarchy>, has_both: bool) -> String {
        let groups = match hierarchy.map(CgroupHierarchy::is_v2) {
            None => "without control groups that can be used",
            Some(true) => "with control groups of version 2",
            Some(false) if has_both => "with control groups of both versions (hybrid)",
            Some(false) => "with control groups of version 1",
        };
        let what = match self {
            Self::Host => "a host",
            Self::Unit => "a unit of systemd",
            Self::Docker => "a container of Docker",
            Self::Podman => "a container of Podman",
            Self::Kubernetes => "a pod of Kubernetes",
            Self::Container => "a container",
        };
        format!("{what}, {groups}")
    }

    /// Describes, for this environment, how to add missing capabilities, named without `CAP_`.
    #[must_use]
    pub fn to_add_capabilities(self, names: &[&str]) -> String {
        let list = names.join(", ");
        match self {
            Self::Host => {
                "run as root (sudo), with these capabilities in the bounding set".to_owned()
            }
            Self::Unit => {
                let caps: Vec<_> = names.iter().map(|name| format!("CAP_{name}")).collect();
                format!(
                    "in [Service]: User=root, and no CapabilityBoundingSet= without {}",
                    caps.join(" ")
                )
            }
            Self::Docker | Self::Podman => {
                let flags: Vec<_> = names.iter().map(|name| format!("--cap-add {name}")).collect();
                let flags = flags.join(" ");
                format!("{} {flags} (compose: cap_add: [{list}])", self.run())
            }
            Self::Kubernetes => {
                format!("in securityContext of the container: capabilities: {{add: [{list}]}}")
            }
            Self::Container => format!("give the container the capabilities {list}"),
        }
    }

    /// Describes, for this environment, how to lift a filter of system calls.
    #[must_use]
    pub fn to_lift_seccomp(self) -> String {
        match self {
            Self::Host => "start it outside of what filters its system calls (Seccomp in \
                           /proc/self/status)"
                .to_owned(),
            Self::Unit => "in [Service]: no SystemCallFilter=, RestrictNamespaces= or \
                           SystemCallArchitectures="
                .to_owned(),
            Self::Docker | Self::Podman => format!(
                "{} --security-opt seccomp=unconfined (compose: security_opt: \
                 [\"seccomp:unconfined\"])",
                self.run()
            ),
            Self::Kubernetes => "in securityContext of the container: seccompProfile: {type: \
                                 Unconfined}"
                .to_owned(),
            Self::Container => "run the container without a seccomp profile".to_owned(),
        }
    }

    /// Describes, for this environment, how to become root.
    #[must_use]
    pub fn to_be_root(self) -> String {
        match self {
            Self::Host => "run as root (sudo)".to_owned(),
            Self::Unit => "in [Service]: User=root".to_owned(),
            Self::Docker | Self::Podman => {
                format!("{} --user 0 (compose: user: \"0\")", self.run())
            }
            Self::Kubernetes => "in securityContext of the container: runAsUser: 0".to_owned(),
            Self::Container => "run it as root of the container".to_owned(),
        }
    }

    /// Describes, for this environment, how to allow a refused mount.
    #[must_use]
    pub fn to_mount(self) -> String {
        match self {
            Self::Host => "run as root (sudo), and mount it read-write".to_owned(),
            Self::Unit => "in [Service]: User=root, Delegate=yes, ProtectControlGroups=no, \
                           ProtectKernelTunables=no"
                .to_owned(),
            Self::Docker | Self::Podman => format!(
                "{} --cap-add SYS_ADMIN (compose: cap_add: [SYS_ADMIN]); with it on a host with \
                 AppArmor or SELinux: --security-opt apparmor=unconfined, --security-opt \
                 label=disable",
                self.run()
            ),
            Self::Kubernetes => "in securityContext of the container: capabilities: {add: \
                                 [SYS_ADMIN]}, appArmorProfile: {type: Unconfined}"
                .to_owned(),
            Self::Container => "give the container the capability SYS_ADMIN, without a profile of \
                                AppArmor or SELinux that forbids mounts"
                .to_owned(),
        }
    }

    /// Describes, for this environment, how to raise the CPU weight of a control group that has less than its neighbours.
    #[must_use]
    pub fn to_weigh_more(self) -> String {
        match self {
            Self::Host => {
                "run it in a group of the usual weight (cpu.shares 1024, cpu.weight 100)".to_owned()
            }
            Self::Unit => "in [Service]: CPUWeight=100 or more".to_owned(),
            Self::Docker | Self::Podman => {
                format!("{} --cpu-shares 1024 or more (compose: cpu_shares: 1024)", self.run())
            }
            Self::Kubernetes => {
                "in resources of the container: requests: {cpu: \"1\"} or more, as \
                                 much as its limit"
                    .to_owned()
            }
            Self::Container => "give the container the weight of its neighbours".to_owned(),
        }
    }

    const fn run(self) -> &'static str {
        match self {
            Self::Podman => "podman run",
            _ => "docker run",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_by_its_marks() {
        let of = |groups: &str| PlaceMarks { groups: groups.to_owned(), ..PlaceMarks::default() };
        let none = of("0::/user.slice/user-0.slice/session-1.scope\n");
        assert_eq!(none.judge_place(), ProcessPlace::Host);
        let shell = PlaceMarks { invocation: true, ..none };
        assert_eq!(
            shell.judge_place(),
            ProcessPlace::Host,
            "a shell inherits the variable of a unit"
        );
        let unit = "4:cpu:/system.slice/dormouse.service\n0::/system.slice/dormouse.service\n";
        assert_eq!(PlaceMarks { invocation: true, ..of(unit) }.judge_place(), ProcessPlace::Unit);
        assert_eq!(
            PlaceMarks { dockerenv: true, ..of("0::/\n") }.judge_place(),
            ProcessPlace::Docker
        );
        let image = PlaceMarks { dockerenv: true, kthreads: true, ..of("0::/\n") };
        assert_eq!(image.judge_place(), ProcessPlace::Host, "a machine made from an image");
        assert_eq!(of("9:cpu:/docker/0123\n").judge_place(), ProcessPlace::Docker);
        assert_eq!(of("0::/system.slice/docker-0123.scope\n").judge_place(), ProcessPlace::Docker);
        assert_eq!(
            PlaceMarks { containerenv: true, ..of("0::/\n") }.judge_place(),
            ProcessPlace::Podman
        );
        assert_eq!(of("0::/machine.slice/libpod-0123.scope\n").judge_place(), ProcessPlace::Podman);
        let pod = PlaceMarks { kubernetes: true, dockerenv: true, ..of("0::/\n") };
        assert_eq!(pod.judge_place(), ProcessPlace::Kubernetes);
        assert_eq!(
            of("3:cpu:/kubepods/burstable/pod1/2\n").judge_place(),
            ProcessPlace::Kubernetes
        );
        assert_eq!(
            PlaceMarks { container: true, ..of("0::/\n") }.judge_place(),
            ProcessPlace::Container
        );
    }

    #[test]
    fn a_remedy_is_a_line_to_add_there() {
        let caps = ["SYS_ADMIN", "SYS_TIME"];
        let docker = ProcessPlace::Docker.to_add_capabilities(&caps);
        assert!(docker.contains("--cap-add SYS_ADMIN --cap-add SYS_TIME"), "{docker}");
        assert!(docker.contains("cap_add: [SYS_ADMIN, SYS_TIME]"), "{docker}");
        let pod = ProcessPlace::Kubernetes.to_add_capabilities(&caps);
        assert!(pod.contains("capabilities: {add: [SYS_ADMIN, SYS_TIME]}"), "{pod}");
        let unit = ProcessPlace::Unit.to_add_capabilities(&caps);
        assert!(unit.contains("CAP_SYS_ADMIN CAP_SYS_TIME"), "{unit}");
        assert!(
            ProcessPlace::Podman
                .to_lift_seccomp()
                .starts_with("podman run --security-opt seccomp=")
        );
        let places = [
            ProcessPlace::Host,
            ProcessPlace::Unit,
            ProcessPlace::Podman,
            ProcessPlace::Kubernetes,
            ProcessPlace::Container,
        ];
        for place in places {
            let all = [place.to_be_root(), place.to_mount(), place.to_weigh_more()];
            assert!(all.iter().all(|line| !line.is_empty() && !line.contains('\n')), "{all:?}");
        }
    }
}
