//! Checkpoints of running tasks: CRIU, the store and the task's files put together.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use dormouse_tasks::supervisor;
use tracing::debug_span;

use crate::{
    SPANS,
    cgroup::{self, Slot, Vm},
    criu::{
        self, AfterDump, Criu, DumpMoment, Keepsakes, RestoreMoment, Step, Version,
        images::{self, ImageRules},
    },
    jail::{Occupant, inside},
    process::{self, Inmate, Task},
    store::{self, Checkpoint, Damaged, OpenFile, Progress, Store},
    workspace::{self, TaskName, UserLeases, Workspace},
};

mod error;

pub use error::{Error, Result};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What is done with a restored task before its first instruction, or why it must not run: see [`Criu::restore`].
pub type BeforeRunning<'a> = dyn FnMut(RestoreMoment) -> Step + Send + 'a;

/// What is done just before a task is stopped for its checkpoint, or why it must not be.
pub type Begin<'a> = dyn FnMut() -> Step + 'a;

/// What is done once a task stands still for its checkpoint, and how much CPU time it has had.
pub type OnceStopped<'a> = dyn FnMut(u64) -> Step + 'a;

/// Has the tasks stand still, and calls what lifts their quotas when the dump begins.
type Halt<'a> = dyn FnMut(DumpMoment, &mut dyn FnMut() -> cgroup::Result<()>) -> Step + 'a;

/// A checkpoint taken.
#[derive(Debug)]
pub struct Taken {
    /// The checkpoint, complete.
    pub checkpoint: Checkpoint,
    /// How long it took, all in all.
    pub took: Duration,
}

/// A checkpoint taken of a task of one process, which stood still for it.
#[derive(Debug)]
pub struct Snapped {
    /// The checkpoint, complete.
    pub checkpoint: Checkpoint,
    /// Since when the task stands still.
    pub stopped_at: Instant,
    /// CPU time that CRIU's code in the task used, which the task's clock counts too.
    pub foreign_ns: u64,
    /// How long it took, all in all.
    pub took: Duration,
}

/// A task restored.
#[derive(Debug)]
pub struct Restored {
    /// The process, running.
    pub task: Task,
    /// What it was restored from.
    pub checkpoint: Checkpoint,
    /// Newer checkpoints that could not be used, newest first.
    pub damaged: Vec<Damaged>,
    /// How long it took, all in all.
    pub took: Duration,
}

/// The kind of program that is a job: its worker itself puts its processes on cores.
const JOB: &str = "parallel";
/// How often a task is dumped of which a process or thread has just ended when CRIU comes to it.
const TRIES: u32 = 40;
/// What CRIU copies at least, in bytes per second: a disk that is slow and shared does more.
const SLOWEST: u64 = 16 << 20;

/// How long CRIU may take for so much memory, whose task must not be taken for lost meanwhile.
fn copying(bytes: u64) -> Duration {
    Duration::from_micros(bytes.saturating_mul(1_000_000) / SLOWEST)
}

/// How long a restore waits for the user of its checkpoint, whom another task has that is about to end.
const USER_WAIT: Duration = Duration::from_secs(5);

/// Takes and restores checkpoints. Calls for different tasks may run at the same time.
///
/// Their deadlines are those of tasks without memory: CRIU has longer the more there is to copy.
#[derive(Debug)]
pub struct Checkpointer {
    criu: Criu,
    version: Version,
    store: Store,
    tasks: PathBuf,
    /// Who lends users to tasks, where tasks have users of their own.
    users: Option<Arc<UserLeases>>,
    /// How much longer CRIU takes than it does, as an experiment asks for: microseconds.
    slower_us: Arc<AtomicU64>,
}

/// Has CRIU take longer, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct SlowedDown {
    slower_us: Arc<AtomicU64>,
    by_us: u64,
}

impl Drop for SlowedDown {
    fn drop(&mut self) {
        self.slower_us.fetch_sub(self.by_us, Ordering::Relaxed);
    }
}

impl Checkpointer {
    /// With this CRIU, whose version is known from its probe, for the tasks of this workspace.
    #[must_use]
    pub fn new(criu: Criu, version: Version, store: Store, workspace: &Workspace) -> Self {
        let slower_us = Arc::default();
        let (tasks, users) = (workspace.tasks(), workspace.users().cloned());
        Self { criu, version, store, tasks, users, slower_us }
    }

