//! Checkpoints of an instance that its user may end at the end of an hour (ACC paper, section V).

use dormouse_units::{Price, Span, Time};

use super::{Checkpointing, Quote, TaskView, When};
use dormouse_spot::before_hour_ends;

/// Checkpoints at t_h − t_c − t_w, where t_h is the end of each hour, if the price is then above the application's bid. The
/// checkpoint is complete by t_h − t_w, when the instance's user may end it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccCheckpoints {
    /// The application's bid; `None`: the VM's own bid.
    pub(super) bid: Option<Price>,
    /// Time before the end of an hour at which the instance may be ended (t_w).
    pub(super) look: Span,
}

impl Checkpointing for AccCheckpoints {
    fn next(&mut self, now: Time, task: &TaskView, quote: &Quote<'_>) -> Option<When> {
        let begins = quote.charged_from?;
        let bid = self.bid.or(quote.bid)?;
        let lead = task.cost + self.look;
        let soonest = Span::from_micros(1);
        let point = before_hour_ends(begins, lead, now.max(task.since + soonest));
        if point > now {
            return Some(When::Look(point));
        }
        Some(match quote.price > bid {
            true => When::At(now),
            false => When::Look(before_hour_ends(begins, lead, now + soonest)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Moment;
    use super::super::scheme::tests::{quote, view};
    use super::*;

    #[test]
    fn it_decides_at_its_point_of_each_hour() {
        let (at, cents) = (Time::from_secs, |n: u64| Price::from_nanos_per_hour(n * 10_000_000));
        let ask = |bid, now, since, price| {
            let mut scheme = AccCheckpoints { bid, look: Span::from_secs(60) };
            // The task's checkpoints take 10 s.
            let task =
                TaskView { since: at(since), moment: Moment::Look, ..view(Default::default()) };
            let quote = Quote {
                charged_from: Some(at(100)),
                price: cents(price),
                bid: Some(cents(7)),
                ..quote()
            };
            scheme.next(at(now), &task, &quote)
        };
        let look = |s| Some(When::Look(at(s)));
        // The first hour ends at 3,700 s.
        assert_eq!(ask(None, 100, 100, 9), look(3_630));
        assert_eq!(ask(None, 3_629, 100, 9), look(3_630));
        assert_eq!(ask(None, 3_630, 100, 9), Some(When::At(at(3_630))));
        assert_eq!(ask(None, 3_630, 100, 7), look(7_230));
        assert_eq!(ask(Some(cents(9)), 3_630, 100, 9), look(7_230));
        assert_eq!(ask(None, 3_640, 3_640, 9), look(7_230));
        // There is nothing to keep yet.
        assert_eq!(ask(None, 3_630, 3_630, 9), look(7_230));
    }
}
