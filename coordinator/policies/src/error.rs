//! Reasons why a bag can't be scheduled, for the person who wrote it.

use dormouse_units::{Bytes, Span, TaskId, TypeName};

/// Reason why no schedule can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A parameter is outside its range.
    #[error("scheduler parameter {key} = {value}: {want}")]
    Parameter {
        /// The parameter's name in the configuration.
        key: &'static str,
        /// The parameter's value as it was given, which is outside the range.
        value: String,
        /// The range that the value has to be in, in words.
        want: &'static str,
    },
    /// A plan was given to a scheduler that takes none.
    #[error("the scheduler {scheduler} {why}, and takes no plan")]
    TakesNoPlan {
        /// Name of the scheduler, as the experiment gives it.
        scheduler: &'static str,
        /// Reason why the scheduler takes no plan, as a phrase that follows its name.
        why: &'static str,
    },
    /// A parameter that only the scheduler has can't be read.
    #[error("a parameter of the scheduler: {0}")]
    Parameters(String),
    /// The catalogue doesn't sell the kind of VMs that the scheduler needs.
    #[error(
        "the scheduler {scheduler} needs {what} in the catalogue, which has {known}; offer one under [cloud]"
    )]
    NothingOffered {
        /// Name of the scheduler.
        scheduler: &'static str,
        /// The kind of VM that is missing.
        what: &'static str,
        /// The types in the catalogue.
        known: String,
    },
    /// A task needs more memory than any offered VM has.
    #[error(
        "{task} ('{name}') needs {memory}, but the largest VM it could get, {largest}, has {most}"
    )]
    TaskTooLarge {
        /// The task's id.
        task: TaskId,
        /// The task's name.
        name: String,
        /// The memory that the task needs.
        memory: Bytes,
        /// The largest type offered.
        largest: TypeName,
        /// The memory of the largest type.
        most: Bytes,
    },
    /// No runtime of a task is known for any offered type.
    #[error(
        "{task} ('{name}') has runtimes for {given}, but for none of the offered types {offered}"
    )]
    NoRuntime {
        /// The task's id.
        task: TaskId,
        /// The task's name.
        name: String,
        /// The types for which the task has run times, as text.
        given: String,
        /// The types on offer.
        offered: String,
    },
    /// One task alone can't end by the deadline.
    #[error(
        "the deadline {deadline} can't be met: {task} ('{name}') alone ends at {shortest} \
         (boot {boot} + {length} on {fastest}, checkpoints included)"
    )]
    TaskTooLong {
        /// The task's id.
        task: TaskId,
        /// The task's name.
        name: String,
        /// The deadline, by which all tasks have to be done.
        deadline: Span,
        /// Earliest time at which the task can be done.
        shortest: Span,
        /// The boot time that `shortest` includes.
        boot: Span,
        /// The run time of the task, which `shortest` includes.
        length: Span,
        /// The type on which the task has this run time.
        fastest: TypeName,
    },
    /// Tasks that come one after the other can't end by the deadline.
    #[error(
        "the deadline {deadline} can't be met: {chain}, one after the other, end at {shortest} at the \
         soonest (boot {boot}, each on its fastest type, checkpoints included)"
    )]
    ChainTooLong {
        /// Names of the tasks in their order; if the chain is long, only some of them.
        chain: String,
        /// The deadline, by which all tasks have to be done.
        deadline: Span,
        /// When the last of the tasks can be done at the earliest.
        shortest: Span,
        /// The boot time that `shortest` includes.
        boot: Span,
    },
    /// One task never ends, as no VM lives as long as it takes.
    #[error(
        "{task} ('{name}') takes {length}, longer than any spot {kind} lives: take checkpoints, or \
         give it another type"
    )]
    OutlivesVms {
        /// The task's id.
        task: TaskId,
        /// The task's name.
        name: String,
        /// The task's run time.
        length: Span,
        /// Instance type of the spot VMs, none of which lives as long as the task takes.
        kind: TypeName,
    },
    /// All VMs together can't do the work by the deadline.
    #[error(
        "the deadline {deadline} can't be met: at best {work} of work on {vcpus} vCPUs after {boot} \
         of boot ends at {shortest}; allow more time or raise the limits"
    )]
    TooMuchWork {
        /// The deadline, by which all tasks have to be done.
        deadline: Span,
        /// The sum of each task's shortest run time.
        work: Span,
        /// Number of vCPUs that may be had at a time.
        vcpus: u64,
        /// Boot time before the work can begin.
        boot: Span,
        /// Time before which no schedule can end.
        shortest: Span,
    },
    /// No schedule was found, though there might be one.
    #[error(
        "no schedule was found that meets the deadline {deadline}; the best found ends at {best}, \
         and none can end before {shortest}: allow more time"
    )]
    NoneFound {
        /// The deadline, by which all tasks have to be done.
        deadline: Span,
        /// The end of the best schedule found.
        best: Span,
        /// Time before which no schedule can end.
        shortest: Span,
    },
    /// The plan to run doesn't fit the bag or the catalogue.
    #[error("the given plan can't be run: {0}")]
    BadPlan(String),
}
