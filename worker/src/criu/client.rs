//! The calls of CRIU: version, check, features, dump, restore.

use std::{
    fs::{self, File},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, getpgid},
};

use super::{
    CriuError, CriuProbe, CriuRelease, Result,
    inspection::TaskInspection,
    probe::unless_late,
    request::{LOG_LEVEL, asked_features, make_request, shared_options},
    rpc::{CriuFeatures, CriuNotify, CriuOpts, CriuReq, CriuReqType, CriuResp},
    scratch::ScratchDirectory,
    session::{CriuSession, Step, accept_response, answer_notifications, conclude_call},
    status::ThreadStatus,
};
use crate::{
    cgroup::{TierSlot, VmGroups},
    jail::{JailCell, MountView, ViewOccupant},
    process::{ChildProcess, HelpedTask, ProcessGroups, mount_processes},
};

/// Name of the notification by which CRIU says that it has stopped all of a task's processes, before it reads anything
/// of them.
const SEIZED: &str = "query-ext-files";
/// Name of CRIU's notification that all processes are restored and still stopped.
const PRE_RESUME: &str = "pre-resume";
/// Time limit for the processes of a failed restore to die.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// A moment of a dump at which its caller has something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpMoment {
    /// Just before CRIU stops the tasks: the moment to lift their quota.
    Begins,
    /// All tasks are stopped from now on, without any of CRIU's code in them yet.
    Seized,
    /// The images are complete, and the tasks are still stopped: the moment to record what belongs to the checkpoint.
    Dumped,
}

/// A moment of a restore at which its caller has something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreMoment {
    /// The processes exist, and still execute CRIU's code.
    Made,
    /// All processes are restored and stopped just before their first instruction. CRIU lets them run whatever is
    /// answered.
    Runs,
}

/// What becomes of a task after its dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterDump {
    /// The task continues as it was when CRIU came: running or stopped.
    Continue,
    /// CRIU kills the task; the task's parent must still reap it.
    Kill,
}

/// A CRIU program. Cheap to clone; calls may run at the same time.
#[derive(Debug, Clone)]
pub struct CriuProgram {
    program: PathBuf,
    /// CPU time of all CRIU processes that ran outside of VMs' control groups, in nanoseconds.
    spent: Arc<AtomicU64>,
}

