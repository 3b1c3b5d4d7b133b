//! The sections `[workload]` and `[sharing]`.

use std::collections::BTreeMap;

use dormouse_units::{Bytes, Ppm, Span, TypeName};
use dormouse_workload::{
    BatchWorkload, Estimates, ExtraFields, FollowUps, Fractions, JobSize, JobSource, JobSpec,
    LogPriority, LogRules, Model, NoEstimate, OnMalformed, PartialExecutions, RanOver, Repeated,
    RequestModel, RequestSpec, Shape, UsageKind,
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
    /// A bag of tasks with a deadline; it is a workflow if some tasks follow others.
    Bag(BagSection),
    /// Parallel jobs from a log: in the Standard Workload Format, of Batsim, of Slurm's sacct, an accounting file of
    /// PBS, LSF or Grid Engine, a history of HTCondor, or a trace of Philly, Helios or Alibaba.
    Swf(SwfSection),
    /// Parallel jobs that a model generates.
    Model(ModelSection),
    /// Parallel jobs that are listed in the experiment.
    Jobs(JobsSection),
    /// Requests for VMs by customers of the provider.
    Requests(Box<RequestsSection>),
}

/// VMs that customers of the provider request, placed wherever hosts have room. The requests come from exactly one of
/// `request`, `csv` and `model`. If the experiment also has a bag or parallel jobs, the run ends with those.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct RequestsSection {
    /// The requests, in order of time.
    pub(crate) request: Vec<RequestSpec>,
    /// Path of a file of requests, relative to the experiment file; its content tells the format. Our own format is
    /// CSV: the header `at,type,market,duration`, then a row for each request in order of time, such as
    /// `90.5,c3.large,spot,2h`. Other formats are the Azure Public Dataset's vmtable, the table vm of the Azure trace
    /// for packing, Google's task_events of 2011 and instance_events of 2019, and tables of VMs with columns such as
    /// `start`, `end`, `type` or `vcpus` and `memory`, `preemptible`. A VM without a named type gets the smallest
    /// type that holds it. Times in other formats are counted from the first request.
    #[schemars(example = "requests.csv")]
    pub(crate) csv: Option<String>,
    /// Headings of columns that differ from the known ones, by the content of the column: `at`, `duration` or `end`,
    /// `type` or `vcpus` and `memory`, `market`.
    pub(crate) columns: BTreeMap<String, String>,
    /// Instance types to request, by the file's word for each: a name, a `vmTypeId`, or vCPUs and GiB such as `2/8`
    /// or `>24/>64`.
    pub(crate) types_map: BTreeMap<String, TypeName>,
    /// Path of the table vmType of the Azure trace for packing as a CSV file, relative to the experiment file. It
    /// gives each type's share of a machine.
    #[schemars(example = "vmType.csv")]
    pub(crate) types: Option<String>,
    /// vCPUs of the largest machine, if the trace gives VM sizes as shares of it.
    #[schemars(range(min = 1, max = 1_000_000), example = 64)]
    pub(crate) machine_vcpus: Option<u32>,
    /// Memory of the largest machine, if the trace gives VM sizes as shares of it.
    #[schemars(extend("least" = "1 B"), example = "256 GiB")]
    pub(crate) machine_memory: Option<Bytes>,
    /// Highest priority in Google's traces whose instances count as spot VMs. If not given: 115 for the trace of 2019
    /// (free and best-effort batch), and 1 for that of 2011 (free).
    pub(crate) spot_priority: Option<u32>,
    /// True if times are used as the file gives them, instead of being counted from the first request.
    pub(crate) keep_times: bool,
    /// Model by which requests are drawn until `requests` requests are drawn or the time `lasts` is over; at least
    /// one of the two is given. Types, markets, times and durations are drawn independently, so that a change of one
    /// law does not change the other draws.
    pub(crate) model: Option<RequestModel>,
}