    /// Has CRIU take this much longer for each dump and restore, while the task stands still, until what
    /// this returns is dropped.
    pub fn slow_down(&self, by: Duration) -> SlowedDown {
        // Ten minutes: all that waits for CRIU has given up long before.
        let by_us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX).min(600_000_000);
        self.slower_us.fetch_add(by_us, Ordering::Relaxed);
        SlowedDown { slower_us: Arc::clone(&self.slower_us), by_us }
    }

    /// Takes as much longer as an experiment has asked for.
    fn take_longer(&self) {
        let slower_us = self.slower_us.load(Ordering::Relaxed);
        if slower_us > 0 {
            thread::sleep(Duration::from_micros(slower_us));
        }
    }

    /// The store of the checkpoints.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// [`Checkpointer::take_with`] nothing to be done before the task is stopped.
    ///
    /// # Errors
    /// See there.
    #[expect(clippy::too_many_arguments, reason = "each says one thing about the checkpoint")]
    pub fn take(
        &self,
        name: &TaskName,
        pid: i32,
        place: (&Vm, u32, Slot),
        after: AfterDump,
        deadline: Duration,
        stopped: &mut OnceStopped<'_>,
        progress: impl FnOnce() -> Progress,
    ) -> Result<Snapped> {
        self.take_with(name, pid, place, after, deadline, (&mut || Ok(()), stopped), progress)
    }

    /// Takes a checkpoint of the task `name`, which is the process `pid` in `slot` of vCPU `vcpu`
    /// of `vm`.
    ///
    /// A task of one process stands still from just before CRIU comes to it, and its slot's quota is lifted from
    /// then on: it does nothing of its own without. It stands still in its images, too, and where
    /// it isn't killed also when this returns ([`crate::process::resume`]). A program of the user's own notices
    /// nothing: no signal is sent to any of it, and CRIU finds it as it runs, with what its quota keeps it from until
    /// CRIU has stopped it. It runs in its images, and where it isn't killed its slot is held when this returns
    /// ([`Vm::let_go`]). `begin` is called just before it is stopped: if it fails, nothing has been done to
    /// it. `stopped` is called once it stands still, and `progress` is asked when its memory is in the images. The VM must
    /// not be frozen from `begin` on.
    ///
    /// # Errors
    /// Nothing of the checkpoint is left then; the task may stand still, a program's slot is not held, and it must
    /// not go on where it may be damaged ([`Error::may_have_damaged`]).
    #[expect(clippy::too_many_arguments, reason = "each says one thing about the checkpoint")]
    pub fn take_with(
        &self,
        name: &TaskName,
        pid: i32,
        (vm, vcpu, slot): (&Vm, u32, Slot),
        after: AfterDump,
        deadline: Duration,
        (begin, stopped): (&mut Begin<'_>, &mut OnceStopped<'_>),
        progress: impl FnOnce() -> Progress,
    ) -> Result<Snapped> {
        let mut before = None;
        // A program of the user's own is all that is in its slot.
        let is_tree = kind_of(pid) == supervisor::KIND;
        let counted = || match is_tree {
            true => Ok::<_, BoxError>(vm.slot_cpu_ns(vcpu, slot)?),
            false => Ok(process::cpu_ns(pid)?),
        };
        let mut stands = || {
            let (at, ns) = (Instant::now(), counted()?);
            before = Some((at, ns));
            stopped(ns)
        };
        let mut halt = |moment, lift: &mut dyn FnMut() -> cgroup::Result<()>| {
            match (moment, is_tree) {
                (DumpMoment::Begins, false) => {
                    begin()?;
                    process::ask_to_stop(pid)?;
                    lift()?;
                    process::await_stop(pid, deadline)?;
                    stands()?;
                }
                (DumpMoment::Begins, true) => {
                    begin()?;
                    lift()?;
                    // CRIU could not stop it while it is held.
                    vm.let_go(vcpu, slot)?;
                }
                (DumpMoment::Seized, true) => stands()?,
                (DumpMoment::Dumped, true) => vm.hold(vcpu, slot)?,
                (DumpMoment::Seized | DumpMoment::Dumped, false) => {}
            }
            Ok(())
        };
        let seats = [(vcpu, slot)];
        let taken = self.dump(name, pid, (vm, &seats), after, deadline, &mut halt, progress);
        if is_tree && (after == AfterDump::Kill || taken.is_err()) {
            // What was killed dies only now, where groups are of version 1.
            let _ = vm.let_go(vcpu, slot);
        }
        let taken = taken?;
        let (stopped_at, ns) = before.unwrap_or((Instant::now(), 0));
        // One that was killed can't be asked any more, and goes on nowhere where it would matter.
        let foreign_ns = counted().unwrap_or(ns).saturating_sub(ns);
        let Taken { checkpoint, took } = taken;
        Ok(Snapped { checkpoint, stopped_at, foreign_ns, took })
    }

    /// Takes a checkpoint of the task `name`, which is the process `pid` and its children, in
    /// `seats`, slots of vCPUs of `vm`.
    ///
    /// `progress` is asked while the task stands still. The slots' quotas are lifted meanwhile.
    /// The VM must not be frozen.
    ///
    /// # Errors
    /// Nothing of the checkpoint is left then. For what it means for the task see
    /// [`Error::may_have_damaged`].
    pub fn take_tree(
        &self,
        name: &TaskName,
        pid: i32,
        seats: (&Vm, &[(u32, Slot)]),
        after: AfterDump,
        deadline: Duration,
        progress: impl FnOnce() -> Progress,
    ) -> Result<Taken> {
        let (vm, slots) = seats;
        let mut halt = |moment, lift: &mut dyn FnMut() -> cgroup::Result<()>| {
            match moment {
                DumpMoment::Begins => lift()?,
                DumpMoment::Seized => {}
                // The first to run on could end the last before CRIU has let go of it.
                DumpMoment::Dumped => {
                    slots.iter().try_for_each(|(vcpu, slot)| vm.hold(*vcpu, *slot))?;
                }
            }
            Ok(())
        };
        let taken = self.dump(name, pid, seats, after, deadline, &mut halt, progress);
        let let_go: cgroup::Result<Vec<_>> =
            slots.iter().map(|(vcpu, slot)| vm.let_go(*vcpu, *slot)).collect();
        let_go.map_err(|e| Error::Cgroup { task: name.clone(), source: Box::new(e) })?;
        taken
    }

    #[expect(clippy::too_many_arguments, reason = "each says one thing about the checkpoint")]
    fn dump(
        &self,
        name: &TaskName,
        pid: i32,
        (vm, seats): (&Vm, &[(u32, Slot)]),
        after: AfterDump,
        deadline: Duration,
        halt: &mut Halt<'_>,
        progress: impl FnOnce() -> Progress,
    ) -> Result<Taken> {
        let mut progress = Some(progress);
        let mut tries = 1;
        loop {
            match self.dump_once(name, pid, (vm, seats), after, deadline, halt, &mut progress) {
                // A program of many short processes is one that others follow.
                Err(Error::Criu { source, .. }) if source.may_pass() && tries < TRIES => tries += 1,
                done => return done,
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "each says one thing about the checkpoint")]
    fn dump_once(
        &self,
        name: &TaskName,
        pid: i32,
        (vm, seats): (&Vm, &[(u32, Slot)]),
        after: AfterDump,
        deadline: Duration,
        halt: &mut Halt<'_>,
        progress: &mut Option<impl FnOnce() -> Progress>,
    ) -> Result<Taken> {
        let _span = debug_span!(target: SPANS, "dump", task = %name).entered();
        let started = Instant::now();
        let memory = process::resident_bytes(pid)
            .map_err(|source| Error::Process { task: name.clone(), source })?;
        let deadline = deadline + copying(memory);
        let user = self.user(name, vm)?;
        let kind = kind_of(pid);
        let stored = |source| Error::Store { task: name.clone(), source };
        // Only once CRIU is at the task: however late CRIU is, the task does no work without quota.
        let mut lifted = Vec::new();
        let draft = self.store.begin(name).map_err(stored)?;
        let images = draft.images();
        let mut noted = None;
        let (dumped, known) = following(&images, || {
            let mut lift = || {
                for &(vcpu, slot) in seats {
                    lifted.push(vm.lift_quota(vcpu, slot)?);
                }
                Ok(())
            };
            let mut at = |moment| {
                if moment == DumpMoment::Dumped {
                    self.take_longer();
                    let files = draft.save_files(&self.tasks.join(name.path()))?;
                    let progress = progress.take().map(|ask| ask()).unwrap_or_default();
                    let keepsakes = match kind == JOB {
                        true => Keepsakes::default(),
                        false => Keepsakes::of_task(pid, &processes(vm, seats)?),
                    };
                    noted = Some((progress, (files, open_files(pid)), Some(keepsakes)));
                }
                halt(moment, &mut lift)
            };
            let work = draft.directory();
            let inmate = match vm.cell() {
                Some(cell) => {
                    let view = cell.view_of(pid).map_err(|source| criu::Error::Start {
                        program: self.criu.program().to_owned(),
                        source,
                    })?;
                    Some(Inmate { cell, user, view })
                }
                None => None,
            };
            self.criu.dump(pid, inmate, &images, work, after, deadline, &mut at)
        });
        drop(lifted);
        dumped.map_err(|source| Error::Criu { task: name.clone(), source: Box::new(source) })?;
        let (progress, files, keepsakes) = noted.unwrap_or_default();
        let checkpoint = draft
            .keeping(keepsakes)
            .commit(kind, progress, files, self.version.to_string(), &known)
            .map_err(stored)?;
        // It exists, whatever becomes of older ones: the next one tries again.
        if let Err(error) = self.store.prune_aside(name) {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, task = %name, "older checkpoints are left");
        }
        Ok(Taken { checkpoint, took: started.elapsed() })
    }

    /// [`Checkpointer::restore_with`] nothing to be done before the task runs.
    ///
    /// # Errors
    /// See there.
    pub fn restore(
        &self,
        name: &TaskName,
        vm: &Vm,
        vcpu: u32,
        slot: Slot,
        deadline: Duration,
    ) -> Result<Restored> {
        self.restore_with(name, vm, vcpu, slot, deadline, &mut |_| Ok(()))
    }

    /// Restores the task `name` from its newest undamaged checkpoint into `slot` of vCPU `vcpu`
    /// of `vm`, with its files.
    ///
    /// Everything but the memory pages is verified before CRIU sees it; the pages are verified
    /// meanwhile, and the task runs only if they are right. `before_running` is called just
    /// before that, in the thread whose child the task is, and again when what CRIU loses of it has been put back.
    ///
    /// # Errors
    /// Where there is no undamaged checkpoint, CRIU cannot restore one, or files cannot be
    /// written. Nothing of the task is left running then.
    pub fn restore_with(
        &self,
        name: &TaskName,
        vm: &Vm,
        vcpu: u32,
        slot: Slot,
        deadline: Duration,
        before_running: &mut BeforeRunning<'_>,
    ) -> Result<Restored> {
        let started = Instant::now();
        let mut damaged = Vec::new();
        let stored = |source| Error::Store { task: name.clone(), source };
        let mut sequences = self.store.complete(name).map_err(stored)?;
        while let Some(sequence) = sequences.pop() {
            let loaded = self.store.load(name, sequence).and_then(|checkpoint| {
                checkpoint.verify_all_but_pages()?;
                Ok(checkpoint)
            });
            let checkpoint = match loaded {
                Ok(checkpoint) => checkpoint,
                Err(error) => {
                    damaged.push(Damaged { sequence, error });
                    continue;
                }
            };
            let directory = self.tasks.join(name.path());
            self.have_user_of(&checkpoint, name)?;
            checkpoint.restore_files(&directory).map_err(stored)?;
            if let Some(cell) = vm.cell() {
                let rules = ImageRules::of(cell, self.user(name, vm)?);
                let checked = rules.and_then(|rules| rules.check(&checkpoint.images()));
                checked.map_err(|source| Error::Criu {
                    task: name.clone(),
                    source: Box::new(source),
                })?;
            }
            let deadline = deadline + copying(checkpoint.manifest().bytes());
            let occupant = Occupant { user: self.user(name, vm)?, directory: directory.clone() };
            let place = (vm, vcpu, slot, &occupant);
            match self.restore_verifying(&checkpoint, place, deadline, before_running) {
                (_, Err(error)) => damaged.push(Damaged { sequence, error }),
                (Ok(task), Ok(())) => {
                    return Ok(Restored { task, checkpoint, damaged, took: started.elapsed() });
                }
                (Err(source), Ok(())) => {
                    return Err(Error::Criu { task: name.clone(), source: Box::new(source) });
                }
            }
        }
        Err(Error::NoCheckpoint { task: name.clone(), damaged })
    }

    /// Gives a task the user that its checkpoint has, which no restore can change.
    fn have_user_of(&self, checkpoint: &Checkpoint, name: &TaskName) -> Result<()> {
        let Some(users) = &self.users else { return Ok(()) };
        // Of images that can't be read it is said later why they are refused.
        let Some(user) = images::user_of(&checkpoint.images()) else { return Ok(()) };
        let lent = users.lend_again(name, user, USER_WAIT);
        lent.map_err(|source| workspace::Error::NoUser { task: name.clone(), source })
            .and_then(|lent| match lent {
                Some(user) => workspace::give_to(&self.tasks.join(name.path()), user),
                None => Ok(()),
            })
            .map_err(|source| Error::UserTaken { task: name.clone(), source })
    }

    /// The user of a task in a VM whose tasks have users of their own: the owner of its directory.
    fn user(&self, name: &TaskName, vm: &Vm) -> Result<Option<u32>> {
        let directory = self.tasks.join(name.path());
        let Some(cell) = vm.cell() else { return Ok(None) };
        cell.user(&directory).map_err(|source| Error::User { task: name.clone(), source })
    }

    /// CRIU and the verification of the pages side by side.
    fn restore_verifying(
        &self,
        checkpoint: &Checkpoint,
        (vm, vcpu, slot, occupant): (&Vm, u32, Slot, &Occupant),
        deadline: Duration,
        before_running: &mut BeforeRunning<'_>,
    ) -> (criu::Result<Task>, store::Result<()>) {
        let _span = debug_span!(target: SPANS, "restore", %vcpu).entered();
        thread::scope(|scope| {
            let mut verifier = Some(scope.spawn(|| checkpoint.verify_pages()));
            let mut verified = None;
            let mut join = |verified: &mut Option<store::Result<()>>| {
                if let Some(verifier) = verifier.take() {
                    *verified = Some(verifier.join().unwrap_or_else(|_| {
                        Err(store::Error::Stream { what: "its verification panicked".to_owned() })
                    }));
                }
                matches!(verified, Some(Ok(())))
            };
            let restored = self.criu.restore(
                &checkpoint.images(),
                checkpoint.directory(),
                vm,
                vcpu,
                slot,
                occupant,
                deadline,
                &mut |moment| {
                    match moment {
                        RestoreMoment::Made => {
                            if !join(&mut verified) {
                                return Err("its memory pages are damaged".into());
                            }
                            self.take_longer();
                        }
                        RestoreMoment::Runs => put_back(checkpoint, vm, (vcpu, slot)),
                    }
                    before_running(moment)
                },
            );
            // CRIU may have failed before it came to ask.
            join(&mut verified);
            (restored, verified.unwrap_or(Ok(())))
        })
    }
}

