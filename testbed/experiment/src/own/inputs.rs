//! Input files of users' own programs: found, named as in a task's directory, and hashed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use dormouse_documents::{InputError, Place};
use dormouse_tasks::own::FileRef;
use glob::{MatchOptions, Pattern};

use crate::command_line;

/// Greatest number of input files of one experiment's tasks: more are probably a mistake.
const MOST_FILES: usize = 100_000;
/// Greatest depth of folders that are searched, so that circular links end.
const DEEPEST: usize = 32;

/// Files on this host with the contents of inputs, by BLAKE3 hash in hexadecimal.
pub type Sources = BTreeMap<String, PathBuf>;

/// Real paths of the folders whose files an experiment's file may name, beside its own folder.
static ALLOWED: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Lets all experiments that this process reads name inputs in these folders as well. Only the
/// first call has an effect.
///
/// # Errors
///
/// The first path that is not a folder.
pub fn allow_inputs(folders: &[PathBuf]) -> Result<(), InputError> {
    let real = |folder: &PathBuf| match folder.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        _ => {
            let place = Place::whole(&format!("--allow-inputs {}", folder.display()));
            Err(InputError::new(&place, "there is no such folder", "give a folder of this host"))
        }
    };
    let folders = folders.iter().map(real).collect::<Result<Vec<_>, _>>()?;
    // The first call counts.
    let _ = ALLOWED.set(folders);
    Ok(())
}

/// A file with its path in a task's directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FoundFile {
    /// Path of the file in a task's directory.
    pub(super) inside: String,
    /// Path of the file on this host.
    pub(super) file: PathBuf,
    /// Folder of the experiment that names the file; a file outside of this folder is refused
    /// unless allowed. `None` if the user names the file: users may name any file.
    pub(super) within: Option<PathBuf>,
}

/// Folder outside of which the files named at this place must not be: `base`, the folder of the
/// naming file. `None` if built-in experiments or the command line name them: these may name any
/// file.
pub(crate) fn within(place: &Place, base: &Path) -> Option<PathBuf> {
    let is_strangers = place.at.is_some() && !place.source.ends_with("(built in)");
    is_strangers.then(|| base.to_owned())
}

impl FoundFile {
    /// Path for reading the file.
    ///
    /// # Errors
    ///
    /// The file, or what it links to, is outside of its experiment's folder, and that is not
    /// allowed.
    fn readable_path(&self) -> Result<PathBuf, Flaw> {
        let Some(folder) = &self.within else { return Ok(self.file.clone()) };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let real = self.file.canonicalize().map_err(|error| unreadable(&self.file, &error))?;
        let folder = folder.canonicalize().map_err(|error| unreadable(folder, &error))?;
        let mut allowed = ALLOWED.get().into_iter().flatten();
        if real.starts_with(&folder) || allowed.any(|folder| real.starts_with(folder)) {
            return Ok(real);
        }
        let what = match real == plain_path(&self.file) {
            true => format!("{} is outside of the experiment's folder", real.display()),
            false => format!(
                "{} is {}, outside of the experiment's folder",
                self.file.display(),
                real.display()
            ),
        };
        let parent = real.parent().unwrap_or(&real);
        let parent = command_line([parent.to_string_lossy()]);
        Err((what, format!("copy it there, or allow it with --allow-inputs {parent}")))
    }
}

/// A problem with an input, and the remedy.
pub(super) type Flaw = (String, String);

/// Contents of the input files that were read so far, each stored once.
#[derive(Debug, Default)]
pub(crate) struct InputFiles {
    known: BTreeMap<PathBuf, FileRef>,
    sources: Sources,
}

impl InputFiles {
    /// Sources of the contents, by their hashes.
    pub(crate) fn into_sources(self) -> Sources {
        self.sources
    }

    /// Reads a file and returns its reference with the hash of its content.
    pub(super) fn reference(&mut self, found: &FoundFile) -> Result<FileRef, Flaw> {
        let real = found.readable_path()?;
        if let Some(known) = self.known.get(&found.file) {
            return Ok(FileRef { path: found.inside.clone(), ..known.clone() });
        }
        if self.known.len() >= MOST_FILES {
            let what = format!("the tasks begin with more than {MOST_FILES} files");
            return Err((what, "give them fewer, or pack them into an archive".to_owned()));
        }
        let file = read(&real, &found.inside).map_err(|error| unreadable(&found.file, &error))?;
        let path = std::path::absolute(&real).unwrap_or(real);
        self.sources.insert(file.digest.clone(), path);
        self.known.insert(found.file.clone(), file.clone());
        Ok(file)
    }

