//! A task's directory as it begins.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use blake3::Hash;
use nix::sys::stat::{Mode, fchmod};

use super::{
    DirectoryError, Result, TaskInput,
    handle::{DirectoryHandle, FileOwner},
    restore::empty_directory,
};
use crate::{contents::HeldContents, sparse::SparseFile};

/// The name of the working directory of a program of the user's own in its task's folder.
pub const WORK: &str = "work";

const PRIVATE: Mode = Mode::S_IRWXU;
const OPEN: Mode = PRIVATE.union(Mode::from_bits_truncate(0o055));
const READABLE: Mode = Mode::from_bits_truncate(0o644);

/// Owner and permissions of the files of a directory that is being made, for executable files and for others.
#[derive(Clone, Copy)]
struct FileGrant {
    owner: FileOwner,
    executable: Mode,
    plain: Mode,
}

impl FileGrant {
    /// Makes the grant for a task that may change its files.
    fn full_grant(owner: FileOwner) -> Self {
        Self { owner, executable: OPEN, plain: READABLE }
    }

    /// Makes the grant for a task that may only read its files.
    fn read_only() -> Self {
        let [executable, plain] = [0o555, 0o444].map(Mode::from_bits_truncate);
        Self { owner: FileOwner::this_process(), executable, plain }
    }
}

/// Makes the working directory in a task's folder, with `inputs` and nothing else in it, and returns its path. The directory
/// belongs to the owner of the folder. Everything that the folder had before is removed.
///
/// # Errors
/// A content is damaged; something cannot be written; or the inputs are larger than the directory may be.
pub fn make_directory(
    folder: &Path,
    inputs: &[TaskInput],
    contents: &HeldContents,
) -> Result<PathBuf> {
    let parent =
        DirectoryHandle::open(folder).map_err(DirectoryError::file_error("open", folder))?;
    empty_directory(&parent, folder)?;
    let owner = parent.read_owner().map_err(DirectoryError::file_error("look at", folder))?;
    let root = open_directory(&parent, OsStr::new(WORK), owner, PRIVATE);
    let root = root.map_err(DirectoryError::file_error("create", WORK))?;
    put_inputs(&root, inputs, contents, FileGrant::full_grant(owner))?;
    Ok(folder.join(WORK))
}

/// Makes a working directory in `folder` for a program that checks the files that another program has left in the working directory
/// `left`: with the given inputs unchanged, and copies of the given regular files of `left`. The checking program may read all
/// these files and write none.
///
/// # Errors
/// A content is damaged, a file of `left` can't be read, or something can't be written.
pub(crate) fn make_copy(
    folder: &Path,
    (inputs, contents): (&[TaskInput], &HeldContents),
    (left, paths): (&Path, &[String]),
) -> Result<()> {
    make_directory(folder, &[], contents)?;
    let root = DirectoryHandle::open(&folder.join(WORK))
        .map_err(DirectoryError::file_error("open", WORK))?;
    put_inputs(&root, inputs, contents, FileGrant::read_only())?;
    let left = DirectoryHandle::open(left).map_err(DirectoryError::file_error("open", left))?;
    let mut folders = FolderCursor::new(&root, FileGrant::read_only());
    for path in paths {
        let copied = copy_file(&mut folders, &left, path);
        copied.map_err(DirectoryError::file_error("copy", path))?;
    }
    Ok(())
}

fn put_inputs(
    root: &DirectoryHandle,
    inputs: &[TaskInput],
    contents: &HeldContents,
    grant: FileGrant,
) -> Result<()> {
    let mut folders = FolderCursor::new(root, grant);
    for input in inputs {
        let mut content = contents
            .open(&input.digest)
            .map_err(DirectoryError::file_error("read", &input.path))?;
        let put = put_input(&mut folders, input, &mut content);
        let put = put.map_err(DirectoryError::file_error("write", &input.path));
        if !put? {
            contents.forget_content(&input.digest);
            let digest = input.digest.to_hex().to_string();
            let what = format!("the input {:?} is not what it was", input.path);
            return Err(DirectoryError::Damaged { digest, what });
        }
    }
    Ok(())
}

/// Copies an input to its place; returns whether the content matched its digest.
fn put_input(
    folders: &mut FolderCursor<'_>,
    input: &TaskInput,
    content: &mut File,
) -> io::Result<bool> {
    let file = folders.create_file(&input.path)?;
    let (length, digest) = write(file, content, (input.bytes, input.executable), folders.grant)?;
    Ok(digest == input.digest && length == input.bytes)
}

