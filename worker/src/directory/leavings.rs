//! The files that a task leaves when it has ended: its standard output and error, and its outputs.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use blake3::Hash;
use glob::{MatchOptions, Pattern};

use dormouse_tasks::limits::{LEFT_FILES, LEFT_PATHS_BYTES, NOT_KEPT, check_left_path, not_kept};

use super::{DirectoryError, FoundNode, Result, WORK, handle::DirectoryHandle, walk_past};
use crate::sparse::digest_file;

/// Names of the files with a task's standard output and error, which are beside its working directory.
const SAID: [&str; 2] = ["stdout", "stderr"];
/// Folder under which a task's output files are kept.
const OUTPUTS: &str = "outputs";
/// Options for matching paths with patterns: a `*` stands for any characters but slashes.
const LETTERS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// A file that a task leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftFile {
    /// Name under which the file is kept: `stdout`, `stderr`, or `outputs/` and its path in the working directory.
    pub(crate) path: String,
    /// BLAKE3 of the file's content.
    pub(crate) digest: Hash,
    /// Length of the content, in bytes.
    pub(crate) bytes: u64,
    pub(crate) executable: bool,
}

/// Files that a task leaves, and why others aren't kept.
#[derive(Debug, Default)]
pub(crate) struct LeftFiles {
    pub(crate) files: Vec<LeftFile>,
    pub(crate) not_kept: Vec<String>,
    /// Number of further files that aren't kept and have no sentence in `not_kept`.
    unsaid: usize,
    /// Bytes of the paths of all files together.
    paths_bytes: usize,
}

/// Paths that match a pattern, each with the reason why its file can't be kept (`None`: it can).
type Matches = BTreeMap<String, Option<String>>;
/// Paths that couldn't be read, such as a directory that is nested too deep, each with the reason.
type Unseen = Vec<(String, String)>;

impl LeftFiles {
    /// Reads the files in the folder of a task that has ended: its output, and files in its working directory that
    /// match one of the patterns, up to a total size.
    pub(crate) fn read(folder: &Path, outputs: &[String], most: u64) -> Self {
        let mut all = Self::default();
        let mut left = most;
        for name in SAID {
            all.take_file(folder, name.to_owned(), Path::new(name), &mut left);
        }
        let (matches, others) = all.find_matching(&folder.join(WORK), outputs);
        for (path, flaw) in matches {
            match flaw {
                None => {
                    let place = Path::new(WORK).join(&path);
                    all.take_file(folder, format!("{OUTPUTS}/{path}"), &place, &mut left);
                }
                Some(why) => all.note_missed(&path, &why),
            }
        }
        others.iter().for_each(|(path, why)| all.note_missed(path, why));
        if all.unsaid > 0 {
            all.not_kept.push(format!("and {} more", all.unsaid));
        }
        all
    }

