//! The result of doctor's live test of this host, stored until the next boot, or until something that it depends on changes.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use dormouse_worker::place::ProcessPlace;
use serde::{Deserialize, Serialize};

use super::rights::ProcessRights;
use super::{ExaminationDepth, HostDiagnosis, criu_program, examine, find_task_program};

const FILE: &str = "proof.json";

/// The circumstances on which the result of doctor's live test of this host depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ProofKey {
    boot: String,
    kernel: String,
    groups: String,
    place: String,
    capabilities: u64,
    is_filtered: bool,
    is_root: bool,
    /// This program, the task program and CRIU, each with a stamp that changes with the file.
    programs: Vec<String>,
}

/// The stored result of doctor's live test of this host, with the circumstances under which it is valid.
#[derive(Serialize, Deserialize)]
struct KeptProof {
    key: ProofKey,
    diagnosis: HostDiagnosis,
}

impl ProofKey {
    fn current_key() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let rights = ProcessRights::of_this_process();
        let programs = [env::current_exe().ok(), find_task_program(), Some(criu_program())];
        Self {
            boot: read("/proc/sys/kernel/random/boot_id"),
            kernel: read("/proc/sys/kernel/osrelease"),
            groups: read("/proc/self/cgroup"),
            place: format!("{:?}", ProcessPlace::detect_place()),
            capabilities: rights.effective,
            is_filtered: rights.is_filtered,
            is_root: rights.is_root,
            programs: programs.iter().flatten().map(|path| file_stamp(path)).collect(),
        }
    }
}

/// A program's path, size and modification time.
fn file_stamp(path: &Path) -> String {
    let of = fs::metadata(path).map_or_else(
        |_| "none".to_owned(),
        |it| format!("{} {}.{}", it.len(), it.mtime(), it.mtime_nsec()),
    );
    format!("{} {of}", path.display())
}

/// The result of doctor's live test of this host: the stored one if it is still valid, else that of a new test. The flag is true if
/// the result was stored.
#[must_use]
pub fn proved() -> (HostDiagnosis, bool) {
    let key = ProofKey::current_key();
    for folder in proof_folders() {
        if let Some(diagnosis) = read(&folder.join(FILE), &key) {
            return (diagnosis, true);
        }
    }
    let diagnosis = examine(ExaminationDepth::Prove);
    if diagnosis.proved_at.is_some() {
        keep_proof(KeptProof { key, diagnosis: diagnosis.clone() });
    }
    (diagnosis, false)
}

/// Folders in which the result of doctor's live test may be stored; the first writable one is used.
fn proof_folders() -> Vec<PathBuf> {
    let own = env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let all = own.into_iter().chain(["/var/cache", "/run"].map(PathBuf::from));
    all.map(|dir| dir.join("dormouse")).collect()
}

/// The result of doctor's live test in a file, if it is valid under these circumstances; `None` also if the file can't be read.
fn read(path: &Path, key: &ProofKey) -> Option<HostDiagnosis> {
    let kept: KeptProof = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    (kept.key == *key && kept.diagnosis.live).then_some(kept.diagnosis)
}

fn keep_proof(kept: KeptProof) {
    let kept_in = proof_folders().into_iter().find(|folder| write(folder, &kept).is_ok());
    if kept_in.is_none() {
        tracing::debug!("no folder takes the proof: the next run makes it again");
    }
}

/// Writes the result of doctor's live test into a folder, with an atomic rename.
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
        let key = ProofKey::current_key();
        let diagnosis = HostDiagnosis::new(vec![Finding::found_finding("kernel", "Linux")], true);
        write(folder.path(), &KeptProof { key: key.clone(), diagnosis: diagnosis.clone() })
            .unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(read(&path, &key), Some(diagnosis));
        for other in [
            ProofKey { boot: "another".to_owned(), ..key.clone() },
            ProofKey { capabilities: !key.capabilities, ..key.clone() },
            ProofKey { programs: Vec::new(), ..key.clone() },
        ] {
            assert_eq!(read(&path, &other), None);
        }
        fs::write(&path, "{").unwrap();
        assert_eq!(read(&path, &key), None);
    }
}
