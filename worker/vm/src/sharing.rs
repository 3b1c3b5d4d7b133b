//! Law by which two tasks share a vCPU, with the distributions that the paper measured.
//!
//! A task advances as fast as its slowest process (MEASY, section 3.2, without its time slices). The ceiling c is the
//! share of a vCPU that credits allow a process (one on a VM without credits):
//!
//! - a process alone on its vCPU, in either tier: c;
//! - a foreground task with a neighbour on any of its vCPUs: c · (1 − loss);
//! - a background process of usage u below a foreground that uses f: min(c, x · (1 − f) / u).
//!
//! A VM of one tier in the background of another's processor fares as its background process would:
//! its vCPU has x · (1 − f) of the processor.
//!
//! Where nothing was measured there is no loss, and x, the utilisation of idle cycles, is one.

use dormouse_units::{Ppm, RandomStream, Usage, VmId};
use serde::{Deserialize, Serialize};

/// Law by which a foreground and a background VM share a processor. Loss and utilisation are drawn once for each placement of a
/// job, as the MEASY paper measured whole jobs (sections 2.1 and 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProcessorSharing {
    /// Bounds of the uniformly distributed fraction of its speed that a foreground job loses to a neighbour in the background.
    pub loss: (f64, f64),
    /// Bounds of the uniformly distributed fraction of idle cycles that a background job of one process uses.
    pub single: (f64, f64),
    /// Mean and standard deviation of the normally distributed fraction of idle cycles that a background job of several processes
    /// uses. The copy of the paper's text lacks these figures; the values are from memory.
    pub several_normal: (f64, f64),
    /// Least and greatest fraction of idle cycles that `several_normal` may give; draws outside are repeated.
    pub several_within: (f64, f64),
    /// True if a utilisation is drawn for each process of a job instead of one for the job: the job then advances with
    /// the smallest utilisation of its processes, which falls with the number of processes.
    pub each_process: bool,
}

impl Default for ProcessorSharing {
    fn default() -> Self {
        Self {
            loss: (0.005, 0.04),
            single: (0.80, 0.92),
            several_normal: (0.43, 0.14),
            several_within: (0.198, 0.766),
            each_process: false,
        }
    }
}

impl ProcessorSharing {
    /// Sharing without loss, in which a background job uses every idle cycle; for constructed cases.
    pub const PERFECT: Self = Self {
        loss: (0.0, 0.0),
        single: (1.0, 1.0),
        several_normal: (1.0, 0.0),
        several_within: (1.0, 1.0),
        each_process: false,
    };

    /// Draws the fraction of its speed that a foreground job loses while it has a neighbour in the background.
    pub(crate) fn draw_loss(&self, stream: &mut RandomStream) -> Ppm {
        to_ppm(draw_between(stream, self.loss))
    }

    /// Draws the fraction of idle cycles that a background job of `processes` processes uses: one for all processes, or one for
    /// each.
    pub(crate) fn draw_utilisations(&self, processes: usize, stream: &mut RandomStream) -> Usage {
        if self.each_process {
            Usage::Each((0..processes).map(|_| self.draw_utilisation(processes, stream)).collect())
        } else {
            Usage::Uniform(self.draw_utilisation(processes, stream))
        }
    }

    /// Returns the share of a processor that a VM uses in the background, if its foreground leaves `share` idle: by the utilisation
    /// of one process, drawn once for the VM.
    #[must_use]
    pub fn left_to(&self, vm: VmId, share: Ppm, seed: u64) -> Ppm {
        let stream = &mut RandomStream::new(seed, "utilisation-of-vm", u64::from(vm.get()));
        times_share(share, self.draw_utilisation(1, stream))
    }

    fn draw_utilisation(&self, processes: usize, stream: &mut RandomStream) -> Ppm {
        if processes == 1 {
            return to_ppm(draw_between(stream, self.single));
        }
        let (mean, deviation) = self.several_normal;
        let (low, high) = self.several_within;
        for _ in 0..100 {
            let x = mean + deviation * draw_normal(stream);
            if (low..=high).contains(&x) {
                return to_ppm(x);
            }
        }
        // A distribution that all but misses its range: the nearest the range allows.
        to_ppm(mean.clamp(low.min(high), high))
    }
}

/// Returns the speed of a task that computes for the part `usage` (u) of its time and otherwise waits for the network, on a vCPU
/// that gives it at most `most` (c): c / (u + c · (1 − u)), as a slower vCPU doesn't lengthen the wait.
pub(crate) fn paced_speed(most: Ppm, usage: Ppm) -> Ppm {
    let (c, u) = (u64::from(most.get()), u64::from(usage.get()));
    let one = u64::from(Ppm::ONE.get());
    match u64::from(usage.rest_of_whole().get()) {
        0 => most,
        waits => Ppm::new(
            u32::try_from(c * one * one / (u * one + c * waits).max(1)).unwrap_or(u32::MAX),
        ),
    }
}