/// Copies a regular file from one directory to another.
fn copy_file(folders: &mut FolderCursor<'_>, from: &DirectoryHandle, path: &str) -> io::Result<()> {
    let place = Path::new(path);
    let parent = from.reach_directory(place.parent().unwrap_or(Path::new("")))?;
    let mut content = parent.read(place.file_name().unwrap_or(OsStr::new("")))?;
    let about = content.metadata()?;
    let is_executable = std::os::unix::fs::MetadataExt::mode(&about) & 0o111 != 0;
    let file = folders.create_file(path)?;
    write(file, &mut content, (about.len(), is_executable), folders.grant).map(drop)
}

/// Cursor over the folders of a directory that is being made. The cursor keeps the last folder open, as inputs come
/// folder by folder.
struct FolderCursor<'a> {
    root: &'a DirectoryHandle,
    grant: FileGrant,
    last: Option<(String, DirectoryHandle)>,
}

impl<'a> FolderCursor<'a> {
    fn new(root: &'a DirectoryHandle, grant: FileGrant) -> Self {
        Self { root, grant, last: None }
    }

    /// Creates a file at the relative path `path`, with the folders that contain it.
    fn create_file(&mut self, path: &str) -> io::Result<File> {
        let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.folder_at(parents)?.create_file(OsStr::new(name))
    }

    /// Returns the folder at the relative path `path`, which is made if need be.
    fn folder_at(&mut self, path: &str) -> io::Result<&DirectoryHandle> {
        let folder = match self.last.take() {
            Some((last, folder)) if last == path => folder,
            _ => self.reach_folder(path)?,
        };
        Ok(&self.last.insert((path.to_owned(), folder)).1)
    }

    fn reach_folder(&self, path: &str) -> io::Result<DirectoryHandle> {
        let mut folder = self.root.reach_directory(Path::new(""))?;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let part = OsStr::new(part);
            folder = match folder.enter_directory(part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    open_directory(&folder, part, self.grant.owner, OPEN)?
                }
                entered => entered?,
            };
        }
        Ok(folder)
    }
}

/// Copies a content to an empty file: at most one byte more than `bytes`, so that a longer content is noticed; returns
/// the length and digest of what was copied.
fn write(
    file: File,
    content: &mut File,
    (bytes, is_executable): (u64, bool),
    grant: FileGrant,
) -> io::Result<(u64, Hash)> {
    let mut file = SparseFile::new(file);
    file.fill_from(content, bytes.saturating_add(1))?;
    let length = file.length();
    let (file, digest) = file.finish_file()?;
    fchmod(&file, if is_executable { grant.executable } else { grant.plain })?;
    // The owner comes last: only CAP_FOWNER may change another user's file, and containers lack it.
    grant.owner.take_file(&file)?;
    Ok((length, digest))
}