impl CriuProgram {
    /// Returns the CRIU at `program`: a path, or a name looked up on `PATH`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), spent: Arc::default() }
    }

    /// Returns the path of the CRIU program, or its name.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Finds out what CRIU and this kernel can do together. The calls for CRIU's version and check have until the
    /// deadline, and are repeated up to twice with twice the time if CRIU is late, since a busy host proves nothing.
    #[must_use]
    pub fn probe_host(&self, deadline: Duration) -> CriuProbe {
        let version = unless_late(deadline, |deadline| self.read_version(deadline));
        let features = version.as_ref().ok().and_then(|_| self.read_features(deadline).ok());
        let (version, check) = match version {
            Err(e) => (None, Err(e)),
            Ok(version) => {
                (Some(version), unless_late(deadline, |deadline| self.check_kernel(deadline)))
            }
        };
        let has = |get: fn(&CriuFeatures) -> Option<bool>| {
            features.as_ref().and_then(get).unwrap_or(false)
        };
        CriuProbe {
            program: self.program.clone(),
            version,
            check,
            mem_track: has(|f| f.mem_track),
            lazy_pages: has(|f| f.lazy_pages),
            pidfd_store: has(|f| f.pidfd_store),
        }
    }

    /// Returns CRIU's version.
    ///
    /// # Errors
    ///
    /// See [`CriuError`].
    pub fn read_version(&self, deadline: Duration) -> Result<CriuRelease> {
        let call = "version";
        let response =
            self.ask_once(call, make_request(CriuReqType::Version), PathBuf::new(), deadline)?;
        let number = |n: i32| u32::try_from(n).unwrap_or(0);
        match response.version {
            Some(v) => Ok(CriuRelease {
                major: number(v.major_number),
                minor: number(v.minor_number),
                sublevel: number(v.sublevel()),
            }),
            None => Err(CriuError::Protocol { call, what: "no version".to_owned() }),
        }
    }

    /// Checks that this kernel has what CRIU needs (`criu check`).
    ///
    /// # Errors
    ///
    /// [`CriuError::Refused`] if it doesn't; for others see [`CriuError`].
    pub fn check_kernel(&self, deadline: Duration) -> Result<()> {
        // It reads its options even for this, and insists on a directory for its log.
        let scratch = ScratchDirectory::create_in(&std::env::temp_dir())
            .map_err(|(path, source)| CriuError::Directory { path, source })?;
        let mut request = make_request(CriuReqType::Check);
        request.opts = Some(CriuOpts {
            images_dir_fd: scratch.directory().as_raw_fd(),
            log_file: Some("check.log".to_owned()),
            log_level: Some(LOG_LEVEL),
            ..CriuOpts::default()
        });
        let log = scratch.path().join("check.log");
        self.ask_once("check", request, log, deadline).map(drop)
    }

    /// Makes CRIU test the kernel's features from within the jail of a VM's tasks. CRIU keeps the results in the jail for later
    /// calls, which lack the rights for the tests.
    ///
    /// # Errors
    ///
    /// See [`CriuError`].
    pub fn settle_in(&self, cell: &Arc<JailCell>, deadline: Duration) -> Result<()> {
        self.features_in(Some(HelpedTask { cell, user: None, view: MountView::Common }), deadline)
            .map(drop)
    }

    fn read_features(&self, deadline: Duration) -> Result<CriuFeatures> {
        self.features_in(None, deadline)
    }

    fn features_in(
        &self,
        inmate: Option<HelpedTask<'_>>,
        deadline: Duration,
    ) -> Result<CriuFeatures> {
        let mut request = make_request(CriuReqType::FeatureCheck);
        request.features = Some(asked_features());
        let call = "feature check";
        let response = self.ask_in(call, inmate, request, PathBuf::new(), deadline)?;
        Ok(response.features.unwrap_or_default())
    }

    /// Makes a call to CRIU that has one request and one answer.
    fn ask_once(
        &self,
        call: &'static str,
        request: CriuReq,
        log: PathBuf,
        deadline: Duration,
    ) -> Result<CriuResp> {
        self.ask_in(call, None, request, log, deadline)
    }

    fn ask_in(
        &self,
        call: &'static str,
        inmate: Option<HelpedTask<'_>>,
        request: CriuReq,
        log: PathBuf,
        deadline: Duration,
    ) -> Result<CriuResp> {
        let mut session =
            CriuSession::start_criu(&self.program, call, None, inmate, log, deadline)?;
        session.send_request(&request)?;
        let response = session.receive_response()?;
        let result = accept_response(call, response, || session.log_tail());
        self.finish_session(session);
        result
    }

    /// Waits for the exit of a CRIU that ran outside the VMs' groups, and counts its CPU time.
    fn finish_session(&self, session: CriuSession) {
        self.spent.fetch_add(session.cpu_ns(), Ordering::Relaxed);
        session.finish_call();
    }

    /// Returns the CPU time of CRIU's dumps so far, in nanoseconds; the CPU time of restores is charged to the VMs.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// Dumps the process `pid` and its children into `images`, an empty directory. The log is `dump.log` in `work`.
    /// CRIU runs in the task's cell, if the task has one.
    ///
    /// `at` is called at each [`DumpMoment`]. If it fails, so does the dump, and the tasks run on.
    ///
    /// # Errors
    /// See [`CriuError`], and [`CriuError::may_have_damaged`] for what it means for the task. A task that is not
    /// damaged continues as before.
    #[expect(clippy::too_many_arguments, reason = "each says one thing about the dump")]
    pub fn dump_process(
        &self,
        pid: i32,
        inmate: Option<HelpedTask<'_>>,
        images: &Path,
        work: &Path,
        after: AfterDump,
        deadline: Duration,
        at: &mut dyn FnMut(DumpMoment) -> Step,
    ) -> Result<()> {
        let call = "dump";
        let log = "dump.log";
        let (images, work_dir) = (open_directory(images)?, open_directory(work)?);
        let mut request = make_request(CriuReqType::Dump);
        request.opts = Some(CriuOpts {
            pid: Some(pid),
            // CRIU kills and then detaches, which fails where the task is quick to die.
            leave_running: Some(true),
            ..shared_options(&images, &work_dir, log, deadline)
        });
        let log_path = work.join(log);
        let mut session =
            CriuSession::start_criu(&self.program, call, None, inmate, log_path, deadline)?;
        session.send_request(&request)?;
        let stop = after == AfterDump::Kill;
        // Dumped, so it is there, and only its parent reaps it: the number is its own.
        let signal = |signal| kill(Pid::from_raw(pid), signal);
        let mut is_in_task = false;
        let response =
            answer_notifications(&mut session, &|| false, |notify| match notify.script() {
                "pre-dump" => {
                    at(DumpMoment::Begins)?;
                    is_in_task = true;
                    Ok(())
                }
                SEIZED => at(DumpMoment::Seized),
                "post-dump" => {
                    at(DumpMoment::Dumped)?;
                    // Acts when CRIU lets the task go.
                    if stop { Ok(signal(Signal::SIGSTOP)?) } else { Ok(()) }
                }
                _ => Ok(()),
            });
        // Only its own answer, a refusal too, says that it has left the task as it was.
        let response = response.map_err(|source| match is_in_task {
            true => CriuError::InTask { call, source: Box::new(source) },
            false => source,
        });
        let result = conclude_call(call, response, || session.log_tail()).map(drop);
        self.finish_session(session);
        // One that has ended needs neither.
        let _ = match &result {
            Ok(()) if stop => signal(Signal::SIGKILL),
            Err(error) if stop && !error.may_have_damaged() => signal(Signal::SIGCONT),
            _ => Ok(()),
        };
        result
    }

    /// Restores what was dumped into `images` as a child of this process, in `slot` of vCPU
    /// `vcpu` of `vm`. The log is `restore.log` in `work`.
    ///
    /// CRIU runs in the slot's control groups, so that the task starts there and all its pages are charged to the VM. (Moving a
    /// process takes a lock against all forks and exits of the machine: 7 to 15 ms.) CRIU's own CPU time counts as the VM's, too.
    /// The slot's quota is lifted during the restore, and is in force again before the task's first instruction. If the VM is
    /// frozen during the restore, the restore continues when the VM thaws, and the deadline is put off. `occupant` is the task,
    /// whose view of files is made anew.
    ///
    /// `at` is called at each [`RestoreMoment`]: if it fails once the task is made, the task is killed without having
    /// run. The VM must not be frozen when this is called.
    ///
    /// # Errors
    /// See [`CriuError`]. Nothing of the task is left then.
    #[expect(clippy::too_many_arguments, reason = "each says one thing about the restore")]
    pub fn restore_process(
        &self,
        images: &Path,
        work: &Path,
        vm: &VmGroups,
        vcpu: u32,
        slot: TierSlot,
        occupant: &ViewOccupant,
        deadline: Duration,
        at: &mut (dyn FnMut(RestoreMoment) -> Step + Send),
    ) -> Result<ChildProcess> {
        let call = "restore";
        let cgroup = |source| CriuError::Cgroup { call, source: Box::new(source) };
        let entry = vm.slot_groups(vcpu, slot).map_err(cgroup)?;
        let mut lifted = Some(vm.lift_quota(vcpu, slot).map_err(cgroup)?);
        let has_root = vm.cell().is_some_and(|cell| cell.has_root());
        let mut notified = |notify: &CriuNotify| {
            // The first process is in its PID namespace, and no file is open yet.
            if has_root
                && notify.script() == "setup-namespaces"
                && let Some(pid) = notify.pid
            {
                mount_processes(pid, deadline)?;
            }
            match notify.script() {
                // The process exists and has not run: it still executes CRIU's restorer.
                "post-restore" => {
                    at(RestoreMoment::Made)?;
                    lifted = None;
                    Ok(())
                }
                PRE_RESUME => at(RestoreMoment::Runs),
                _ => Ok(()),
            }
        };
        // CRIU makes the task a child of the thread that started CRIU. In a thread of its own
        // the children are those of this restore, so what is left of a failed one can be
        // found and reaped without taking another task's exit status. A restored task
        // becomes a child of the main thread when this one ends, which no wait notices.
        thread::scope(|scope| {
            let restorer = thread::Builder::new().name("restore".to_owned());
            let restorer = restorer.spawn_scoped(scope, || {
                let mut group = None;
                let into = (&entry, vm, (vcpu, slot), occupant);
                let result =
                    self.restore_in(into, images, work, deadline, &mut notified, &mut group);
                if result.is_err() {
                    kill_children_of_this_thread(CLEAN_UP);
                    await_group(vm, group, CLEAN_UP);
                }
                result
            });
            let restorer = restorer.map_err(CriuError::Thread)?;
            restorer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn restore_in(
        &self,
        (entry, vm, (vcpu, slot), occupant): (
            &ProcessGroups,
            &VmGroups,
            (u32, TierSlot),
            &ViewOccupant,
        ),
        images: &Path,
        work: &Path,
        deadline: Duration,
        notified: &mut dyn FnMut(&CriuNotify) -> Step,
        group: &mut Option<Pid>,
    ) -> Result<ChildProcess> {
        let call = "restore";
        let log = "restore.log";
        let (images, work_dir) = (open_directory(images)?, open_directory(work)?);
        let mut request = make_request(CriuReqType::Restore);
        request.opts = Some(CriuOpts {
            rst_sibling: Some(true),
            ..shared_options(&images, &work_dir, log, deadline)
        });
        let log = work.join(log);
        let started = |source| CriuError::Start { program: self.program.clone(), source };
        let inmate = match &entry.cell {
            Some(cell) => {
                let view = cell.new_view(occupant, false).map_err(started)?;
                Some(HelpedTask { cell, user: occupant.user, view })
            }
            None => None,
        };
        let mut session =
            CriuSession::start_criu(&self.program, call, Some(entry), inmate, log, deadline)?;
        *group = session.process_group();
        let inspection = match (&entry.cell, *group) {
            (Some(cell), Some(criu)) => {
                Some(TaskInspection::begin_inspection(criu.as_raw(), cell, occupant.user)?)
            }
            _ => None,
        };
        session.send_request(&request)?;
        // It stands still with the VM, whose groups it is in.
        let frozen = || vm.is_frozen().unwrap_or(false);
        let (mut looked, mut found, mut held) = (inspection.is_none(), None, false);
        let response = answer_notifications(&mut session, &frozen, |notify| {
            if let (PRE_RESUME, Some(inspection)) = (notify.script(), &inspection) {
                looked = true;
                let slot = vm.slot_pids(vcpu, slot)?;
                inspection.look_at_made(&slot).inspect_err(|what| found = Some(what.clone()))?;
            }
            notified(notify)?;
            if notify.script() == PRE_RESUME {
                held = hold_made(vm, (vcpu, slot))?;
            }
            Ok(())
        });
        if held {
            // CRIU has let go of all of it, or it is to die.
            vm.let_go(vcpu, slot).map_err(|e| CriuError::Cgroup { call, source: Box::new(e) })?;
        }
        let mut result = conclude_call(call, response, || session.log_tail());
        if let Some(what) = found {
            result = Err(CriuError::Foreign { call, what });
        } else if result.is_ok() && !looked {
            let what = format!("it did not ask before it let the task run ({PRE_RESUME})");
            result = Err(CriuError::Protocol { call, what });
        }
        session.finish_call();
        let pid = result?.restore.map(|restored| restored.pid).filter(|pid| *pid > 0).ok_or(
            CriuError::Protocol { call, what: "an answer without the restored process".to_owned() },
        )?;
        ChildProcess::adopt_child(pid)
            .map_err(|source| CriuError::Process { call, source: Box::new(source) })
    }
}

/// Stops several processes that CRIU has restored in a slot until CRIU has released all of them: the first process to run could end
/// the last one before, which CRIU takes for a failure. Returns whether processes are stopped; CRIU's own processes aren't.
fn hold_made(vm: &VmGroups, (vcpu, slot): (u32, TierSlot)) -> crate::cgroup::Result<bool> {
    // What is made is a PID namespace below CRIU's, which is the worker's.
    let depth = ThreadStatus::of_task("self").map_or(1, |own| own.numbers.len());
    let is_made = |pid: &i32| {
        ThreadStatus::of_task(&pid.to_string()).is_ok_and(|status| status.numbers.len() > depth)
    };
    let (made, apart): (Vec<i32>, Vec<i32>) =
        vm.slot_pids(vcpu, slot)?.into_iter().partition(is_made);
    if made.len() < 2 { Ok(false) } else { vm.hold_all_but(vcpu, slot, &apart) }
}

fn open_directory(path: &Path) -> Result<File> {
    fs::File::open(path).map_err(|source| CriuError::Directory { path: path.to_owned(), source })
}

/// Kills and reaps the children of this thread, each of which is the init of a PID namespace that ends with it.
fn kill_children_of_this_thread(deadline: Duration) {
    let started = Instant::now();
    let flags = WaitPidFlag::__WNOTHREAD | WaitPidFlag::__WALL | WaitPidFlag::WNOHANG;
    while started.elapsed() < deadline {
        let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        for pid in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            // Not reaped yet, so the number is still its own.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        match waitpid(None, Some(flags)) {
            // None is left.
            Err(_) => return,
            Ok(WaitStatus::StillAlive) => thread::sleep(Duration::from_millis(1)),
            Ok(_) => {}
        }
    }
}

/// Waits for the end of the helper processes in CRIU's process group. They were killed with CRIU, but no longer have a parent that
/// reaps them.
fn await_group(vm: &VmGroups, group: Option<Pid>, deadline: Duration) {
    for pid in vm.list_pids().unwrap_or_default() {
        if group.is_some()
            && getpgid(Some(Pid::from_raw(pid))).ok() == group
            && let Ok(helper) = ChildProcess::adopt_child(pid)
        {
            // Gone or late, there is nothing more to be done about it here.
            let _ = helper.kill_all();
            let _ = helper.wait_end(deadline);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::process::Command;

    use super::*;

    /// Shell commands of a CRIU that asks whether it may begin with the task; a message is one read or write.
    const BEGIN: &str = "dd bs=4096 count=1 <&3
        printf '\\010\\006\\020\\001\\052\\012\\012\\010pre-dump' >&3
        dd bs=4096 count=1 <&3
        ";

    /// Returns the error of a dump by a CRIU that runs this shell script.
    fn dump(script: &str, before: Step) -> CriuError {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("criu");
        // Never open in this process, which could not execute it while another test forks.
        let write = "printf '#!/bin/sh\\n%s' \"$1\" > \"$0\" && chmod 755 \"$0\"";
        let status =
            Command::new("sh").args(["-c", write]).arg(&program).arg(script).status().unwrap();
        assert!(status.success());
        let (mut before, brief) = (Some(before), Duration::from_secs(2));
        let mut begin = |_| before.take().unwrap();
        let at = dir.path();
        CriuProgram::new(program)
            .dump_process(i32::MAX, None, at, at, AfterDump::Continue, brief, &mut begin)
            .unwrap_err()
    }

    #[test]
    fn a_criu_that_fails_in_the_task_may_have_damaged_it() {
        for rest in ["exit 3", "kill -9 $$", "printf nonsense >&3", "exec sleep 60"] {
            let error = dump(&format!("{BEGIN}{rest}"), Ok(()));
            assert!(error.may_have_damaged(), "{rest}: {error:?}");
        }
    }

    #[test]
    fn a_criu_that_says_so_or_never_began_has_not() {
        let refused = dump(&format!("{BEGIN}printf '\\010\\001\\020\\000' >&3"), Ok(()));
        assert!(matches!(refused, CriuError::Refused { .. }), "{refused:?}");
        let silent = dump("dd bs=4096 count=1 <&3", Ok(()));
        assert!(matches!(silent, CriuError::Silent { .. }), "{silent:?}");
        let forbidden = dump(&format!("{BEGIN}exit 3"), Err("not now".into()));
        assert!(matches!(forbidden, CriuError::Silent { .. }), "{forbidden:?}");
        assert!([refused, silent, forbidden].iter().all(|error| !error.may_have_damaged()));
    }
}
