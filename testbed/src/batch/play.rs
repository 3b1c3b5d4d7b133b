//! A recorded run again, step by step: from its log, or made anew where the log was too long to
//! be kept.

use dormouse_engine::Step;
use dormouse_engine::drive::Modelled;
use dormouse_engine::jobs::simulate_on;

use super::log::BatchLog;
use super::{BatchError, Jobs};

/// Shows every step of `log` to `see`; what goes wrong there ends the play.
pub(crate) fn play(
    log: &BatchLog,
    see: impl FnMut(&Step) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    if let Some(steps) = &log.steps {
        return steps.iter().try_for_each(see);
    }
    let experiment = &log.header.experiment;
    let simulation = experiment.simulation(log.header.machine);
    let mut world = Modelled::new(simulation.law());
    simulate_on(&mut world, Jobs::open(experiment)?, &simulation, see)?;
    Ok(())
}
