//! The times of a live run's tasks against those of its virtual twin.

use dormouse_tell::Record;
use dormouse_tell::fidelity::span_of;
use dormouse_units::TaskId;

/// For every task that was disturbed in neither, (live − virtual) / virtual of the time from its
/// start to its end, live as the worker measured it. Undisturbed is one that came to its end in
/// its only attempt.
pub(super) fn errors(live: &Record, twin: &Record) -> Vec<f64> {
    let both = (0..).map(TaskId::new).zip(live.tasks.iter().zip(&twin.tasks));
    both.filter_map(|(task, _)| {
        let (live, twin) = (span_of(live, task)?, span_of(twin, task)?);
        let (live, twin) = (live.as_secs_f64(), twin.as_secs_f64());
        (twin > 0.0).then(|| live / twin - 1.0)
    })
    .collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use dormouse_units::Span;

    use super::*;
    use crate::calibrate::bag::tests::played;
    use dormouse_tell::TaskHistory;

    #[test]
    fn only_what_was_disturbed_in_neither_is_compared() {
        // The tasks of the VM that is taken away are disturbed as it is.
        let twin = played();
        let disturbed = twin.tasks.iter().filter(|t| t.attempts.len() > 1).count();
        let undisturbed = errors(&twin, &twin);
        assert!(disturbed > 0, "{twin:?}");
        assert_eq!(undisturbed, vec![0.0; twin.tasks.len() - disturbed]);

        let mut live = twin.clone();
        let alone: Vec<_> =
            (0..live.tasks.len()).filter(|&n| live.tasks[n].attempts.len() == 1).collect();
        let took =
            |task: &TaskHistory| task.finished.unwrap().since(task.attempts[0].started.unwrap());
        // One a tenth longer, one that began anew, one that came to no end.
        let first = &mut live.tasks[alone[0]];
        first.finished =
            Some(first.finished.unwrap() + Span::from_micros(took(first).as_micros() / 10));
        let again = live.tasks[alone[1]].attempts[0].clone();
        live.tasks[alone[1]].attempts.push(again);
        live.tasks[alone[2]].finished = None;
        let errors = errors(&live, &twin);
        assert_eq!(errors.len(), undisturbed.len() - 2);
        assert!((errors[0] - 0.1).abs() < 1e-6, "{errors:?}");
        assert!(errors[1..].iter().all(|e| *e == 0.0), "{errors:?}");
    }
}
