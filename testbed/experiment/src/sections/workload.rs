//! The sections `[workload]` and `[sharing]`.

use std::collections::BTreeMap;

use dormouse_units::{Bytes, Ppm, Span, TypeName};
use dormouse_workload::{
    BatchWorkload, Estimates, ExtraFields, FollowUps, Fractions, JobSize, JobSource, JobSpec,
    LogRules, Model, NoEstimate, OnMalformed, PartialExecutions, RanOver, Repeated, RequestModel,
    RequestSpec, Shape, UsageKind,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::BurstableSection;
use super::cloud::one;
use super::own::{SavesSection, VerifySection};
use crate::cloud::burstable_of;

/// The work that is to be run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "kind", rename_all = "kebab-case")]
#[schemars(rename = "Workload", tag = "kind")]
pub(crate) enum WorkloadSection {
    /// A bag of tasks with a deadline; a workflow where some follow others.
    Bag(BagSection),
    /// Parallel jobs of a log: in the Standard Workload Format, of Batsim, of Slurm's sacct, an accounting file of PBS, LSF or Grid Engine, a history of HTCondor, or a trace of Philly, Helios or Alibaba.
    Swf(SwfSection),
    /// Parallel jobs that a model makes.
    Model(ModelSection),
    /// Parallel jobs that stand in the experiment.
    Jobs(JobsSection),
    /// VMs that customers of the provider request.
    Requests(Box<RequestsSection>),
}

/// VMs that customers of the provider request, wherever their hosts have room: one of `request`, `csv` and
/// `model` says which. A bag or parallel jobs beside them are what the run is for: it ends with those.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct RequestsSection {
    /// The requests, in order of time.
    pub(crate) request: Vec<RequestSpec>,
    /// A file of requests, relative to the experiment's; its content tells the format. Ours is CSV: under
    /// the header `at,type,market,duration` a row each, in order of time, such as `90.5,c3.large,spot,2h`.
    /// Others are the Azure Public Dataset's vmtable, the table vm of the Azure trace for packing,
    /// Google's task_events of 2011 and instance_events of 2019, and tables of VMs with columns such as
    /// `start`, `end`, `type` or `vcpus` and `memory`, `preemptible`. VMs whose type is not named get the
    /// smallest that holds them; times of others count from their first request.
    #[schemars(example = "requests.csv")]
    pub(crate) csv: Option<String>,
    /// Headings of columns that have other names than those known, by what they hold: `at`, `duration` or
    /// `end`, `type` or `vcpus` and `memory`, `market`.
    pub(crate) columns: BTreeMap<String, String>,
    /// Instance types by what the file calls them: a name, a `vmTypeId`, or vCPUs and GiB as `2/8` or
    /// `>24/>64`.
    pub(crate) types_map: BTreeMap<String, TypeName>,
    /// The table vmType of the Azure trace for packing as a CSV file, relative to the experiment's: what
    /// part of a machine each type is.
    #[schemars(example = "vmType.csv")]
    pub(crate) types: Option<String>,
    /// vCPUs of the largest machine of a trace whose sizes are parts of one.
    #[schemars(range(min = 1, max = 1_000_000), example = 64)]
    pub(crate) machine_vcpus: Option<u32>,
    /// Memory of the largest machine of a trace whose sizes are parts of one.
    #[schemars(extend("least" = "1 B"), example = "256 GiB")]
    pub(crate) machine_memory: Option<Bytes>,
    /// Highest priority of Google's traces that is in the spot market; 115 of 2019 (free and best-effort
    /// batch) and 1 of 2011 (free) where it is not given.
    pub(crate) spot_priority: Option<u32>,
    /// Times stay as the file counts them, instead of from its first request.
    pub(crate) keep_times: bool,
    /// What they are drawn by, until there are `requests` of them or `lasts` is over, whichever comes
    /// first; one of the two is given. Types, markets, times and durations have a chance of their own
    /// each: another law of one leaves the others as they are.
    pub(crate) model: Option<RequestModel>,
}

