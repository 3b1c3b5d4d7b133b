//! What may be the cause where ours differs from the paper: choices that its text leaves open,
//! what a generated workload can't know of the one it stands for, and where one looks.

use super::setting::{BackgroundFill, Draws, Estimates, Room, Setting, Shape, Usage};
use super::statements::{LOADS, View};

/// One thing changed.
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    /// Its name.
    pub name: &'static str,
    /// What it changes, in words.
    pub about: &'static str,
    /// The loads and the setting that it looks at instead.
    pub view: View,
}

const fn setting(
    name: &'static str,
    about: &'static str,
    change: fn(Setting) -> Setting,
) -> Factor {
    Factor { name, about, view: View { loads: &LOADS, change } }
}

const fn loads(name: &'static str, about: &'static str, loads: &'static [u32]) -> Factor {
    Factor { name, about, view: View { loads, change: |setting| setting } }
}

/// All of them.
pub const FACTORS: [Factor; 16] = [
    setting("exact-estimates", "users know how long their jobs run", |s| Setting {
        estimates: Estimates::Exact,
        ..s
    }),
    setting("double-estimates", "users say twice the run time, not what Tsafrir has", |s| {
        Setting { estimates: Estimates::Double, ..s }
    }),
    setting("many-short-jobs", "more very short runs at the same mean, as logs have", |s| {
        Setting { shape: Shape::ManyShort, ..s }
    }),
    setting("at-most-6h", "runs and estimates end at 6 h, not 18 h, at the same mean", |s| {
        Setting { shape: Shape::SixHours, ..s }
    }),
    setting("poisson-arrivals", "arrivals without bursts (jw-like has them)", |s| Setting {
        shape: Shape::Steady,
        ..s
    }),
    setting("usage-each-job", "one CPU usage drawn a job, not a process", |s| Setting {
        usage: Usage::EachJob,
        ..s
    }),
    setting("utilisation-each-process", "each background process draws its utilisation", |s| {
        Setting { draws: Draws::EachProcess, ..s }
    }),
    setting("no-96-rule", "a background below any foreground that uses less than 100 %", |s| {
        Setting { room: Room::BelowAll, ..s }
    }),
    setting("background-where-idle", "a background only where no foreground runs", |s| Setting {
        room: Room::WhereIdle,
        ..s
    }),
    setting("background-where-busy", "a background only below a foreground that runs", |s| {
        Setting { room: Room::WhereBusy, ..s }
    }),
    setting("utilisation-low", "a larger background job uses .30 of idle cycles, not .43", |s| {
        Setting { draws: Draws::Low, ..s }
    }),
    setting("small-run-long", "the smaller a job, the longer it runs, at the same means", |s| {
        Setting { shape: Shape::SmallRunLong, ..s }
    }),
    setting("small-run-long+double-estimates", "these two together", |s| Setting {
        shape: Shape::SmallRunLong,
        estimates: Estimates::Double,
        ..s
    }),
    setting("fill-after-departure", "SJF only after a job left the background", |s| Setting {
        fill: BackgroundFill::AfterDeparture,
        ..s
    }),
    loads("loads-to-0.8", "without the load of 0.9", &[30, 40, 50, 60, 70, 80]),
    loads("loads-to-0.7", "without the loads of 0.8 and 0.9", &[30, 40, 50, 60, 70]),
];
