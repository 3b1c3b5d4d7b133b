//! One live run from its particulars to its outcome.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dormouse_analysis::LiveFacts;
use dormouse_cloud::SpotPlaces;
use dormouse_engine::Run;
use dormouse_identity::Role;
use dormouse_model::{HostFault, MetadataSettings, Setup, Step, Submission, TenantWork, VmRequest};
use dormouse_policies::Policy;
use dormouse_tasks::own::TaskProgram;
use dormouse_units::{Ppm, Speedup, Time};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::CoordinatorError;
use crate::admission::RunDemand;
use crate::identity::{self, RunIdentity};
use crate::lifecycle::beginning::{StartingRun, begin_run};
use crate::lifecycle::service::RunParticulars;
use crate::lifecycle::stops::RunStops;
use crate::observers::remote::AddressFile;
use crate::plan::ConductorPlan;
use crate::status::progress::RunProgress;
use crate::status::vitals::CoordinatorVitals;
use crate::storage::image_key::ImageSecret;
use crate::system::listener::ConnectionListener;
use crate::system::world::CoordinatorWorld;

/// The time limit of a run that is open.
const NO_LIMIT: Time = Time::from_micros(1 << 62);

/// The particulars of a live run.
#[derive(Debug)]
pub struct LiveRunPlan {
    /// What the run is made of.
    pub setup: Setup,
    /// The run's tenants: the work of each and the policy that schedules it.
    pub policies: Vec<(TenantWork, Box<dyn Policy>)>,
    /// Parallel jobs, in order of submission, if the setup has any; those that follow others stand
    /// anywhere.
    pub submissions: Vec<Submission>,
    /// The VMs that customers of the provider request, in order of time, if the setup says that any
    /// are.
    pub requests: Vec<(Time, VmRequest)>,
    /// More of them may come from outside while it goes: it ends only once it is told that no more
    /// do, and its time limit is none.
    pub open: bool,
    /// How long a parallel job's processes compute between two barriers, real time.
    pub phase: Duration,
    /// What people call it.
    pub experiment: String,
    /// The first line of the event log, a JSON object; the key `live` is added to it.
    pub header: Value,
    /// Where to listen; port 0 for any free one.
    pub listen: SocketAddr,
    /// How many workers to wait for.
    pub workers: u32,
    /// How much faster than real time it runs.
    pub speedup: Speedup,
    /// What the scheduler may want of the hosts at once.
    pub demand: RunDemand,
    /// Fraction of the hosts' cores kept for agents and CRIU.
    pub reserve: Ppm,
    /// Share of a core per vCPU; `None`: the largest that fits.
    pub share: Option<Ppm>,
    /// What each task runs.
    pub programs: Vec<TaskProgram>,
    /// Where the contents are that programs of the user's own begin with, by their digests (BLAKE3, in hexadecimal);
    /// a run that is gone on with has them already.
    pub inputs: BTreeMap<String, PathBuf>,
    /// How the metadata endpoints of VMs answer, where tasks run programs of the user's own.
    pub metadata: MetadataSettings,
    /// The part of all CPU time that may go, once all tasks have ended, into parts of them that another host computes
    /// again; zero: into none.
    pub spot_checks: Ppm,
    /// For how long a worker's certificate is good, real time.
    pub certificates_valid: Duration,
    /// Whether tasks are checkpointed; if so, no worker without CRIU is taken.
    pub needs_criu: bool,
    /// A checkpoint stands still for as long as modelled.
    pub hold_checkpoints: bool,
    /// Without processes, to measure dispatch.
    pub noop: bool,
    /// The output folder; made if it isn't there.
    pub out: PathBuf,
    /// After how much silence a worker is lost, real time.
    pub lost_after: Duration,
    /// For how long a worker keeps its VMs without a coordinator, and dials it again, real time.
    pub hold: Duration,
    /// The workers stay when the run is stopped, to be gone on with; else they are told that it is over.
    pub workers_stay: bool,
    /// For how long a worker without tasks may leave a command unanswered, real time: see
    /// [`crate::ANSWER_WITHIN`].
    pub answer_within: Duration,
    /// When to end the run at the latest, emulated time.
    pub limit: Time,
    /// What is to go wrong at the workers, in order of time.
    pub faults: Vec<HostFault>,
    /// The channels on which the caller follows the run.
    pub observer: RunObserver,
    /// Ends the run before its time.
    pub cancel: CancellationToken,
    /// Stops the run where it is, to be gone on with: [`CoordinatorError::Paused`]. One that has not
    /// begun is ended.
    pub pause: CancellationToken,
    /// Go on with the run whose log is in the output folder, if there is one.
    pub resume: bool,
    /// The world that the coordinator is in: the system's, unless it is simulated.
    pub world: CoordinatorWorld,
}

