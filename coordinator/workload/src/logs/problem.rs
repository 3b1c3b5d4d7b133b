//! Problems of single lines and jobs of a log.

use dormouse_input::LONGEST_LINE;
use dormouse_units::Bytes;

/// Problem with a line or job of a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineProblem {
    /// The line has fewer than 18 fields.
    #[error("it has {found} fields, not 18")]
    TooFewFields {
        /// Number of fields that the line has.
        found: usize,
    },
    /// The line has more than 18 fields.
    #[error("it has more than 18 fields")]
    TooManyFields,
    /// A field is not a number.
    #[error("its field {field} is not a number")]
    NotANumber {
        /// Position, from 1, of the field that is not a number.
        field: usize,
    },
    /// A field is below −1, which stands for "not known".
    #[error("its field {field} is {value}, below -1 (which means not known)")]
    Negative {
        /// Position, from 1, of the field that is below −1.
        field: usize,
        /// Value of the field, which is below −1.
        value: i64,
    },
    /// The line is longer than `LONGEST_LINE` bytes: this is no SWF log.
    #[error("it is longer than {LONGEST_LINE} bytes: this is not an SWF log")]
    TooLong,
    /// The job has no submission time, and so no place in the order.
    #[error("its submission time is not known")]
    NoSubmission,
    /// The job wants more processors than the machine has: it could never run.
    #[error("it wants {processes} processors; the machine has {machine}")]
    LargerThanMachine {
        /// Number of processors that the job wants.
        processes: i64,
        /// Number of processors of the machine.
        machine: u32,
    },
    /// Each process of the job wants more memory than the machine can give to a process: the job could never run.
    #[error("it wants {memory} for each process; a process can have {most}")]
    MoreThanMemory {
        /// Memory that each of the job's processes wants.
        memory: Bytes,
        /// Most memory that the machine can give to a process.
        most: Bytes,
    },
    /// The job was submitted before the job above it.
    #[error(
        "it was submitted at {submitted} s, before the job in the line above ({before} s); sort the \
         log by time"
    )]
    Unsorted {
        /// Submission time of the job, in seconds.
        submitted: i64,
        /// Submission time of the job in the line above, in seconds.
        before: i64,
    },
    /// The job's times are beyond what a simulation can count.
    #[error("its times are too large")]
    TooLate,
    /// The job has no estimate, and the rules don't let the run time replace it.
    #[error("it has no requested run time (field 9)")]
    NoEstimate,
    /// An earlier job has the same number, which the rules do not allow.
    #[error("an earlier job has the same number, {number}")]
    Repeated {
        /// The job number that this job and the earlier one have.
        number: i64,
    },
    /// The job's times have parts of a second, which the rules do not allow.
    #[error("its times are not whole seconds")]
    Fractions,
    /// A table row has a different number of cells than the heading.
    #[error(
        "it has {found} cells, and its heading has {wanted}: sacct does not quote what has a bar or a \
         line break in it; leave such columns out of --format"
    )]
    OtherCells {
        /// Number of cells that the row has.
        found: usize,
        /// Number of cells of the heading.
        wanted: usize,
    },
    /// A cell of a table, or a value of a JSON file, can't be read.
    #[error("its {name} is '{value}': {right}")]
    Value {
        /// Name of the table's column or the JSON file's key whose value can't be read.
        name: &'static str,
        /// Text of the unreadable cell or value, shortened.
        value: Box<str>,
        /// What to write in place of the unreadable value, in words.
        right: &'static str,
    },
    /// An entry of a JSON file is not a job.
    #[error("it is not a job: {why}")]
    NoJob {
        /// Reason why the entry of the JSON file is not a job, in words.
        why: Box<str>,
    },
    /// The job's profile does not say how long it takes.
    #[error("its profile '{name}' is {what}; give it one of type delay")]
    Profile {
        /// Name of the job's Batsim profile.
        name: Box<str>,
        /// The flaw of the profile, in words.
        what: Box<str>,
    },
}
