//! Estimate of the memory that a live run of many tasks takes on its coordinator's host, reported before the run
//! begins.

use dormouse_experiment::Experiment;
use dormouse_units::Bytes;
use dormouse_worker::agent::available_memory;

use super::args::Say;
use crate::said;

/// Memory of a run without tasks, in bytes.
const BASE: u64 = 40 << 20;
/// Memory of a task in bytes, from its entry in the experiment to its results, which are read back from the log in the
/// end. Measured as the largest resident set with 100,000 equal tasks beside that with 1,000: 2.7 KiB each in a coordinator
/// that waits for its workers, and 4.9 KiB each in a virtual run until its results are written.
const PER_TASK: u64 = 5 << 10;
/// Least memory need of a run, in bytes, of which the user is told even if that much is available.
const MUCH: u64 = 256 << 20;

/// Tells the user how much memory a run needs, if that is much or more than is available.
pub(super) fn note_need(experiment: &Experiment, say: Say) {
    if say.quiet {
        return;
    }
    let tasks = experiment.setup.bag.tasks.len() as u64;
    if let Some(line) = describe_need(tasks, available_memory()) {
        said::note(&line);
    }
}

/// Describes the memory need of this many tasks beside the available memory; `None` if the need is small and available.
fn describe_need(tasks: u64, available: Option<u64>) -> Option<String> {
    let need = BASE.saturating_add(tasks.saturating_mul(PER_TASK));
    let words = format!("a run of {tasks} tasks needs about {} of memory here", Bytes::new(need));
    match available {
        Some(available) if available < need => Some(format!(
            "{words}, and at most {} is available: it may be killed for that; give it more, or run fewer tasks at a time",
            Bytes::new(available)
        )),
        _ => (need >= MUCH).then_some(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_is_said_where_it_is_much_or_not_there() {
        assert_eq!(describe_need(60, Some(1 << 30)), None);
        assert_eq!(describe_need(60, None), None);
        let much = describe_need(100_000, Some(1 << 30)).expect("it is much");
        assert!(much.contains("100000 tasks") && !much.contains("killed"), "{much}");
        let lacking = describe_need(100_000, Some(256 << 20)).expect("it is not there");
        assert!(lacking.contains("and at most 256 MiB is available"), "{lacking}");
        assert!(describe_need(60, Some(1 << 20)).expect("not there").contains("give it more"));
    }
}
