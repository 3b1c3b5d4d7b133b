//! Tests of what a task can do in its jail, when freshly started and when restored.

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    os::{linux::net::SocketAddrExt as _, unix::net},
};

use dormouse_worker::{
    cgroup::TierSlot,
    criu::AfterDump,
    jail::JailDemand,
    process::{ProcessEnd, resume_process},
    store::SavedProgress,
};

use crate::{
    captive::{ABSTRACT, AGAIN, REPORTS, SEGMENT},
    worker::{SOON, Worker, name, wait_for},
};

/// What a jailed task may do: it affects only its own directory or itself.
const MAY: [&str; 1] = ["write to /tmp"];

/// A segment of System V shared memory that everybody may use, in the host's IPC namespace.
struct SharedMemory(i32);

impl SharedMemory {
    #[expect(unsafe_code, reason = "nothing here makes a segment")]
    fn make() -> Self {
        // SAFETY: takes numbers.
        let id = unsafe { libc::shmget(SEGMENT, 1, libc::IPC_CREAT | 0o666) };
        assert!(id >= 0, "{}", std::io::Error::last_os_error());
        Self(id)
    }
}

impl Drop for SharedMemory {
    #[expect(unsafe_code, reason = "nothing here removes a segment")]
    fn drop(&mut self) {
        // SAFETY: a segment of this test's.
        unsafe { libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

type Report = BTreeMap<String, String>;

/// The results of what a task tried, first and, if it is jailed, after a restore. (A task that succeeds without a jail
/// holds things that CRIU can't dump.)
fn tried(demand: JailDemand) -> (Report, Report) {
    let directory = tempfile::tempdir().unwrap();
    let mut worker = Worker::start_jailed(directory.path(), demand);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let abstract_name = net::SocketAddr::from_abstract_name(ABSTRACT).unwrap();
    let _socket = net::UnixListener::bind_addr(&abstract_name).unwrap();
    let _memory = SharedMemory::make();
    let other = worker.workspace.create_task(&name("8")).unwrap();
    let (port, pid) = (server.local_addr().unwrap().port().to_string(), std::process::id());
    let vm = worker.vm(1);
    let (captive, pid) = (name("7"), pid.to_string());
    let args = ["captive", &port, &pid, other.to_str().unwrap()];
    worker.workspace.create_task(&captive).unwrap();
    worker.workspace.bound_task(&captive, 128 << 20).unwrap();
    let task = worker.start_task(&captive, &vm, &args);
    let here = worker.workspace.task_directory(&captive);
    let report = |which: &str| {
        let text = wait_for("its report", || {
            fs::read_to_string(here.join(which)).map_err(|error| {
                let said = fs::read_to_string(here.join("stderr")).unwrap_or_default();
                format!("{error}; it said {said:?}")
            })
        });
        let pair = |line: &str| line.split_once('\t').map(|(a, b)| (a.to_owned(), b.to_owned()));
        text.lines().filter_map(pair).collect::<Report>()
    };
    let first = report(REPORTS[0]);
    if demand == JailDemand::None {
        task.kill_all().unwrap();
        task.wait_end(SOON).unwrap().unwrap();
        return (first, Report::new());
    }
    let checkpointer = worker.checkpointer();
    let (place, kill) = ((&vm, 0, TierSlot::A), AfterDump::Kill);
    let noted = SavedProgress::default;
    checkpointer
        .take_checkpoint(&captive, task.pid(), place, kill, SOON, &mut |_| Ok(()), noted)
        .unwrap();
    task.wait_end(SOON).unwrap().unwrap();
    let restored = checkpointer.restore_task(&captive, &vm, 0, TierSlot::A, SOON).unwrap();
    resume_process(restored.task.pid()).unwrap();
    fs::write(here.join(AGAIN), "").unwrap();
    let second = report(REPORTS[1]);
    assert_eq!(restored.task.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(0)));
    (first, second)
}

pub(crate) fn a_captive_gets_nowhere() {
    let (first, second) = tried(JailDemand::Full);
    println!("| tried | fresh | restored |\n|---|---|---|");
    for (what, came) in &first {
        println!("| {what} | {came} | {} |", second[what]);
    }
    assert!(first.len() > 30, "{first:#?}");
    for (what, came) in first.iter().chain(&second) {
        assert!(came.starts_with("refused") || MAY.contains(&what.as_str()), "{what}: {came}");
    }
    assert_eq!(first, second, "a restored task is in the same jail");
}

/// The test of the jail can fail: without a jail, the same attempts succeed.
pub(crate) fn without_a_jail_it_gets_far() {
    let (first, _) = tried(JailDemand::None);
    println!("| tried | without a jail |\n|---|---|");
    first.iter().for_each(|(what, came)| println!("| {what} | {came} |"));
    for what in [
        "write to /etc",
        "write to /proc/sys",
        "connect to TCP on the host",
        "mount",
        "read the host's users",
        "see other processes",
        "leave by the root of another process",
        "list the mounts of the worker",
        "mount its /proc again",
    ] {
        assert!(first[what].starts_with("done"), "{what}: {}", first[what]);
    }
}
