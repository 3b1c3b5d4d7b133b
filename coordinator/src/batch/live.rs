//! A live run of parallel jobs from its particulars to its outcome.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dormouse_batch::{Config, Submission, UsageInformation};
use dormouse_log::LogWriter;
use dormouse_proto::{Secret, v1};
use dormouse_units::{Ppm, Time};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::BatchFacts;
use super::conductor::{BatchArgs, BatchConductor, BatchState};
use crate::live::new_run_name;
use crate::secret;
use crate::stage::{Particulars, Stage};
use crate::{CoordinatorError, Progress, Speedup};

/// The particulars of a live run of parallel jobs.
#[derive(Debug)]
pub struct BatchLive {
    /// The scheduler and the machine's processors.
    pub config: Config,
    /// What the scheduler knows of CPU usage.
    pub information: UsageInformation,
    /// The jobs, in order of submission.
    pub submissions: Vec<Submission>,
    /// What people call it.
    pub experiment: String,
    /// The first line of the event log, a JSON object; the key `live` is added to it.
    pub header: Value,
    /// Where to listen; port 0 for any free one.
    pub listen: SocketAddr,
    /// How much faster than real time it runs.
    pub speedup: Speedup,
    /// Fraction of the host's cores kept for the agent and CRIU.
    pub reserve: Ppm,
    /// How long a job's processes compute between two barriers, real time.
    pub phase: Duration,
    /// Its scheduler migrates jobs: no worker is taken without CRIU.
    pub needs_criu: bool,
    /// The output folder; made if it isn't there.
    pub out: PathBuf,
    /// After how much silence the worker is lost, real time.
    pub lost_after: Duration,
    /// When to end the run at the latest, emulated time.
    pub limit: Time,
    /// How it goes, four times a second, and at the end.
    pub progress: Option<watch::Sender<Progress>>,
    /// Ends the run before its time.
    pub cancel: CancellationToken,
}

/// A run that listens, before its worker comes.
#[derive(Debug)]
pub struct BoundBatch {
    live: BatchLive,
    listener: TcpListener,
    address: SocketAddr,
    secret: Secret,
}

/// The outcome of a live run of parallel jobs.
#[derive(Clone, Debug)]
pub struct BatchConducted {
    /// What was measured.
    pub facts: BatchFacts,
    /// When it was over, emulated time.
    pub end: Time,
    /// Why it was ended with jobs left, if it was.
    pub cancelled: Option<String>,
    /// The event log.
    pub log: PathBuf,
}

/// What the conductor must know of a [`BatchLive`].
#[derive(Clone, Debug)]
pub(crate) struct BatchPlan {
    pub(crate) run: String,
    pub(crate) processors: u32,
    pub(crate) speedup: Speedup,
    pub(crate) reserve: Ppm,
    pub(crate) phase: Duration,
    pub(crate) needs_criu: bool,
    pub(crate) lost_after: Duration,
    pub(crate) limit: Time,
}

impl BatchPlan {
    /// The share of a host core that a processor is on a host with so many thousandths of cores.
    pub(crate) fn core(&self, millicores: u32) -> Ppm {
        let usable = self.reserve.rest().of(u64::from(millicores) * 1000);
        let share = usable / u64::from(self.processors.max(1));
        Ppm::new(u32::try_from(share).unwrap_or(u32::MAX).min(Ppm::ONE.get()))
    }

    /// The program of a job on processors that are each this share of a core: it takes its run
    /// time there, and its processes use what they should of them.
    pub(crate) fn program(&self, job: &Submission, core: Ppm) -> Vec<String> {
        let real = self.speedup.real(job.runtime.as_micros());
        let phases = phases_of(real, self.phase);
        let cpu_us = core.of(u64::try_from(real.as_micros()).unwrap_or(u64::MAX)).max(1);
        let decimal = |part: Ppm| format!("{:.6}", part.as_f64());
        let usage: Vec<_> = (0..job.processes as usize).map(|n| decimal(job.usage.of(n))).collect();
        let words = [
            "parallel".to_owned(),
            "--processes".to_owned(),
            job.processes.to_string(),
            "--phases".to_owned(),
            phases.to_string(),
            "--usage".to_owned(),
            usage.join(","),
            "--speed".to_owned(),
            decimal(core),
            "--seed".to_owned(),
            job.number.to_string(),
            "--cpu-time".to_owned(),
            format!("{cpu_us}us"),
        ];
        words.to_vec()
    }

    /// The same for the worker.
    pub(crate) fn plan(&self, job: &Submission) -> v1::JobPlan {
        let real = self.speedup.real(job.runtime.as_micros());
        v1::JobPlan {
            runtime_us: u64::try_from(real.as_micros()).unwrap_or(u64::MAX),
            phases: phases_of(real, self.phase),
            usage_ppm: (0..job.processes as usize).map(|n| job.usage.of(n).get()).collect(),
        }
    }
}

/// How many phases of about this length a job has that takes so long on processors of its own, in
/// real time: at least one.
#[must_use]
pub fn phases_of(runtime: Duration, phase: Duration) -> u32 {
    const MOST: u128 = 1_000_000;
    let phases = (runtime.as_nanos() / phase.as_nanos().max(1)).clamp(1, MOST);
    u32::try_from(phases).unwrap_or(1)
}

