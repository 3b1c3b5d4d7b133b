//! What the clock of an experiment's run is beside dates.

use dormouse_model::Calendar;
use dormouse_units::Span;

use super::Experiment;

impl Experiment {
    /// What the clock of its run is beside dates and the times of its jobs' log. Dates are known where
    /// its log or its records of prices have them; where both do, they have to say the same. Of a log
    /// that can't be read nothing is known: the run says why.
    #[must_use]
    pub fn calendar(&self) -> Calendar {
        let of_log = |jobs: &super::Batch| jobs.wanted(self.setup.seed).calendar().ok();
        let of_log = self.jobs.as_deref().and_then(of_log).unwrap_or_default();
        let began = match (of_log.began, self.prices_begin()) {
            (Some(log), Some(prices)) if log != prices => None,
            (log, prices) => log.or(prices),
        };
        Calendar { began, ..of_log }
    }

    /// The date at which its records of prices begin, which all that have dates share.
    fn prices_begin(&self) -> Option<i64> {
        self.price_files.iter().find_map(|file| {
            let drawn = self.drawn_prices.recorded.get(&file.kind);
            let start = drawn.map(|drawn| drawn.start(self.setup.seed)).unwrap_or_default();
            file.begins?.checked_add(whole_seconds(start)?)
        })
    }
}

fn whole_seconds(span: Span) -> Option<i64> {
    i64::try_from(span.as_micros() / 1_000_000).ok()
}