    /// Returns the paths in the working directory that match one of the patterns, each with the reason why it can't be
    /// kept, if any, and the paths that couldn't be read. Notes the patterns without a match.
    fn find_matching(&mut self, work: &Path, outputs: &[String]) -> (Matches, Unseen) {
        let mut patterns = Vec::new();
        for output in outputs {
            match Pattern::new(output) {
                Ok(pattern) => patterns.push((pattern, false)),
                Err(error) => {
                    self.note_missed(output, &format!("it is not a pattern of paths: {error}"));
                }
            }
        }
        if patterns.is_empty() {
            return Default::default();
        }
        let mut matched = |path: &str| {
            let mut is_any = false;
            for (pattern, has_matched) in &mut patterns {
                let is_match = pattern.matches_with(path, LETTERS);
                *has_matched |= is_match;
                is_any |= is_match;
            }
            is_any
        };
        let (mut found, mut unfit) = (Vec::new(), Vec::new());
        let see = |it: &FoundNode<'_>| {
            found.push((it.path.to_owned(), kind(it).map(str::to_owned)));
            Ok(())
        };
        let walked = walk_past(work, see, |found, error| {
            unfit.push((found.path.to_owned(), error.to_string()));
            Ok(())
        });
        let mut matches: Matches = found.into_iter().filter(|(path, _)| matched(path)).collect();
        let (meant, others): (Unseen, Unseen) = unfit.into_iter().partition(|it| matched(&it.0));
        matches.extend(meant.into_iter().map(|(path, why)| (path, Some(why))));
        if let Err(error) = walked {
            self.note_missed(WORK, &error.to_string());
        }
        for (pattern, _) in patterns.iter().filter(|(_, has_matched)| !has_matched) {
            self.note_missed(pattern.as_str(), "there is no such file");
        }
        (matches, others)
    }

    /// Adds the file at `place` in the folder to the kept files, or notes why it isn't kept; `left` is the number of bytes that may
    /// still be kept.
    fn take_file(&mut self, folder: &Path, path: String, place: &Path, left: &mut u64) {
        if self.files.len() >= LEFT_FILES {
            return self.note_missed(&path, &format!("a task leaves {LEFT_FILES} files at most"));
        }
        if let Err(why) = check_left_path(&path) {
            return self.note_missed(&path, &why);
        }
        if self.paths_bytes + path.len() > LEFT_PATHS_BYTES {
            let why = format!("with it the paths have more than {LEFT_PATHS_BYTES} bytes");
            return self.note_missed(&path, &why);
        }
        let read = open(folder, place).and_then(|mut file| {
            let metadata = file.metadata()?;
            if metadata.len() > *left {
                return Ok(None);
            }
            let executable = std::os::unix::fs::MetadataExt::mode(&metadata) & 0o111 != 0;
            let (bytes, digest) = digest_file(&mut file, *left)?;
            Ok(Some(LeftFile { path: path.clone(), digest, bytes, executable }))
        });
        match read {
            Ok(Some(leaving)) => {
                *left -= leaving.bytes;
                self.paths_bytes += leaving.path.len();
                self.files.push(leaving);
            }
            Ok(None) => {
                self.note_missed(&path, "with it they have more bytes than its directory may hold");
            }
            Err(error) => self.note_missed(&path, &error.to_string()),
        }
    }

    fn note_missed(&mut self, path: &str, why: &str) {
        if self.not_kept.len() >= NOT_KEPT - 1 {
            self.unsaid += 1;
            return;
        }
        self.not_kept.push(not_kept(path, why));
    }
}

/// Returns the paths of regular files in a working directory that match one of the patterns `outputs` and can be kept.
pub(crate) fn matching_paths(work: &Path, outputs: &[String]) -> Vec<String> {
    let (matches, _) = LeftFiles::default().find_matching(work, outputs);
    matches.into_iter().filter(|(_, flaw)| flaw.is_none()).map(|(path, _)| path).collect()
}

/// Returns whether there is a regular file at a path in a working directory.
pub(crate) fn has_file(work: &Path, path: &str) -> bool {
    open(work, Path::new(path)).is_ok()
}

/// Opens a file that a task leaves, by the name under which it is kept.
///
/// # Errors
///
/// The file is gone, or isn't a regular file.
pub(crate) fn open_leaving(folder: &Path, path: &str) -> Result<File> {
    let place = match path.strip_prefix(OUTPUTS).and_then(|rest| rest.strip_prefix('/')) {
        Some(output) => Path::new(WORK).join(output),
        None => PathBuf::from(path),
    };
    open(folder, &place).map_err(DirectoryError::file_error("open", path))
}

fn open(folder: &Path, place: &Path) -> io::Result<File> {
    let parent =
        DirectoryHandle::open(folder)?.reach_directory(place.parent().unwrap_or(Path::new("")))?;
    parent.read(place.file_name().unwrap_or(OsStr::new("")))
}

