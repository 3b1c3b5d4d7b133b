//! Inputs of a twin: the external events of the run, which the twin gets instead of random events,
//! and the check that this program makes the decisions of the run's log.

use dormouse_cloud::{Interruption, InterruptionModel};
use dormouse_engine::Run;
use dormouse_model::{Effect, Event, Step};
use dormouse_units::Time;

use crate::sample::is_deferred;

/// External events of a run as its log has them, each with its time and in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TwinInputs {
    /// Joins and losses of hosts, the beginning, and the end by the user.
    pub outside: Vec<(Time, Event)>,
    /// Acts of the provider on spot VMs, at the times at which they were requested.
    pub acts: Vec<Interruption>,
}

impl TwinInputs {
    /// Reads the inputs of a twin from the steps of a run.
    #[must_use]
    pub fn from_steps(steps: &[Step]) -> Self {
        let mut given = Self::default();
        for step in steps {
            match &step.event {
                Event::HostJoined { .. }
                | Event::HostLost { .. }
                | Event::Begin
                | Event::Cancel { .. } => given.outside.push((step.at, step.event.clone())),
                Event::Tick
                | Event::Machine { .. }
                | Event::Submitted { .. }
                | Event::Closed
                | Event::AllSubmitted
                | Event::Requested { .. }
                | Event::Called { .. }
                | Event::AllRequested
                | Event::InstantOver
                // It counts among the acts, by its effect.
                | Event::Interrupt { .. }
                // Its consequences for hosts are external events by themselves.
                | Event::Fault { .. }
                | Event::FaultFelt { .. }
                | Event::HostLoad { .. }
                | Event::Disbelieved { .. }
                | Event::JailLacking { .. }
                | Event::SpotCheck { .. }
                | Event::CoordinatorLoad { .. }
                | Event::Clock { .. }
                | Event::Resumed { .. } => {}
            }
            for effect in step.effects.iter().filter(|effect| !is_deferred(step, effect)) {
                if let Effect::Interrupted { asked, action, target, .. } = effect {
                    let (at, action, target) = (*asked, *action, target.clone());
                    given.acts.push(Interruption { at, target, action });
                }
            }
        }
        given
    }

    /// Whether the experiment began in the compared run.
    #[must_use]
    pub fn began(&self) -> bool {
        self.outside.iter().any(|(_, event)| *event == Event::Begin)
    }

    /// The acts as a schedule of interruptions, in place of a schedule drawn with the seed.
    #[must_use]
    pub fn interruptions(&self) -> Vec<InterruptionModel> {
        vec![InterruptionModel::Schedule { acts: self.acts.clone() }]
    }
}

/// Feeds the events of a log to a new run of its experiment and checks that this program makes the
/// same decisions: then any difference between the run and its twin comes from the machines.
/// Returns the run after the last step.
///
/// # Errors
///
/// The number of the first step in which this program decides differently.
pub fn decided_again(mut run: Run, steps: &[Step]) -> Result<Run, u64> {
    for step in steps {
        let (again, _) = run.handle_again(step);
        if again.decisions != step.decisions {
            return Err(step.seq);
        }
    }
    Ok(run)
}