/// A bag of tasks with a deadline: one of `name`, `job` and `task` says which.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct BagSection {
    /// A bag of the Burst-HADS paper: `j60`, `j80`, `j100` or `ed200`.
    #[schemars(example = &"j60")]
    pub(crate) name: Option<String>,
    /// A `job.json` of the paper's artifact.
    pub(crate) job: Option<String>,
    /// An `env.json` of the paper's artifact, whose instance types take the place of a catalogue's.
    pub(crate) env: Option<String>,
    /// A workflow, relative to the experiment's file; its content tells the format: HTCondor's DAGMan, whose
    /// submit files are read beside it, or WfCommons' JSON (WfFormat 1.4 and 1.5).
    #[schemars(example = "diamond.dag")]
    pub(crate) workflow: Option<String>,
    /// Run time of a task of `workflow` at full speed on every type, if the workflow does not give one.
    #[schemars(example = "2m", extend("least" = "1us"))]
    pub(crate) runtime: Option<Span>,
    /// Memory of a task of `workflow`, if the workflow does not give one.
    #[schemars(example = "64 MiB")]
    pub(crate) memory: Option<Bytes>,
    /// The tasks themselves.
    pub(crate) task: Vec<TaskSection>,
    /// A table of tasks, CSV or JSON lines, relative to the experiment's file: a row each, with columns
    /// called as the keys of `task`, of which `command` is split as a shell does; what other columns hold
    /// stands for their heading in braces.
    #[schemars(example = "bag.csv")]
    pub(crate) tasks: Option<String>,
    /// What each task of a bag with a `name`, `job` or `workflow` runs, by the keys of a `task` with a
    /// `command`; its tasks keep their run times and memory.
    pub(crate) program: Option<Box<TaskSection>>,
    /// What `dormouse measure` wrote of the tasks, for those whose `runtime` is `measured`.
    #[schemars(example = "measured.json")]
    pub(crate) measured: Option<String>,
    /// Time from the beginning by which all tasks must be done; 45 minutes if not given, as in the paper, but tasks
    /// that are written here need one.
    #[schemars(extend("least" = "1us"))]
    pub(crate) deadline: Option<Span>,
    /// By how much its tasks really run longer or shorter than they say; not at all where it is not given.
    pub(crate) noise: Option<NoiseSection>,
}

/// Random differences of real run times from the given ones: one factor for each task, with mean 1, by one of these
/// laws.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct NoiseSection {
    /// The factor of a task's run time is log-normal with mean 1 and this coefficient of variation.
    #[schemars(range(min = 0.0, max = 2.0), example = 0.1)]
    pub(crate) lognormal: Option<Ppm>,
    /// The factor of a task's run time is uniform between 1 minus this and 1 plus this.
    #[schemars(range(min = 0.0, max = 0.99), example = 0.1)]
    pub(crate) uniform: Option<Ppm>,
}

