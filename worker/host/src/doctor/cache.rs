//! A proof that is good until the next boot, or until something that it depends on is another.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use dormouse_worker::place::Place;
use serde::{Deserialize, Serialize};

use super::rights::Rights;
use super::{Depth, Diagnosis, criu_program, examine, find_task_program};

const FILE: &str = "proof.json";

/// The circumstances that a proof depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Key {
    boot: String,
    kernel: String,
    groups: String,
    place: String,
    capabilities: u64,
    is_filtered: bool,
    is_root: bool,
    /// This program, that of tasks, and CRIU, each with what changes when it does.
    programs: Vec<String>,
}

/// A proof as its file has it, with what it depends on.
#[derive(Serialize, Deserialize)]
struct KeptProof {
    key: Key,
    diagnosis: Diagnosis,
}

impl Key {
    fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let rights = Rights::of_this_process();
        let programs = [env::current_exe().ok(), find_task_program(), Some(criu_program())];
        Self {
            boot: read("/proc/sys/kernel/random/boot_id"),
            kernel: read("/proc/sys/kernel/osrelease"),
            groups: read("/proc/self/cgroup"),
            place: format!("{:?}", Place::detect()),
            capabilities: rights.effective,
            is_filtered: rights.is_filtered,
            is_root: rights.is_root,
            programs: programs.iter().flatten().map(|path| stamp(path)).collect(),
        }
    }
}

/// A program's path, size and time of change.
fn stamp(path: &Path) -> String {
    let of = fs::metadata(path).map_or_else(
        |_| "none".to_owned(),
        |it| format!("{} {}.{}", it.len(), it.mtime(), it.mtime_nsec()),
    );
    format!("{} {of}", path.display())
}

/// The proof of this host: the one kept since the boot, or a new one. The second is whether it
/// was kept.
#[must_use]
pub fn proved() -> (Diagnosis, bool) {
    let key = Key::now();
    for folder in folders() {
        if let Some(diagnosis) = read(&folder.join(FILE), &key) {
            return (diagnosis, true);
        }
    }
    let diagnosis = examine(Depth::Prove);
    if diagnosis.proved_at.is_some() {
        keep(KeptProof { key, diagnosis: diagnosis.clone() });
    }
    (diagnosis, false)
}

/// The folders in which the proof may be kept; the first that can be written has it.
fn folders() -> Vec<PathBuf> {
    let own = env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let all = own.into_iter().chain(["/var/cache", "/run"].map(PathBuf::from));
    all.map(|dir| dir.join("dormouse")).collect()
}

/// A proof that is good for this key. One that can't be read is none.
fn read(path: &Path, key: &Key) -> Option<Diagnosis> {
    let kept: KeptProof = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    (kept.key == *key && kept.diagnosis.live).then_some(kept.diagnosis)
}

fn keep(kept: KeptProof) {
    let kept_in = folders().into_iter().find(|folder| write(folder, &kept).is_ok());
    if kept_in.is_none() {
        tracing::debug!("no folder takes the proof: the next run makes it again");
    }
}

/// In one rename: it is there whole or not at all.
fn write(folder: &Path, kept: &KeptProof) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&mut file, kept)?;
    file.persist(folder.join(FILE))?;
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::Finding;
    use super::*;

    #[test]
    fn a_proof_is_good_for_what_it_was_made_with() {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::now();
        let diagnosis = Diagnosis::new(vec![Finding::found("kernel", "Linux")], true);
        write(folder.path(), &KeptProof { key: key.clone(), diagnosis: diagnosis.clone() })
            .unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(read(&path, &key), Some(diagnosis));
        for other in [
            Key { boot: "another".to_owned(), ..key.clone() },
            Key { capabilities: !key.capabilities, ..key.clone() },
            Key { programs: Vec::new(), ..key.clone() },
        ] {
            assert_eq!(read(&path, &other), None);
        }
        fs::write(&path, "{").unwrap();
        assert_eq!(read(&path, &key), None);
    }
}