/// Returns the share that a background process gets, in 10^-12 of a vCPU, if its vCPU has the share `supply` of a processor and its
/// foreground leaves `left` of it idle: x · (1 − f).
pub(crate) fn background_share(utilisation: Ppm, left: Ppm, supply: Ppm) -> u64 {
    let share = u64::from(utilisation.get()) * u64::from(left.get());
    if supply == Ppm::ONE { share } else { supply.scale_number(share) }
}

/// Returns the speed of a task that has processes in the foreground of some vCPUs and in the background of others: what its
/// slowest background process gets of a vCPU (`gets`, in 10^-12) divided by what that wants (`wants`, in ppm), at most
/// `most`. `wants` is zero if the task has no background process.
pub(crate) fn background_rate(most: Ppm, gets: u64, wants: u64) -> Ppm {
    let Some(rate) = gets.checked_div(wants) else { return most };
    u32::try_from(rate).map_or(most, |ppm| Ppm::new(ppm).min(most))
}

/// Returns the product of two shares.
pub(crate) fn times_share(a: Ppm, b: Ppm) -> Ppm {
    match (a, b) {
        (a, Ppm::ONE) => a,
        (Ppm::ONE, b) => b,
        (a, b) => Ppm::new(u32::try_from(a.scale_number(u64::from(b.get()))).unwrap_or(u32::MAX)),
    }
}

fn draw_between(stream: &mut RandomStream, (low, high): (f64, f64)) -> f64 {
    low + (high - low) * stream.draw_unit()
}

/// Draws from the standard normal distribution (Box and Muller 1958).
fn draw_normal(stream: &mut RandomStream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.draw_unit()));
    radius * libm::cos(std::f64::consts::TAU * stream.draw_unit())
}

fn to_ppm(x: f64) -> Ppm {
    Ppm::from_f64(x.clamp(0.0, 1.0)).unwrap_or(Ppm::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_their_ranges_and_reach_their_means() {
        let sharing = ProcessorSharing::default();
        let mut stream = RandomStream::new(3, "test", 0);
        let (mut losses, mut single, mut several) = (0.0, 0.0, 0.0);
        for _ in 0..20_000 {
            let loss = sharing.draw_loss(&mut stream).as_f64();
            let one = sharing.draw_utilisation(1, &mut stream).as_f64();
            let many = sharing.draw_utilisation(8, &mut stream).as_f64();
            assert!((0.005..=0.04).contains(&loss) && (0.80..=0.92).contains(&one));
            assert!((0.198..=0.766).contains(&many));
            losses += loss;
            single += one;
            several += many;
        }
        assert!((losses / 20_000.0 - 0.0225).abs() < 2e-4);
        assert!((single / 20_000.0 - 0.86).abs() < 2e-3);
        // Cut at -1.66 and +2.4 deviations: .4401 by the truncated normal's formula.
        assert!((several / 20_000.0 - 0.4401).abs() < 3e-3, "{}", several / 20_000.0);
    }

    #[test]
    fn one_draw_a_job_or_one_a_process() {
        let mut stream = RandomStream::new(3, "test", 0);
        let each = ProcessorSharing { each_process: true, ..ProcessorSharing::default() };
        let one = ProcessorSharing::default().draw_utilisations(8, &mut stream);
        assert!(matches!(one, Usage::Uniform(_)));
        let Usage::Each(draws) = each.draw_utilisations(8, &mut stream) else { panic!() };
        assert!(draws.len() == 8 && draws.windows(2).any(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn the_background_gets_what_the_foreground_leaves() {
        let rate = |c, x, before, usage| {
            let share = background_share(Ppm::new(x), Ppm::new(before).rest_of_whole(), Ppm::ONE);
            background_rate(Ppm::new(c), share, usage).get()
        };
        assert_eq!(rate(1_000_000, 860_000, 400_000, 1_000_000), 516_000);
        assert_eq!(rate(1_000_000, 430_000, 400_000, 500_000), 516_000);
        assert_eq!(rate(1_000_000, 1_000_000, 100_000, 500_000), 1_000_000);
        assert_eq!(rate(1_000_000, 860_000, 1_000_000, 500_000), 0);
        assert_eq!(rate(200_000, 860_000, 400_000, 1_000_000), 200_000);
    }

    #[test]
    fn who_waits_is_slowed_only_while_it_computes() {
        let rate = |most, usage| paced_speed(Ppm::new(most), Ppm::new(usage)).get();
        for usage in [1, 400_000, 999_999, 1_000_000] {
            assert_eq!(rate(1_000_000, usage), 1_000_000);
        }
        assert_eq!(rate(250_000, 1_000_000), 250_000);
        // Half a second of each takes two, and the other half one half.
        assert_eq!(rate(250_000, 500_000), 400_000);
    }
}
