//! Whether this program decides what stands in a log.

use dormouse_engine::Run;
use dormouse_model::Step;

/// Feeds the events of a log to a new run of its experiment and checks that they make this program
/// decide what stands there: what differs in the twin is then the machines' doing. The run as it is
/// after the last step is given.
///
/// # Errors
///
/// The number of the first step that comes out otherwise.
pub fn decided_again(mut run: Run, steps: &[Step]) -> Result<Run, u64> {
    for step in steps {
        let (again, _) = run.handle_again(step);
        if again.decisions != step.decisions {
            return Err(step.seq);
        }
    }
    Ok(run)
}
