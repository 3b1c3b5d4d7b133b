//! The command line: every subcommand, with its help text.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::args::{
    CalibrateArgs, CoordinatorArgs, EventsArgs, IdentityArgs, RecordedArgs, ResumeArgs, RunArgs,
    RunningArgs, SubmitArgs, TokenArgs, TwinArgs, WatchArgs,
};
use super::compare::CompareArgs;
use super::ec2_args::Ec2Args;
use super::export::ExportArgs;
use super::fit::FitArgs;
use super::input_args::InputArgs;
use super::inspect::InspectArgs;
use super::interrupt_args::InterruptArgs;
use super::known_name::EXPERIMENT;
use super::measure::MeasureArgs;
use super::metadata_args::MetadataArgs;
use super::reproduce::Reproduce;
use super::sweep::{MergeArgs, SweepArgs};
use super::worker::WorkerArgs;

/// A cloud on a bench: emulates spot, burstable and on-demand VMs, and runs schedulers on them.
#[derive(Debug, Parser)]
#[command(
    name = "dormouse",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check what this host can do, prove it, and show what to fix
    ///
    /// Real tasks are launched, frozen, dumped and restored, as in a run; `run --live` begins with these checks, once per boot.
    Doctor {
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// Only check what is installed; run no proof
        #[arg(long)]
        quick: bool,
        /// Run the checks in this process, which becomes a worker
        #[arg(long, hide = true)]
        here: bool,
    },
    /// Measure how exactly this host emulates at each speed-up and load; needs root
    ///
    /// Makes short live runs of tasks with checkpoints, and compares the time of each task with that in a virtual twin of its run.
    /// `dormouse run --live` takes its speed-up from the table. A load is the number of vCPUs busy at once as a part of those that
    /// this host holds at 1/24 of a core each: errors come from how finely cores are divided.
    Calibrate(CalibrateArgs),
    /// Run an experiment, in virtual time or live on real processes
    Run(Box<RunArgs>),
    /// Measure the CPU time and memory of your own programs, run alone and undisturbed; needs root
    ///
    /// One task of each command runs live by itself, under the quota of the reference vCPU: its CPU time, how long it waited, its
    /// memory, and whether CRIU can checkpoint it. What is measured is the runtime of tasks that say runtime = "measured".
    Measure(Box<MeasureArgs>),
    /// Answer as a VM's metadata endpoint, without a run, root or a VM
    ///
    /// Requests that a program on a VM would send to 169.254.169.254, in the dialects of EC2, Google and Azure, are answered on a
    /// port of this host. The provider's announcements come at the times of a scenario, or of options as in
    /// amazon-ec2-metadata-mock. Without any of these a spot interruption, a recommendation and maintenance are announced at once.
    Metadata(Box<MetadataArgs>),
    /// Answer EC2's calls with an experiment's cloud
    ///
    /// boto3, terraform and other programs whose endpoint can be set call it: spot and on-demand instances are launched, charged
    /// and preempted as the experiment says; its tasks are not run. The first line that is printed is AWS_ENDPOINT_URL=…; Ctrl-C
    /// ends the run, and its results are those of any run. An access key is an account.
    Ec2(Box<Ec2Args>),
    /// Reproduce a paper's tables, beside the printed ones
    #[command(subcommand)]
    Reproduce(Reproduce),
    /// Run an experiment over lists of values of one key or several
    Sweep(SweepArgs),
    /// Compare schedulers on the same experiments under the same seeds
    Compare(CompareArgs),
    /// Join the parts of a reproduction or sweep that was made in shards
    Merge(MergeArgs),
    /// Run an experiment live on workers of other hosts, which dial this process
    Coordinator(CoordinatorArgs),
    /// Offer this host to a coordinator, until its run is over
    Worker(WorkerArgs),
    /// Make keys and tokens for runs to come, so that workers can be given theirs ahead of a run
    ///
    /// The coordinator is given the folder as $DORMOUSE_IDENTITY, workers its file `secret`, by which they know the coordinator.
    /// Without such an identity, every run has one of its own.
    Identity(IdentityArgs),
    /// Print a token of a run, or of an identity
    Token(TokenArgs),
    /// Resume a live run that was stopped, or whose coordinator was killed
    Resume(ResumeArgs),
    /// Show a live run's status
    Status {
        #[command(flatten)]
        at: RunningArgs,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the events of a run: the lines of its events.jsonl
    Events(EventsArgs),
    /// Submit one more parallel job to a live run that was begun with --open
    Submit(SubmitArgs),
    /// Close a live run that was begun with --open to further jobs
    ///
    /// The run ends once the jobs that it has are done.
    Close {
        #[command(flatten)]
        at: RunningArgs,
    },
    /// End a live run before its time
    Cancel {
        #[command(flatten)]
        at: RunningArgs,
        /// Reason, which is written to the log
        #[arg(long)]
        why: Option<String>,
    },
    /// Have the provider of a live run hibernate, resume or preempt spot VMs now
    Interrupt(InterruptArgs),
    /// Show a run on a page in the browser, while it runs or afterwards
    Watch(WatchArgs),
    /// Explain what happened to a task, VM or job of a run, and why
    Explain {
        #[command(flatten)]
        of: RecordedArgs,
        /// What to explain: task7, a task's name, vm3, or 7 in a run without parallel jobs; in one with them, 7 is a job
        what: String,
    },
    /// Export a run for other programs: a trace, Parquet tables, a chart of a part of its time
    Export(ExportArgs),
    /// Check a run against the rules: no task on two VMs, no bill that does not add up, …
    Check(RecordedArgs),
    /// Feed the events of a run to its scheduler again, and compare every decision
    Replay(RecordedArgs),
    /// Play a live run again in virtual time with the interruptions that it had, and compare both runs
    Twin(TwinArgs),
    /// Fit laws to recorded lifetimes of VMs: the bathtub and others, for an experiment's [[interruption]]
    Fit(FitArgs),
    /// Advise on VMs that can be preempted: when to checkpoint, which VM to use, what to bid
    #[command(subcommand)]
    Advise(super::advise::AdviseCommand),
    /// Generate, describe, scale and convert workloads of parallel jobs, and requests for VMs
    #[command(subcommand)]
    Workload(super::workload::WorkloadCommand),
    /// Describe and generate records of spot prices
    #[command(subcommand)]
    Prices(super::prices::PricesCommand),
    /// Show what a file is, how it is read, and the lines of an experiment that use it
    Inspect(InspectArgs),
    /// List the built-in experiments and the schedulers
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a built-in experiment as a complete, runnable file
    Show {
        /// Name of the experiment, such as j60-sc2; with --json, a file of your own as well
        #[arg(value_parser = EXPERIMENT, hide_possible_values = true)]
        name: String,
        /// Print the experiment as it is read, as JSON: everything in it with the value that it has, in the
        /// units of events.jsonl
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        inputs: InputArgs,
    },
    /// Print the keys of experiment files with their units, ranges and defaults, as Markdown
    Reference,
    /// Print the JSON schema of experiment files, from which editors complete
    Schema {
        /// Print instead the schema of the lines between dormouse and a scheduler that is a program, from
        /// which types are generated
        #[arg(long)]
        scheduler: bool,
    },
    /// Print a script with which a shell completes this command line
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the pages of the manual, one for each command
    Man {
        /// Folder to write into; it is created
        dir: PathBuf,
    },
}
