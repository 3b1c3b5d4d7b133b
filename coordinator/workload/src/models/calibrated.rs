//! FW-like and JW-like: models of the MEASY paper's two workloads, whose generators are not available, built from the
//! paper's figures. The mean size, the mean run time and the share of one-process jobs are its figures; the shapes are
//! ours, after what the two models are known for: sizes that fall off as a power with a preference for powers of two,
//! run times as a mixture of short and long Erlang stages that is longer for larger jobs (FW) or not (JW), arrivals
//! that are Poisson (FW) or bursty (JW).

use dormouse_model::Submission;
use dormouse_units::{Bytes, RandomStream, Span, Time, Usage};

use super::ModelError;
use crate::sampling::exponential;

/// Figures that the jobs of a calibrated model should have, such as their mean size and mean run time.
#[derive(Clone, Copy, Debug)]
pub struct ModelTargets {
    /// Mean number of processes of a job.
    pub mean_size: f64,
    /// Mean run time in seconds.
    pub mean_runtime_s: f64,
    /// Share of jobs with one process, from 0 to 1.
    pub serial: f64,
    /// Factor by which a size that is a power of two is likelier than its neighbours.
    pub power_of_two_weight: f64,
    /// Probability of a long run for a job of one process, and the amount by which it is greater
    /// for the largest job.
    pub long: (f64, f64),
    /// Mean of a long run, as a multiple of the mean of a short one.
    pub long_over_short: f64,
    /// Number of stages of the Erlang distributions of run times.
    pub stages: u32,
    /// Longest run time: longer ones are cut, as by a queue's limit. No estimate is longer.
    pub longest: Span,
    /// Bursty arrivals: probability that the gap between two submissions is long, and the factor by which a long gap
    /// exceeds a short one; `None`: Poisson arrivals.
    pub bursts: Option<(f64, f64)>,
}

/// Figures that the MEASY paper prints for its FW workload: "The average parallelism of it is 23.4, and the average
/// runtime is 2606.6 seconds", one-process jobs "less than 18.0%".
pub(super) const FW: ModelTargets = ModelTargets {
    mean_size: 23.4,
    mean_runtime_s: 2606.6,
    serial: 0.175,
    power_of_two_weight: 8.0,
    long: (0.10, 0.30),
    long_over_short: 15.0,
    stages: 1,
    longest: Span::from_secs(64_800),
    bursts: None,
};

/// Figures that the MEASY paper prints for its JW workload: "The average parallelism of it is 10.5, and the average
/// runtime is 11267.0 seconds", one-process jobs "about 40.8%"; 18 h was the longest queue of the machine that the log
/// seems to be of.
pub(super) const JW: ModelTargets = ModelTargets {
    mean_size: 10.5,
    mean_runtime_s: 11_267.0,
    serial: 0.408,
    power_of_two_weight: 8.0,
    long: (0.40, 0.0),
    long_over_short: 15.0,
    stages: 2,
    longest: Span::from_secs(64_800),
    bursts: Some((0.15, 12.0)),
};

/// Mean time between submissions in seconds, before the load is scaled.
const MEAN_GAP_S: f64 = 300.0;

impl ModelTargets {
    /// Generates `count` jobs for `machine` processors, as specified at [`Model::generate`].
    ///
    /// # Errors
    ///
    /// The errors of [`Model::generate`].
    ///
    /// [`Model::generate`]: super::Model::generate
    pub fn generate(
        &self,
        count: usize,
        machine: u32,
        seed: u64,
    ) -> Result<Vec<Submission>, ModelError> {
        ModelError::check_size(count, machine)?;
        Ok(generate(self, count, machine, seed))
    }
}

