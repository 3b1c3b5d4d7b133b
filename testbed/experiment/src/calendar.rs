//! Relation of a run's clock to dates.

use dormouse_model::Calendar;
use dormouse_units::Span;

use super::Experiment;

impl Experiment {
    /// Calendar of the run: how its clock relates to dates and to the times of its jobs' log. Dates are known if the
    /// log or the price records have them; if both have, they must agree. A log that can't be read has no dates here:
    /// the run reports the error.
    #[must_use]
    pub fn calendar(&self) -> Calendar {
        let of_log = |jobs: &super::BatchSetup| jobs.wanted(self.setup.seed).calendar().ok();
        let of_log = self.jobs.as_deref().and_then(of_log).unwrap_or_default();
        let began = match (of_log.began, self.prices_begin()) {
            (Some(log), Some(prices)) if log != prices => None,
            (log, prices) => log.or(prices),
        };
        Calendar { began, ..of_log }
    }

    /// Date at which the experiment's price records begin, if all records with dates begin at the
    /// same date.
    pub(super) fn prices_begin(&self) -> Option<i64> {
        self.price_files.iter().find_map(|file| {
            let drawn = self.drawn_prices.recorded.get(&file.kind);
            let start = drawn.map(|drawn| drawn.draw_start(self.setup.seed)).unwrap_or_default();
            file.begins?.checked_add(whole_seconds(start)?)
        })
    }
}

fn whole_seconds(span: Span) -> Option<i64> {
    i64::try_from(span.as_micros() / 1_000_000).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::fs;

    use super::super::{ExperimentSource, open};

    /// 2024-09-22 09:09:07, in seconds since 1970.
    const FIRST: i64 = 1_726_996_147;

    /// Date at which a run begins, in seconds since 1970, with a bag on a type with the prices
    /// `prices` and with jobs from a log with the header line `header`; `None` if no date is known.
    fn began(prices: &str, header: &str, seed: u64) -> Option<i64> {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("dated.csv", "2024-09-22T09:09:07Z,0.05\n2024-09-23T09:09:07Z,0.06\n");
        write("bare.csv", "0,0.05\n90000,0.06\n");
        let job = "1 5 0 100 2 -1 -1 2 100 -1 1 1 1 -1 1 1 -1 -1\n";
        write("log.swf", &format!("; MaxProcs: 2\n{header}\n{job}"));
        let jobs = "[[tenant]]\nworkload = { kind = \"swf\", log = \"log.swf\", processors = 2 }\n\
                    scheduler = { name = \"easy\" }\n";
        let text = format!(
            "name = \"x\"\nseed = {seed}\n[cloud]\nprices = {{ a = {prices} }}\n[[cloud.type]]\n\
             name = \"a\"\nvcpus = 1\nmemory = \"1 GiB\"\nspot = 0.03\n[[tenant]]\n\
             workload = {{ kind = \"bag\", deadline = \"2h\", task = [{{ runtime = \"10m\" }}] }}\n\
             scheduler = {{ name = \"fifo\", fleet = [{{ type = \"a\", market = \"spot\", count = 1 }}] }}\n{jobs}"
        );
        write("x.toml", &text);
        let path = folder.path().join("x.toml");
        let source = ExperimentSource { experiment: path.to_str(), ..ExperimentSource::default() };
        open(&source).unwrap().experiment.calendar().began
    }

    #[test]
    fn prices_with_dates_say_when_a_run_begins() {
        assert_eq!(began("\"dated.csv\"", "", 1), Some(FIRST));
        assert_eq!(began("{ file = \"dated.csv\", start = \"90m\" }", "", 1), Some(FIRST + 5_400));
        assert_eq!(began("\"bare.csv\"", "", 1), None);
        assert_eq!(began("[[\"0s\", 0.05]]", "", 1), None);
        let drawn = |seed| began("{ file = \"dated.csv\", drawn-start = true }", "", seed).unwrap();
        let all: Vec<_> = (1..20).map(drawn).collect();
        assert!(all.iter().all(|at| (FIRST..FIRST + 86_400).contains(at)), "{all:?}");
        assert!(all.iter().any(|at| *at != all[0]), "{all:?}");
    }

    #[test]
    fn a_log_and_prices_of_other_times_have_no_date_in_common() {
        let same = format!("; UnixStartTime: {FIRST}");
        let (dated, bare) = ("\"dated.csv\"", "\"bare.csv\"");
        assert_eq!(began(bare, &same, 1), Some(FIRST));
        assert_eq!(began(dated, &same, 1), Some(FIRST));
        assert_eq!(began(dated, "; UnixStartTime: 0", 1), Some(FIRST));
        assert_eq!(began(dated, "; UnixStartTime: 843480031", 1), None);
    }
}