/// The processes in these slots.
fn processes(vm: &Vm, seats: &[(u32, Slot)]) -> cgroup::Result<BTreeSet<i32>> {
    let slots = seats.iter().map(|(vcpu, slot)| vm.slot_pids(*vcpu, *slot));
    Ok(slots.collect::<cgroup::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Puts back what CRIU has lost of a restored task that has not run yet. It runs all the same where that can't be.
fn put_back(checkpoint: &Checkpoint, vm: &Vm, (vcpu, slot): (u32, Slot)) {
    let Some(keepsakes) = &checkpoint.manifest().keepsakes else { return };
    let lost = match vm.slot_pids(vcpu, slot) {
        Ok(processes) => keepsakes.put_back(&processes),
        Err(error) => vec![error.to_string()],
    };
    for what in lost {
        tracing::warn!(what, task = %checkpoint.manifest().task, "a restored task is without this");
    }
}

/// Does `work`, which has CRIU write `images`, and reads their pages meanwhile.
fn following<T>(images: &Path, work: impl FnOnce() -> T) -> (T, BTreeMap<String, (u64, String)>) {
    /// Ends the follower on every way out: it would be waited for.
    struct Done<'a>(&'a AtomicBool, &'a Thread);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
            self.1.unpark();
        }
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let follower = scope.spawn(|| store::follow_pages(images, &done));
        let worked = {
            let _done = Done(&done, follower.thread());
            work()
        };
        // Its digests are a saving only.
        (worked, follower.join().unwrap_or_default())
    })
}

