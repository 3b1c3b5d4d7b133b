//! Parallel jobs: their ranks are in control groups of their own, and are moved with CRIU.

use std::path::PathBuf;

use dormouse_tasks::{
    progress::{self, ProgressReader},
    result::TaskResult,
};
use dormouse_worker::{
    cgroup::{TierSlot, VmGroups},
    criu::AfterDump,
    process::{ChildProcess, ProcessEnd, ask_to_stop, await_stop, rank_pids, resume_process},
    store::SavedProgress,
};

use crate::worker::{SOON, Worker, is_emulated, name, wait_for};

/// Arguments of a job of two ranks, which use .9 and .5 of their processors and do not end before they are released.
const JOB: [&str; 7] = ["parallel", "--usage", ".9,.5", "--phases", "200", "--memory", "6MB"];

struct Job {
    seconds: u32,
    process: ChildProcess,
    page: PathBuf,
    result: PathBuf,
}

impl Job {
    /// Starts a job that takes this many seconds.
    fn start_held(worker: &Worker, vm: &VmGroups, task: &str, seconds: u32) -> Self {
        let directory = worker.workspace.create_task(&name(task)).unwrap();
        let (page, result) = (directory.join("progress"), directory.join("result.json"));
        progress::create_held(&page).unwrap();
        let program =
            worker.program(&name(task), &JOB).arg("--cpu-time").arg(format!("{seconds}s"));
        let program = program.arg("--progress").arg(&page).arg("--result").arg(&result);
        let process = program.start_task(&vm.slot_groups(0, TierSlot::A).unwrap(), SOON).unwrap();
        Self { seconds, process, page, result }
    }

    fn read<T>(&self, read: impl FnOnce(&ProgressReader) -> T) -> T {
        read(&ProgressReader::open(&self.page).unwrap())
    }

    /// Puts every rank on a vCPU of its own in `vm`; returns their process ids.
    fn place(&self, vm: &VmGroups, slot: TierSlot) -> Vec<i32> {
        let pids = wait_for("both ranks", || {
            let inside = self.read(|page| page.ranks().unwrap());
            let pids = rank_pids(self.process.pid(), &inside).unwrap();
            if pids.len() == 2 { Ok(pids) } else { Err(format!("{inside:?} {pids:?}")) }
        });
        for (vcpu, pid) in (0..).zip(&pids) {
            vm.attach_process(vcpu, slot, *pid).unwrap();
        }
        pids
    }

    fn await_ppm(&self, ppm: u64) {
        wait_for("progress", || match self.read(|page| page.read().unwrap()) {
            progress if progress.ppm >= ppm => Ok(()),
            progress => Err(format!("{progress:?}")),
        });
    }

    fn finish(&self, process: &ChildProcess) -> TaskResult {
        assert_eq!(process.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(0)));
        let result = TaskResult::read(&self.result).unwrap();
        assert_eq!((result.verified, result.repetitions), (Some(true), 200), "{result:?}");
        for (seconds, usage) in result.rank_cpu_seconds.iter().zip([0.9, 0.5]) {
            let wanted = f64::from(self.seconds) * usage;
            assert!((seconds - wanted).abs() < 0.1 * wanted, "{result:?}");
        }
        result
    }
}

pub(crate) fn ranks_have_processors() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(2);
    let job = Job::start_held(&worker, &vm, "t", 2);
    let pids = job.place(&vm, TierSlot::A);
    // The parent and its ranks, none of which has worked.
    assert_eq!(vm.list_pids().unwrap().len(), 3);
    assert!(vm.list_pids().unwrap().is_superset(&pids.iter().copied().collect()));
    assert_eq!(job.read(|page| page.read().unwrap()).units, 0);
    let before = [0, 1].map(|vcpu| vm.slot_cpu_ns(vcpu, TierSlot::A).unwrap());
    progress::let_go(&job.page).unwrap();
    let result = job.finish(&job.process);
    // What the kernel charged to a rank's processor is what the rank says it used, and a
    // little for what is not work: a fifth of slack, and half where the machine is emulated.
    let most = if is_emulated() { 1.5 } else { 1.2 };
    for (vcpu, seconds) in (0..).zip(&result.rank_cpu_seconds) {
        let charged = vm.slot_cpu_ns(vcpu, TierSlot::A).unwrap() - before[vcpu as usize];
        let charged = charged as f64 / 1e9;
        assert!((0.99 * seconds..most * seconds).contains(&charged), "{charged}: {result:?}");
    }
    assert!(vm.list_pids().unwrap().is_empty());
}

/// Stops the ranks, so that their job does not end before CRIU comes, however long that takes.
fn stop(ranks: &[i32]) {
    ranks.iter().for_each(|rank| ask_to_stop(*rank).unwrap());
    ranks.iter().for_each(|rank| await_stop(*rank, SOON).unwrap());
}

fn go_on(ranks: &[i32]) {
    ranks.iter().for_each(|rank| resume_process(*rank).unwrap());
}

pub(crate) fn a_parallel_job_moves() {
    let (mut worker, _directory) = Worker::temporary();
    let (one, two) = (worker.vm(2), worker.vm(2));
    let job = Job::start_held(&worker, &one, "t", 10);
    let mut ranks = job.place(&one, TierSlot::A);
    progress::let_go(&job.page).unwrap();
    job.await_ppm(150_000);
    let checkpointer = worker.checkpointer();
    let take = |process: &ChildProcess, vm: &VmGroups, slot, after| {
        checkpointer
            .take_tree(
                &name("t"),
                process.pid(),
                (vm, &[(0, slot)]),
                after,
                SOON,
                SavedProgress::default,
            )
            .unwrap();
    };
    // It goes on after a dump that leaves it there …
    stop(&ranks);
    take(&job.process, &one, TierSlot::A, AfterDump::Continue);
    go_on(&ranks);
    job.await_ppm(300_000);
    // … and elsewhere after one that does not; twice, since what is restored is dumped again.
    let mut process = None;
    let moves = [(450_000, &one, TierSlot::A, &two), (600_000, &two, TierSlot::B, &one)];
    for (ppm, from, slot, to) in moves {
        stop(&ranks);
        take(process.as_ref().unwrap_or(&job.process), from, slot, AfterDump::Kill);
        let ended = process.as_ref().unwrap_or(&job.process).wait_end(SOON).unwrap();
        assert_eq!(ended, Some(ProcessEnd::Killed(9)));
        assert!(from.list_pids().unwrap().is_empty(), "its ranks ended with it");
        let restored = checkpointer.restore_task(&name("t"), to, 0, TierSlot::B, SOON).unwrap();
        let (page, result) = (job.page.clone(), job.result.clone());
        let job = Job { process: restored.task, page, result, ..job };
        ranks = job.place(to, TierSlot::B);
        go_on(&ranks);
        job.await_ppm(ppm);
        process = Some(job.process);
    }
    job.finish(&process.unwrap());
}
