//! One live run from its parameters to its outcome.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dormouse_analysis::LiveFacts;
use dormouse_cloud::SpotPlaces;
use dormouse_engine::Run;
use dormouse_identity::Role;
use dormouse_log::HeaderText;
use dormouse_model::{HostFault, MetadataSettings, Setup, Step, Submission, TenantWork, VmRequest};
use dormouse_policies::Policy;
use dormouse_tasks::own::TaskProgram;
use dormouse_units::{Ppm, Speedup, Time};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::CoordinatorError;
use crate::admission::RunDemand;
use crate::identity::{self, RunIdentity};
use crate::lifecycle::beginning::{StartingRun, begin_run};
use crate::lifecycle::service::RunParticulars;
use crate::lifecycle::stops::RunStops;
use crate::messages::api_calls::RunApi;
use crate::observers::remote::AddressFile;
use crate::plan::ConductorPlan;
use crate::status::progress::RunProgress;
use crate::status::vitals::CoordinatorVitals;
use crate::storage::image_key::ImageSecret;
use crate::system::listener::ConnectionListener;
use crate::system::world::CoordinatorWorld;

/// Time limit of an open run.
const NO_LIMIT: Time = Time::from_micros(1 << 62);

/// Parameters of a live run.
///
/// Use: [`LiveRunPlan::bind_run`] to listen, then [`BoundRun::conduct_run`]; or [`LiveRunPlan::conduct_run`] for
/// both.
#[derive(Debug)]
pub struct LiveRunPlan {
    /// Setup of the run.
    pub setup: Setup,
    /// Work of each tenant, and the policy that schedules it.
    pub policies: Vec<(TenantWork, Box<dyn Policy>)>,
    /// Parallel jobs in order of submission; those that follow others may stand anywhere. Empty if the setup has
    /// none.
    pub submissions: Vec<Submission>,
    /// VM requests of the provider's customers in order of time, if the setup has any.
    pub requests: Vec<(Time, VmRequest)>,
    /// True if jobs may be submitted during the run. The run then ends only once submission is closed, and has no time
    /// limit.
    pub open: bool,
    /// Time that a parallel job's processes compute between two barriers, in real time.
    pub phase: Duration,
    /// Name of the experiment.
    pub experiment: String,
    /// First line of the event log, a JSON object, to which the key `live` is added.
    pub header: HeaderText,
    /// Address to listen on; port 0 for any free port.
    pub listen: SocketAddr,
    /// Number of workers to wait for.
    pub workers: u32,
    /// Ratio of emulated to real time.
    pub speedup: Speedup,
    /// VMs that the scheduler may want at once.
    pub demand: RunDemand,
    /// Fraction of the hosts' cores kept free for agents and CRIU.
    pub reserve: Ppm,
    /// Share of a core per vCPU; `None`: the largest that fits.
    pub share: Option<Ppm>,
    /// Program of each task.
    pub programs: Vec<TaskProgram>,
    /// Files with which users' own programs begin, by digest (BLAKE3, in hexadecimal); a resumed run has them
    /// already.
    pub inputs: BTreeMap<String, PathBuf>,
    /// Settings of the VMs' metadata endpoints, if tasks run users' own programs.
    pub metadata: MetadataSettings,
    /// Fraction of all CPU time that may be spent after the end of all tasks on computing parts of them again on
    /// other hosts; zero: none.
    pub spot_checks: Ppm,
    /// Validity of a worker's certificate, in real time.
    pub certificates_valid: Duration,
    /// True if tasks are checkpointed; no worker without CRIU is accepted then.
    pub needs_criu: bool,
    /// True if a task is stopped at a checkpoint for as long as modelled.
    pub hold_checkpoints: bool,
    /// True if no processes are started, to measure dispatch.
    pub noop: bool,
    /// Output folder, which is created if need be.
    pub out: PathBuf,
    /// Silence after which a worker is lost, in real time.
    pub lost_after: Duration,
    /// Time for which a worker keeps its VMs and redials without a coordinator, in real time.
    pub hold: Duration,
    /// True if workers stay when the run is stopped, so that it can be resumed; otherwise they are told that the run is
    /// over.
    pub workers_stay: bool,
    /// Time within which a worker without tasks must answer a command, in real time: see [`crate::ANSWER_WITHIN`].
    pub answer_within: Duration,
    /// Time limit of the run, in emulated time.
    pub limit: Time,
    /// Faults to be injected at workers, in order of time.
    pub faults: Vec<HostFault>,
    /// Channels by which the caller follows the run.
    pub observer: RunObserver,
    /// Cancels the run.
    pub cancel: CancellationToken,
    /// Pauses the run so that it can be resumed: [`CoordinatorError::Paused`]. A run that hasn't begun is ended.
    pub pause: CancellationToken,
    /// True to resume the run whose log is in the output folder, if there is one.
    pub resume: bool,
    /// The provider's API, if its callers are the run's work.
    pub api: Option<RunApi>,
    /// Disk, clocks and threads of the coordinator: the system's, unless they are simulated.
    pub world: CoordinatorWorld,
}

