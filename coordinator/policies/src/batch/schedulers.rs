//! The list of all schedulers of parallel jobs, each with its own description.
//!
//! # A new scheduler
//!
//! 1. Write `schedulers/mine.rs`: an empty type `Mine` that is a [`ListedBatchScheduler`]: its name and a line
//!    about it.
//! 2. If it is none of the passes of [`BatchScheduler`] with other rules, write the type that is a
//!    [`Policy`] and a [`BatchPolicy`] there, and make it in [`ListedBatchScheduler::build`].
//! 3. Add `mine::Mine` to the list at the end of this file.
//! 4. Format it: `rustfmt --edition 2024 coordinator/policies/src/batch/schedulers/*.rs` (`cargo fmt`
//!    does not see modules that a macro declares; `scripts/check` does).
//! 5. `dormouse run batch-small --scheduler mine`, then `dormouse check` on the run's folder.
//!
//! Experiment files, `--scheduler`, completions, `dormouse list`, the JSON schema, the reference and the
//! tests that run every scheduler find it there.

use dormouse_units::{TaskId, TypeName};

use super::{BatchScheduler, Config, Note};
use crate::Policy;

/// A scheduler of parallel jobs that is listed under its name: what it can do, and how it is built.
pub(crate) trait ListedBatchScheduler: Sync {
    /// Name of the scheduler in experiment files and logs: lower case, words joined by `-`.
    fn name(&self) -> &'static str;

    /// One-line description of the scheduler.
    fn about(&self) -> &'static str;

    /// True if jobs behind the head of the queue may start before it.
    fn backfills(&self) -> bool {
        false
    }

    /// True if the queue is in the order of the jobs' priorities, and of submission among equal ones.
    fn heeds_priorities(&self) -> bool {
        false
    }

    /// Way in which the scheduler brings background jobs to the foreground; `None`: it uses one
    /// tier only.
    fn promotion(&self) -> Option<OnPromotion> {
        None
    }

    /// The scheduler itself, for a machine that is a VM of the type `kind`.
    fn build(&self, config: Config, kind: TypeName) -> Box<dyn BatchPolicy> {
        Box::new(BatchScheduler::new(config, kind))
    }
}

/// A scheduler that can say why a job waits.
pub trait BatchPolicy: Policy {
    /// From now on notes why this job has no foreground. Only one job is watched at a time.
    fn watch(&mut self, job: TaskId) {
        let _ = job;
    }

    /// Reason why the watched job waited: one note for each change of the reason, oldest first.
    fn notes(&self) -> &[Note] {
        &[]
    }
}

/// Treatment of a background job that may run in the foreground, but not on its own processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnPromotion {
    /// The background job is killed and starts again in the foreground of other processors.
    Kill,
    /// The background job waits until the foreground of its own processors is free.
    Wait,
    /// The background job moves to the foreground of other processors with the work that it has done.
    Migrate,
}

/// Declares the modules of `schedulers/` and a name for each.
macro_rules! schedulers {
    ($($module:ident::$Name:ident,)*) => {
        $(mod $module;)*

        /// The name of a scheduler of parallel jobs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each says itself what it is: `about`")]
        pub enum Algorithm {
            $($Name,)*
            Program,
        }

        impl Algorithm {
            /// All schedulers of parallel jobs that are part of this program, simplest first.
            pub const ALL: [Self; [$(stringify!($Name),)*].len()] = [$(Self::$Name,)*];

            fn scheduling(self) -> &'static dyn ListedBatchScheduler {
                match self {
                    $(Self::$Name => &$module::$Name,)*
                    Self::Program => &program::BatchProgram,
                }
            }
        }
    };
}

crate::name::names!(Algorithm, name, "scheduler of parallel jobs");

impl Algorithm {
    /// The scheduler's name as it is written in experiment files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.scheduling().name()
    }

    /// One-line description of the scheduler.
    #[must_use]
    pub fn about(self) -> &'static str {
        self.scheduling().about()
    }

    /// True if jobs behind the head of the queue may start before it.
    #[must_use]
    pub fn backfills(self) -> bool {
        self.scheduling().backfills()
    }

    /// True if the queue is in the order of the jobs' priorities, and of submission among equal ones.
    #[must_use]
    pub fn heeds_priorities(self) -> bool {
        self.scheduling().heeds_priorities()
    }

    /// Way in which the scheduler brings background jobs to the foreground; `None`: it uses one
    /// tier only.
    #[must_use]
    pub fn promotion(self) -> Option<OnPromotion> {
        self.scheduling().promotion()
    }

    /// The scheduler, for a machine that is a VM of the type `kind`.
    #[must_use]
    pub fn build(config: Config, kind: TypeName) -> Box<dyn BatchPolicy> {
        config.algorithm.scheduling().build(config, kind)
    }
}

schedulers! {
    fcfs::Fcfs,
    easy::Easy,
    priority::Priority,
    keasy::Keasy,
    reasy::Reasy,
    measy::Measy,
}

mod program;