/// Who looks on while a run goes.
#[derive(Debug, Default)]
pub struct RunObserver {
    /// Every step once it is durable, in order.
    pub steps: Option<mpsc::UnboundedSender<Step>>,
    /// How it goes, four times a second, and at the end.
    pub progress: Option<watch::Sender<RunProgress>>,
}

/// A run that listens, before its workers come.
#[derive(Debug)]
pub struct BoundRun {
    /// What its log holds, which is this coordinator's alone from here on.
    beginning: StartingRun,
    observer: RunObserver,
    particulars: RunParticulars,
    address_file: AddressFile,
    out: PathBuf,
    vitals: CoordinatorVitals,
}

/// The outcome of a live run.
#[derive(Debug)]
pub struct LiveOutcome {
    /// The run at its end; cancelled runs say so.
    pub run: Run,
    /// What was measured in the run: shares, CPU time, hosts.
    pub facts: LiveFacts,
    /// The event log.
    pub log: PathBuf,
}

impl LiveRunPlan {
    /// What the service goes by.
    /// Whether a task runs a program of the user's own.
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
            metadata: self.has_own_programs().then(|| self.metadata.clone()),
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

    /// Checks the particulars, listens, takes the log, makes the run's identity and says where it
    /// listens, so that workers can be told where to dial and whom to trust.
    ///
    /// # Errors
    ///
    /// The particulars contradict each other, the address can't be listened on, the log is another
    /// coordinator's or can't be gone on with, or the identity can't be kept in the output folder.
    pub async fn bind_run(self) -> Result<BoundRun, CoordinatorError> {
        self.check_particulars()?;
        let addr = self.listen;
        let listen = |source| CoordinatorError::Listen { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(listen)?;
        self.bind_listener(Box::new(listener)).await
    }

    /// The same, with connections from there and not from `listen`: a simulation's.
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

    /// The run on this listener, once its particulars are checked.
    async fn bind_listener(
        self,
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
        };
        let vitals = CoordinatorVitals::default();
        Ok(BoundRun { beginning, observer, particulars, address_file, out, vitals })
    }

    /// [`Self::bind_run`] and [`BoundRun::conduct_run`].
    ///
    /// # Errors
    ///
    /// See there.
    pub async fn conduct_run(self) -> Result<LiveOutcome, CoordinatorError> {
        self.bind_run().await?.conduct_run().await
    }

    /// The requests by which its user ends the run before its time.
    pub(crate) fn stops(&self) -> RunStops {
        RunStops { cancel: self.cancel.clone(), pause: self.pause.clone() }
    }

    /// Number of its tasks and parallel jobs; `u32::MAX` for a run that is open.
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
    /// What is wrong with its parallel jobs.
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

/// The jobs that follow none, which are submitted in this order.
pub(crate) fn in_order(jobs: &[Submission]) -> impl Iterator<Item = &Submission> {
    jobs.iter().filter(|job| job.after.is_none())
}

impl BoundRun {
    /// The address and port that its workers dial.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.particulars.address
    }

    /// The file with the token of a role: for its owner alone, and there until the run is over.
    #[must_use]
    pub fn token_file(&self, role: Role) -> PathBuf {
        identity::token_file(&self.out, role)
    }

    /// What only the coordinator knows of itself, for whoever looks on.
    #[must_use]
    pub fn vitals(&self) -> CoordinatorVitals {
        self.vitals.clone()
    }

    /// Conducts the run to its end. Dropping the future does not end it: cancel its token.
    ///
    /// # Errors
    ///
    /// The run broke: see [`CoordinatorError`]. Its workers have been told to clean up.
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
