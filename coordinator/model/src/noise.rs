//! Random deviation of tasks' real run times from those that schedulers see.

use dormouse_units::{Ppm, RandomStream, Span, TaskId};
use serde::{Deserialize, Serialize};

/// Distribution of the factor between a task's real run time and that in its bag. Each task has one
/// factor for all types and attempts, drawn from a random stream of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// The factor is log-normal with mean 1 and this coefficient of variation.
    Lognormal(Ppm),
    /// The factor is uniform from 1 − x to 1 + x for this x below 1.
    Uniform(Ppm),
}

impl Noise {
    /// Real run time of a task for which the bag gives the run time `said`; at least a microsecond.
    #[must_use]
    pub fn draw_runtime(self, seed: u64, task: TaskId, said: Span) -> Span {
        let mut chance = RandomStream::new(seed, "noise", task.get().into());
        let factor = match self {
            Self::Lognormal(variation) => chance.draw_lognormal(variation.as_f64()),
            Self::Uniform(within) => 1.0 + within.as_f64() * (2.0 * chance.draw_unit() - 1.0),
        };
        said.part(Ppm::from_f64(factor).unwrap_or(Ppm::ONE)).max(Span::from_micros(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(noise: Noise, seed: u64) -> Vec<f64> {
        let said = Span::from_secs(200);
        let of = |n| noise.draw_runtime(seed, TaskId::new(n), said).as_secs_f64() / 200.0;
        (0..4_000).map(of).collect()
    }

    #[test]
    fn run_times_scatter_around_what_is_said() {
        let within = Ppm::new(100_000);
        for (noise, limits) in
            [(Noise::Uniform(within), 0.9..=1.1), (Noise::Lognormal(within), 0.5..=2.0)]
        {
            let all = factors(noise, 1);
            let mean = all.iter().sum::<f64>() / 4_000.0;
            assert!((0.995..1.005).contains(&mean), "{noise:?}: {mean}");
            assert!(all.iter().all(|x| limits.contains(x)), "{noise:?}");
            assert!(all.iter().any(|x| *x < 0.95) && all.iter().any(|x| *x > 1.05), "{noise:?}");
        }
    }

    #[test]
    fn a_task_is_as_much_longer_on_every_type_and_only_its_seed_moves_it() {
        let noise = Noise::Lognormal(Ppm::new(300_000));
        let real = |task, secs| noise.draw_runtime(1, TaskId::new(task), Span::from_secs(secs));
        assert_eq!(real(7, 200).as_micros(), 2 * real(7, 100).as_micros());
        assert_ne!(real(7, 100), real(8, 100));
        assert_ne!(factors(noise, 1), factors(noise, 2));
        assert_eq!(
            Noise::Uniform(Ppm::ZERO).draw_runtime(1, TaskId::new(0), Span::from_secs(9)),
            Span::from_secs(9)
        );
    }
}
