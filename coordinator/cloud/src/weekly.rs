//! Rates of interruptions that change with the hour of the day and the day of the week.

use dormouse_units::{RandomStream, Span, Time};
use serde::{Deserialize, Serialize};

/// Hours of a week.
const HOURS: usize = 7 * 24;
/// Microseconds of an hour.
const HOUR_US: u64 = 3_600_000_000;
/// Microseconds of a week.
const WEEK_US: u64 = HOURS as u64 * HOUR_US;
/// Seconds of a week.
const WEEK_S: i64 = 7 * 86_400;
/// Mean of the integrated rate between two events: one event, in millionths of events an hour, times microseconds.
const ONE_EVENT: u64 = 1_000_000 * HOUR_US;
/// Divisor of `ONE_EVENT` for random draws, which end at 2^53 microseconds: a draw has the mean `ONE_EVENT / DRAWN`, and is
/// multiplied by `DRAWN`.
const DRAWN: u64 = 1_000;

/// A rate of events for each hour of the week, by which events are drawn exactly: the rate is constant within an hour, so
/// that its integral is inverted in whole numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeeklyRates {
    /// Events an hour, in millionths, for each of the 168 hours from Monday 0:00 on, in local time.
    per_hour: Vec<u64>,
    /// Seconds by which local time is ahead of UTC.
    east: i64,
    /// Local time of the week at which the run begins, from Monday 0:00 on.
    begins: Span,
}

impl WeeklyRates {
    /// Rates of the week's 168 hours from Monday 0:00 on, in millionths of events an hour, on a clock that is `east`
    /// seconds ahead of UTC; `None` unless there are 168 rates and one of them is positive.
    #[must_use]
    pub fn new(per_hour: Vec<u64>, east: i64) -> Option<Self> {
        let is_right = per_hour.len() == HOURS && per_hour.iter().any(|rate| *rate > 0);
        is_right.then_some(Self { per_hour, east, begins: Span::ZERO })
    }

    /// Sets the date of the run's beginning, in seconds since 1970.
    pub fn begin_at(&mut self, second: i64) {
        // 1970 began with a Thursday.
        let local = second.saturating_add(self.east).saturating_add(3 * 86_400);
        let since = u64::try_from(local.rem_euclid(WEEK_S)).unwrap_or(0);
        self.begins = Span::from_micros(since * 1_000_000);
    }

    /// Draws the time of the first event after `from`; `None` if there never is one.
    pub(crate) fn draw_after(&self, from: Time, stream: &mut RandomStream) -> Option<Time> {
        let whole_week = self.integral_of_week();
        if whole_week == 0 {
            return None;
        }
        let drawn = stream.draw_exponential(Span::from_micros(ONE_EVENT / DRAWN)).as_micros();
        let drawn = u128::from(drawn) * u128::from(DRAWN);
        let (weeks, mut left) = (drawn / whole_week, drawn % whole_week);
        let mut waited = weeks.saturating_mul(u128::from(WEEK_US));
        let mut hours = self.hours_from(from);
        loop {
            let (rate, lasts) = hours.next()?;
            let area = u128::from(rate) * u128::from(lasts);
            if rate > 0 && left <= area {
                waited += left.div_ceil(u128::from(rate));
                break;
            }
            left -= area;
            waited += u128::from(lasts);
        }
        let waited = u64::try_from(waited.max(1)).ok()?;
        from.as_micros().checked_add(waited).map(Time::from_micros)
    }

    /// Number of events that are expected between two times of the run.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an expectation")]
    pub fn expected_events(&self, from: Time, until: Time) -> f64 {
        let mut left = until.since(from).as_micros();
        let mut sum = (u128::from(left / WEEK_US)).saturating_mul(self.integral_of_week());
        left %= WEEK_US;
        for (rate, lasts) in self.hours_from(from) {
            let lasts = lasts.min(left);
            sum = sum.saturating_add(u128::from(rate) * u128::from(lasts));
            left -= lasts;
            if left == 0 {
                break;
            }
        }
        sum as f64 / ONE_EVENT as f64
    }

