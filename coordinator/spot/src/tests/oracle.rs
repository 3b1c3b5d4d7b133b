//! The six schemes compared with an oracle: another implementation, in Python and from the paper's text alone
//! (`oracle/schemes.py`), whose outcomes over generated prices are in `oracle/outcomes.txt`. Both outcomes have to be
//! the same to the last digit.

use dormouse_cloud::PriceTrace;
use dormouse_units::{Price, Span, Time};

use crate::{SpotJob, SpotRecord, SpotScheme};

/// Lines that the oracle printed: start, bid and work of a job, a scheme, and its outcome.
const OUTCOMES: &str = include_str!("oracle/outcomes.txt");

const DAY: u64 = 86_400;

/// The oracle's generator: congruential, with the constants of Numerical Recipes.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = (1_664_525 * self.0 + 1_013_904_223) % (1 << 32);
        (self.0 * n) >> 32
    }
}

/// The oracle's prices: forty days of $.300 to $.340, each for two hours in the mean.
fn prices() -> PriceTrace {
    let (mut chance, mut at, mut steps) = (Chance(1), 0, Vec::new());
    while at < 40 * DAY {
        let price = (300 + 5 * chance.below(9)) * 1_000_000;
        steps.push((Time::from_secs(at), Price::from_nanos_per_hour(price)));
        at += 60 + chance.below(4 * 3_600);
    }
    PriceTrace::new(steps)
}

/// The outcome of a job, formatted as the oracle prints it.
fn outcome(trace: &PriceTrace, words: &[&str]) -> String {
    let [start, bid, work] = [0, 1, 2].map(|n| words[n].parse::<u64>().expect("a number"));
    let named = |scheme: &&SpotScheme| scheme.name().eq_ignore_ascii_case(words[3]);
    let scheme = *SpotScheme::ALL.iter().find(named).expect("a scheme");
    let record = SpotRecord::new(trace, Price::from_nanos_per_hour(bid), Time::from_secs(40 * DAY));
    let job = SpotJob::with_work(Span::from_secs(work));
    let Some(of) = job.run(scheme, &record, Time::from_secs(start)) else {
        return "never".to_owned();
    };
    let [took, lost] = [of.took, of.lost].map(|span| {
        assert_eq!(span.as_micros() % 1_000_000, 0, "all times are whole seconds: {span}");
        span.as_micros() / 1_000_000
    });
    let [restarts, checkpoints, unkept] = [of.restarts, of.checkpoints, of.unkept];
    let cost = of.cost.as_nanos();
    format!("{took} {cost} {} {restarts} {checkpoints} {lost} {unkept}", of.hours)
}

#[test]
fn all_six_schemes_do_what_the_oracle_says() {
    let trace = prices();
    let (mut count, mut taken) = (0, 0);
    for line in OUTCOMES.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(outcome(&trace, &words), words[4..].join(" "), "{line}");
        count += 1;
        taken += usize::from(words.get(7).is_some_and(|restarts| *restarts != "0"));
    }
    // Sixty jobs, most of which lose an instance: it is no oracle of quiet days.
    assert_eq!(count, 360);
    assert!(taken > 150, "{taken}");
}
