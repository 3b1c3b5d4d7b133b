//! The invariants that the oracle checks, by name.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! invariants {
    ($($Name:ident: $name:literal, $says:literal;)*) => {
        /// An invariant: a condition that must hold in every run, whatever faults it has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Invariant {
            $(#[doc = $says] $Name,)*
        }

        impl Invariant {
            /// All invariants.
            pub const ALL: &'static [Self] = &[$(Self::$Name),*];

            /// The invariant's name, as the tables print it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Name => $name,)* }
            }

            /// The invariant as a sentence.
            #[must_use]
            pub const fn says(self) -> &'static str {
                match self { $(Self::$Name => $says,)* }
            }
        }
    };
}

invariants! {
    DurableFirst: "durable-first",
        "A command leaves only once the step that caused it is durable, and commands leave in the order of the log.";
    Replay: "replay",
        "Each durable step comes out byte for byte where its event is heard again.";
    LogGrows: "log-grows",
        "The durable log only grows: nothing but a torn tail is ever cut from it.";
    Acknowledged: "acknowledged",
        "A report that was acknowledged is in the durable log, and no report is there twice.";
    ObeyedOnce: "obeyed-once",
        "A worker's life hears each command that the log has for it once, in the order of the log.";
    FinishedOnce: "finished-once",
        "Every task finishes exactly once in the log of a run that is complete, and never twice; a run is complete once all have.";
    OneAttempt: "one-attempt",
        "The log has one attempt at a task at a time and hears no other, and each start of a task is a new attempt, with one process.";
    Frozen: "frozen",
        "A VM is said to be frozen only while it is, and no process begins on it meanwhile.";
    Verified: "verified",
        "No task counts as verified whose work no machine has done, and no answer that can be checked counts by its worker's word.";
    Believed: "believed",
        "No worker that says what has happened is disbelieved, and each answers its commands in time.";
    Reported: "reported",
        "What an honest worker reports of an attempt is what its machine did: what it kept, what was left to do, and why a checkpoint failed.";
    NewestCheckpoint: "newest-checkpoint",
        "A task goes on from the newest whole checkpoint of the history that the log has, and that, or a later one, is stored until the task's end is durable.";
    OneHistory: "one-history",
        "What is stored of a task is of one history: what an attempt took is gone once a later one has stored as early a number.";
    AllBack: "all-back",
        "A coordinator resumes a run only once each worker that the log has is back with it or lost.";
    NotAhead: "not-ahead",
        "The run's clock shows no more than the time that has passed, and what its wall clock was set forward by.";
    SubmittedOnce: "submitted-once",
        "What users submit to an open run under one key is in the durable log once, from the answer on, and nothing is after the answer that it is closed.";
    StoredWhole: "stored-whole",
        "What is stored under the name of a checkpoint is that checkpoint and whole, and of no attempt that the log had given up before it set out.";
    LostBySilence: "lost-by-silence",
        "A host is lost by silence only if nothing was heard of its worker for as long as the run waits.";
    InstantOrder: "instant-order",
        "Of one instant, jobs that are due are heard of before timers, and its end once after something of it.";
    AccountOnce: "account-once",
        "Each account of an attempt is in the log once, and before the attempt's report, whatever crash parts the two.";
    FaultOnce: "fault-once",
        "A fault of the experiment is asked for once, and felt only by hosts that were asked for it.";
    Bills: "bills",
        "Each VM costs what its tariff makes of when it was ready, hibernated, resumed and ended, reckoned anew.";
    Credits: "credits",
        "No VM holds more credits than it began with and has earned while it was not hibernated, and a surplus costs what its type says.";
    Accounts: "accounts",
        "Money, credits and capacity are as the intervals of the log say.";
    NothingLeft: "nothing-left",
        "Neither checkpoints nor identities nor machines are left behind by a run that is over, nor machines by a worker that is done.";
    Progress: "progress",
        "A run ends within a bounded time once faults stop; where it is not complete, it says one of the reasons that there may be, and that is true.";
    NoFailure: "no-failure",
        "No part of the coordinator or of a worker fails by itself, and whoever ends before the run does has a reason that has happened.";
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The invariant that was broken.
    pub invariant: Invariant,
    /// Simulated time at which the violation was found, in microseconds since the run's start.
    pub at_us: u64,
    /// Details of the violation, for people.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, at_us, what } = self;
        write!(f, "{invariant} at {}.{:06} s: {what}", at_us / 1_000_000, at_us % 1_000_000)
    }
}