/// A task, or several that are alike.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct TaskSection {
    /// The name; several have numbers behind it, and those of `each` the names of their files where it is
    /// not given; else it is `task`.
    #[serde(default)]
    #[schemars(example = &"task")]
    pub(crate) name: Option<String>,
    /// How many there are of these.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) count: u32,
    /// The memory that it needs; with a `command` what was measured where it is not given, and
    /// 512 MiB where nothing was.
    #[serde(default)]
    pub(crate) memory: Option<Bytes>,
    /// How long the task computes at full speed: everywhere, or by instance type. With a `command` also `unknown`,
    /// which it is where nothing is given, or `measured`, as the file `measured` of the workload has it.
    #[serde(default)]
    pub(crate) runtime: Option<Runtime>,
    /// A program of your own that it runs, and its arguments; without, it runs what `live.tasks` says. A word
    /// that is the relative path of a file is one of its `inputs` as well. In it and the keys below `{input}`
    /// or `{}` stands for the file of `each`, `{stem}` for its name without an ending, `{name}` and `{n}` for
    /// the task's name and number from 0, `{output}` for the first of `outputs`; `{{` stands for a brace.
    #[serde(default)]
    #[schemars(length(min = 1), example = ["./solve", "--in", "{input}"])]
    pub(crate) command: Option<Vec<String>>,
    /// A task for each file that this names, relative to the experiment's: `*` stands for any letters but
    /// slashes, `**` for any folders.
    #[serde(default)]
    #[schemars(example = "data/*.csv")]
    pub(crate) each: Option<String>,
    /// A task for each row of this table, CSV or JSON lines: its columns are as those of `workload.tasks`, and
    /// take the place of the keys here.
    #[serde(default)]
    #[schemars(example = "bag.csv")]
    pub(crate) rows: Option<String>,
    /// The most processes and threads that its program may have at once; 256 where it is not given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 30_000))]
    pub(crate) threads: Option<u32>,
    /// What the task's program has in its environment beside what every task has.
    #[serde(default)]
    #[schemars(example = r#"{ OMP_NUM_THREADS = "1" }"#)]
    pub(crate) env: BTreeMap<String, String>,
    /// Files and folders that its directory holds when it begins, relative to the experiment's, also with `*`
    /// as in `each`; those outside of the experiment's folder are there by their names alone.
    #[serde(default)]
    #[schemars(example = ["solve", "lib/*.py"])]
    pub(crate) inputs: Vec<String>,
    /// The files of its directory that are kept in the run's folder, as paths in it, in which `*` stands for
    /// any letters but slashes.
    #[serde(default)]
    #[schemars(example = ["*.out"])]
    pub(crate) outputs: Vec<String>,
    /// Folders of its worker's host that it reads, as absolute paths, such as those of a program that is installed
    /// there: what the operator of each worker allows with `--allow-mounts`.
    #[serde(default)]
    #[schemars(example = ["/opt/R"])]
    pub(crate) mounts: Vec<String>,
    /// The most that its directory may hold; 1 GiB where it is not given.
    #[serde(default)]
    #[schemars(extend("least" = "1 B"), example = "1 GiB")]
    pub(crate) directory: Option<Bytes>,
    /// By what its answer is checked; without, a run that ended with status 0 is reported, not verified.
    #[serde(default)]
    pub(crate) verify: Option<VerifySection>,
    /// Whether the task leaves the same outputs wherever and whenever it runs: then another host may run it again and compare
    /// (`live.spot-checks`). One whose `verify` has the outputs of a reference run need not say so.
    #[serde(default)]
    pub(crate) deterministic: bool,
    /// What saves the task's work when its VM is taken away; `criu` where it is not given.
    #[serde(default)]
    pub(crate) saves: Option<SavesSection>,
    /// Time from the beginning at which the task is submitted. Without `after` on any task only the scheduler
    /// `batch-service` accepts tasks that come later: it treats those of one time as a bag.
    #[serde(default)]
    #[schemars(example = "75m")]
    pub(crate) submitted: Span,
    /// The tasks that it follows, by name: it starts once all of them are done. A name that stands for
    /// several means all of them, and the name of one of these that one.
    #[serde(default)]
    #[schemars(example = ["split"])]
    pub(crate) after: Vec<String>,
}

/// How long a task computes at full speed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Runtime {
    /// Everywhere as long.
    Everywhere(
        #[schemars(with = "Span", example = "200s", extend("least" = "1us", "words" = ["unknown", "measured"]))]
         String,
    ),
    /// By instance type.
    ByType(#[schemars(with = "BTreeMap<TypeName, Length>")] BTreeMap<TypeName, String>),
}

