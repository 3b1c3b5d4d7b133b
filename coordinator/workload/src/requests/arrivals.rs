//! Arrivals of requests: the processes by which they come.

use dormouse_units::{Ppm, RandomStream, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sampling::exponential;

/// Process by which requests arrive over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename = "process",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
#[schemars(rename = "Arrivals", tag = "process")]
pub enum RequestArrivals {
    /// A Poisson process: the times between requests are exponentially distributed.
    Poisson {
        /// The mean time between requests.
        #[schemars(extend("least" = "1us"), example = "30s")]
        every: Span,
    },
    /// A Poisson process whose rate goes up and down, as a cosine, with the time of day.
    Diurnal {
        /// The mean time between requests, over a whole period outside weekends.
        #[schemars(extend("least" = "1us"), example = "30s")]
        every: Span,
        /// Amplitude of the rate of requests, as a share of its mean: at 1 the rate goes from zero to twice the mean.
        #[schemars(range(min = 0.0, max = 1.0), example = 0.6)]
        amplitude: Ppm,
        /// Time from one peak of the rate of requests to the next.
        #[serde(default = "one_day")]
        #[schemars(extend("least" = "1us"), example = "1d")]
        period: Span,
        /// Time within the period at which the rate of requests is highest; if it is not given, the middle of the
        /// period.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(example = "14h")]
        peak: Option<Span>,
        /// Factor on the rate of requests in the last two of every seven periods, counted from the beginning; if it
        /// is not given, the rate does not change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1.0), example = 0.4)]
        weekend: Option<Ppm>,
    },
    /// Calm times and bursts in turn, with exponentially distributed lengths and a rate of requests each: a Poisson
    /// process modulated by a Markov chain of two states. The first state is drawn by each state's share of all time.
    Bursts {
        /// The mean time between requests in calm times.
        #[schemars(extend("least" = "1us"), example = "1m")]
        every: Span,
        /// The mean time between requests during a burst.
        #[schemars(extend("least" = "1us"), example = "1s")]
        burst_every: Span,
        /// The mean length of a calm time, from the end of a burst to the begin of the next.
        #[schemars(extend("least" = "1us"), example = "2h")]
        calm: Span,
        /// The mean length of a burst.
        #[schemars(extend("least" = "1us"), example = "5m")]
        burst: Span,
    },
}

const fn one_day() -> Span {
    Span::from_secs(86_400)
}

impl RequestArrivals {
    /// Mean rate of the arrival process over long times, in requests per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let rate = |every: &Span| 1.0 / every.as_secs_f64();
        match self {
            Self::Poisson { every } => rate(every),
            Self::Diurnal { every, weekend, .. } => {
                rate(every) * (5.0 + 2.0 * weekend.unwrap_or(Ppm::ONE).as_f64()) / 7.0
            }
            Self::Bursts { every, burst_every, calm, burst } => {
                let (calm, burst) = (calm.as_secs_f64(), burst.as_secs_f64());
                (rate(every) * calm + rate(burst_every) * burst) / (calm + burst)
            }
        }
    }
}

/// Generator of the times of requests, in order.
#[derive(Clone, Debug)]
pub(super) struct ArrivalTimes {
    arrivals: RequestArrivals,
    now: Time,
    stream: RandomStream,
    /// True during a burst; `is_burst`, `until` and `turns` are only used for `Arrivals::Bursts`.
    is_burst: bool,
    until: Time,
    turns: RandomStream,
}

impl ArrivalTimes {
    pub(super) fn new(arrivals: &RequestArrivals, seed: u64) -> Self {
        let mut times = Self {
            arrivals: arrivals.clone(),
            now: Time::ZERO,
            stream: RandomStream::new(seed, "request-arrival", 0),
            is_burst: false,
            until: Time::ZERO,
            turns: RandomStream::new(seed, "request-burst", 0),
        };
        if let RequestArrivals::Bursts { calm, burst, .. } = arrivals {
            let (calm, burst) = (calm.as_secs_f64(), burst.as_secs_f64());
            // The first phase began before the run, but its rest is distributed like a whole phase:
            // exponential laws have no memory.
            let begins_calm = times.turns.draw_unit() * (calm + burst) >= burst;
            times.is_burst = begins_calm;
            times.switch_phase();
        }
        times
    }

    /// Switches from calm to burst or back.
    fn switch_phase(&mut self) {
        let RequestArrivals::Bursts { calm, burst, .. } = &self.arrivals else { return };
        self.is_burst = !self.is_burst;
        let mean = if self.is_burst { burst } else { calm };
        self.until = draw_later(self.until, *mean, &mut self.turns);
    }

    /// The time of the next request before `end`; `None` if there is none.
    pub(super) fn next(&mut self, end: Time) -> Option<Time> {
        while self.now < end {
            match &self.arrivals {
                RequestArrivals::Poisson { every } => {
                    self.now = draw_later(self.now, *every, &mut self.stream);
                    break;
                }
                RequestArrivals::Diurnal { every, amplitude, period, peak, weekend } => {
                    // Thinning (Lewis and Shedler 1979): times of the highest rate, each kept with the
                    // part of it that holds then.
                    let highest = 1.0 + amplitude.as_f64();
                    let gap = exponential(every.as_secs_f64() / highest, &mut self.stream);
                    self.now = seconds_after(self.now, gap);
                    let phase = cycle_fraction(self.now, *period, *peak);
                    let wave = libm::cos(std::f64::consts::TAU * phase);
                    let is_weekend = self.now.as_micros() / period.as_micros().max(1) % 7 >= 5;
                    let part = weekend.filter(|_| is_weekend).unwrap_or(Ppm::ONE).as_f64();
                    let rate = part * (1.0 + amplitude.as_f64() * wave);
                    if self.stream.draw_unit() * highest < rate {
                        break;
                    }
                }
                RequestArrivals::Bursts { every, burst_every, .. } => {
                    let mean = if self.is_burst { burst_every } else { every };
                    let next = draw_later(self.now, *mean, &mut self.stream);
                    if next < self.until {
                        self.now = next;
                        break;
                    }
                    self.now = self.until;
                    self.switch_phase();
                }
            }
        }
        (self.now < end).then_some(self.now)
    }
}

/// Time since the last peak of the rate, as a fraction of the period.
fn cycle_fraction(now: Time, period: Span, peak: Option<Span>) -> f64 {
    let period = period.as_micros().max(1);
    let peak = peak.map_or(period / 2, Span::as_micros) % period;
    let since = (now.as_micros() % period + period - peak) % period;
    Span::from_micros(since).as_secs_f64() / Span::from_micros(period).as_secs_f64()
}

/// An instant that is an exponentially distributed time with this mean after `now`.
fn draw_later(now: Time, mean: Span, stream: &mut RandomStream) -> Time {
    seconds_after(now, exponential(mean.as_secs_f64(), stream))
}

/// The instant `seconds` after `now`, limited to the greatest time.
fn seconds_after(now: Time, seconds: f64) -> Time {
    now + Span::from_secs_f64(seconds).unwrap_or(Span::from_micros(u64::MAX))
}
