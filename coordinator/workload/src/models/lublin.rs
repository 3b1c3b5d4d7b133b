//! The model of Lublin and Feitelson, "The workload on parallel supercomputers: modeling
//! the characteristics of rigid jobs" (1999, 2003), with its published parameters.

use dormouse_model::Submission;
use dormouse_units::{Bytes, RandomStream, Span, Time, Usage};

use crate::sampling::{gamma, gamma_cdf};

/// Parameters of one stream of jobs: batch, interactive, or both together.
struct LublinParameters {
    purpose: &'static str,
    serial: f64,
    power_of_two: f64,
    size_low: f64,
    size_probability: f64,
    runtime_short: (f64, f64),
    runtime_long: (f64, f64),
    short_by_size: (f64, f64),
    arrival: (f64, f64),
    arrival_ratio: f64,
    cycle: (f64, f64),
    /// Distance below log2 of the largest job size at which the two-stage uniform distribution of sizes changes its
    /// slope.
    bend: f64,
}

const BATCH: LublinParameters = LublinParameters {
    purpose: "lublin-batch",
    serial: 0.2927,
    power_of_two: 0.6686,
    size_low: 1.2,
    size_probability: 0.875,
    runtime_short: (6.57, 0.823),
    runtime_long: (639.1, 0.0156),
    short_by_size: (-0.003, 0.6986),
    arrival: (6.0415, 0.8531),
    arrival_ratio: 1.0519,
    cycle: (6.1271, 5.2740),
    bend: 2.0,
};

const INTERACTIVE: LublinParameters = LublinParameters {
    purpose: "lublin-interactive",
    serial: 0.1541,
    power_of_two: 0.625,
    size_low: 1.0,
    size_probability: 0.705,
    runtime_short: (3.8351, 0.6605),
    runtime_long: (7.073, 0.6856),
    short_by_size: (-0.0118, 0.9156),
    arrival: (6.5510, 0.6621),
    arrival_ratio: 0.9797,
    cycle: (8.9186, 3.6680),
    bend: 2.5,
};

/// Parameters fitted to logs that do not tell batch from interactive jobs.
const TYPELESS: LublinParameters = LublinParameters {
    purpose: "lublin-typeless",
    serial: 0.244,
    power_of_two: 0.576,
    size_low: 0.8,
    size_probability: 0.86,
    runtime_short: (4.2, 0.94),
    runtime_long: (312.0, 0.03),
    short_by_size: (-0.0054, 0.78),
    arrival: (10.2303, 0.4871),
    arrival_ratio: 1.0225,
    cycle: (8.1737, 3.9631),
    bend: 2.5,
};

/// Difference between log2 of the machine's size and log2 of the largest interactive job (7 and 5.5 in Lublin's
/// model).
const INTERACTIVE_BELOW_MACHINE: f64 = 1.5;
/// Number of half-hours of a day.
const BUCKETS: usize = 48;
const BUCKET_S: f64 = 1800.0;
/// The half-hour of the day at which the daily cycle's distribution begins.
const CYCLE_START: usize = 11;
/// Greatest natural logarithms of run times and gaps in seconds; greater draws are repeated.
const MAX_LN_RUNTIME: f64 = 12.0;
const MAX_LN_GAP: f64 = 13.0;

pub(super) fn generate(count: usize, machine: u32, seed: u64) -> Vec<Submission> {
    let whole = libm::log2(f64::from(machine));
    let mut batch = LublinJobs::new(&BATCH, whole, seed);
    let mut interactive = LublinJobs::new(&INTERACTIVE, whole - INTERACTIVE_BELOW_MACHINE, seed);
    let (mut next_batch, mut next_interactive) = (batch.next_arrival(), interactive.next_arrival());
    (1..)
        .take(count)
        .map(|number| {
            let (at, jobs) = if next_batch <= next_interactive {
                (std::mem::replace(&mut next_batch, batch.next_arrival()), &mut batch)
            } else {
                (
                    std::mem::replace(&mut next_interactive, interactive.next_arrival()),
                    &mut interactive,
                )
            };
            jobs.make_submission(number, at, machine)
        })
        .collect()
}

/// Jobs of one stream, with the parameters of logs that do not tell batch from interactive jobs.
pub(super) fn generate_typeless(count: usize, machine: u32, seed: u64) -> Vec<Submission> {
    let mut jobs = LublinJobs::new(&TYPELESS, libm::log2(f64::from(machine)), seed);
    (1..)
        .take(count)
        .map(|number| {
            let at = jobs.next_arrival();
            jobs.make_submission(number, at, machine)
        })
        .collect()
}

