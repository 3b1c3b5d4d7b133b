//! Checks of the kernel and its namespaces.

use std::path::Path;

use super::Finding;

pub(super) fn check_kernel() -> Finding {
    let name = "kernel";
    match nix::sys::utsname::uname() {
        Ok(uts) => {
            let release = uts.release().to_string_lossy().into_owned();
            Finding::found_finding(name, format!("{} {release}", uts.sysname().to_string_lossy()))
        }
        Err(error) => Finding::missing_finding(name, error.to_string(), "run on Linux"),
    }
}

pub(super) fn check_namespaces() -> Vec<Finding> {
    [("PID namespaces", "pid"), ("mount namespaces", "mnt")]
        .into_iter()
        .map(|(name, file)| {
            if Path::new("/proc/self/ns").join(file).exists() {
                Finding::found_finding(name, "supported by this kernel")
            } else {
                Finding::missing_finding(
                    name,
                    "not supported",
                    "boot a kernel with CONFIG_NAMESPACES",
                )
            }
        })
        .collect()
}
