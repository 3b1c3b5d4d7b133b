//! What of a core a vCPU is in a live run whose run times were measured: they are longer on smaller vCPUs.

use dormouse_coordinator::admission::{Request, Room};
use dormouse_experiment::Loaded;
use dormouse_units::{Bytes, Ppm};
use dormouse_worker::agent::available_millicores;

use super::failure::Failure;
use crate::live;

/// The number of times that another share is tried: with each the run times are others, and with
/// them what is there at once.
const TRIES: usize = 8;

/// The experiment at a share that this host holds, where nobody but a measurement said one; `opened` opens
/// it again at another share.
pub(super) fn fitted(
    mut loaded: Loaded,
    opened: impl Fn(Ppm) -> Result<Loaded, Failure>,
) -> Result<Loaded, Failure> {
    if !loaded.has_measured_share {
        return Ok(loaded);
    }
    for _ in 0..TRIES {
        let (Some(share), Some(fits)) = (loaded.experiment.live.share, fits(&loaded)?) else {
            break;
        };
        if fits >= share {
            break;
        }
        loaded = opened(fits)?;
    }
    Ok(loaded)
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