/// Generator of one stream of jobs.
struct LublinJobs<'a> {
    parameters: &'a LublinParameters,
    largest: f64,
    weights: [f64; BUCKETS],
    bucket: usize,
    points: f64,
    remainder: f64,
    now: f64,
    arrivals: RandomStream,
    sizes: RandomStream,
    runtimes: RandomStream,
}

impl<'a> LublinJobs<'a> {
    fn new(parameters: &'a LublinParameters, largest: f64, seed: u64) -> Self {
        let (shape, scale) = parameters.cycle;
        let mut weights = [0.0; BUCKETS];
        for i in CYCLE_START..CYCLE_START + BUCKETS {
            #[expect(clippy::cast_precision_loss, reason = "below 59")]
            let middle = i as f64;
            weights[(i - 1) % BUCKETS] =
                gamma_cdf(shape, scale, middle + 0.5) - gamma_cdf(shape, scale, middle - 0.5);
        }
        let sum: f64 = weights.iter().sum();
        #[expect(clippy::cast_precision_loss, reason = "48")]
        let to_mean_one = BUCKETS as f64 / sum;
        // A half-hour without any weight would never be paid for, nor end a payment.
        weights.iter_mut().for_each(|w| *w = (*w * to_mean_one).max(1e-9));
        Self {
            parameters,
            largest,
            weights,
            bucket: 0,
            points: 0.0,
            remainder: 0.0,
            now: 0.0,
            arrivals: RandomStream::named_stream(seed, "arrival", parameters.purpose),
            sizes: RandomStream::named_stream(seed, "size", parameters.purpose),
            runtimes: RandomStream::named_stream(seed, "runtime", parameters.purpose),
        }
    }

    /// Submission time of the next job in seconds.
    fn next_arrival(&mut self) -> f64 {
        let LublinParameters { arrival: (shape, scale), arrival_ratio, .. } = *self.parameters;
        let gap = loop {
            let gap = gamma(shape * arrival_ratio, scale, &mut self.arrivals);
            if gap <= MAX_LN_GAP {
                break gap;
            }
        };
        self.points += libm::exp(gap) / BUCKET_S;
        while self.points > self.weights[self.bucket] {
            self.points -= self.weights[self.bucket];
            self.bucket = (self.bucket + 1) % BUCKETS;
            self.now += BUCKET_S;
        }
        let remainder = self.points / self.weights[self.bucket];
        self.now += BUCKET_S * (remainder - self.remainder);
        self.remainder = remainder;
        self.now
    }

    fn make_submission(&mut self, number: u64, at: f64, machine: u32) -> Submission {
        let processes = self.draw_size(machine);
        let runtime = self.draw_runtime(processes);
        let submitted = Time::ZERO + Span::from_secs_f64(at.floor()).unwrap_or_default();
        let (estimate, usage, memory) = (runtime, Usage::FULL, Bytes::ZERO);
        Submission {
            number,
            submitted,
            processes,
            runtime,
            estimate,
            usage,
            memory,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        }
    }

    fn draw_size(&mut self, machine: u32) -> u32 {
        let p = self.parameters;
        let u = self.sizes.draw_unit();
        if u <= p.serial {
            return 1;
        }
        let bend = (self.largest - p.bend).max(p.size_low);
        let (from, to) = if self.sizes.draw_unit() <= p.size_probability {
            (p.size_low, bend)
        } else {
            (bend, self.largest.max(bend))
        };
        let x = from + (to - from) * self.sizes.draw_unit();
        let x = if u <= p.serial + p.power_of_two { x.round() } else { x };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and the machine's size, or saturating"
        )]
        let size = libm::exp2(x).round() as u32;
        size.clamp(1, machine)
    }

    fn draw_runtime(&mut self, processes: u32) -> Span {
        let LublinParameters { short_by_size: (per_process, base), .. } = *self.parameters;
        let probability = (per_process * f64::from(processes) + base).clamp(0.0, 1.0);
        let is_short = self.runtimes.draw_unit() <= probability;
        let (shape, scale) =
            if is_short { self.parameters.runtime_short } else { self.parameters.runtime_long };
        loop {
            let ln = gamma(shape, scale, &mut self.runtimes);
            if ln <= MAX_LN_RUNTIME {
                let seconds = libm::exp(ln).floor().max(1.0);
                return Span::from_secs_f64(seconds).unwrap_or(Span::from_secs(1));
            }
        }
    }
}