/// Returns why something that is not a regular file is not kept; `None` for a regular file.
fn kind(found: &FoundNode<'_>) -> Option<&'static str> {
    match found.kind() {
        libc::S_IFREG => None,
        libc::S_IFDIR => Some("it is a directory; name the files in it, as with /*"),
        libc::S_IFLNK => Some("it is a link, which is never followed; leave the file itself"),
        _ => Some("it is not a regular file"),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn patterns(all: &[&str]) -> Vec<String> {
        all.iter().map(|pattern| (*pattern).to_owned()).collect()
    }

    #[test]
    fn what_matches_is_left_and_of_the_rest_it_is_said_why() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("work/results/deep")).unwrap();
        fs::write(at("stdout"), "said").unwrap();
        symlink("/etc/passwd", at("stderr")).unwrap();
        fs::write(at("work/results/a.csv"), "1").unwrap();
        fs::write(at("work/results/b.csv"), "22").unwrap();
        fs::write(at("work/results/deep/c.csv"), "no letters but slashes").unwrap();
        symlink("/etc/shadow", at("work/secret")).unwrap();
        let wanted =
            patterns(&["results/*.csv", "results/a*", "secret", "none.txt", "results/deep", "["]);
        let left = LeftFiles::read(folder.path(), &wanted, 1 << 20);
        let names: Vec<_> = left.files.iter().map(|it| (&*it.path, it.bytes)).collect();
        assert_eq!(
            names,
            [("stdout", 4), ("outputs/results/a.csv", 1), ("outputs/results/b.csv", 2)]
        );
        assert_eq!(left.files[2].digest, blake3::hash(b"22"));
        for (path, why) in [
            ("stderr", ""),
            ("[", "not a pattern"),
            ("none.txt", "no such file"),
            ("secret", "is a link"),
            ("results/deep", "is a directory"),
        ] {
            let said = left.not_kept.iter().find(|said| said.starts_with(&format!("{path}: ")));
            assert!(said.unwrap().contains(why), "{:?}", left.not_kept);
        }
        assert_eq!(left.not_kept.len(), 5);
        let mut content = String::new();
        let mut file = open_leaving(folder.path(), "outputs/results/b.csv").unwrap();
        io::Read::read_to_string(&mut file, &mut content).unwrap();
        assert_eq!(content, "22");
        assert!(open_leaving(folder.path(), "outputs/secret").is_err());
        assert!(open_leaving(folder.path(), "outputs/../stdout").is_err());
    }

    #[test]
    fn names_that_can_t_be_shown_keep_nothing_else_from_being_kept() {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join(WORK);
        let long = format!("{0}/{0}/{0}/{0}/{1}", "d".repeat(200), "x".repeat(216));
        fs::create_dir_all(work.join(&long).parent().unwrap()).unwrap();
        let deep = work.join(vec!["e"; 70].join("/"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("x.csv"), "too deep").unwrap();
        for name in [&*long, "line\nend.csv", "esc\u{1b}[2J.csv", "fine.csv", "zz.csv"] {
            fs::write(work.join(name), name).unwrap();
        }
        fs::write(work.join(OsStr::from_bytes(b"\xff.csv")), "no text").unwrap();
        for said in SAID {
            fs::write(folder.path().join(said), "").unwrap();
        }
        assert_eq!(long.len(), 1020);
        let left = LeftFiles::read(folder.path(), &patterns(&["*.csv", "d*/**/x*"]), 1 << 20);
        let names: Vec<_> = left.files.iter().map(|it| &*it.path).collect();
        assert_eq!(names, ["stdout", "stderr", "outputs/fine.csv", "outputs/zz.csv"]);
        let all = left.not_kept.join("\n");
        for why in ["1028 bytes", "line\\u000aend.csv: its name has", "not UTF-8", "64 deep"] {
            assert!(all.contains(why), "no '{why}' in {all}");
        }
        let harmless = |said: &String| !said.contains(char::is_control) && said.len() <= 400;
        assert!(left.not_kept.len() == 5 && left.not_kept.iter().all(harmless), "{all:?}");
        assert!(super::super::directory_size(folder.path()).unwrap().get() > 1020);
    }

    #[test]
    fn too_much_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("work")).unwrap();
        fs::write(at("stdout"), "12345").unwrap();
        fs::write(at("stderr"), "").unwrap();
        for n in 0..40 {
            fs::write(at(&format!("work/{n:02}")), "123456").unwrap();
        }
        let left = LeftFiles::read(folder.path(), &patterns(&["*"]), 20);
        let names: Vec<_> = left.files.iter().map(|it| &*it.path).collect();
        assert_eq!(names, ["stdout", "stderr", "outputs/00", "outputs/01"]);
        assert_eq!(left.not_kept.len(), NOT_KEPT);
        assert_eq!(left.not_kept.last().unwrap(), "and 23 more");
    }
}
