//! Where things are drawn.

use std::collections::BTreeMap;

use dormouse_units::{Time, VmId};

use super::axis::TimeAxis;
use super::svg::Rect;
use crate::output::Outcome;

pub(crate) const WIDTH: f64 = 1600.0;
pub(crate) const LEFT: f64 = 190.0;
pub(crate) const RIGHT: f64 = 30.0;
pub(crate) const TOP: f64 = 76.0;
const LANE: f64 = 15.0;
const CREDITS: f64 = 18.0;
const GAP: f64 = 9.0;
/// A row has room for its two lines of label.
const LEAST_ROW: f64 = 26.0;

/// The row of a VM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) y: f64,
    pub(crate) lanes: usize,
    pub(crate) height: f64,
    /// Below the lanes, for burstable VMs.
    pub(crate) credits: bool,
}

/// Time to x, VM and lane to y.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) rows: BTreeMap<VmId, Row>,
    pub(crate) bottom: f64,
    pub(crate) end: Time,
}

impl Layout {
    pub(crate) fn of(outcome: &Outcome<'_>) -> Self {
        let record = outcome.record;
        let mut y = TOP;
        let mut rows = BTreeMap::new();
        for vm in record.vms.values() {
            let used = record
                .tasks
                .iter()
                .flat_map(|t| &t.attempts)
                .filter(|a| a.vm == vm.id)
                .map(|a| a.lane + 1);
            let lanes = used.max().unwrap_or(0).max(vm.vcpus.min(64) as usize);
            let credits = !vm.credits.is_empty();
            #[expect(clippy::cast_precision_loss, reason = "a few lanes")]
            let height = (lanes as f64 * LANE + if credits { CREDITS } else { 0.0 }).max(LEAST_ROW);
            rows.insert(vm.id, Row { y, lanes, height, credits });
            y += height + GAP;
        }
        let end = record.end().max(Time::ZERO + outcome.deadline()).max(Time::from_secs(1));
        Self { rows, bottom: y, end }
    }

    /// From the beginning of the run to its end.
    pub(crate) const fn axis(&self) -> TimeAxis {
        TimeAxis { window: (Time::ZERO, self.end), left: LEFT, right: WIDTH - RIGHT }
    }

    pub(crate) fn x(&self, at: Time) -> f64 {
        self.axis().x(at)
    }

    /// The whole row of a VM from one time to another.
    pub(crate) fn across(&self, vm: VmId, from: Time, until: Time) -> Option<Rect> {
        let row = self.rows.get(&vm)?;
        let x = self.x(from);
        Some(Rect { x, y: row.y, w: self.x(until) - x, h: row.height })
    }

    /// A lane of a VM from one time to another.
    pub(crate) fn lane(&self, vm: VmId, lane: usize, from: Time, until: Time) -> Option<Rect> {
        let row = self.rows.get(&vm)?;
        let x = self.x(from);
        #[expect(clippy::cast_precision_loss, reason = "a few lanes")]
        let y = row.y + lane as f64 * LANE + 1.0;
        Some(Rect { x, y, w: self.x(until) - x, h: LANE - 2.0 })
    }

    /// The strip for the credits of a VM.
    pub(crate) fn credits(&self, vm: VmId) -> Option<(f64, f64)> {
        let row = self.rows.get(&vm).filter(|row| row.credits)?;
        #[expect(clippy::cast_precision_loss, reason = "a few lanes")]
        let top = row.y + row.lanes as f64 * LANE + 2.0;
        Some((top, row.y + row.height - 1.0))
    }
}