/// A bag of tasks with a deadline, given by one of `name`, `job`, `workflow`, `task` and `tasks`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct BagSection {
    /// Name of a bag of the Burst-HADS paper: `j60`, `j80`, `j100` or `ed200`.
    #[schemars(example = &"j60")]
    pub(crate) name: Option<String>,
    /// Path of a `job.json` of the Burst-HADS artifact.
    pub(crate) job: Option<String>,
    /// Path of an `env.json` of the Burst-HADS artifact, whose instance types replace those of a catalogue.
    pub(crate) env: Option<String>,
    /// Path of a workflow file, relative to the experiment file; its content tells the format. Formats are HTCondor's
    /// DAGMan, whose submit files are read beside it, WfCommons' JSON (WfFormat 1.0 to 1.5), Pegasus' YAML, Snakemake's
    /// graph and Nextflow's trace.
    #[schemars(example = "diamond.dag")]
    pub(crate) workflow: Option<String>,
    /// Run time of a task of `workflow` at full speed on every type, if the workflow does not give one.
    #[schemars(example = "2m", extend("least" = "1us"))]
    pub(crate) runtime: Option<Span>,
    /// Memory of a task of `workflow`, if the workflow does not give one.
    #[schemars(example = "64 MiB")]
    pub(crate) memory: Option<Bytes>,
    /// What happens to tasks of `workflow` that ask for several cores; `one-vcpu` if not given.
    pub(crate) several_cores: SeveralCores,
    /// The tasks of the bag, listed one by one.
    pub(crate) task: Vec<TaskSection>,
    /// Path of a table of tasks, CSV or JSON lines, relative to the experiment file. Each row is a task, and columns
    /// have the names of the keys of `task`; `command` is split into words as in a shell. The values of other columns
    /// replace their heading in braces.
    #[schemars(example = "bag.csv")]
    pub(crate) tasks: Option<String>,
    /// Program that each task of a bag with a `name`, `job` or `workflow` runs, with the keys of a `task` with a
    /// `command`; the tasks keep their run times and memory.
    pub(crate) program: Option<Box<TaskSection>>,
    /// Path of a file that `dormouse measure` wrote, for tasks whose `runtime` is `measured`.
    #[schemars(example = "measured.json")]
    pub(crate) measured: Option<String>,
    /// Time from the beginning by which all tasks must be done. If not given: 45 minutes, as in the Burst-HADS paper;
    /// tasks that are listed in the experiment need a deadline.
    #[schemars(extend("least" = "1us"))]
    pub(crate) deadline: Option<Span>,
    /// Random differences of the tasks' real run times from the given ones; no differences if not given.
    pub(crate) noise: Option<NoiseSection>,
}

/// What happens to tasks of a workflow that ask for several cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SeveralCores {
    /// Each such task has one vCPU, and runs as long as the file says; a note says how many there are.
    #[default]
    OneVcpu,
    /// The experiment is refused, as a task of a bag has one vCPU.
    Refused,
}

/// Random differences of real run times from the given ones: one factor for each task, with mean 1, by one of these
/// laws.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct NoiseSection {
    /// Coefficient of variation of a log-normal factor with mean 1 on each task's run time.
    #[schemars(range(min = 0.0, max = 2.0), example = 0.1)]
    pub(crate) lognormal: Option<Ppm>,
    /// Half width of a uniformly distributed factor on each task's run time: it is between 1 minus this and 1 plus
    /// this.
    #[schemars(range(min = 0.0, max = 0.99), example = 0.1)]
    pub(crate) uniform: Option<Ppm>,
}