    /// The rates from a time of the run on, each with the microseconds for which it holds, without end; empty unless there
    /// are 168 rates.
    fn hours_from(&self, from: Time) -> impl Iterator<Item = (u64, u64)> + '_ {
        let at = (self.begins.as_micros() % WEEK_US + from.as_micros() % WEEK_US) % WEEK_US;
        let first = usize::try_from(at / HOUR_US).unwrap_or(0);
        let rates = self.per_hour.iter().copied().cycle().skip(first);
        let spans = std::iter::once(HOUR_US - at % HOUR_US).chain(std::iter::repeat(HOUR_US));
        rates.zip(spans).take_while(|_| self.per_hour.len() == HOURS)
    }

    /// The integral of the rates over a week; 0 unless there are 168 rates.
    fn integral_of_week(&self) -> u128 {
        match self.per_hour.len() == HOURS {
            true => self.per_hour.iter().map(|rate| u128::from(*rate) * u128::from(HOUR_US)).sum(),
            false => 0,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    /// Half an event an hour by night, three from 9:00 to 17:00, and half of that at weekends, as a run sees it that
    /// begins on Friday 2024-02-02 20:30 in UTC, 15:30 on a clock five hours behind.
    fn office() -> WeeklyRates {
        let rate = |n: usize| {
            let of_hour = if (9..17).contains(&(n % 24)) { 3_000_000 } else { 500_000 };
            if n / 24 >= 5 { of_hour / 2 } else { of_hour }
        };
        let mut rates = WeeklyRates::new((0..HOURS).map(rate).collect(), -5 * 3_600).unwrap();
        rates.begin_at(1_706_905_800);
        rates
    }

    fn hours(h: f64) -> Time {
        Time::ZERO + Span::from_secs_f64(h * 3_600.0).unwrap()
    }

    /// Times of the events before `until`.
    fn events(rates: &WeeklyRates, seed: u64, until: Time) -> Vec<Time> {
        let mut stream = RandomStream::new(seed, "test", 0);
        let mut at = Time::ZERO;
        std::iter::from_fn(|| {
            at = rates.draw_after(at, &mut stream)?;
            Some(at)
        })
        .take_while(|at| *at < until)
        .collect()
    }

    #[test]
    fn expected_events_are_the_integral_of_the_rates() {
        let rates = office();
        let until = |h: f64| rates.expected_events(Time::ZERO, hours(h));
        // 90 minutes at 3, 7 hours at .5, and a Saturday of 9 and 7 hours at .25 and 8 at 1.5.
        assert_eq!((until(1.5), until(8.5)), (4.5, 8.0));
        assert_eq!(until(32.5), 8.0 + 16.0 * 0.25 + 8.0 * 1.5);
        let week = 5.0 * (8.0 * 3.0 + 16.0 * 0.5) + 2.0 * (8.0 * 1.5 + 16.0 * 0.25);
        assert_eq!((until(168.0), until(1_680.0)), (week, week * 10.0));
        assert_eq!(rates.expected_events(hours(1.5), hours(8.5)), 3.5);
    }

    #[test]
    fn counts_of_many_seeds_are_those_expected_in_each_part_of_the_week() {
        let rates = office();
        let parts =
            [(0.0, 1.5), (1.5, 8.5), (8.5, 32.5), (56.5, 65.5), (65.5, 73.5), (150.0, 200.0)];
        let seeds = 2_000_u32;
        let all: Vec<Vec<Time>> =
            (0..seeds).map(|seed| events(&rates, seed.into(), hours(200.0))).collect();
        for (from, until) in parts {
            let (from, until) = (hours(from), hours(until));
            let in_part = |at: &&Time| (from..until).contains(*at);
            let counts = all.iter().map(|times| times.iter().filter(in_part).count());
            let counts: Vec<f64> = counts.map(|n| f64::from(u32::try_from(n).unwrap())).collect();
            let mean = counts.iter().sum::<f64>() / f64::from(seeds);
            let right = rates.expected_events(from, until);
            // A Poisson count: its mean over the seeds is right within four of its standard errors.
            let error = (right / f64::from(seeds)).sqrt();
            assert!(
                (mean - right).abs() < 4.0 * error,
                "{from} to {until}: {mean}, {right} expected"
            );
            let variance =
                counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / f64::from(seeds);
            assert!((variance / right - 1.0).abs() < 0.15, "{variance}, {right} expected");
        }
    }

    #[test]
    fn a_seed_s_events_are_always_the_same() {
        let first: Vec<u64> =
            events(&office(), 1, hours(8.0)).iter().map(|at| at.as_micros()).collect();
        assert_eq!(first, GOLDEN);
    }
    const GOLDEN: [u64; 6] =
        [212_240_815, 2_178_486_887, 2_786_174_090, 14_478_690_460, 18_340_420_625, 23_970_815_428];

    #[test]
    fn nothing_happens_in_hours_without_a_rate() {
        // One hour of the week, Wednesday from 0:00 on; the run begins on Thursday 1970-01-01 0:00.
        let mut one = vec![0; HOURS];
        one[48] = 1_000_000;
        let mut rates = WeeklyRates::new(one, 0).unwrap();
        rates.begin_at(0);
        let times = events(&rates, 7, hours(168.0 * 200.0));
        assert!((120..280).contains(&times.len()), "{}", times.len());
        for at in times {
            let in_week = at.as_micros() % WEEK_US;
            assert!((6 * 24 * HOUR_US..=(6 * 24 + 1) * HOUR_US).contains(&in_week), "{at}");
        }
        assert_eq!(WeeklyRates::new(vec![0; HOURS], 0), None);
        assert_eq!(WeeklyRates::new(vec![1; 24], 0), None);
        // A log that somebody changed has no events, and no panic.
        let text = r#"{"per_hour": [1, 2], "east": 0, "begins": 18446744073709551615}"#;
        let wrong: WeeklyRates = serde_json::from_str(text).unwrap();
        assert_eq!(wrong.draw_after(hours(1.0), &mut RandomStream::new(1, "test", 0)), None);
        assert_eq!(wrong.expected_events(Time::ZERO, hours(9.0)), 0.0);
    }
}
