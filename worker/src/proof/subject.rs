//! A task that a host is proved with.

use std::{
    fs,
    os::fd::AsFd,
    path::PathBuf,
    time::{Duration, Instant},
};

use dormouse_tasks::progress::{self, Clock, Progress as Page, ProgressReader};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{
    agent::{PROGRESS, PreparedWorker, RESULT, explain_error, limit},
    cgroup::{TierSlot, VmGroups},
    checkpointer::Checkpointer,
    criu::AfterDump,
    process::{ChildProcess, ProcessEnd, ProgramCommand, await_stop, cpu_ns, resume_process},
    store::SavedProgress,
    workspace::TaskName,
};

/// The vCPU of the only task in `dormouse doctor`'s live test of this host.
const VCPU: u32 = 0;
const SLOT: TierSlot = TierSlot::A;

/// The worker and the VM with which the tasks of `dormouse doctor`'s live test of this host are started.
#[derive(Clone, Copy)]
pub(super) struct ProofRoom<'a> {
    pub(super) prepared: &'a PreparedWorker,
    pub(super) vm: &'a VmGroups,
}

/// A task of `dormouse doctor`'s live test of this host, which is running or dumped.
pub(super) struct ProofSubject<'a> {
    room: ProofRoom<'a>,
    name: TaskName,
    task: ChildProcess,
    page: ProgressReader,
    /// What has changed in the kernel's view of the task since it was restored, a sentence each; `None`: the task was
    /// not restored.
    changes: Option<Vec<String>>,
}

impl<'a> ProofSubject<'a> {
    /// Starts the program of tasks with the arguments `before` and `after`, between which is the path of its progress page; waits
    /// for its first own instruction.
    pub(super) fn launch_task(
        room: ProofRoom<'a>,
        name: &str,
        (before, after): (&[&str], &[&str]),
    ) -> Result<Self, String> {
        let name = TaskName::new("doctor", name).map_err(|e| explain_error(&e))?;
        let directory =
            room.prepared.workspace.create_task(&name).map_err(|e| explain_error(&e))?;
        let progress = directory.join(PROGRESS);
        progress::create_held(&progress).map_err(|e| explain_error(&e))?;
        let page = ProgressReader::open(&progress).map_err(|e| explain_error(&e))?;
        let entry = room.vm.slot_groups(VCPU, SLOT).map_err(|e| explain_error(&e))?;
        let task = ProgramCommand::new(&room.prepared.program, &directory)
            .args(before)
            .arg(&progress)
            .args(after)
            .start_task(&entry, limit::BIRTH)
            .map_err(|e| explain_error(&e))?;
        progress::let_go(&progress).map_err(|e| explain_error(&e))?;
        let subject = Self { room, name, task, page, changes: None };
        subject.await_beat(0)?;
        Ok(subject)
    }

    fn task_directory(&self) -> PathBuf {
        self.room.prepared.workspace.task_directory(&self.name)
    }

    /// Reads the page on which the task reports its progress.
    pub(super) fn read_page(&self) -> Result<Page, String> {
        self.page.read().map_err(|e| explain_error(&e))
    }