fn open_directory(
    parent: &DirectoryHandle,
    name: &OsStr,
    owner: FileOwner,
    mode: Mode,
) -> io::Result<DirectoryHandle> {
    let made = parent.create_directory(name)?;
    fchmod(&made, mode)?;
    owner.take_file(&made)?;
    Ok(made)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt as _, symlink},
    };

    use super::*;
    use crate::contents::ContentCache;

    fn input(path: &str, content: &[u8], executable: bool) -> TaskInput {
        let (digest, bytes) = (blake3::hash(content), content.len() as u64);
        TaskInput { path: path.to_owned(), digest, bytes, executable }
    }

    fn held(cache: &ContentCache, inputs: &[TaskInput], contents: &[&[u8]]) -> HeldContents {
        let held =
            cache.hold_contents(inputs.iter().map(|input| (input.digest, input.bytes))).unwrap();
        for content in contents {
            let digest = blake3::hash(content);
            let mut incoming = held.receive_content(digest, content.len() as u64).unwrap();
            incoming.write(content).unwrap();
            incoming.finish_download().unwrap();
            held.content_came(&digest);
        }
        held
    }

    #[test]
    fn it_has_its_inputs_and_nothing_of_a_failed_attempt() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ContentCache::open(&dir.path().join("contents")).unwrap();
        let (folder, victim) = (dir.path().join("task"), dir.path().join("victim"));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("precious"), "").unwrap();
        // What a failed attempt has left: a link to what is not its own, in the place of the directory.
        symlink(&victim, folder.join(WORK)).unwrap();
        fs::write(folder.join("stdout"), "of the failed one").unwrap();
        let inputs = [input("solve", b"#!/bin/sh", true), input("data/deep/a.csv", b"1,2", false)];
        let held = held(&cache, &inputs, &[b"#!/bin/sh", b"1,2"]);
        let work = make_directory(&folder, &inputs, &held).unwrap();
        assert_eq!(work, folder.join("work"));
        let mode = |path: &str| fs::symlink_metadata(work.join(path)).unwrap().mode() & 0o7777;
        assert_eq!([mode("."), mode("solve")], [0o700, 0o755]);
        assert_eq!([mode("data"), mode("data/deep/a.csv")], [0o755, 0o644]);
        assert_eq!(fs::read(work.join("data/deep/a.csv")).unwrap(), b"1,2");
        assert!(!folder.join("stdout").exists() && victim.join("precious").exists());
    }

    #[test]
    fn a_copy_has_the_inputs_as_they_were_given_and_what_it_is_told_of() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ContentCache::open(&dir.path().join("contents")).unwrap();
        let [task, check] = ["task", "check"].map(|name| dir.path().join(name));
        fs::create_dir(&task).unwrap();
        fs::create_dir(&check).unwrap();
        let inputs = [input("check.sh", b"#!/bin/sh", true), input("data/a", b"1", false)];
        let held = held(&cache, &inputs, &[b"#!/bin/sh", b"1"]);
        let work = make_directory(&task, &inputs, &held).unwrap();
        fs::write(work.join("check.sh"), "exit 0").unwrap();
        fs::create_dir(work.join("out")).unwrap();
        fs::write(work.join("out/answer"), "42").unwrap();
        fs::write(work.join("json.py"), "trap").unwrap();
        symlink("/etc/shadow", work.join("out/link")).unwrap();
        let copy = |paths: &[&str]| {
            let paths: Vec<_> = paths.iter().map(|&path| path.to_owned()).collect();
            make_copy(&check, (&inputs, &held), (&work, &paths))
        };
        copy(&["out/answer"]).unwrap();
        let copied = check.join(WORK);
        assert_eq!(fs::read(copied.join("check.sh")).unwrap(), b"#!/bin/sh");
        assert_eq!(fs::read(copied.join("out/answer")).unwrap(), b"42");
        assert!(!copied.join("json.py").exists());
        let mode = |path: &str| fs::metadata(copied.join(path)).unwrap().mode() & 0o7777;
        assert_eq!(["check.sh", "data/a", "out/answer"].map(mode), [0o555, 0o444, 0o444]);
        assert!(copy(&["out/link"]).is_err() && copy(&["../task/work/json.py"]).is_err());
    }

    #[test]
    fn a_damaged_content_is_found_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ContentCache::open(&dir.path().join("contents")).unwrap();
        let folder = dir.path().join("task");
        fs::create_dir(&folder).unwrap();
        let inputs = [input("a", b"sound", false)];
        let held = held(&cache, &inputs, &[b"sound"]);
        for damaged in ["sounD", "soun", "sound and more"] {
            let path = dir.path().join("contents").join(inputs[0].digest.to_hex().as_str());
            fs::write(path, damaged).unwrap();
            let error = make_directory(&folder, &inputs, &held).unwrap_err();
            assert!(matches!(error, DirectoryError::Damaged { .. }), "{error}");
            assert_eq!(held.missing_contents(), [inputs[0].digest]);
        }
    }

    #[test]
    fn inputs_that_lead_out_are_refused() {
        use dormouse_proto::v1::File;
        let digest = blake3::hash(b"").as_bytes().to_vec();
        let file = |path: &str, digest: &[u8]| {
            let (path, digest) = (path.to_owned(), digest.to_vec().into());
            File { path, digest, ..File::default() }
        };
        assert!(TaskInput::read(&file("a/b", &digest)).is_ok());
        for path in ["../a", "/a", "", "a/./b"] {
            let said = TaskInput::read(&file(path, &digest)).unwrap_err().to_string();
            assert!(said.contains("not a plain path"), "{said}");
        }
        assert!(TaskInput::read(&file("a", &digest[1..])).is_err());
    }
}
