//! The speed-up of a live run on this host: as requested, or from the host's calibration.

use std::path::Path;

use dormouse_coordinator::admission::{AdmissionRequest, WorkerOffer};
use dormouse_host::calibration::{
    ExperimentDemand, HostIdentity, SpeedupChoice, SpeedupVerdict, StoredCalibration, WantedErrors,
    choose, default_path, find, load_at, read,
};
use dormouse_tasks::BagProgram;
use dormouse_units::Bytes;
use dormouse_units::Speedup;
use dormouse_worker::agent::available_millicores;

use super::failure::Failure;
use crate::calibrate::CalibrateError;
use crate::live;
use dormouse_experiment::command_line;
use dormouse_experiment::{Experiment, LoadedExperiment};

/// Chooses the speed-up of a live run, and sets it in the experiment.
pub(super) fn settle(
    loaded: &mut LoadedExperiment,
    calibration: Option<&Path>,
) -> Result<SpeedupChoice, Failure> {
    let found = found(calibration)?;
    let (experiment, said) = (&loaded.experiment, loaded.speedup);
    let demand = || demand(loaded);
    let choice = match choose(found, experiment.live.speedup.as_f64(), said, demand) {
        SpeedupVerdict::Run(choice) => *choice,
        SpeedupVerdict::Refuse(why) => {
            return Err(Failure::BadInput(format!("{}: {why}", experiment.name)));
        }
    };
    // Every speed-up that a calibration may have is one.
    if let Some(speedup) = Speedup::from_f64(choice.speedup) {
        loaded.experiment.live.speedup = speedup;
    }
    Ok(choice)
}

/// The calibration of this host. A file that the user named has to exist and to be intact; without a name, the default file is
/// read.
fn found(named: Option<&Path>) -> Result<StoredCalibration, Failure> {
    let Some(path) = named else { return Ok(find(&default_path(), HostIdentity::of_this)) };
    match read(path).map_err(CalibrateError::from)? {
        Some(_) => Ok(find(path, HostIdentity::of_this)),
        None => Err(Failure::BadInput(format!(
            "--calibration {}: no such file; `{}` makes it",
            path.display(),
            command_line(["dormouse", "calibrate", "--out", &path.to_string_lossy()])
        ))),
    }
}

/// Demand of an experiment on the workers that it starts on this host; `None`: the workers can't hold the experiment at
/// any speed-up (admission explains that better).
fn demand(loaded: &LoadedExperiment) -> Option<ExperimentDemand> {
    let Experiment { setup, live, .. } = &loaded.experiment;
    // That it can be scheduled was seen before.
    let wanted =
        live::rehearse(&loaded.experiment, loaded.experiment.scheduler().ok()?, &[]).demand;
    let millicores = available_millicores() / live.workers.max(1);
    let room =
        WorkerOffer { name: "this host".to_owned(), millicores, memory: Bytes::new(u64::MAX) };
    let hosts = vec![room; live.workers as usize];
    let request = AdmissionRequest {
        hosts: &hosts,
        speedup: live.speedup,
        demand: &wanted,
        reserve: live.reserve,
        share: live.share,
        setup,
        repetition_us: &[],
        noop: false,
    };
    let share = request.at_slowest()?.share;
    let shortest = setup.bag.tasks.iter().filter_map(|task| task.runtime.values().min()).min()?;
    Some(ExperimentDemand {
        load: load_at(share),
        shortest_s: shortest.as_secs_f64(),
        reserve: live.reserve.as_f64(),
        wanted: WantedErrors { worst: live.worst_error, mean: live.mean_error },
        admitted: request.fastest_speedup(),
        speedup: live.speedup.as_f64(),
        said: loaded.speedup,
        // Only a worker knows the smallest amount of work of other programs.
        no_faster: live.tasks != BagProgram::Vector,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;
    use dormouse_experiment::{ExperimentSource, Override, load};
    use dormouse_host::calibration::SpeedupSaid;

    fn loaded(set: &[&str]) -> LoadedExperiment {
        let overrides = set.iter().map(|text| Override::set(text).unwrap()).collect();
        load(&ExperimentSource {
            experiment: Some("j60"),
            overrides,
            ..ExperimentSource::default()
        })
        .unwrap()
    }

    #[test]
    fn an_experiment_says_what_it_asks_of_this_host() {
        let demand = |set: &[&str]| super::demand(&loaded(set));
        let j60 = demand(&[]).unwrap();
        assert_eq!((j60.speedup, j60.said, j60.shortest_s), (30.0, SpeedupSaid::Experiment, 119.0));
        assert_eq!(j60.wanted, WantedErrors { worst: 0.05, mean: 0.005 });
        // A twentieth of a core: as finely cut as that, however many cores there are.
        let cut = demand(&["live.share=0.02"]).unwrap();
        assert!((cut.load - 1.0 / 24.0 / 0.02).abs() < 1e-9, "{cut:?}");
        // .02 of a core × 119 s / speed-up has to be 20 ms.
        assert_eq!(cut.admitted, Some(119.0));
        assert_eq!(demand(&["live.speedup=7"]).unwrap().said, SpeedupSaid::CommandLine);
        assert!(demand(&["live.tasks={kind=\"ep\", class=\"S\"}"]).unwrap().no_faster);
        // Cores that there are nowhere.
        assert_eq!(demand(&["live.share=1.0", "live.workers=9000"]), None);
    }
}
