//! Check that this program makes the decisions of a log.

use dormouse_engine::Run;
use dormouse_model::Step;

/// Feeds the events of a log to a new run of its experiment and checks that this program makes the
/// same decisions: any difference of the twin is then the machines' doing. Returns the run after
/// the last step.
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
