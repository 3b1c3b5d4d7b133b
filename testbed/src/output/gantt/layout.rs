//! Where things are drawn.

use std::collections::BTreeMap;

use dormouse_units::{Time, VmId};

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

    pub(crate) fn x(&self, at: Time) -> f64 {
        let share = at.as_secs_f64() / self.end.as_secs_f64();
        LEFT + share * (WIDTH - LEFT - RIGHT)
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

    /// Seconds between grid lines.
    pub(crate) fn grid_s(&self) -> u64 {
        grid_s(self.end.as_micros() / 1_000_000)
    }
}

/// Seconds between the grid lines of so many seconds: about twelve lines; steps that people
/// count in.
pub(crate) fn grid_s(length_s: u64) -> u64 {
    let steps =
        [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 43_200];
    let wanted = length_s / 12;
    steps.into_iter().find(|&s| s >= wanted).unwrap_or_else(|| (wanted / 86_400 + 1) * 86_400)
}

/// The label of a grid line, at so many seconds, where lines are `step_s` apart.
pub(crate) fn grid_label(at_s: u64, step_s: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a label")]
    let hours = at_s as f64 / 3_600.0;
    match step_s {
        0..60 => format!("{at_s} s"),
        60..3_600 => format!("{} min", at_s / 60),
        3_600..43_200 => format!("{hours:.1} h"),
        _ => format!("{:.1} d", hours / 24.0),
    }
}
