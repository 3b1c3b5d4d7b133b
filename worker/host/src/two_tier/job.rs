//! A parallel job on this host's processors, in the foreground or the background.

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dormouse_tasks::progress::{self, Progress, ProgressReader};
use dormouse_tasks::result::TaskResult;
use dormouse_worker::cgroup::TierSlot;
use dormouse_worker::process::{ChildProcess, ProcessEnd, ProgramCommand, rank_pids};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::TwoTierError;
use super::host::{SOON, TwoTierHost};

/// Time limit of a measured job, many times what it should take.
const LONG: Duration = Duration::from_secs(60);

/// Memory of each process in bytes: more than a core's own caches hold, so that a neighbour costs
/// as much as with real programs.
const MEMORY: u64 = 4 << 20;

/// Parameters of a job to start.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredJobSpec {
    pub(super) processes: u32,
    /// CPU usage of each of the job's processes when the job runs alone, as a fraction of a processor.
    pub(super) usage: f64,
    pub(super) phases: u32,
    /// Blocks of work per phase of a process at 100 % usage.
    pub(super) blocks: u64,
    pub(super) seed: u64,
}

/// A running job; dropping it ends it.
#[derive(Debug)]
pub(super) struct MeasuredJob {
    which: &'static str,
    process: ChildProcess,
    over: bool,
    page: PathBuf,
    reader: ProgressReader,
    result: PathBuf,
}

impl MeasuredJob {
    /// Starts the job with rank n on processor n, in the tier `slot`. The job computes only after [`Self::let_go`] or
    /// [`Self::set_going`].
    pub(super) fn start(
        host: &TwoTierHost,
        which: &'static str,
        slot: TierSlot,
        spec: &MeasuredJobSpec,
    ) -> Result<Self, TwoTierError> {
        let folder = host.folder().join(which);
        std::fs::create_dir_all(&folder).map_err(TwoTierError::io("make", &folder))?;
        let (page, result) = (folder.join("progress"), folder.join("result.json"));
        progress::create_held(&page)?;
        let reader = ProgressReader::open(&page)?;
        let number = |n: u64| n.to_string();
        let process = ProgramCommand::new(host.program(), &folder)
            .arg("parallel")
            .args(["--processes", &number(spec.processes.into())])
            .args(["--usage", &format!("{:.6}", spec.usage)])
            .args(["--phases", &number(spec.phases.into()), "--work", &number(spec.blocks)])
            .args(["--memory", &number(MEMORY)])
            .args(["--seed", &number(spec.seed), "--progress"])
            .arg(&page)
            .arg("--result")
            .arg(&result)
            .start_task(&host.vm().slot_groups(0, slot)?, SOON)?;
        let job = Self { which, process, over: false, page, reader, result };
        for (n, pid) in job.wait_for_ranks(spec.processes)?.into_iter().enumerate() {
            let vcpu = u32::try_from(n).unwrap_or(u32::MAX);
            host.vm().attach_process(vcpu, slot, pid)?;
            host.vm().bind_vcpu(vcpu, &host.core(n))?;
        }
        Ok(job)
    }

    /// Waits until all ranks of the job exist, and returns their process ids.
    fn wait_for_ranks(&self, processes: u32) -> Result<Vec<i32>, TwoTierError> {
        let begun = Instant::now();
        while begun.elapsed() < SOON {
            let pids = rank_pids(self.process.pid(), &self.reader.ranks()?)?;
            if pids.len() == processes as usize {
                return Ok(pids);
            }
            self.look_again()?;
        }
        Err(self.broken_job("has not started its processes".to_owned()))
    }

    /// Sleeps for a millisecond before the progress page is read again, as changes are not signalled; an error if the
    /// job has ended.
    fn look_again(&self) -> Result<(), TwoTierError> {
        let mut end = [PollFd::new(self.process.as_fd(), PollFlags::POLLIN)];
        match poll(&mut end, PollTimeout::from(1_u8)) {
            Ok(1..) => Err(self.broken_job("ended before its time".to_owned())),
            _ => Ok(()),
        }
    }

    /// Lets the job begin; it was held since its start.
    pub(super) fn let_go(&self) -> Result<(), TwoTierError> {
        Ok(progress::let_go(&self.page)?)
    }

    /// Lets the job begin, and waits until it makes progress.
    pub(super) fn set_going(&self) -> Result<(), TwoTierError> {
        self.let_go()?;
        let begun = Instant::now();
        while self.read_progress()?.units == 0 {
            if begun.elapsed() > SOON {
                return Err(self.broken_job("does not start to work".to_owned()));
            }
            self.look_again()?;
        }
        Ok(())
    }

    /// The progress of the job.
    pub(super) fn read_progress(&self) -> Result<Progress, TwoTierError> {
        Ok(self.reader.read()?)
    }

    /// Sleeps for this time, and checks that the job still runs afterwards.
    pub(super) fn work_for(&self, time: Duration) -> Result<(), TwoTierError> {
        match self.process.wait_end(time)? {
            None => Ok(()),
            Some(end) => Err(self.broken_job(describe_end(end))),
        }
    }

    /// Waits for the job's end.
    pub(super) fn wait_for_end(&mut self) -> Result<(), TwoTierError> {
        let ended = self.process.wait_end(LONG)?;
        self.over = ended.is_some();
        match ended {
            Some(ProcessEnd::Exited(0)) => Ok(()),
            Some(end) => Err(self.broken_job(describe_end(end))),
            None => Err(self.broken_job(format!("is not done after {} s", LONG.as_secs()))),
        }
    }

    /// Waits for the job's end and returns its result.
    pub(super) fn wait_for_result(mut self) -> Result<TaskResult, TwoTierError> {
        self.wait_for_end()?;
        Ok(TaskResult::read(&self.result)?)
    }

    fn broken_job(&self, how: String) -> TwoTierError {
        TwoTierError::Job { which: self.which, how }
    }
}

impl Drop for MeasuredJob {
    fn drop(&mut self) {
        if !self.over {
            // The ranks are in a PID namespace whose first process this is, so they end with it.
            let _ = self.process.kill_all();
            let _ = self.process.wait_end(SOON);
        }
    }
}

fn describe_end(end: ProcessEnd) -> String {
    match end {
        ProcessEnd::Exited(status) => format!("ended with status {status}"),
        ProcessEnd::Killed(signal) => format!("was killed by signal {signal}"),
    }
}