impl BatchLive {
    /// Checks the particulars, listens and makes the run's secret, so that the worker can be told
    /// where to dial and what to say.
    ///
    /// # Errors
    ///
    /// The particulars contradict each other, the address can't be listened on, or the secret can't
    /// be kept in the output folder.
    pub async fn bind(self) -> Result<BoundBatch, CoordinatorError> {
        self.check()?;
        let addr = self.listen;
        let listen = |source| CoordinatorError::Listen { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let secret = secret::of_run(&self.out, false)?;
        Ok(BoundBatch { live: self, listener, address, secret })
    }

    fn check(&self) -> Result<(), CoordinatorError> {
        let machine = self.config.processors;
        let unsorted = self.submissions.is_sorted_by_key(|job| job.submitted);
        let large = self.submissions.iter().find(|job| !(1..=machine).contains(&job.processes));
        let why = if let Some(job) = large {
            let (number, processes) = (job.number, job.processes);
            format!("job {number} wants {processes} processors; the machine has {machine}")
        } else if !unsorted {
            "the jobs are not in order of submission".to_owned()
        } else if self.reserve >= Ppm::ONE {
            "the reserve must leave something of the host: it must be below 1".to_owned()
        } else if self.lost_after < Duration::from_millis(100) {
            format!("a worker silent for {:?} can't be lost: 100 ms is the least", self.lost_after)
        } else if !self.header.is_object() {
            "the header of its log must be a JSON object".to_owned()
        } else {
            return Ok(());
        };
        Err(CoordinatorError::Invalid { why })
    }
}

impl BoundBatch {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The file with the secret that its worker must know: for its owner alone, and there until
    /// the run is over.
    #[must_use]
    pub fn secret_file(&self) -> PathBuf {
        secret::file(&self.live.out)
    }

    /// Conducts the run to its end. Dropping the future does not end it: cancel its token.
    ///
    /// # Errors
    ///
    /// The run broke: see [`CoordinatorError`]. Its worker has been told to clean up.
    pub async fn conduct(self) -> Result<BatchConducted, CoordinatorError> {
        let Self { live, listener, address, secret } = self;
        let log = live.out.join(dormouse_log::FILE);
        let (out, path) = (live.out.clone(), log.clone());
        let begun = tokio::task::spawn_blocking(move || {
            let output = |source| CoordinatorError::Output { path: out.clone(), source };
            std::fs::create_dir_all(&out).map_err(output)?;
            Ok::<_, CoordinatorError>(LogWriter::create(&path)?)
        });
        let writer = begun.await.unwrap_or_else(|panic| {
            let (part, why) = ("coordinator, making the log,", panic.to_string());
            Err(CoordinatorError::Part { part, why })
        })?;
        let stage = Stage::set(&live.out, writer, None).await?;
        let plan = BatchPlan {
            run: new_run_name(&live.experiment),
            processors: live.config.processors,
            speedup: live.speedup,
            reserve: live.reserve,
            phase: live.phase,
            needs_criu: live.needs_criu,
            lost_after: live.lost_after,
            limit: live.limit,
        };
        let particulars = Particulars {
            run: plan.run.clone(),
            experiment: live.experiment,
            entries: u32::try_from(live.submissions.len()).unwrap_or(u32::MAX),
            lost_after: live.lost_after,
            listener,
            address,
            secret,
            cancel: live.cancel,
            pause: CancellationToken::new(),
        };
        let args = BatchArgs {
            plan,
            run: super::run::BatchRun::new(live.config, live.information, live.submissions),
            header: live.header,
            journal: stage.journal.clone(),
            warden: stage.warden.get_cell(),
            progress: live.progress,
            failed: stage.failing.clone(),
        };
        let last: BatchState = stage.play(BatchConductor, args, particulars).await?;
        let (facts, end, cancelled) = last.into_outcome();
        Ok(BatchConducted { facts, end, cancelled, log })
    }
}

#[cfg(test)]
mod tests {
    use dormouse_batch::Usage;
    use dormouse_units::Span;

    use super::*;

    #[test]
    fn a_job_is_given_what_takes_its_run_time_on_its_processors() {
        let plan = BatchPlan {
            run: String::new(),
            processors: 16,
            speedup: Speedup::from_f64(30.0).expect("sensible"),
            reserve: Ppm::new(100_000),
            phase: Duration::from_millis(500),
            needs_criu: true,
            lost_after: Duration::from_secs(4),
            limit: Time::ZERO,
        };
        let core = plan.core(2_000);
        assert_eq!(core, Ppm::new(112_500));
        let job = Submission {
            number: 7,
            submitted: Time::ZERO,
            processes: 2,
            runtime: Span::from_secs(300),
            estimate: Span::from_secs(300),
            usage: Usage::each(vec![Ppm::new(400_000), Ppm::new(900_000)]),
        };
        let program = plan.program(&job, core).join(" ");
        // 300 s at speed-up 30 are 10 s, of which a processor does 1.125 s on a core.
        let expected = "parallel --processes 2 --phases 20 --usage 0.900000,0.400000 \
                        --speed 0.112500 --seed 7 --cpu-time 1125000us";
        assert_eq!(program, expected);
        let usage_ppm = vec![900_000, 400_000];
        let planned = v1::JobPlan { runtime_us: 10_000_000, phases: 20, usage_ppm };
        assert_eq!(plan.plan(&job), planned);
        // No processor is more than a core.
        assert_eq!(BatchPlan { processors: 1, ..plan }.core(4_000), Ppm::ONE);
    }
}