/// A task, or several similar tasks.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct TaskSection {
    /// Name of the task; several tasks get numbers behind it. If not given: the names of the files for tasks of
    /// `each`, else `task`.
    #[serde(default)]
    #[schemars(example = &"task")]
    pub(crate) name: Option<String>,
    /// Number of identical tasks that the section defines.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) count: u32,
    /// Memory that the task needs. If not given: for a `command` the measured memory, or 512 MiB if nothing was
    /// measured.
    #[serde(default)]
    pub(crate) memory: Option<Bytes>,
    /// Time for which the task computes at full speed, on all types or by instance type. With a `command` it may also
    /// be `unknown`, the default, or `measured`: as in the file `measured` of the workload.
    #[serde(default)]
    pub(crate) runtime: Option<Runtime>,
    /// Your own program that the task runs, with its arguments; if not given, the task runs what `live.tasks` names.
    /// A word that is the relative path of a file is also one of its `inputs`. Placeholders here and in the keys
    /// below: `{input}` or `{}` is the file of `each`, `{stem}` its name without extension, `{name}` and `{n}` the
    /// task's name and its number from 0, `{output}` the first of `outputs`; `{{` stands for a brace.
    #[serde(default)]
    #[schemars(length(min = 1), example = ["./solve", "--in", "{input}"])]
    pub(crate) command: Option<Vec<String>>,
    /// Pattern of files, relative to the experiment file, each of which makes a task: `*` stands for any letters but
    /// slashes, `**` for any folders.
    #[serde(default)]
    #[schemars(example = "data/*.csv")]
    pub(crate) each: Option<String>,
    /// Path of a table, CSV or JSON lines, each of whose rows makes a task. Its columns are like those of
    /// `workload.tasks`, and override the keys here.
    #[serde(default)]
    #[schemars(example = "bag.csv")]
    pub(crate) rows: Option<String>,
    /// Greatest number of processes and threads that the task's program may have at once; 256 if not given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 30_000))]
    pub(crate) threads: Option<u32>,
    /// Environment variables of the task's program, in addition to those that every task has.
    #[serde(default)]
    #[schemars(example = r#"{ OMP_NUM_THREADS = "1" }"#)]
    pub(crate) env: BTreeMap<String, String>,
    /// Files and folders in the program's directory when it begins, relative to the experiment file, also with `*` as
    /// in `each`. Files from outside of the experiment's folder are put there under their last name.
    #[serde(default)]
    #[schemars(example = ["solve", "lib/*.py"])]
    pub(crate) inputs: Vec<String>,
    /// Files of the program's directory that are stored in the run's folder, as paths in the directory, in which `*`
    /// stands for any letters but slashes.
    #[serde(default)]
    #[schemars(example = ["*.out"])]
    pub(crate) outputs: Vec<String>,
    /// Folders on the worker's host that the program reads, as absolute paths, such as those of an installed program.
    /// The operator of each worker has to allow them with `--allow-mounts`.
    #[serde(default)]
    #[schemars(example = ["/opt/R"])]
    pub(crate) mounts: Vec<String>,
    /// Greatest size of the program's directory; 1 GiB if not given.
    #[serde(default)]
    #[schemars(extend("least" = "1 B"), example = "1 GiB")]
    pub(crate) directory: Option<Bytes>,
    /// How the program's answer is verified. If not given, a task that ends with status 0 counts as finished, but not
    /// as verified.
    #[serde(default)]
    pub(crate) verify: Option<VerifySection>,
    /// True if the task leaves identical outputs wherever and whenever it runs, so that another host may run it again
    /// for comparison (`live.spot-checks`). A task whose `verify` names the outputs of a reference run need not set
    /// it.
    #[serde(default)]
    pub(crate) deterministic: bool,
    /// How the task's work is saved when its VM is interrupted; `criu` if not given.
    #[serde(default)]
    pub(crate) saves: Option<SavesSection>,
    /// Time from the beginning at which the task is submitted. Only the scheduler `batch-service` accepts tasks that
    /// are submitted later, unless a task has `after`; it treats tasks submitted at one time as a bag.
    #[serde(default)]
    #[schemars(example = "75m")]
    pub(crate) submitted: Span,
    /// Names of the tasks that this task follows: it starts once all of them are done. The common name of several
    /// tasks means all of them; the name of one of them means that one.
    #[serde(default)]
    #[schemars(example = ["split"])]
    pub(crate) after: Vec<String>,
}

/// Time for which a task computes at full speed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Runtime {
    /// The run time is the same on every instance type.
    Everywhere(
        #[schemars(with = "Span", example = "200s", extend("least" = "1us", "words" = ["unknown", "measured"]))]
         String,
    ),
    /// The run time depends on the instance type.
    ByType(#[schemars(with = "BTreeMap<TypeName, Length>")] BTreeMap<TypeName, String>),
}