    /// Hash of a file that is not a task's input.
    pub(super) fn digest(&self, found: &FoundFile) -> Result<String, Flaw> {
        let file = read(&found.readable_path()?, &found.inside);
        file.map(|file| file.digest).map_err(|error| unreadable(&found.file, &error))
    }
}

fn read(path: &Path, inside: &str) -> io::Result<FileRef> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&file)?;
    Ok(FileRef {
        path: inside.to_owned(),
        digest: hasher.finalize().to_hex().to_string(),
        bytes: hasher.count(),
        executable: about.permissions().mode() & 0o111 != 0,
    })
}

fn unreadable(path: &Path, error: &io::Error) -> Flaw {
    let what = format!("{} can't be read: {error}", path.display());
    (what, "give the path of a file that you can read".to_owned())
}

/// The files that `named` means, relative to the folder `base`: a file, a folder with everything in
/// it, or those that match a pattern, sorted by name. Files outside of `within` are found but not
/// read.
///
/// # Errors
///
/// There is no such file, the pattern is wrong, or a folder can't be read.
pub(super) fn find(
    base: &Path,
    within: Option<&Path>,
    named: &str,
) -> Result<Vec<FoundFile>, Flaw> {
    let mut all = Vec::new();
    for path in named_paths(base, named)? {
        let inside = path_inside(base, &path).ok_or_else(|| {
            let what = format!("{} has no name of its own", path.display());
            (what, "name the files in it, such as data/*".to_owned())
        })?;
        add(&path, (inside, within), 0, &mut all)?;
    }
    if all.is_empty() {
        let what = format!("'{named}' names no file");
        let base = if base.as_os_str().is_empty() { Path::new(".") } else { base };
        return Err((what, format!("name files relative to {}", base.display())));
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// Files and folders that match `named`.
fn named_paths(base: &Path, named: &str) -> Result<Vec<PathBuf>, Flaw> {
    let plain = base.join(named);
    // If a file with brackets in its name exists, the name is no pattern.
    if plain.exists() || !named.contains(['*', '?', '[']) {
        return Ok(if plain.exists() { vec![plain] } else { Vec::new() });
    }
    let no_pattern = |error: &dyn std::fmt::Display| {
        let what = format!("'{named}' is not a pattern of paths: {error}");
        (what, "write one such as data/*.csv".to_owned())
    };
    // A pattern with an absolute path needs no base.
    let pattern = match Path::new(named).is_absolute() || base.as_os_str().is_empty() {
        true => named.to_owned(),
        false => format!("{}/{named}", Pattern::escape(&base.to_string_lossy())),
    };
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
    let matches = glob::glob_with(&pattern, options).map_err(|error| no_pattern(&error))?;
    let mut all = Vec::new();
    for path in matches {
        let path = path.map_err(|error| unreadable(error.path(), error.error()))?;
        all.push(path);
        if all.len() > MOST_FILES {
            let what = format!("'{named}' names more than {MOST_FILES} files");
            return Err((
                what,
                "give a pattern that matches fewer, or pack the files into an archive".to_owned(),
            ));
        }
    }
    Ok(all)
}

/// Path in a task's directory: relative to `base`, or the last name for a file elsewhere; `None`
/// without a name.
fn path_inside(base: &Path, path: &Path) -> Option<String> {
    let (base, path) = (plain_path(base), plain_path(path));
    let outside = || path.file_name().map(Path::new);
    let relative = path.strip_prefix(&base).ok().filter(|rest| {
        let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
        rest.components().next().is_some() && rest.components().all(is_name)
    });
    Some(relative.or_else(outside)?.to_str()?.to_owned())
}

/// The path without `.`, and without `..` after a name.
fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if plain
                    .components()
                    .next_back()
                    .is_some_and(|last| matches!(last, Component::Normal(_))) =>
            {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

fn add(
    path: &Path,
    (inside, within): (String, Option<&Path>),
    depth: usize,
    all: &mut Vec<FoundFile>,
) -> Result<(), Flaw> {
    let about = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if about.is_file() {
        let within = within.map(Path::to_owned);
        all.push(FoundFile { inside, file: path.to_owned(), within });
        return Ok(());
    }
    if !about.is_dir() {
        return Err(unreadable(path, &io::Error::other("it is neither a file nor a folder")));
    }
    if depth >= DEEPEST || all.len() > MOST_FILES {
        let what = format!("{} has too much in it", path.display());
        return Err((what, format!("give at most {MOST_FILES} files, {DEEPEST} folders deep")));
    }
    let entries = fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(path, &error))?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| {
            let what = format!("{} is not text in UTF-8", entry.path().display());
            (what, "give the file another name".to_owned())
        })?;
        add(&entry.path(), (format!("{inside}/{name}"), within), depth + 1, all)?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (name, text) in
            [("a/x.csv", "1"), ("a/y.csv", "2"), ("a/deep/z.csv", "3"), ("b.sh", "#!")]
        {
            let path = tree.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::set_permissions(tree.path().join("b.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        tree
    }

    fn names(base: &Path, named: &str) -> Vec<String> {
        find(base, None, named).unwrap().into_iter().map(|found| found.inside).collect()
    }

    #[test]
    fn files_folders_and_patterns_are_found_under_their_paths() {
        let tree = tree();
        let base = tree.path();
        assert_eq!(names(base, "a/*.csv"), ["a/x.csv", "a/y.csv"]);
        assert_eq!(names(base, "a/**/*.csv"), ["a/deep/z.csv", "a/x.csv", "a/y.csv"]);
        assert_eq!(names(base, "./a"), ["a/deep/z.csv", "a/x.csv", "a/y.csv"]);
        assert_eq!(names(&base.join("a"), "../b.sh"), ["b.sh"]);
        assert_eq!(names(&base.join("a/deep"), "../../a"), ["a/deep/z.csv", "a/x.csv", "a/y.csv"]);
        let absolute = base.join("a/x.csv");
        assert_eq!(names(Path::new(""), absolute.to_str().unwrap()), ["x.csv"]);
    }

    #[test]
    fn a_file_has_the_digest_of_its_content_and_is_read_once() {
        let tree = tree();
        let mut files = InputFiles::default();
        let found = find(tree.path(), None, "b.sh").unwrap();
        let file = files.reference(&found[0]).unwrap();
        assert_eq!(file.digest, blake3::hash(b"#!").to_hex().to_string());
        assert_eq!((file.path.as_str(), file.bytes, file.executable), ("b.sh", 2, true));
        fs::write(tree.path().join("b.sh"), "changed").unwrap();
        assert_eq!(files.reference(&found[0]).unwrap(), file);
        assert_eq!(files.into_sources().keys().collect::<Vec<_>>(), [&file.digest]);
    }

    #[test]
    fn a_file_of_a_stranger_names_what_is_beside_it() {
        let tree = tree();
        let folder = tree.path().join("a");
        let outside = tree.path().join("b.sh");
        std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
        std::os::unix::fs::symlink("x.csv", folder.join("same")).unwrap();
        let named = |within: Option<&Path>, named: &str| {
            let mut files = InputFiles::default();
            let found = find(&folder, within, named)?;
            found.iter().try_for_each(|found| {
                files.digest(found)?;
                files.reference(found).map(drop)
            })
        };
        for inside in ["x.csv", "./deep/../x.csv", "same", "deep", "*.csv"] {
            assert_eq!(named(Some(&folder), inside), Ok(()), "{inside}");
        }
        for path in ["../b.sh", outside.to_str().unwrap(), "link", "../*.sh", "deep/../../b.sh"] {
            let (what, remedy) = named(Some(&folder), path).unwrap_err();
            assert!(what.ends_with("outside of the experiment's folder"), "{what}");
            assert!(remedy.contains("--allow-inputs /"), "{remedy}");
            assert_eq!(named(None, path), Ok(()), "the user's own word: {path}");
        }
        let place = Place::whole("x/experiment.toml");
        assert_eq!(within(&place, Path::new("x")), None, "an option of the command line");
        let place = Place { at: Some((3, 1)), ..place };
        assert_eq!(within(&place, Path::new("x")), Some("x".into()));
        let built_in = Place { source: "j60 (built in)".into(), ..place };
        assert_eq!(within(&built_in, Path::new("")), None);
    }

    #[test]
    fn what_names_nothing_is_told_with_a_remedy() {
        let tree = tree();
        for named in ["c.csv", "c/*", "../nothing"] {
            let (what, remedy) = find(tree.path(), None, named).unwrap_err();
            assert!(what.contains("names no file") && remedy.starts_with("name files"), "{what}");
        }
        assert!(find(tree.path(), None, "a[").unwrap_err().0.contains("not a pattern"));
        std::os::unix::fs::symlink(".", tree.path().join("a/circle")).unwrap();
        assert!(find(tree.path(), None, "a").unwrap_err().0.contains("too much"));
    }
}
