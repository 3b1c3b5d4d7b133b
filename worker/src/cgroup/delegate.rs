//! Version 2: preparing a subtree whose groups have controllers.

use std::{fs, io, path::Path};

use super::{CgroupError, Result, file};

/// Name of the leaf group for the processes found in a delegated root. The name starts like those of workers' trees,
/// but names no owner, so no sweep ever takes it for a worker's tree.
const LEAF: &str = "dormouse-init";

/// Enables `controllers` for the children of `group`, first moving its processes into a leaf.
///
/// The kernel lets only the real root hold processes and hand controllers down at once (the
/// no-internal-process rule). In a container with its own cgroup namespace the mount's root is
/// an ordinary group with processes in it, which must step aside.
pub(crate) fn prepare_subtree(group: &Path, controllers: &[&str]) -> Result<()> {
    if missing_controllers(group, controllers)?.is_empty() {
        return Ok(());
    }
    // Only the real root lacks this file.
    if group.join("cgroup.type").exists() {
        move_processes_to_leaf(group)?;
    }
    enable_controllers(group, controllers)
}

/// Enables `controllers` for the children of `group` and verifies it by reading back.
pub(crate) fn enable_controllers(group: &Path, controllers: &[&str]) -> Result<()> {
    let control = group.join("cgroup.subtree_control");
    for controller in missing_controllers(group, controllers)? {
        file::write(&control, &format!("+{controller}"))?;
    }
    let still = missing_controllers(group, controllers)?;
    if still.is_empty() {
        return Ok(());
    }
    Err(CgroupError::Unexpected {
        content: file::read(&control)?.trim().to_owned(),
        path: control,
        expected: format!("a list with {}", still.join(" and ")),
    })
}

fn missing_controllers<'a>(group: &Path, controllers: &[&'a str]) -> Result<Vec<&'a str>> {
    let enabled = file::read(&group.join("cgroup.subtree_control"))?;
    let has = |c: &str| enabled.split_whitespace().any(|e| e == c);
    Ok(controllers.iter().copied().filter(|c| !has(c)).collect())
}

fn move_processes_to_leaf(group: &Path) -> Result<()> {
    let leaf = group.join(LEAF);
    match fs::create_dir(&leaf) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            return Err(CgroupError::Write { path: leaf, value: "a new group".to_owned(), source });
        }
        _ => {}
    }
    let to = leaf.join("cgroup.procs");
    for pid in file::read(&group.join("cgroup.procs"))?.split_whitespace() {
        match file::write(&to, pid) {
            // Gone meanwhile, or a kernel thread, which may stay.
            Err(CgroupError::Write { source, .. })
                if matches!(source.raw_os_error(), Some(libc::ESRCH | libc::EINVAL)) => {}
            other => other?,
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn fixture(enabled: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("cgroup.subtree_control"), enabled).unwrap();
        fs::write(dir.path().join("cgroup.procs"), "1\n").unwrap();
        dir
    }

    #[test]
    fn nothing_is_touched_where_all_is_enabled() {
        let dir = fixture("cpu memory pids\n");
        fs::write(dir.path().join("cgroup.type"), "domain\n").unwrap();
        prepare_subtree(dir.path(), &["cpu", "memory"]).unwrap();
        assert!(!dir.path().join(LEAF).exists());
    }

    #[test]
    fn processes_of_a_delegated_root_move_to_a_leaf_first() {
        let dir = fixture("");
        fs::write(dir.path().join("cgroup.type"), "domain\n").unwrap();
        let leaf = dir.path().join(LEAF);
        fs::create_dir(&leaf).unwrap();
        fs::write(leaf.join("cgroup.procs"), "").unwrap();
        // Plain files do not behave like the kernel's: the write stays "+cpu", which the
        // reading back must notice.
        let error = prepare_subtree(dir.path(), &["cpu"]).unwrap_err().to_string();
        assert!(error.contains("holds \"+cpu\" instead of a list with cpu"), "{error}");
        assert_eq!(fs::read_to_string(leaf.join("cgroup.procs")).unwrap(), "1");
    }

    #[test]
    fn the_real_root_keeps_its_processes() {
        let dir = fixture("");
        assert!(prepare_subtree(dir.path(), &["cpu"]).is_err());
        assert!(!dir.path().join(LEAF).exists());
    }
}
