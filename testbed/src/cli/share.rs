//! What of a core a vCPU is in a live run of programs whose run times were measured, and how fast that run goes: at a
//! part of a core they take longer in real time, and the run goes slower, so that their emulated time is what it was.

use dormouse_coordinator::admission::{Request, Room};
use dormouse_experiment::Loaded;
use dormouse_units::{Bytes, Ppm, Speedup};
use dormouse_worker::agent::available_millicores;

use super::args::Say;
use super::failure::Failure;
use crate::{live, said};

/// The experiment at the share that was said for it, or else at the largest that this host holds and the
/// speed-up that was asked for needs; and at the speed-up of that share.
pub(super) fn paced_here(loaded: Loaded, say: Say) -> Result<Loaded, Failure> {
    let Some(pace) = loaded.pace else { return Ok(loaded) };
    let live = &loaded.experiment.live;
    let wanted = live.speedup.share_of_core(pace);
    let share = match live.share {
        Some(said) => said,
        None => fits(&loaded)?.map_or(wanted, |fits| fits.min(wanted)),
    };
    Ok(at(loaded, (pace, share), say))
}

/// The same on workers that come from elsewhere: of what they hold nothing is known yet, so that it is at the share
/// that was said, or at the one that the speed-up needs.
pub(super) fn paced_elsewhere(loaded: Loaded, say: Say) -> Loaded {
    let live = &loaded.experiment.live;
    match loaded.pace {
        Some(pace) => {
            let share = live.share.unwrap_or_else(|| live.speedup.share_of_core(pace));
            at(loaded, (pace, share), say)
        }
        None => loaded,
    }
}

/// The experiment at this share and the speed-up of it, which is said where it is another than was asked for.
fn at(mut loaded: Loaded, (pace, share): (Speedup, Ppm), say: Say) -> Loaded {
    let Some(speedup) = pace.at_share(share) else { return loaded };
    let live = &mut loaded.experiment.live;
    if !say.quiet && speedup != live.speedup {
        said::note(&format!(
            "a vCPU has {} of a core, so that the run goes at a speed-up of {speedup}, not {}: a second of a core \
             counts for {pace} s of your programs",
            share.as_f64(),
            live.speedup
        ));
    }
    (live.share, live.speedup) = (Some(share), speedup);
    loaded
}

/// The largest share at which this host holds what the experiment wants at once; `None`: it holds it at none, which
/// admission says better.
fn fits(loaded: &Loaded) -> Result<Option<Ppm>, Failure> {
    let experiment = &loaded.experiment;
    let demand = live::rehearse(experiment, loaded.scheduler()?, &[]).demand;
    let live = &experiment.live;
    let workers = live.workers.max(1);
    let millicores = available_millicores() / workers;
    let room = Room { name: "this host".to_owned(), millicores, memory: Bytes::new(u64::MAX) };
    let request = Request {
        hosts: &vec![room; workers as usize],
        speedup: live.speedup,
        demand: &demand,
        reserve: live.reserve,
        share: None,
        setup: &experiment.setup,
        repetition_us: &[],
        noop: true,
    };
    Ok(request.admit().ok().map(|admission| admission.share))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of a core counts for 30 s: at a fifth of a core a program of 10 s of a core takes 50 s of real time,
    /// which at a speed-up of 6 are 300 s, as at a whole core and a speed-up of 30.
    #[test]
    fn where_a_host_cant_give_the_share_the_speedup_falls_and_not_the_programs_speed() {
        let pace = Speedup::times(30);
        let fifth = Ppm::new(200_000);
        assert_eq!(pace.at_share(fifth), Some(Speedup::times(6)));
        assert_eq!(pace.at_share(Ppm::ONE), Some(pace));
        for share in [1, 22_500, 125_000, 333_333, 1_000_000].map(Ppm::new) {
            let speedup = pace.at_share(share).expect("more than nothing");
            let real_s = 10.0 / share.as_f64();
            assert!((real_s * speedup.as_f64() / 300.0 - 1.0).abs() < 1e-6, "{share:?}");
        }
        assert_eq!(pace.at_share(Ppm::ZERO), None);
    }

    #[test]
    fn a_speedup_that_is_asked_for_is_a_share_of_a_core() {
        let pace = Speedup::times(30);
        assert_eq!(Speedup::times(6).share_of_core(pace), Ppm::new(200_000));
        assert_eq!(pace.share_of_core(pace), Ppm::ONE);
        // Nothing computes faster than a core does.
        assert_eq!(Speedup::times(90).share_of_core(pace), Ppm::ONE);
    }
}
