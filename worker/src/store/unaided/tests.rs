#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    fs,
    os::unix::{
        fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink},
        net::UnixListener,
    },
    path::PathBuf,
};

use nix::{sys::stat::Mode, unistd::mkfifo};

use super::*;
use crate::{
    directory,
    store::{ExpectedCheckpoint, ImageKey, StoreError},
};

struct Case {
    root: tempfile::TempDir,
    store: LocalCheckpoints,
    name: TaskName,
}

impl Case {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("task")).unwrap();
        let store = LocalCheckpoints::open(root.path().join("store")).unwrap();
        let store = store.with_key(ImageKey::new(&[5; 32]).unwrap());
        Self { root, store, name: TaskName::new("run", "1").unwrap() }
    }

    fn task(&self) -> PathBuf {
        self.root.path().join("task")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.task().join(path)
    }

    fn save(&self) -> StoredCheckpoint {
        let progress = SavedProgress { attempt: 1, ..SavedProgress::default() };
        self.store.save_directory(&self.name, &self.task(), progress).unwrap()
    }

    fn restore(&self) -> StoredCheckpoint {
        let checkpoint = self.store.latest_undamaged(&self.name).unwrap().checkpoint.unwrap();
        checkpoint.restore_files(&self.task()).unwrap();
        checkpoint
    }
}

/// Returns a content that is large enough to be sent separately.
fn large(seed: u8) -> Vec<u8> {
    let numbers = (0_u32..50_000).map(|n| n.wrapping_mul(2_654_435_761).wrapping_add(seed.into()));
    numbers.flat_map(u32::to_le_bytes).collect()
}

