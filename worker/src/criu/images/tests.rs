#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use prost::Message;
use tempfile::TempDir;

use super::{
    entries::{ImageEntries, ImageKind},
    messages::{
        CoreEntry, CredsEntry, FhEntry, FileEntry, FsEntry, GhostFileEntry, InetSkEntry,
        InotifyFileEntry, InotifyWdEntry, InventoryEntry, PluginsEntry, PstreeEntry, RegFileEntry,
        SeccompEntry, SeccompFilter, TaskCoreEntry, TaskKobjIdsEntry, ThreadCoreEntry, UnixSkEntry,
    },
    rules::ImageRules,
};

const USER: u32 = 60_607;
const FILTER: &[u8] = b"eight by";

/// Images of a task of one process and two threads, as CRIU writes them: the fields that are checked.
#[derive(Clone)]
struct Set {
    inventory: InventoryEntry,
    tree: PstreeEntry,
    ids: TaskKobjIdsEntry,
    cores: [CoreEntry; 2],
    at: FsEntry,
    files: Vec<FileEntry>,
    filters: SeccompEntry,
    ghost: GhostFileEntry,
}

fn creds() -> CredsEntry {
    let user = Some(USER);
    CredsEntry {
        uid: user,
        gid: user,
        euid: user,
        egid: user,
        suid: user,
        sgid: user,
        fsuid: user,
        fsgid: user,
        cap_bnd: vec![u32::MAX, 0x1ff],
        no_new_privs: Some(1),
        ..CredsEntry::default()
    }
}

fn core(tc: Option<TaskCoreEntry>) -> CoreEntry {
    let thread = ThreadCoreEntry {
        creds: Some(creds()),
        seccomp_mode: Some(2),
        seccomp_filter: Some(0),
        sched_policy: Some(0),
        sched_nice: Some(0),
    };
    CoreEntry { tc, ids: None, thread_core: Some(thread) }
}

fn regular(id: u32, name: &str) -> FileEntry {
    let reg = Some(RegFileEntry { name: Some(name.to_owned()) });
    FileEntry { r#type: Some(1), id: Some(id), reg, ..FileEntry::default() }
}

impl Set {
    fn of_task() -> Self {
        let outside = TaskKobjIdsEntry {
            pid_ns_id: Some(1),
            net_ns_id: Some(2),
            ipc_ns_id: Some(3),
            uts_ns_id: Some(4),
            mnt_ns_id: Some(5),
            user_ns_id: Some(6),
            cgroup_ns_id: None,
        };
        let alive = TaskCoreEntry { task_state: Some(1), ..TaskCoreEntry::default() };
        let filter = SeccompFilter { filter: Some(FILTER.to_vec().into()) };
        Self {
            inventory: InventoryEntry {
                img_version: Some(2),
                root_ids: Some(outside),
                plugins_entry: Some(PluginsEntry::default()),
            },
            tree: PstreeEntry { pid: Some(1), threads: vec![1, 7] },
            ids: TaskKobjIdsEntry { pid_ns_id: Some(9), ..outside },
            cores: [core(Some(alive)), core(None)],
            at: FsEntry { root_id: Some(1), cwd_id: Some(2) },
            files: vec![
                regular(1, "/cell"),
                regular(2, "/cell/tasks/7"),
                regular(3, "/cell/usr/lib/libc.so.6"),
                regular(4, "/cell/tasks/7/no/longer/there"),
            ],
            filters: SeccompEntry { seccomp_filters: vec![filter] },
            ghost: GhostFileEntry { uid: Some(USER), gid: Some(USER), mode: Some(0o100_600) },
        }
    }

    /// Returns the images of a task after one change.
    fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut set = Self::of_task();
        change(&mut set);
        set
    }

    /// Returns the images of a task after one change of the second thread's credentials.
    fn with_creds(change: impl FnOnce(&mut CredsEntry)) -> Self {
        Self::with(|set| change(set.thread().creds.as_mut().unwrap()))
    }

    /// Returns the fields of the second thread that it doesn't share with the first.
    fn thread(&mut self) -> &mut ThreadCoreEntry {
        self.cores[1].thread_core.as_mut().unwrap()
    }

    /// Returns the fields of the first thread that it doesn't share with the second.
    fn first(&mut self) -> &mut ThreadCoreEntry {
        self.cores[0].thread_core.as_mut().unwrap()
    }

    fn with_file(file: FileEntry) -> Self {
        Self::with(|set| set.files.push(file))
    }

    fn write(&self, to: &Path) {
        write(to, "inventory.img", ImageKind::Inventory, &[&self.inventory]);
        write(to, "pstree.img", ImageKind::Tree, &[&self.tree]);
        write(to, "ids-1.img", ImageKind::Ids, &[&self.ids]);
        write(to, "core-1.img", ImageKind::Core, &[&self.cores[0]]);
        write(to, "core-7.img", ImageKind::Core, &[&self.cores[1]]);
        write(to, "fs-1.img", ImageKind::Directories, &[&self.at]);
        write(to, "seccomp.img", ImageKind::Filters, &[&self.filters]);
        write(to, "ghost-file-1.img", ImageKind::Ghost, &[&self.ghost]);
        let files: Vec<&FileEntry> = self.files.iter().collect();
        write(to, "files.img", ImageKind::Files, &files);
        fs::write(to.join("pages-1.img"), b"memory").unwrap();
    }
}