/// Channels by which a run is observed.
#[derive(Debug, Default)]
pub struct RunObserver {
    /// Receives every step once it is durable, in order; `None`: nobody follows the steps.
    pub steps: Option<mpsc::UnboundedSender<Step>>,
    /// Receives the progress, four times a second and at the end; `None`: nobody follows it.
    pub progress: Option<watch::Sender<RunProgress>>,
}

/// A run that listens for its workers and hasn't begun.
#[derive(Debug)]
pub struct BoundRun {
    /// State of the run in its log, which no other coordinator can open from now on.
    beginning: StartingRun,
    observer: RunObserver,
    particulars: RunParticulars,
    address_file: AddressFile,
    out: PathBuf,
    vitals: CoordinatorVitals,
}

/// Outcome of a live run.
#[derive(Debug)]
pub struct LiveOutcome {
    /// The run at its end, also if it was cancelled.
    pub run: Run,
    /// Measured facts: shares, CPU time, hosts.
    pub facts: LiveFacts,
    /// Path of the event log.
    pub log: PathBuf,
}

impl LiveRunPlan {
    /// Returns whether a task runs a user's own program.
    fn has_own_programs(&self) -> bool {
        self.programs.iter().any(|program| program.own().is_some())
    }

    pub(crate) fn make_plan(&self, run: String) -> ConductorPlan {
        let (mut distinct, mut program_of) = (Vec::<Vec<String>>::new(), Vec::new());
        let measured = if self.noop { &[] } else { &self.programs[..] };
        for program in measured {
            let TaskProgram::Kernel(program) = program else {
                program_of.push(None);
                continue;
            };
            let known = distinct.iter().position(|p| p == program);
            program_of.push(Some(known.unwrap_or_else(|| {
                distinct.push(program.clone());
                distinct.len() - 1
            })));
        }
        ConductorPlan {
            answer_seed: 0,
            run,
            image_key: ImageSecret::default(),
            workers: self.workers,
            speedup: self.speedup,
            demand: self.demand.clone(),
            reserve: self.reserve,
            share: self.share,
            programs: self.programs.clone(),
            phase: self.setup.jobs.is_some().then_some(self.phase),
            is_open: self.open,
            api: self.api.as_ref().map(RunApi::run_desk),
            metadata: (self.has_own_programs() || self.api.is_some())
                .then(|| self.metadata.clone()),
            spot_checks: self.spot_checks,
            needs_criu: self.needs_criu,
            checkpoints_jobs: self.setup.checkpoint_of_jobs().is_some(),
            jobs_have_memory: self.setup.space_of_jobs().memory.is_some(),
            jobs_have_credits: self.setup.credits_of_jobs().is_some(),
            supplies: self.setup.terms.spot == SpotPlaces::Background,
            hold_checkpoints: self.hold_checkpoints,
            noop: self.noop,
            lost_after: self.lost_after,
            hold: self.hold,
            workers_stay: self.workers_stay,
            answer_within: self.answer_within,
            faults: self.faults.clone(),
            limit: if self.open { NO_LIMIT } else { self.limit },
            distinct,
            program_of,
            world: self.world.clone(),
        }
    }