#[test]
fn a_directory_goes_back_to_just_what_it_was() {
    let case = Case::new();
    fs::create_dir_all(case.at("work/deep/empty")).unwrap();
    fs::write(case.at("stdout"), "half").unwrap();
    fs::write(case.at("work/solve"), "#!/bin/sh").unwrap();
    fs::set_permissions(case.at("work/solve"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(case.at("work/deep"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::create_dir(case.at("work/tmp")).unwrap();
    fs::set_permissions(case.at("work/tmp"), fs::Permissions::from_mode(0o3777)).unwrap();
    fs::hard_link(case.at("work/solve"), case.at("work/again")).unwrap();
    symlink("solve", case.at("work/inside")).unwrap();
    symlink("/etc/passwd", case.at("work/outside")).unwrap();
    mkfifo(&case.at("work/pipe"), Mode::from_bits_truncate(0o600)).unwrap();
    let _socket = UnixListener::bind(case.at("work/socket")).unwrap();
    let sparse = fs::File::create(case.at("work/sparse")).unwrap();
    sparse.set_len(8 << 20).unwrap();
    sparse.write_all_at(b"in the middle", 4 << 20).unwrap();
    let modified = |path: &str| fs::metadata(case.at(path)).unwrap().modified().unwrap();
    let before = modified("work/solve");
    case.save();
    // A future that does not happen.
    fs::write(case.at("stdout"), "half and more").unwrap();
    fs::write(case.at("work/new"), "new").unwrap();
    fs::remove_file(case.at("work/again")).unwrap();
    fs::remove_dir_all(case.at("work/deep")).unwrap();
    symlink("/etc", case.at("work/deep")).unwrap();
    case.restore();
    assert_eq!(fs::read(case.at("stdout")).unwrap(), b"half");
    let mode = |path: &str| fs::symlink_metadata(case.at(path)).unwrap().mode() & 0o7777;
    assert_eq!([mode("work/solve"), mode("work/deep")], [0o755, 0o750]);
    assert_eq!(mode("work/tmp"), 0o3777, "CRIU refuses a working directory of another mode");
    assert!(fs::read_dir(case.at("work/deep/empty")).unwrap().next().is_none());
    let inode = |path: &str| fs::metadata(case.at(path)).unwrap().ino();
    assert_eq!(inode("work/again"), inode("work/solve"));
    assert_eq!(modified("work/solve"), before);
    let link = |path: &str| fs::read_link(case.at(path)).unwrap();
    assert_eq!(
        [link("work/inside"), link("work/outside")],
        ["solve", "/etc/passwd"].map(PathBuf::from)
    );
    assert_eq!(mode("work/pipe"), 0o600);
    assert!(!case.at("work/new").exists() && !case.at("work/socket").exists());
    let found = fs::metadata(case.at("work/sparse")).unwrap();
    assert_eq!(found.len(), 8 << 20);
    assert!(found.blocks() * 512 <= 64 << 10, "{}", found.blocks());
    let content = fs::read(case.at("work/sparse")).unwrap();
    assert_eq!(&content[4 << 20..][..13], b"in the middle");
    assert_eq!(content.iter().filter(|byte| **byte != 0).count(), 13);
}

#[test]
fn unchanged_contents_of_checkpoints_are_one_file() {
    let case = Case::new();
    fs::write(case.at("model"), large(1)).unwrap();
    fs::write(case.at("log"), "1").unwrap();
    let first = case.save();
    fs::write(case.at("log"), "2").unwrap();
    let second = case.save();
    let digest = blake3::hash(&large(1));
    let inode = |of: &StoredCheckpoint| of.open_content(&digest).unwrap().metadata().unwrap().ino();
    assert_eq!(inode(&first), inode(&second));
    fs::write(case.at("model"), large(2)).unwrap();
    let third = case.save();
    assert!(third.open_content(&digest).is_err());
    // The files of a task are never those of its checkpoints.
    case.restore();
    fs::write(case.at("model"), "over").unwrap();
    third.verify_files().unwrap();
    // Older ones go, and what the younger ones share with them stays.
    case.save();
    assert_eq!(case.store.complete_numbers(&case.name).unwrap(), [2, 3, 4]);
    second.verify_files().unwrap();
}

#[test]
fn a_damaged_content_gives_way_to_the_checkpoint_before() {
    let case = Case::new();
    fs::write(case.at("a"), "one").unwrap();
    case.save();
    fs::write(case.at("a"), "two").unwrap();
    let second = case.save();
    let object = second.directory().join("files").join(blake3::hash(b"two").to_hex().as_str());
    fs::write(object, "twO").unwrap();
    assert_eq!(case.restore().manifest().sequence, 1);
    assert_eq!(fs::read(case.at("a")).unwrap(), b"one");
}

#[test]
fn a_checkpoint_travels_without_what_is_there_already() {
    let (here, there) = (Case::new(), Case::new());
    let expected = |sequence, bytes| ExpectedCheckpoint {
        task: here.name.clone(),
        sequence,
        attempts: 1..=1,
        program: DIRECTORY.to_owned(),
        bytes,
    };
    let send = |checkpoint: &StoredCheckpoint| {
        let mut stream = Vec::new();
        checkpoint.export_checkpoint(&mut stream).unwrap();
        assert!(stream.len() < 4_000, "{}", stream.len());
        let number = checkpoint.manifest().sequence;
        let arrival = there
            .store
            .receive_checkpoint(&mut stream.as_slice(), &expected(number, 1 << 20))
            .unwrap();
        let missing = arrival.missing_contents().to_vec();
        for (digest, bytes) in &missing {
            let mut incoming = arrival.receive_content(*digest, *bytes).unwrap();
            let mut content = Vec::new();
            std::io::copy(&mut checkpoint.open_content(digest).unwrap(), &mut content).unwrap();
            incoming.write(&content).unwrap();
            incoming.finish_download().unwrap();
        }
        arrival.complete_arrival().unwrap();
        missing.iter().map(|(_, bytes)| bytes).sum::<u64>()
    };
    fs::write(here.at("model"), large(1)).unwrap();
    fs::write(here.at("data"), large(2)).unwrap();
    assert_eq!(send(&here.save()), 400_000);
    fs::write(here.at("data"), large(3)).unwrap();
    fs::write(here.at("log"), "a line").unwrap();
    assert_eq!(send(&here.save()), 200_000);
    there.restore();
    assert!(fs::read(there.at("model")).unwrap() == large(1));
    assert!(fs::read(there.at("data")).unwrap() == large(3));
    assert_eq!(fs::read(there.at("log")).unwrap(), b"a line");
    // A content that has not come, and one that is damaged here.
    let second = there.store.load_checkpoint(&there.name, 2).unwrap();
    let digest = blake3::hash(&large(3));
    fs::write(second.directory().join("files").join(digest.to_hex().as_str()), "damaged").unwrap();
    let third = here.save();
    let mut stream = Vec::new();
    third.export_checkpoint(&mut stream).unwrap();
    let arrival =
        there.store.receive_checkpoint(&mut stream.as_slice(), &expected(3, 1 << 20)).unwrap();
    assert_eq!(arrival.missing_contents(), [(digest, 200_000)]);
    assert!(matches!(arrival.complete_arrival(), Err(StoreError::Missing { .. })));
    assert_eq!(there.store.complete_numbers(&there.name).unwrap(), [1, 2]);
}

#[test]
fn what_cannot_be_saved_is_refused_in_words() {
    use std::os::unix::ffi::OsStrExt as _;
    let case = Case::new();
    let refused = || {
        let saved = case.store.save_directory(&case.name, &case.task(), SavedProgress::default());
        assert!(case.store.complete_numbers(&case.name).unwrap().is_empty());
        saved.unwrap_err().to_string()
    };
    let odd = case.task().join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::write(&odd, "").unwrap();
    assert!(refused().contains("not UTF-8"));
    fs::remove_file(&odd).unwrap();
    let deep = (0..70).fold(case.task(), |path, _| path.join("d"));
    fs::create_dir_all(&deep).unwrap();
    assert!(refused().contains("more than 64 deep"));
    fs::remove_dir_all(case.at("d")).unwrap();
    // Holes count: what is sent has none.
    let huge = fs::File::create(case.at("huge")).unwrap();
    huge.set_len(1 << 43).unwrap();
    assert!(refused().contains("with their holes filled"));
    assert_eq!(directory::directory_size(&case.task()).unwrap().get(), 1 << 43);
}