/// A length of time that is not nothing.
#[derive(JsonSchema)]
#[schemars(inline, transparent)]
#[expect(dead_code, reason = "it says what may be written, and is read as text")]
struct Length(#[schemars(extend("least" = "1us"), example = "200s")] Span);

/// A section of parallel jobs: its own keys, and those of every such section.
macro_rules! of_jobs {
    ($(#[$doc:meta])* $Name:ident { $($own:tt)* }) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub(crate) struct $Name {
            $($own)*
            /// Processors of the machine; those of the log's where it is of a log, else 320, as in the MEASY
            /// paper. Jobs that are written here need it.
            #[schemars(range(min = 1, max = 10_000_000), example = 16)]
            pub(crate) processors: Option<u32>,
            /// Memory of each processor, for the processes that are on it; where it is not given, memory
            /// is of no concern.
            #[schemars(extend("least" = "1 B"), example = "2 GiB")]
            pub(crate) memory_per_processor: Option<Bytes>,
            /// How the machine earns CPU credits, all of the whole machine; without, it always has full
            /// speed.
            pub(crate) burstable: Option<BurstableSection>,
            /// The offered load, by scaling the times between submissions; as it is where it is not given.
            #[schemars(range(max = 1e6), extend("exclusiveMinimum" = 0.0), example = 0.9)]
            pub(crate) load: Option<f64>,
            /// CPU usage where a job does not say.
            #[serde(default)]
            pub(crate) usage: UsageKind,
        }

        impl $Name {
            /// These jobs on a machine with this many processors.
            pub(crate) fn on(&self, processors: u32, source: JobSource) -> BatchWorkload {
                let Self { memory_per_processor, load, usage, .. } = *self;
                let burstable = self.burstable.map(burstable_of);
                BatchWorkload { source, processors, memory_per_processor, burstable, load, usage }
            }
        }
    };
}

of_jobs! {
    /// Parallel jobs of a log: in the Standard Workload Format, a workload of Batsim (JSON), or what `sacct -P`
    /// prints; its first bytes tell which.
    SwfSection {
        /// The log, plain or packed with gzip, zip, xz or zstd, relative to the experiment's file.
        #[schemars(example = "KTH-SP2-1996-2.1-cln.swf.gz")]
        pub(crate) log: String,
        /// What to do with lines that can't be used.
        #[serde(default)]
        pub(crate) on_malformed: OnMalformed,
        /// How a job is handled that ran longer than its user estimated.
        #[serde(default)]
        pub(crate) ran_over: RanOver,
        /// What is used in place of an estimate that is not in the log.
        #[serde(default)]
        pub(crate) no_estimate: NoEstimate,
        /// Which size a job has that requested another number of processors than it had.
        #[serde(default)]
        pub(crate) size: JobSize,
        /// How a job is handled whose number an earlier job has.
        #[serde(default)]
        pub(crate) repeated: Repeated,
        /// How fractions of a second in the times of a job are handled.
        #[serde(default)]
        pub(crate) fractions: Fractions,
        /// What becomes of lines of partial executions (status 2 to 4), which SWF has of jobs that were
        /// checkpointed or swapped out.
        #[serde(default)]
        pub(crate) partial_executions: PartialExecutions,
        /// How a job that follows others (fields 17 and 18) is handled.
        #[serde(default)]
        pub(crate) follow_ups: FollowUps,
        /// How a line with more than 18 fields is handled.
        #[serde(default)]
        pub(crate) extra_fields: ExtraFields,
        /// How users estimate the run times of their jobs.
        #[serde(default = "given")]
        pub(crate) estimates: Estimates,
        /// Number of the log's first jobs that are used; all if not given.
        #[schemars(range(min = 2, max = 1_000_000_000))]
        pub(crate) first: Option<usize>,
    }
}

impl SwfSection {
    pub(crate) const fn rules(&self) -> LogRules {
        let Self { on_malformed, ran_over, no_estimate, size, repeated, fractions, .. } = *self;
        let Self { partial_executions, follow_ups, extra_fields, .. } = *self;
        LogRules {
            on_malformed,
            ran_over,
            no_estimate,
            size,
            repeated,
            fractions,
            partial_executions,
            follow_ups,
            extra_fields,
        }
    }
}

const fn given() -> Estimates {
    Estimates::Given
}

of_jobs! {
    /// Parallel jobs that a model makes.
    ModelSection {
        /// The model, by its name.
        pub(crate) model: Model,
        /// Number of jobs that the model generates.
        #[serde(default = "ten_thousand")]
        #[schemars(range(min = 2, max = 1_000_000_000))]
        pub(crate) jobs: usize,
        /// How users estimate the run times of these jobs.
        #[serde(default)]
        pub(crate) estimates: Estimates,
        /// The shape of a calibrated model.
        #[serde(default)]
        pub(crate) shape: Shape,
    }
}

const fn ten_thousand() -> usize {
    10_000
}

of_jobs! {
    /// Parallel jobs that stand in the experiment.
    JobsSection {
        /// The jobs, in order of submission.
        #[schemars(length(min = 1))]
        pub(crate) job: Vec<JobSpec>,
    }
}

/// How the two VMs of a processor share it, of parallel jobs in virtual time: the figures of the MEASY
/// paper (sections 2.1 and 3.2) where they are not given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct SharingSection {
    /// The `two-tier.json` of `dormouse reproduce measy/two-tier`: what was measured on a host takes the
    /// place of the paper's figures.
    pub(crate) measured: Option<String>,
    /// Loss of speed of a foreground job with a neighbour: uniform between these two fractions.
    pub(crate) loss: Option<(Part, Part)>,
    /// Fraction of the idle cycles that a background job of one process uses: uniform between these two.
    pub(crate) single: Option<(Part, Part)>,
    /// Fraction of the idle cycles that a background job of several processes uses: mean and deviation of a normal
    /// distribution.
    pub(crate) several_normal: Option<(Part, Part)>,
    /// Range to which the distribution `several-normal` is limited; draws outside are repeated.
    pub(crate) several_within: Option<(Part, Part)>,
    /// Draw for each process, and not for the job.
    pub(crate) each_process: Option<bool>,
}

/// A part of a whole that is kept as it is written.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(inline, transparent)]
#[serde(transparent)]
pub(crate) struct Part(#[schemars(range(min = 0.0, max = 1.0))] pub(crate) f64);