    /// Checks the parameters, listens, opens the log, makes the run's identity and publishes the address, so that
    /// workers can be told where to connect and whom to trust.
    ///
    /// # Errors
    ///
    /// The parameters contradict each other, the address can't be listened on, the log belongs to another coordinator
    /// or can't be resumed, or the identity can't be kept in the output folder.
    pub async fn bind_run(self) -> Result<BoundRun, CoordinatorError> {
        self.check_particulars()?;
        let addr = self.listen;
        let listen = |source| CoordinatorError::Listen { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(listen)?;
        self.bind_listener(Box::new(listener)).await
    }

    /// Prepares the run as [`LiveRunPlan::bind_run`] does, with connections from `listener` instead of the address:
    /// those of a simulation.
    ///
    /// # Errors
    ///
    /// See [`LiveRunPlan::bind_run`].
    pub async fn bind_on(
        self,
        listener: Box<dyn ConnectionListener>,
    ) -> Result<BoundRun, CoordinatorError> {
        self.check_particulars()?;
        self.bind_listener(listener).await
    }

    /// Prepares the run on this listener, once its parameters are checked.
    async fn bind_listener(
        mut self,
        listener: Box<dyn ConnectionListener>,
    ) -> Result<BoundRun, CoordinatorError> {
        let addr = self.listen;
        let listen = |source| CoordinatorError::Listen { addr, source };
        let address = listener.local_address().map_err(listen)?;
        let entries = self.entry_count();
        let (experiment, lost_after) = (self.experiment.clone(), self.lost_after);
        let stops = self.stops();
        let workers_stay = self.workers_stay;
        let (out, resume) = (self.out.clone(), self.resume);
        let wall = self.world.wall.clone();
        let certificates_valid = self.certificates_valid;
        let callers = self.api.as_mut().and_then(|api| api.requests.take());
        // What is in the folder is another's where its log is.
        let (beginning, observer) = begin_run(self).await?;
        let identity = RunIdentity::of_run(&out, resume, identity::given_folder()?.as_deref())?;
        let address_file = AddressFile::write(&out, address)
            .map_err(|source| CoordinatorError::Output { path: out.clone(), source })?;
        let particulars = RunParticulars {
            experiment,
            entries,
            lost_after,
            listener,
            address,
            identity,
            wall,
            certificates_valid,
            stops,
            workers_stay,
            callers,
        };
        let vitals = CoordinatorVitals::default();
        Ok(BoundRun { beginning, observer, particulars, address_file, out, vitals })
    }

    /// Prepares and conducts the run: [`Self::bind_run`], then [`BoundRun::conduct_run`].
    ///
    /// # Errors
    ///
    /// See [`Self::bind_run`] and [`BoundRun::conduct_run`].
    pub async fn conduct_run(self) -> Result<LiveOutcome, CoordinatorError> {
        self.bind_run().await?.conduct_run().await
    }

    /// Returns the tokens by which the user stops the run.
    pub(crate) fn stops(&self) -> RunStops {
        RunStops { cancel: self.cancel.clone(), pause: self.pause.clone() }
    }

    /// Returns the number of tasks and parallel jobs; `u32::MAX` for an open run.
    pub(crate) fn entry_count(&self) -> u32 {
        let entries = self.setup.bag.tasks.len() + self.submissions.len();
        if self.open { u32::MAX } else { u32::try_from(entries).unwrap_or(u32::MAX) }
    }

    pub(crate) fn check_particulars(&self) -> Result<(), CoordinatorError> {
        let (tasks, programs) = (self.setup.bag.tasks.len(), self.programs.len());
        let why = if !self.noop && tasks != programs {
            format!("there are {tasks} tasks, but programs for {programs}")
        } else if self.workers == 0 {
            "it needs at least one worker".to_owned()
        } else if self.demand.busy_vcpus() == 0 {
            "no vCPU may ever be busy: its demand must be at least 1".to_owned()
        } else if self.reserve >= Ppm::ONE {
            "the reserve must leave something of the hosts: it must be below 1".to_owned()
        } else if self.lost_after < Duration::from_millis(100) {
            let ms = self.lost_after.as_millis();
            format!("a worker can't be given up after {ms} ms of silence: 100 ms is the least")
        } else if let Some(why) = self.wrong_job() {
            why
        } else if !self.header.is_object() {
            "the header of its log must be a JSON object".to_owned()
        } else {
            return Ok(());
        };
        Err(CoordinatorError::Invalid { why })
    }
}

impl LiveRunPlan {
    /// Returns what is wrong with the parallel jobs; `None`: nothing.
    fn wrong_job(&self) -> Option<String> {
        let machine = match &self.setup.jobs {
            Some(_) => self.setup.space_of_jobs(),
            None if self.open => {
                return Some("only parallel jobs can come from outside".to_owned());
            }
            None if self.submissions.is_empty() => return None,
            None => return Some("there are parallel jobs and no machine for them".to_owned()),
        };
        let refused = |job: &Submission| {
            job.check_fits(machine)
                .err()
                .map(|why| format!("job {} can't be run: {why}", job.number))
        };
        let unsorted = !in_order(&self.submissions).is_sorted_by_key(|job| job.submitted);
        let unsorted = unsorted.then(|| "the jobs are not in order of submission".to_owned());
        self.submissions.iter().find_map(refused).or(unsorted)
    }
}

/// Returns the jobs without predecessors, in order.
pub(crate) fn in_order(jobs: &[Submission]) -> impl Iterator<Item = &Submission> {
    jobs.iter().filter(|job| job.after.is_none())
}

impl BoundRun {
    /// Returns the address and port that workers dial.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.particulars.address
    }

    /// Returns the file with the token of a role. Only its owner can read it, and it is removed when the run is over.
    #[must_use]
    pub fn token_file(&self, role: Role) -> PathBuf {
        identity::token_file(&self.out, role)
    }

    /// Returns the state of the coordinator itself, for observers.
    #[must_use]
    pub fn vitals(&self) -> CoordinatorVitals {
        self.vitals.clone()
    }

    /// Conducts the run to its end. Dropping the future doesn't end it: cancel its token.
    ///
    /// # Errors
    ///
    /// The run failed: see [`CoordinatorError`]. Its workers were told to clean up.
    pub async fn conduct_run(self) -> Result<LiveOutcome, CoordinatorError> {
        let Self { beginning, observer, particulars, address_file, out, vitals } = self;
        let log = out.join(dormouse_log::FILE);
        let experiment = particulars.experiment.as_str();
        let (service, args) = beginning.start_actors(&out, observer, vitals, experiment).await?;
        let outcome = service.conduct_run(args, particulars).await;
        drop(address_file);
        let (run, facts) = outcome?.into_outcome();
        Ok(LiveOutcome { run, facts, log })
    }
}
