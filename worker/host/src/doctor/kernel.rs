//! Kernel, namespaces, capabilities.

use std::path::Path;

use super::Finding;

/// Capabilities that live runs need, with their bit and what for.
const CAPABILITIES: [(&str, u32, &str); 5] = [
    ("CAP_SYS_ADMIN", 21, "namespaces, mounts, control groups"),
    ("CAP_SYS_PTRACE", 19, "checkpoints of running tasks"),
    ("CAP_NET_ADMIN", 12, "CRIU's view of the network"),
    ("CAP_DAC_OVERRIDE", 1, "control groups and images"),
    ("CAP_KILL", 5, "ending tasks"),
];

const AS_ROOT: &str = "run as root; in a container with --cap-add for each of SYS_ADMIN, \
    SYS_PTRACE, NET_ADMIN and SYS_TIME, and with --security-opt seccomp=unconfined";

pub(super) fn kernel() -> Finding {
    let name = "kernel";
    match nix::sys::utsname::uname() {
        Ok(uts) => {
            let release = uts.release().to_string_lossy().into_owned();
            Finding::found(name, format!("{} {release}", uts.sysname().to_string_lossy()))
        }
        Err(error) => Finding::missing(name, error.to_string(), "run on Linux"),
    }
}

pub(super) fn namespaces() -> Vec<Finding> {
    [("PID namespaces", "pid"), ("mount namespaces", "mnt")]
        .into_iter()
        .map(|(name, file)| {
            if Path::new("/proc/self/ns").join(file).exists() {
                Finding::found(name, "supported by this kernel")
            } else {
                Finding::missing(name, "not supported", "boot a kernel with CONFIG_NAMESPACES")
            }
        })
        .collect()
}

pub(super) fn capabilities() -> Finding {
    let name = "capabilities";
    let effective =
        std::fs::read_to_string("/proc/self/status").ok().and_then(|text| effective(&text));
    let Some(effective) = effective else {
        return Finding::missing(name, "/proc/self/status does not say", "mount /proc");
    };
    let lacking: Vec<_> = CAPABILITIES
        .iter()
        .filter(|&&(_, bit, _)| effective >> bit & 1 == 0)
        .map(|(name, _, what)| format!("{name} ({what})"))
        .collect();
    if lacking.is_empty() {
        let names: Vec<_> = CAPABILITIES.iter().map(|&(name, ..)| name).collect();
        return Finding::found(name, names.join(", "));
    }
    Finding::missing(name, format!("lacking {}", lacking.join(", ")), AS_ROOT)
}

/// The effective set of `/proc/self/status` (proc(5)).
fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_is_hexadecimal() {
        assert_eq!(effective("Name:\tx\nCapEff:\t0000000000200000\n"), Some(1 << 21));
        assert_eq!(effective("Name:\tx\n"), None);
    }
}
