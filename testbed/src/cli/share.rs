//! Chooses the share of a core for each vCPU, and the speed, of a live run of measured programs: with a smaller share
//! the programs take longer in real time, and the run's speed-up is smaller, so that their emulated times stay the
//! same.

use dormouse_coordinator::admission::{AdmissionRequest, WorkerOffer};
use dormouse_experiment::LoadedExperiment;
use dormouse_units::{Bytes, Ppm, Speedup};
use dormouse_worker::agent::available_millicores;

use super::args::Say;
use super::failure::Failure;
use crate::{live, said};

/// The experiment with the share of a core that the user gave, or else the largest share that this host can give and
/// the requested speed-up needs; and with the speed-up that belongs to the share.
pub(super) fn paced_here(loaded: LoadedExperiment, say: Say) -> Result<LoadedExperiment, Failure> {
    let each = available_millicores() / loaded.experiment.live.workers.max(1);
    paced_on(loaded, (each, ""), say)
}

/// Does as [`paced_here`] for workers on other hosts: their size is unknown, so each is assumed to be on a host of its
/// own that is like this one.
pub(super) fn paced_elsewhere(
    loaded: LoadedExperiment,
    say: Say,
) -> Result<LoadedExperiment, Failure> {
    let hosts = " of a host like this one (--set live.share says another)";
    paced_on(loaded, (available_millicores(), hosts), say)
}

/// The experiment at the share of a core that the user gave, or else at the largest share that the speed-up needs and
/// that workers can give with `millicores` thousandths of a core each.
fn paced_on(
    loaded: LoadedExperiment,
    (millicores, hosts): (u32, &str),
    say: Say,
) -> Result<LoadedExperiment, Failure> {
    let Some(pace) = loaded.pace else { return Ok(loaded) };
    let live = &loaded.experiment.live;
    let wanted = live.speedup.share_of_core(pace);
    let (share, hosts) = match live.share {
        Some(said) => (said, ""),
        None => (fits(&loaded, millicores)?.map_or(wanted, |fits| fits.min(wanted)), hosts),
    };
    Ok(at(loaded, (pace, share), hosts, say))
}

/// The experiment at this share of a core and the speed-up that belongs to it; tells the user if that differs from the
/// requested speed-up.
fn at(
    mut loaded: LoadedExperiment,
    (pace, share): (Speedup, Ppm),
    hosts: &str,
    say: Say,
) -> LoadedExperiment {
    let Some(speedup) = pace.at_share(share) else { return loaded };
    let live = &mut loaded.experiment.live;
    if !say.quiet && speedup != live.speedup {
        said::note(&format!(
            "a vCPU has {} of a core{hosts}, so that the run goes at a speed-up of {speedup}, not {}: a second of a core \
             counts for {pace} s of your programs",
            share.as_f64(),
            live.speedup
        ));
    }
    (live.share, live.speedup) = (Some(share), speedup);
    loaded
}

/// The largest share of a core at which workers with `millicores` thousandths of a core each can hold all VMs that the
/// experiment has at once; `None`: no share is small enough (admission explains that better).
fn fits(loaded: &LoadedExperiment, millicores: u32) -> Result<Option<Ppm>, Failure> {
    let experiment = &loaded.experiment;
    let demand = live::rehearse(experiment, loaded.scheduler()?, &[]).demand;
    let live = &experiment.live;
    let workers = live.workers.max(1);
    let room =
        WorkerOffer { name: "this host".to_owned(), millicores, memory: Bytes::new(u64::MAX) };
    let request = AdmissionRequest {
        hosts: &vec![room; workers as usize],
        speedup: live.speedup,
        demand: &demand,
        reserve: live.reserve,
        share: None,
        setup: &experiment.setup,
        repetition_us: &[],
        noop: true,
    };
    Ok(request.admit_run().ok().map(|admission| admission.share))
}

#[cfg(test)]
mod tests {
    use dormouse_experiment::{ExperimentSource, Override, open};

    use super::*;

