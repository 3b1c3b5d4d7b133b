//! The order that the supervisor of a program reads.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write as _},
    path::Path,
};

use dormouse_proto::v1::OwnProgram;
use dormouse_tasks::supervisor::{Order, WORK};

use crate::jail;

/// Name of the file with the supervisor's order in a task's directory.
pub(crate) const ORDER: &str = "order.json";
/// Directories in which programs are searched for.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Writes the supervisor's order of a program into its task's directory; `has_root` says whether the program has its
/// own view of files.
///
/// # Errors
///
/// The file can't be written.
pub(crate) fn write_order(directory: &Path, own: &OwnProgram, has_root: bool) -> io::Result<()> {
    let order = make_order(directory, own, has_root);
    // A former attempt may have left a link in its place: only a new file is written to.
    let mut file = File::create_new(directory.join(ORDER))?;
    file.write_all(&serde_json::to_vec(&order)?)
}

fn make_order(directory: &Path, own: &OwnProgram, has_root: bool) -> Order {
    let work = directory.join(WORK).to_string_lossy().into_owned();
    let every = [("PATH", PATH), ("LANG", "C.UTF-8"), ("HOME", &work), ("PWD", &work)];
    let user =
        [("USER", jail::NAME), ("LOGNAME", jail::NAME), ("SHELL", jail::SHELL), jail::ONE_COPY];
    // The host's `/tmp` is no task's.
    let elsewhere = [("TMPDIR", work.as_str())];
    let every = every.iter().chain(if has_root { &user[..] } else { &elsewhere[..] });
    let every = every.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    // What its user says counts.
    let said = own.env.clone();
    let env: BTreeMap<_, _> = every.chain(said).collect();
    Order { argv: own.argv.clone(), env }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_not_written_through_a_link() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let victim = elsewhere.path().join("victim");
        std::fs::write(&victim, "untouched").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join(ORDER)).unwrap();
        let own = OwnProgram::default();
        write_order(folder.path(), &own, true).unwrap_err();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
        std::fs::remove_file(folder.path().join(ORDER)).unwrap();
        write_order(folder.path(), &own, true).unwrap();
        assert!(folder.path().join(ORDER).is_file());
    }

    #[test]
    fn what_a_user_says_counts_more_than_what_every_program_has() {
        let text = |word: &str| word.to_owned();
        let own = OwnProgram {
            argv: vec![text("solve")],
            env: [(text("LANG"), text("de_DE.UTF-8")), (text("N"), text("3"))].into(),
            ..OwnProgram::default()
        };
        let jailed = make_order(Path::new("/tasks/7"), &own, true);
        let order = make_order(Path::new("/tasks/7"), &own, false);
        let has = |name: &str| order.env.get(name).map(String::as_str);
        assert_eq!((has("LANG"), has("N")), (Some("de_DE.UTF-8"), Some("3")));
        assert_eq!((has("HOME"), has("TMPDIR")), (Some("/tasks/7/work"), Some("/tasks/7/work")));
        assert!(has("PATH").is_some());
        assert_eq!(has("SHELL"), None);
        let has = |name: &str| jailed.env.get(name).map(String::as_str);
        assert_eq!(
            (has("SHELL"), has("USER"), has("TMPDIR")),
            (Some("/bin/sh"), Some("task"), None)
        );
        assert_eq!((has("LANG"), has("HOME")), (Some("de_DE.UTF-8"), Some("/tasks/7/work")));
    }
}
