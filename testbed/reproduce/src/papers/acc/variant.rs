//! The second word of a case: the job and the part of the record.

use dormouse_cloud::PriceTrace;
use dormouse_model::AdaptKnowledge;
use dormouse_spot::SpotJob;
use dormouse_units::{Span, Time};

use super::blocks;

/// Length of the part of a price record that a variant with a name such as `days-80` uses.
pub(super) const PERIOD: Span = Span::from_secs(120 * 86_400);

/// A job, and the part of a record that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobVariant {
    /// The job that runs on spot instances, with the parameters of its checkpoint schemes.
    pub(super) job: SpotJob,
    /// Beginning of the used part of a price record, as the time since the record's first price; `None` if the whole record is
    /// used.
    pub(super) from: Option<Span>,
    /// Length of a block in weeks if the weeks of the record are resampled; `None` if they are not.
    pub(super) block: Option<usize>,
}

impl JobVariant {
    /// The variant of a job that a word stands for; `None` if there is no such word. The words are
    /// `standard`; `resampled`, with resampled weeks, or `resampled-8`, in blocks of 8 weeks;
    /// `days-80`, the 120 days from day 80 on; `adapt-oracle`, whose ADAPT knows the whole record;
    /// `tc-10` and the like, with t_c, t_r or t_w in minutes in place of the job's; and `query-10`,
    /// with which ACC queries the price every ten minutes after it has ended an instance.
    pub(super) fn named(word: &str, job: SpotJob) -> Option<Self> {
        let standard = Self { job, from: None, block: None };
        match word {
            "standard" => return Some(standard),
            "resampled" => return Some(Self { block: Some(blocks::WEEKS), ..standard }),
            "adapt-oracle" => {
                return Some(Self {
                    job: SpotJob { knows: AdaptKnowledge::WholeRecord, ..job },
                    ..standard
                });
            }
            _ => {}
        }
        let (which, number) = word.split_once('-')?;
        let number: u64 = number.parse().ok()?;
        let minutes = Span::from_secs(60 * number);
        Some(match which {
            "tc" => Self { job: SpotJob { checkpoint: minutes, ..job }, ..standard },
            "tr" => Self { job: SpotJob { restart: minutes, ..job }, ..standard },
            "query" => Self { job: SpotJob { query: minutes, ..job }, ..standard },
            "tw" => Self { job: SpotJob { look: minutes, ..job }, ..standard },
            "resampled" => Self { block: Some(usize::try_from(number).ok()?.max(1)), ..standard },
            "days" => Self { from: Some(Span::from_secs(86_400 * number)), ..standard },
            _ => return None,
        })
    }

    /// The prices that the variant uses, and the time until which they are known; `None` if the
    /// record ends before.
    pub(super) fn part(&self, trace: &PriceTrace, until: Time) -> Option<(PriceTrace, Time)> {
        let Some(from) = self.from else { return Some((trace.clone(), until)) };
        let left = until.since(Time::ZERO).saturating_sub(from);
        (left > Span::ZERO).then(|| (trace.begun_at(from), Time::ZERO + left.min(PERIOD)))
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::Price;

    use super::*;

    #[test]
    fn words_are_jobs_and_parts_of_a_record() {
        let minutes = |n: u64| Span::from_secs(60 * n);
        let job = SpotJob::with_work(minutes(500));
        let read = |word| {
            JobVariant::named(word, job)
                .map(|of| (of.job.checkpoint, of.job.restart, of.job.look, of.job.knows))
        };
        let past = AdaptKnowledge::Past;
        assert_eq!(read("standard"), Some((minutes(5), minutes(5), minutes(1), past)));
        assert_eq!(read("tc-10"), Some((minutes(10), minutes(5), minutes(1), past)));
        assert_eq!(read("tr-0"), Some((minutes(5), minutes(0), minutes(1), past)));
        assert_eq!(read("tw-2"), Some((minutes(5), minutes(5), minutes(2), past)));
        let query = JobVariant::named("query-15", job).map(|of| of.job.query);
        assert_eq!((query, job.query), (Some(minutes(15)), Span::ZERO));
        let oracle = read("adapt-oracle").map(|of| of.3);
        assert_eq!(oracle, Some(AdaptKnowledge::WholeRecord));
        let block = |word| JobVariant::named(word, job).and_then(|of| of.block);
        assert_eq!([block("standard"), block("resampled-8")], [None, Some(8)]);
        assert_eq!(block("resampled"), Some(blocks::WEEKS));
        assert_eq!([read("tx-2"), read("tc-x"), read("oracle")], [None; 3]);
    }

    #[test]
    fn days_are_a_part_of_the_record() {
        let day = |n: u64| Time::from_secs(86_400 * n);
        let price = |n: u64| Price::from_nanos_per_hour(n);
        let trace = PriceTrace::new((0..300).map(|n| (day(n), price(n))).collect());
        let part = |word| {
            let of =
                JobVariant::named(word, SpotJob::with_work(Span::from_secs(60))).expect("a word");
            of.part(&trace, day(300)).map(|(trace, until)| (trace.price_at(Time::ZERO), until))
        };
        assert_eq!(part("standard"), Some((Some(price(0)), day(300))));
        assert_eq!(part("days-80"), Some((Some(price(80)), day(120))));
        assert_eq!(part("days-250"), Some((Some(price(250)), day(50))), "the rest of it");
        assert_eq!(part("days-300"), None);
    }
}