fn bytes_of<M: Message>(kind: ImageKind, messages: &[&M]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if kind != ImageKind::Inventory {
        bytes.extend(0x5456_4319_u32.to_le_bytes());
    }
    bytes.extend(kind.magic_number().to_le_bytes());
    for message in messages {
        let message = message.encode_to_vec();
        bytes.extend(u32::try_from(message.len()).unwrap().to_le_bytes());
        bytes.extend(message);
    }
    bytes
}

fn write<M: Message>(to: &Path, name: &str, kind: ImageKind, messages: &[&M]) {
    fs::write(to.join(name), bytes_of(kind, messages)).unwrap();
}

/// A tasks' root, and a directory beside it with images to be checked.
struct Host {
    _directory: TempDir,
    root: PathBuf,
    images: PathBuf,
}

impl Host {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (root, images) = (directory.path().join("root"), directory.path().join("images"));
        for path in ["tasks/7", "usr/lib"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("usr/lib/libc.so.6"), "").unwrap();
        symlink("/", root.join("tasks/7/up")).unwrap();
        fs::create_dir(&images).unwrap();
        Self { _directory: directory, root, images }
    }

    fn check(&self) -> Result<(), String> {
        let root = fs::File::open(&self.root).unwrap();
        let rules = ImageRules::for_tests(USER, root, FILTER);
        rules.check_images(&self.images).map_err(|error| error.to_string())
    }

    fn judge(&self, set: &Set) -> Result<(), String> {
        set.write(&self.images);
        self.check()
    }
}