fn generate(targets: &ModelTargets, count: usize, machine: u32, seed: u64) -> Vec<Submission> {
    let sizes = SizeDistribution::calibrate_sizes(targets, machine);
    let mut size_stream = RandomStream::new(seed, "size", 0);
    let mut runtime_stream = RandomStream::new(seed, "runtime", 0);
    let mut gap_stream = RandomStream::new(seed, "arrival", 0);
    let drawn: Vec<(u32, f64)> = (0..count)
        .map(|_| {
            let size = sizes.draw(&mut size_stream);
            (size, unscaled_runtime(targets, size, machine, &mut runtime_stream))
        })
        .collect();
    let scale = runtime_scale(targets, &drawn);
    let mut at = 0.0;
    (1..)
        .zip(drawn)
        .map(|(number, (processes, unscaled))| {
            at += draw_gap(targets, &mut gap_stream);
            let seconds = (unscaled * scale).min(targets.longest.as_secs_f64()).round().max(1.0);
            let runtime = Span::from_secs_f64(seconds).unwrap_or(Span::from_secs(1));
            let submitted = Time::ZERO + Span::from_secs_f64(at.floor()).unwrap_or_default();
            let usage = Usage::FULL;
            let (estimate, memory) = (runtime, Bytes::ZERO);
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
        })
        .collect()
}

/// Cumulative distribution of job sizes.
struct SizeDistribution(Vec<f64>);

impl SizeDistribution {
    /// Distribution that falls off as size^−θ, with θ found by bisection so that the mean is the
    /// target.
    fn calibrate_sizes(targets: &ModelTargets, machine: u32) -> Self {
        // On a machine too small for the mean, it is as near as θ in [−2, 6] comes.
        let (mut flat, mut steep) = (-2.0, 6.0);
        for _ in 0..80 {
            let middle = f64::midpoint(flat, steep);
            let weights = size_weights(targets, machine, middle);
            let mean: f64 = (1..).zip(&weights).map(|(size, w)| f64::from(size) * w).sum();
            if mean > targets.mean_size {
                flat = middle;
            } else {
                steep = middle;
            }
        }
        let mut total = 0.0;
        let weights = size_weights(targets, machine, steep);
        Self(
            weights
                .into_iter()
                .map(|w| {
                    total += w;
                    total
                })
                .collect(),
        )
    }

    fn draw(&self, stream: &mut RandomStream) -> u32 {
        let u = stream.draw_unit();
        let at = self.0.partition_point(|&sum| sum <= u).min(self.0.len() - 1);
        u32::try_from(at + 1).unwrap_or(1)
    }
}

/// Probabilities of the sizes 1, 2, … with the target share of one-process jobs.
fn size_weights(targets: &ModelTargets, machine: u32, theta: f64) -> Vec<f64> {
    let parallel: Vec<f64> = (2..=machine)
        .map(|size| {
            let favour = if size.is_power_of_two() { targets.power_of_two_weight } else { 1.0 };
            favour * libm::pow(f64::from(size), -theta)
        })
        .collect();
    let sum: f64 = parallel.iter().sum();
    let share = (1.0 - targets.serial) / sum;
    std::iter::once(targets.serial).chain(parallel.into_iter().map(|w| w * share)).collect()
}

/// A run time in units of the mean of a short run.
fn unscaled_runtime(
    targets: &ModelTargets,
    size: u32,
    machine: u32,
    stream: &mut RandomStream,
) -> f64 {
    let (base, grows) = targets.long;
    let relative = libm::log(f64::from(size)) / libm::log(f64::from(machine));
    let is_long = stream.draw_unit() < base + grows * relative;
    let mean = if is_long { targets.long_over_short } else { 1.0 };
    (0..targets.stages).map(|_| exponential(mean / f64::from(targets.stages), stream)).sum()
}

/// Factor for the drawn run times with which their mean is the target, after runs are cut at the longest run time.
fn runtime_scale(targets: &ModelTargets, drawn: &[(u32, f64)]) -> f64 {
    let mean_at = |scale: f64| {
        let total: f64 =
            drawn.iter().map(|(_, x)| (x * scale).min(targets.longest.as_secs_f64())).sum();
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let count = drawn.len() as f64;
        total / count
    };
    let (mut low, mut high) = (0.0, targets.longest.as_secs_f64());
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if mean_at(middle) < targets.mean_runtime_s {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

fn draw_gap(targets: &ModelTargets, stream: &mut RandomStream) -> f64 {
    let Some((long, times)) = targets.bursts else { return exponential(MEAN_GAP_S, stream) };
    let short = MEAN_GAP_S / (1.0 - long + long * times);
    let mean = if stream.draw_unit() < long { short * times } else { short };
    exponential(mean, stream)
}
