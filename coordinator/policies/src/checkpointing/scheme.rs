//! What a checkpointing scheme is told, and what it can answer.

use dormouse_cloud::Market;
use dormouse_units::{Attempt, Bytes, Ppm, Price, Span, TaskId, Time, TypeName};

/// Why a scheme is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// An attempt at the task begins.
    Begins,
    /// A checkpoint of it was kept.
    Kept,
    /// A checkpoint of it could not be taken; the task runs on.
    Failed,
    /// The price of its VM is another.
    Price,
    /// The time has come at which the scheme wanted to look again.
    Look,
}

/// A task of a bag that runs, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Id of the task.
    pub task: TaskId,
    /// Attempt at the task that runs, or is about to.
    pub attempt: Attempt,
    /// Why it is looked at.
    pub moment: Moment,
    /// Memory it needs.
    pub memory: Bytes,
    /// Time the whole of its work takes on this VM at full speed.
    pub runtime: Span,
    /// What of its work is kept: by a checkpoint of this attempt or of the one before.
    pub kept: Ppm,
    /// When this attempt began.
    pub begun: Time,
    /// When its last checkpoint was kept, or could not be; else when it began.
    pub since: Time,
    /// How long it stands still for a checkpoint.
    pub cost: Span,
}

impl TaskView {
    /// How long the work that no checkpoint keeps takes at full speed.
    #[must_use]
    pub fn left(&self) -> Span {
        self.runtime.saturating_sub(self.runtime.part(self.kept))
    }
}

/// The VM that a task is on, and what its provider asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote<'a> {
    /// Instance type of the VM.
    pub kind: &'a TypeName,
    /// How it was bought.
    pub market: Market,
    /// When it was asked for.
    pub launched: Time,
    /// When it could first be used: its lifetime, if it has one, counts from then.
    pub usable: Option<Time>,
    /// Since when it is charged for, but for the time it was frozen: hours are counted from then.
    pub charged_from: Option<Time>,
    /// What it costs now.
    pub price: Price,
    /// Most that is paid for it, if that was said.
    pub bid: Option<Price>,
    /// When its price changes next, and to what, as far as is known.
    pub change: Option<(Time, Price)>,
}

/// When a task is to be checkpointed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// At this time, if it runs then, and as soon as it does if not. Once it is kept, or could not
    /// be, the scheme is asked again.
    At(Time),
    /// Not yet: the scheme is asked again at this time, by [`Moment::Look`].
    Look(Time),
    /// At these parts of its work, ascending. They go along with its start and are for the whole
    /// attempt: the scheme is asked again when the next one begins, and at any other moment this
    /// answer counts as never.
    Points(Vec<Ppm>),
}

/// A scheme that says when tasks are checkpointed. Same questions, same answers: always.
pub trait Checkpointing: std::fmt::Debug + Send {
    /// When a task is to be checkpointed next; `None`: not again in this attempt.
    ///
    /// It is asked when an attempt begins and, unless all its points are known, after each
    /// checkpoint that was kept or could not be, when the price of its VM changes, and when it wanted to
    /// look again: its last answer holds. After a checkpoint a time that is not after `now` counts as
    /// never, as does such a time to look again: it would be asked for ever at one instant. Prices
    /// that change at an instant have changed before it looks.
    fn next(&mut self, now: Time, task: &TaskView, quote: &Quote<'_>) -> Option<When>;
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A task of 1,000 s that begins with this much of its work.
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

    /// Some spot VM.
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
        assert_eq!(view(Ppm::new(250_000)).left(), Span::from_secs(750));
    }
}