    const EXPERIMENT: &str = r#"name = "mine"
[cloud]
catalogue = "ec2-2020"
[scheduler]
name = "fifo"
fleet = [{ type = "c3.large", market = "on-demand", count = 4 }]
[checkpoint]
policy = "none"
[live]
speedup = 30
workers = 2
[workload]
deadline = "2h"
measured = "measured.json"
[[workload.task]]
count = 8
command = ["true"]
runtime = "measured"
memory = "64 MB"
"#;

    const MEASURED: &str = r#"{ "dormouse": "0.1.0", "share": 333333, "pace": 30.0, "measures": [{
      "task": "task", "kind": ["true"], "program": "", "exit-status": 0, "wall-us": 30000000, "cpu-us": 10000000,
      "waited-us": 0, "memory": 1000000, "directory": 0 }] }"#;

    /// A second of a core counts as 30 emulated seconds. A program that needs 10 s of a core takes 50 s of real time at
    /// a fifth of a core; at a speed-up of 6 these are 300 emulated seconds, as many as at a whole core and a speed-up
    /// of 30.
    #[test]
    fn where_a_host_cant_give_the_share_the_speedup_falls_and_not_the_programs_speed() {
        let pace = Speedup::times_real(30);
        let fifth = Ppm::new(200_000);
        assert_eq!(pace.at_share(fifth), Some(Speedup::times_real(6)));
        assert_eq!(pace.at_share(Ppm::ONE), Some(pace));
        for share in [1, 22_500, 125_000, 333_333, 1_000_000].map(Ppm::new) {
            let speedup = pace.at_share(share).expect("a length above 0");
            let real_s = 10.0 / share.as_f64();
            assert!((real_s * speedup.as_f64() / 300.0 - 1.0).abs() < 1e-6, "{share:?}");
        }
        assert_eq!(pace.at_share(Ppm::ZERO), None);
    }

    /// Eight vCPUs on workers with one core each: `dormouse run --live` and `dormouse coordinator` both ask for a part
    /// of a core per vCPU of a measured program, and not for the whole core that the speed-up needs.
    #[test]
    fn a_coordinator_asks_its_workers_for_the_share_that_hosts_like_its_own_have() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("room");
            path
        };
        write("measured.json", MEASURED);
        let file = write("mine.toml", EXPERIMENT);
        let open = |set: &[&str]| {
            let overrides = set.iter().map(|text| Override::set(text).expect("a key")).collect();
            let experiment = file.to_str();
            open(&ExperimentSource { experiment, overrides, ..ExperimentSource::default() })
                .expect("it is right")
        };
        let quiet = Say { json: false, quiet: true };
        let at = |set: &[&str], millicores: u32| {
            let paced = paced_on(open(set), (millicores, ""), quiet).expect("it can be rehearsed");
            let live = paced.experiment.live;
            (live.share.map(Ppm::as_f64), live.speedup.as_f64())
        };
        let (share, speedup) = at(&[], 1_000);
        let share = share.expect("it is measured");
        assert!((0.1..0.25).contains(&share), "{share} of a core for each of four vCPUs");
        assert!((speedup / share / 30.0 - 1.0).abs() < 1e-3, "{speedup} at {share}");
        let loaded = open(&[&format!("live.share={share}"), &format!("live.speedup={speedup}")]);
        assert!(
            fits(&loaded, 1_000)
                .expect("it can be rehearsed")
                .is_some_and(|fits| fits.as_f64() >= share)
        );
        assert_eq!(at(&[], 64_000), (Some(1.0), 30.0));
        assert_eq!(at(&["live.share=0.5"], 1_000), (Some(0.5), 15.0));
        let elsewhere = paced_elsewhere(open(&[]), quiet).expect("it can be rehearsed");
        let here = at(&[], available_millicores());
        let live = elsewhere.experiment.live;
        assert_eq!((live.share.map(Ppm::as_f64), live.speedup.as_f64()), here);
    }

    #[test]
    fn a_speedup_that_is_asked_for_is_a_share_of_a_core() {
        let pace = Speedup::times_real(30);
        assert_eq!(Speedup::times_real(6).share_of_core(pace), Ppm::new(200_000));
        assert_eq!(pace.share_of_core(pace), Ppm::ONE);
        // Nothing computes faster than a core does.
        assert_eq!(Speedup::times_real(90).share_of_core(pace), Ppm::ONE);
    }
}