/// A length of time greater than zero.
#[derive(JsonSchema)]
#[schemars(inline, transparent)]
#[expect(dead_code, reason = "it says what may be written, and is read as text")]
struct Length(#[schemars(extend("least" = "1us"), example = "200s")] Span);

/// Defines a section of parallel jobs: the section's own keys, and the keys that all such sections share.
macro_rules! of_jobs {
    ($(#[$doc:meta])* $Name:ident { $($own:tt)* }) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub(crate) struct $Name {
            $($own)*
            /// Number of processors of the machine. If not given: the number in the log's header, or 320 for a model,
            /// as in the MEASY paper. Jobs that are listed in the experiment need the number.
            #[schemars(range(min = 1, max = 10_000_000), example = 16)]
            pub(crate) processors: Option<u32>,
            /// Memory of each processor for the processes on it; if not given, memory is not considered.
            #[schemars(extend("least" = "1 B"), example = "2 GiB")]
            pub(crate) memory_per_processor: Option<Bytes>,
            /// How the machine as a whole earns CPU credits; if not given, it always has full speed.
            pub(crate) burstable: Option<BurstableSection>,
            /// Offered load that is reached by scaling the times between submissions; if not given, these times are
            /// not scaled.
            #[schemars(range(max = 1e6), extend("exclusiveMinimum" = 0.0), example = 0.9)]
            pub(crate) load: Option<f64>,
            /// CPU usage of jobs that give none themselves.
            #[serde(default)]
            pub(crate) usage: UsageKind,
        }

        impl $Name {
            /// Returns these jobs as a workload for a machine with this many processors.
            pub(crate) fn on(&self, processors: u32, source: JobSource) -> BatchWorkload {
                let Self { memory_per_processor, load, usage, .. } = *self;
                let burstable = self.burstable.map(burstable_of);
                BatchWorkload { source, processors, memory_per_processor, burstable, load, usage }
            }
        }
    };
}

of_jobs! {
    /// Parallel jobs from a log: in the Standard Workload Format, a workload of Batsim (JSON), or the output of
    /// `sacct -P`; the first bytes tell the format.
    SwfSection {
        /// Path of the log, relative to the experiment file; plain or packed with gzip, zip, xz or zstd.
        #[schemars(example = "KTH-SP2-1996-2.1-cln.swf.gz")]
        pub(crate) log: String,
        /// How to handle lines that can't be used.
        #[serde(default)]
        pub(crate) on_malformed: OnMalformed,
        /// How to handle a job that ran longer than its user estimated.
        #[serde(default)]
        pub(crate) ran_over: RanOver,
        /// What replaces the user's estimate of the run time where the log has none.
        #[serde(default)]
        pub(crate) no_estimate: NoEstimate,
        /// Which number of processors counts as the size of a job that requested a different number than it was
        /// allocated.
        #[serde(default)]
        pub(crate) size: JobSize,
        /// How to handle a job whose number an earlier job of the log has already.
        #[serde(default)]
        pub(crate) repeated: Repeated,
        /// How to handle fractions of a second in the times of a job.
        #[serde(default)]
        pub(crate) fractions: Fractions,
        /// How to handle lines of partial executions (status 2 to 4), which SWF has for jobs that were checkpointed
        /// or swapped out.
        #[serde(default)]
        pub(crate) partial_executions: PartialExecutions,
        /// How to handle a job that follows other jobs (fields 17 and 18).
        #[serde(default)]
        pub(crate) follow_ups: FollowUps,
        /// How to handle a line with more than 18 fields.
        #[serde(default)]
        pub(crate) extra_fields: ExtraFields,
        /// Field of the log that has the jobs' priorities, which the scheduler `priority` heeds.
        #[serde(default)]
        pub(crate) priority: LogPriority,
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
        let Self { partial_executions, follow_ups, extra_fields, priority, .. } = *self;
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
            priority,
        }
    }
}

const fn given() -> Estimates {
    Estimates::Given
}

of_jobs! {
    /// Parallel jobs that a model generates.
    ModelSection {
        /// The model, by its name.
        pub(crate) model: Model,
        /// Number of jobs that the model generates.
        #[serde(default = "ten_thousand")]
        #[schemars(range(min = 2, max = 1_000_000_000))]
        pub(crate) jobs: usize,
        /// How users estimate the run times of the generated jobs.
        #[serde(default)]
        pub(crate) estimates: Estimates,
        /// Variant of a calibrated workload model.
        #[serde(default)]
        pub(crate) shape: Shape,
    }
}

const fn ten_thousand() -> usize {
    10_000
}

of_jobs! {
    /// Parallel jobs that are listed in the experiment.
    JobsSection {
        /// The jobs, in order of submission.
        #[schemars(length(min = 1))]
        pub(crate) job: Vec<JobSpec>,
    }
}

/// How the two VMs of a processor share it, for parallel jobs in virtual time; values that are not given are those of
/// the MEASY paper (sections 2.1 and 3.2).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct SharingSection {
    /// Path of the `two-tier.json` of `dormouse reproduce measy/two-tier`: its figures, measured on a host, replace
    /// the paper's.
    pub(crate) measured: Option<String>,
    /// Loss of speed of a foreground job beside a background job, as a fraction: drawn uniformly between these two.
    pub(crate) loss: Option<(Part, Part)>,
    /// Fraction of the foreground's idle cycles that a background job of one process uses: drawn uniformly between
    /// these two.
    pub(crate) single: Option<(Part, Part)>,
    /// Fraction of the foreground's idle cycles that a background job of several processes uses: mean and standard
    /// deviation of a normal distribution.
    pub(crate) several_normal: Option<(Part, Part)>,
    /// Range to which the distribution `several-normal` is limited; draws outside are repeated.
    pub(crate) several_within: Option<(Part, Part)>,
    /// True if the fractions are drawn for each process instead of once for each job.
    pub(crate) each_process: Option<bool>,
}

/// A fraction from 0 to 1 that is stored exactly as it was written.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(inline, transparent)]
#[serde(transparent)]
pub(crate) struct Part(#[schemars(range(min = 0.0, max = 1.0))] pub(crate) f64);