    /// Describes what confines the task, by what the kernel reports; an error if the task is confined less than its
    /// jail should.
    pub(super) fn check_confinement(&self) -> Result<String, String> {
        let Some(cell) = self.room.vm.cell() else {
            return Ok("there is none: --jail none".to_owned());
        };
        let user = cell.directory_user(&self.task_directory()).map_err(|e| explain_error(&e))?;
        let read = |pid: &str, what: &str| {
            let path = format!("/proc/{pid}/{what}");
            fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
        };
        let pid = self.task.pid().to_string();
        let status = read(&pid, "status")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(|text| text.split_whitespace().next().unwrap_or_default()).unwrap_or_default()
        };
        let is_apart = |space: &str| {
            let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{space}")).ok();
            of(&pid) != of("self")
        };
        let nothing = "0000000000000000";
        let parts = [
            ("user", user.is_some_and(|user| field("Uid:") == user.to_string())),
            ("capabilities", field("CapEff:") == nothing && field("CapPrm:") == nothing),
            ("no new privileges", field("NoNewPrivs:") == "1"),
            ("system calls", field("Seccomp:") == "2"),
            ("mounts", is_apart("mnt")),
            ("network", is_apart("net")),
            ("IPC", is_apart("ipc")),
            ("processes", is_apart("pid")),
        ];
        match parts.iter().find(|(_, has)| !has) {
            Some((lacking, _)) => Err(format!("its jail is incomplete: {lacking}")),
            None => Ok(format!("user {}, no capabilities, namespaces of its own", field("Uid:"))),
        }
    }

    /// Waits until the task has made progress after its `before`-th heartbeat, or has ended.
    pub(super) fn await_beat(&self, before: u64) -> Result<Page, String> {
        let begun = Instant::now();
        loop {
            let page = self.read_page()?;
            if page.heartbeat > before {
                return Ok(page);
            }
            let mut end = [PollFd::new(self.task.as_fd(), PollFlags::POLLIN)];
            if matches!(poll(&mut end, PollTimeout::from(1_u8)), Ok(1..)) {
                return match self.read_page()? {
                    page if page.heartbeat > before => Ok(page),
                    _ => Err(format!("it ended without doing anything: {}", self.last_words())),
                };
            }
            if begun.elapsed() > limit::BIRTH {
                return Err(format!("it did nothing within {} ms", limit::BIRTH.as_millis()));
            }
        }
    }

    fn last_words(&self) -> String {
        let words = fs::read_to_string(self.task_directory().join("stderr")).unwrap_or_default();
        words.lines().last().unwrap_or("it said nothing").to_owned()
    }

    /// Dumps the task, which ends it; returns the task's progress at that time.
    pub(super) fn dump_task(&self, checkpointer: &Checkpointer) -> Result<Page, String> {
        let progress = self.task_directory().join(PROGRESS);
        let mut last = Page::default();
        // Its clock goes on from there in another process.
        let mut stopped = |ns: u64| {
            let own = i64::try_from(ns).unwrap_or(i64::MAX);
            Ok(progress::set_clock(&progress, Clock { own, foreign: 0 })?)
        };
        let place = (self.room.vm, VCPU, SLOT);
        checkpointer
            .take_checkpoint(
                &self.name,
                self.task.pid(),
                place,
                AfterDump::Kill,
                limit::DUMP,
                &mut stopped,
                || {
                    last = self.page.read().unwrap_or_default();
                    SavedProgress::default()
                },
            )
            .map_err(|e| match self.task.try_wait() {
                Ok(Some(ended)) => {
                    format!("{}; the task: {ended}, {}", explain_error(&e), self.last_words())
                }
                _ => explain_error(&e),
            })?;
        match self.task.wait_end(limit::KILL).map_err(|e| explain_error(&e))? {
            Some(ProcessEnd::Killed(libc::SIGKILL)) => Ok(last),
            Some(ended) => Err(format!("it was dumped, and then {ended}")),
            None => Err("it was dumped and killed, but does not end".to_owned()),
        }
    }

    /// Restores the task, and waits until it makes progress.
    pub(super) fn restore_task(
        self,
        checkpointer: &Checkpointer,
        dumped: Page,
    ) -> Result<(Self, Page), String> {
        let restored = checkpointer
            .restore_task(&self.name, self.room.vm, VCPU, SLOT, limit::RESTORE)
            .map_err(|e| explain_error(&e))?;
        let pid = restored.task.pid();
        await_stop(pid, limit::BIRTH).map_err(|e| explain_error(&e))?;
        let progress = self.task_directory().join(PROGRESS);
        let page = ProgressReader::open(&progress).map_err(|e| explain_error(&e))?;
        let own = page.clock().map_err(|e| explain_error(&e))?.own;
        let ns = cpu_ns(pid).map_err(|e| explain_error(&e))?;
        let foreign = i64::try_from(ns).unwrap_or(i64::MAX) - own;
        progress::set_clock(&progress, Clock { own, foreign }).map_err(|e| explain_error(&e))?;
        resume_process(pid).map_err(|e| explain_error(&e))?;
        let subject = Self { task: restored.task, page, changes: restored.changes, ..self };
        let page = subject.await_beat(dumped.heartbeat)?;
        Ok((subject, page))
    }

    /// Describes what the restore has changed in the kernel's view of the task.
    pub(super) fn describe_changes(&self) -> String {
        match self.changes.as_deref() {
            None => "nobody looked whether it has changed".to_owned(),
            Some([]) => "the kernel says the same of it as before".to_owned(),
            Some(changes) => format!("changed by it: {}", changes.join("; ")),
        }
    }

    /// Waits for the task's successful end, and returns the path of its result.
    pub(super) fn wait_end(self, within: Duration) -> Result<PathBuf, String> {
        match self.task.wait_end(within).map_err(|e| explain_error(&e))? {
            Some(ProcessEnd::Exited(0)) => Ok(self.task_directory().join(RESULT)),
            Some(ended) => Err(format!("{ended}: {}", self.last_words())),
            None => Err(format!("it does not end within {} s", within.as_secs())),
        }
    }

    /// Ends the task that is still running.
    pub(super) fn kill_task(self) -> Result<(), String> {
        self.task.kill_all().map_err(|e| explain_error(&e))?;
        self.task.wait_end(limit::KILL).map(drop).map_err(|e| explain_error(&e))
    }
}
