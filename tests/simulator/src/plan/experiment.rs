//! Settings of an experiment's file beside its work: faults, and limits on unacknowledged messages.

use dormouse_coordinator::SessionLimits;
use dormouse_model::{FaultKind, FaultVictims, HostFault};
use dormouse_units::{Speedup, Time};

use crate::draw::Draw;

/// Draws one to three faults that an experiment asks for at this speed-up.
pub(super) fn faults(seed: u64, speedup: u32, workers: usize) -> Vec<HostFault> {
    let mut draw = Draw::new(seed, "simulator: faults of the experiment", workers);
    let speedup = Speedup::times_real(speedup);
    let millis = |many| speedup.to_emulated(std::time::Duration::from_millis(many));
    let mut fault = |_: u32| {
        let kind = match draw.below(8) {
            0 | 1 => FaultKind::Kill,
            2 | 3 => FaultKind::Pause,
            4 | 5 => FaultKind::DiskFull,
            6 => FaultKind::SlowCriu { real_us: draw.between(1_000, 400_000) },
            // Which the simulator's workers refuse: networks are its own to disturb.
            _ => FaultKind::Partition,
        };
        let lasts = millis(draw.between(50, 4_000));
        let on = match draw.below(4) {
            0 => FaultVictims::All,
            1 => FaultVictims::Type("a".into()),
            _ => FaultVictims::Workers(vec![format!("w{}", draw.worker())]),
        };
        let at = Time::ZERO + millis(draw.between(0, 6_000));
        HostFault {
            at,
            lasts: if kind == FaultKind::Kill { lasts.times(0) } else { lasts },
            on,
            kind,
        }
    };
    let mut faults: Vec<_> = (0..3).map(&mut fault).collect();
    faults.truncate(1 + draw.below(3) as usize);
    faults.sort_by_key(|fault| fault.at);
    faults
}

/// Draws limits so low that even runs with little work reach them.
pub(super) fn limits(seed: u64) -> SessionLimits {
    let mut draw = Draw::new(seed, "simulator: limits", 1);
    SessionLimits {
        batch: 1 + draw.below(4) as usize,
        window: 1 + draw.below(3) as usize,
        outbound: 1 + draw.below(4) as usize,
        transfers: 1 + draw.below(2) as usize,
        store_threads: 1 + draw.below(2) as usize,
    }
}
