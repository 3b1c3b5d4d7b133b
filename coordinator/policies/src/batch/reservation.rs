//! EASY's reservation for the head of the queue.

use dormouse_units::Time;

use super::queue::ExpectedEnding;

/// The reservation for the queue's head: when the head will have its processors, and how many processors it will not
/// need then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadReservation {
    /// Latest start of the queue's head by the estimates (shadow time).
    pub(crate) shadow: Time,
    /// Number of idle processors that may be used past the shadow time.
    pub(crate) extra: u32,
}

/// The reservation of a job that needs any `need` processors, when `idle` are idle now and
/// `endings` lists the running jobs by their expected end.
pub(crate) fn reservation_by_count(
    now: Time,
    need: u32,
    idle: u32,
    endings: &[ExpectedEnding],
) -> HeadReservation {
    let mut free = idle;
    let mut shadow = now;
    for ending in endings {
        // Ties have no order: whatever ends by the shadow time counts.
        if free >= need && ending.at > shadow {
            break;
        }
        free += ending.processes;
        shadow = shadow.max(ending.at);
    }
    HeadReservation { shadow, extra: free.saturating_sub(need) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dormouse_units::TaskId;

    fn ending(at: u64, id: u32, processes: u32) -> ExpectedEnding {
        ExpectedEnding { at: Time::from_secs(at), id: TaskId::new(id), processes }
    }

    #[test]
    fn whatever_ends_by_the_shadow_time_counts() {
        let endings = [ending(5, 0, 2), ending(9, 1, 3), ending(9, 2, 4), ending(11, 3, 1)];
        let made = reservation_by_count(Time::from_secs(1), 6, 1, &endings);
        assert_eq!(made, HeadReservation { shadow: Time::from_secs(9), extra: 4 });
    }

    #[test]
    fn a_job_past_its_estimate_is_expected_to_end_now() {
        let endings = [ending(3, 0, 2), ending(4, 1, 2), ending(30, 2, 4)];
        let made = reservation_by_count(Time::from_secs(10), 2, 1, &endings);
        assert_eq!(made, HeadReservation { shadow: Time::from_secs(10), extra: 3 });
    }
}