#[test]
fn images_of_a_task_pass_and_each_thing_too_many_is_refused() {
    let host = Host::new();
    host.judge(&Set::of_task()).unwrap();
    host.judge(&Set::with(|it| it.thread().seccomp_mode = None)).unwrap();
    let socket = |name: &[u8], directory: Option<&str>| {
        let usk = UnixSkEntry {
            name: Some(name.to_vec().into()),
            name_dir: directory.map(str::to_owned),
        };
        FileEntry { r#type: Some(5), id: Some(9), usk: Some(usk), ..FileEntry::default() }
    };
    let watch = |path: Option<&str>| {
        let handle = FhEntry { path: path.map(str::to_owned) };
        let wd = vec![InotifyWdEntry { f_handle: Some(handle) }];
        let ify = Some(InotifyFileEntry { wd });
        FileEntry { r#type: Some(8), id: Some(9), ify, ..FileEntry::default() }
    };
    let inet = |kind| {
        let isk = Some(InetSkEntry { r#type: Some(kind) });
        FileEntry { r#type: Some(4), id: Some(9), isk, ..FileEntry::default() }
    };
    let of_kind = |kind| FileEntry { r#type: Some(kind), id: Some(9), ..FileEntry::default() };
    for fine in [
        socket(b"", None),
        socket(b"\0abstract", None),
        socket(b"s\0", Some("/cell/tasks/7")),
        watch(Some("/cell/tasks/7")),
        inet(1),
        of_kind(2),
    ] {
        host.judge(&Set::with_file(fine.clone())).unwrap_or_else(|why| panic!("{fine:?}: {why}"));
    }
    let refused = [
        (Set::with_creds(|it| it.uid = Some(0)), "user or group"),
        (Set::with_creds(|it| it.fsgid = Some(0)), "user or group"),
        (Set::with_creds(|it| it.suid = None), "user or group"),
        (Set::with_creds(|it| it.groups = vec![0]), "of group 0"),
        (Set::with_creds(|it| it.cap_eff = vec![0, 1]), "capabilities"),
        (Set::with_creds(|it| it.cap_prm = vec![1]), "capabilities"),
        (Set::with_creds(|it| it.cap_amb = vec![0, 0, 1]), "capabilities"),
        (Set::with_creds(|it| it.cap_inh = vec![1]), "capabilities"),
        (Set::with_creds(|it| it.no_new_privs = None), "new privileges"),
        (Set::with(|it| it.thread().creds = None), "has no user"),
        (Set::with(|it| it.cores[1].thread_core = None), "has no state"),
        (Set::with(|it| it.first().seccomp_mode = Some(0)), "no filter"),
        (Set::with(|it| it.thread().seccomp_filter = Some(1)), "different filter"),
        (
            Set::with(|it| it.filters.seccomp_filters[0].filter = Some(b"others".to_vec().into())),
            "different filter",
        ),
        (
            Set::with(|it| it.cores[0].tc.as_mut().unwrap().old_seccomp_mode = Some(0)),
            "older versions",
        ),
        (
            Set::with(|it| it.cores[0].tc.as_mut().unwrap().oom_score_adj = Some(-2000)),
            "memory is short",
        ),
        (Set::with(|it| it.thread().sched_policy = Some(1)), "real time"),
        (Set::with(|it| it.thread().sched_nice = Some(-40)), "raised scheduling priority"),
        (Set::with(|it| it.cores[0].tc.as_mut().unwrap().task_state = Some(8)), "in the state 8"),
        (
            Set::with(|it| it.cores[0].tc.as_mut().unwrap().task_state = Some(2)),
            "no process of it is alive",
        ),
        (Set::with(|it| it.ids.mnt_ns_id = Some(8)), "not the cell's"),
        (Set::with(|it| it.ids.user_ns_id = None), "not the cell's"),
        (Set::with(|it| it.ids.pid_ns_id = Some(1)), "no PID namespace"),
        (
            Set::with(|it| it.cores[0].ids = Some(TaskKobjIdsEntry::default())),
            "namespaces of its own",
        ),
        (Set::with(|it| it.inventory.img_version = Some(1)), "version"),
        (
            Set::with(|it| {
                it.inventory.plugins_entry = Some(PluginsEntry { plugins: vec!["cuda".into()] });
            }),
            "plugins",
        ),
        (Set::with(|it| it.at.root_id = Some(2)), "its root is"),
        (Set::with(|it| it.at.cwd_id = Some(99)), "not one of its files"),
        (Set::with(|it| it.ghost.uid = Some(0)), "makes a file of user"),
        (Set::with(|it| it.ghost.mode = Some(0o104_755)), "mode"),
        (Set::with(|it| it.ghost.mode = Some(0o060_600)), "mode"),
        (Set::with_file(regular(9, "/proc/1/root/etc/shadow")), "outside"),
        (Set::with_file(regular(9, "/cell/../etc/shadow")), "leads up"),
        (Set::with_file(regular(9, "/cellar/x")), "outside"),
        (Set::with_file(regular(9, "/cell/tasks/7/up/etc/shadow")), "through a link"),
        (Set::with_file(regular(9, "/cell/tasks/7/up")), "through a link"),
        (Set::with_file(socket(b"/run/docker.sock\0", None)), "outside"),
        (Set::with_file(socket(b"../../../run/x\0", Some("/cell/tasks/7"))), "leads up"),
        (Set::with_file(watch(None)), "without a path"),
        (Set::with_file(watch(Some("/etc"))), "outside"),
        (Set::with_file(inet(3)), "raw socket"),
        (Set::with_file(of_kind(10)), "of kind 10"),
        (Set::with_file(of_kind(16)), "of kind 16"),
        (Set::with_file(FileEntry::default()), "of kind 0"),
    ];
    for (set, said) in refused {
        let why = host.judge(&set).unwrap_err();
        assert!(why.contains(said), "{why} and not {said}");
    }
    host.judge(&Set::of_task()).unwrap();
    // Files of former versions of CRIU, and of what a cell has not, would be read beside those that are looked at.
    for name in ["creds-1.img", "reg-files.img", "mountpoints-1.img", "core-1.img.gz", "x"] {
        let path = host.images.join(name);
        fs::write(&path, "").unwrap();
        assert!(host.check().unwrap_err().contains(name));
        fs::remove_file(path).unwrap();
    }
    for name in ["ids-1.img", "seccomp.img", "files.img"] {
        Set::of_task().write(&host.images);
        fs::remove_file(host.images.join(name)).unwrap();
        assert!(host.check().unwrap_err().contains(name));
    }
}

#[test]
fn a_file_that_is_cut_or_lies_about_its_lengths_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("files.img");
    let read = |bytes: &[u8]| -> std::io::Result<usize> {
        fs::write(&path, bytes).unwrap();
        let mut entries = ImageEntries::<FileEntry>::open(&path, ImageKind::Files)?;
        let mut count = 0;
        while entries.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    };
    let files = [regular(1, "/cell"), regular(2, "/cell/tasks/7")];
    let whole = bytes_of(ImageKind::Files, &[&files[0], &files[1]]);
    let first = bytes_of(ImageKind::Files, &[&files[0]]).len();
    assert_eq!(read(&whole).unwrap(), 2);
    for cut in 0..whole.len() {
        let complete = cut == 8 || cut == first;
        assert_eq!(read(&whole[..cut]).is_ok(), complete, "{cut}");
    }
    for length in [u32::MAX, 1 << 30, (1 << 20) + 1, 1 << 20] {
        let mut lying = whole.clone();
        lying[8..12].copy_from_slice(&length.to_le_bytes());
        read(&lying).unwrap_err();
    }
    let mut other = whole;
    other[4] ^= 1;
    assert!(read(&other).unwrap_err().to_string().contains("does not begin"));
}