/// The kind of program that a process is: its first argument. A task that lies about it has a checkpoint
/// that is not taken for its own.
fn kind_of(pid: i32) -> String {
    const MAX_KIND_CHARS: usize = 64;
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let kind = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
    String::from_utf8_lossy(kind).chars().take(MAX_KIND_CHARS).collect()
}

/// The regular files a process has open, with their sizes.
fn open_files(pid: i32) -> Vec<OpenFile> {
    let mut found = BTreeMap::new();
    let directory = PathBuf::from(format!("/proc/{pid}/fd"));
    for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
        let (Ok(path), Ok(metadata)) = (fs::read_link(entry.path()), fs::metadata(entry.path()))
        else {
            continue;
        };
        // What a task's view has for itself is made anew, or is in its directory.
        let Some(path) = inside(&path) else { continue };
        if metadata.is_file() && path.is_absolute() && path.exists() {
            found.insert(path, metadata.len());
        }
    }
    found.into_iter().map(|(path, size)| OpenFile { path, size }).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::{panic, sync::mpsc};

    #[test]
    fn a_panic_is_heard_of_and_keeps_nobody_waiting() {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let images = tempfile::tempdir().unwrap();
            let end = panic::catch_unwind(|| following(images.path(), || panic!("a bug")));
            tell.send(end.is_err()).unwrap();
        });
        assert!(told.recv_timeout(Duration::from_secs(10)).unwrap());
    }
}
