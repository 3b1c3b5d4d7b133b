//! Interface of checkpointing schemes: their inputs and their answers.

use dormouse_cloud::Market;
use dormouse_units::{Attempt, Bytes, Ppm, Price, Span, TaskId, Time, TypeName};

/// Reason why a checkpoint scheme is asked about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// An attempt at the task begins.
    Begins,
    /// A checkpoint of the task is complete.
    Kept,
    /// A checkpoint of the task could not be taken; the task runs on.
    Failed,
    /// The price of the task's VM has changed.
    Price,
    /// The time has come at which the scheme wanted to be asked again.
    Look,
}

/// A task of a bag that runs, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Id of the task.
    pub task: TaskId,
    /// Attempt at the task that runs, or is about to.
    pub attempt: Attempt,
    /// Reason for asking the scheme about the task.
    pub moment: Moment,
    /// Memory that the task needs.
    pub memory: Bytes,
    /// Time that the whole work of the task takes on this VM at full speed.
    pub runtime: Span,
    /// Part of the work that a checkpoint of this attempt or of an earlier one holds.
    pub kept: Ppm,
    /// When this attempt began.
    pub begun: Time,
    /// When the attempt's last checkpoint was complete or failed; if there was none, when the attempt began.
    pub since: Time,
    /// Time that the task is stopped for a checkpoint.
    pub cost: Span,
}

impl TaskView {
    /// Time that the work which no checkpoint keeps takes at full speed.
    #[must_use]
    pub fn unkept_work(&self) -> Span {
        self.runtime.saturating_sub(self.runtime.part(self.kept))
    }
}

/// The VM that a task is on, and its prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote<'a> {
    /// Instance type of the VM.
    pub kind: &'a TypeName,
    /// Market in which the VM was bought.
    pub market: Market,
    /// When the VM was requested.
    pub launched: Time,
    /// When the VM could first be used; if the VM's lifetime is limited, it counts from then. `None`: the
    /// VM is not usable yet.
    pub usable: Option<Time>,
    /// Time since when the VM is charged for, without time in which the VM was frozen; the VM's hours are
    /// counted from then. `None`: the VM is not charged for.
    pub charged_from: Option<Time>,
    /// Price of the VM now.
    pub price: Price,
    /// Most to be paid for the VM; `None`: no bid was given.
    pub bid: Option<Price>,
    /// When the VM's price changes next, and the new price; `None`: no change is known.
    pub change: Option<(Time, Price)>,
}

/// When a task is to be checkpointed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A checkpoint at this time if the task runs then, else as soon as the task runs. The scheme is asked again once the
    /// checkpoint is kept or has failed.
    At(Time),
    /// No checkpoint yet: the scheme wants to be asked again at this time, with [`Moment::Look`].
    Look(Time),
    /// Checkpoints at these parts of the task's work, ascending. The parts are sent with the start of the attempt and hold for all
    /// of it: the scheme is asked again when the next attempt begins. As an answer at any other moment this counts as never.
    Points(Vec<Ppm>),
}

/// A scheme that decides when tasks are checkpointed. The same questions always get the same
/// answers.
pub trait Checkpointing: std::fmt::Debug + Send {
    /// When a task is to be checkpointed next; `None`: not again in this attempt.
    ///
    /// The scheme is asked when an attempt begins. Unless all points are known then, it is asked again after each checkpoint that
    /// was completed or failed, when the VM's price changes, and at the times at which it wanted to be asked. Its last answer
    /// holds.
    ///
    /// After a checkpoint, a time that is not after `now` counts as never, and so does a time to be asked again: else the scheme
    /// would be asked for ever at one instant. Prices that change at an instant have changed before the scheme is asked.
    fn next(&mut self, now: Time, task: &TaskView, quote: &Quote<'_>) -> Option<When>;
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A view of a task of 1,000 s that begins with this part of its work done.
    pub(crate) fn view(kept: Ppm) -> TaskView {
        TaskView {
            task: TaskId::new(0),
            attempt: Attempt::default(),
            moment: Moment::Begins,
            memory: Bytes::ZERO,
            runtime: Span::from_secs(1_000),
            kept,
            begun: Time::ZERO,
            since: Time::ZERO,
            cost: Span::from_secs(10),
        }
    }

    /// A quote for some spot VM, for tests.
    pub(crate) fn quote() -> Quote<'static> {
        static KIND: std::sync::LazyLock<TypeName> = std::sync::LazyLock::new(|| "any".into());
        Quote {
            kind: &KIND,
            market: Market::Spot,
            launched: Time::ZERO,
            usable: None,
            charged_from: None,
            price: Price::default(),
            bid: None,
            change: None,
        }
    }

    #[test]
    fn what_is_left_is_in_time_at_full_speed() {
        assert_eq!(view(Ppm::new(250_000)).unkept_work(), Span::from_secs(750));
    }
}
