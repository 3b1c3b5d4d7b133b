//! The Gantt chart of parallel jobs: processors as rows, each with its foreground above its
//! background; jobs over time, and how they moved.

use std::fmt::Write as _;

use dormouse_units::{Tier, Time};

use super::history::{JobHistory, Spell, SpellEnd};
use super::outcome::JobsOutcome;
use crate::output::{COLOURS, HEAD, Rect, Svg, TimeAxis};

const WIDTH: f64 = 1600.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 72.0;
/// All rows together, unless each then is higher or lower than these.
const HEIGHT: f64 = 1_000.0;
const ROW: (f64, f64) = (3.0, 24.0);
/// Rows at most.
const MOST_ROWS: u32 = 512;
/// Labels are written where there is room for one.
const LABEL: (f64, f64) = (18.0, 9.0);

struct Chart<'a> {
    outcome: &'a JobsOutcome<'a>,
    rows: u32,
    row: f64,
    window: (Time, Time),
    /// Tops of the foregrounds and of the backgrounds of the rows, as text: most of what is written.
    tops: [Vec<String>; 2],
    svg: Svg,
}

/// The Gantt chart, an SVG document.
pub(crate) fn gantt(outcome: &JobsOutcome<'_>) -> String {
    let rows = outcome.machine().min(MOST_ROWS);
    let row = (HEIGHT / f64::from(rows.max(1))).clamp(ROW.0, ROW.1);
    let (from, until) = outcome.history.window();
    let window = (from, until.max(from + dormouse_units::Span::from_secs(1)));
    let (tops, svg) = ([Vec::new(), Vec::new()], Svg::default());
    let mut chart = Chart { outcome, rows, row, window, tops, svg };
    chart.tops = [Tier::Foreground, Tier::Background]
        .map(|tier| (0..rows).map(|p| format!("{:.1}", chart.lane(p, tier).0)).collect());
    chart.frame();
    for job in outcome.history.jobs() {
        for spell in &job.spells {
            chart.spell(job, spell);
        }
    }
    for job in outcome.history.jobs() {
        chart.moves(job);
    }
    let height = chart.bottom() + 30.0;
    let label = format!("Gantt chart of {}", outcome.header.experiment.name);
    chart.svg.finish((WIDTH, height), &label, HEAD)
}

impl Chart<'_> {
    fn bottom(&self) -> f64 {
        TOP + f64::from(self.rows) * self.row
    }

    const fn axis(&self) -> TimeAxis {
        TimeAxis { window: self.window, left: LEFT, right: WIDTH - RIGHT }
    }

    fn x(&self, at: Time) -> f64 {
        self.axis().x(at)
    }

    /// Top and height of a VM of a processor.
    fn lane(&self, p: u32, tier: Tier) -> (f64, f64) {
        let top = TOP + f64::from(p) * self.row;
        // One tier has no background to leave room for.
        let two = self.outcome.batch.scheduler.name.promotion().is_some();
        let foreground = self.row * if two { 0.6 } else { 0.9 };
        match tier {
            Tier::Foreground => (top, foreground),
            Tier::Background => (top + foreground, self.row * 0.3),
        }
    }

    fn frame(&mut self) {
        let outcome = self.outcome;
        let experiment = &outcome.header.experiment;
        let bottom = self.bottom();
        let all = Rect { x: 0.0, y: 0.0, w: WIDTH, h: bottom + 30.0 };
        self.svg.rect(all, "bg", "");
        let title = format!("{} · {}", experiment.name, outcome.batch.scheduler.name);
        self.svg.text(14.0, 24.0, "title", &title);
        let (drawn, jobs) = (outcome.history.jobs().count(), outcome.figures.jobs());
        let mut about = format!(
            "{} · seed {} · {jobs} jobs on {} processors · mean response {:.0} s",
            outcome.header.mode,
            experiment.setup.seed,
            outcome.machine(),
            outcome.figures.response.mean()
        );
        if outcome.history.is_cut() {
            let _ = write!(about, " · here the first {drawn}, until the next is submitted");
        }
        if self.rows < outcome.machine() {
            let _ = write!(about, " · the first {} processors", self.rows);
        }
        self.svg.text(14.0, 42.0, "sub", &about);
        self.legend();
        for p in 0..self.rows {
            self.life(p);
        }
        self.axis().grid(&mut self.svg, TOP - 4.0, bottom);
    }

    /// The row of a processor, and its name where there is room for it.
    fn life(&mut self, p: u32) {
        let (y, _) = self.lane(p, Tier::Foreground);
        let row = Rect { x: LEFT, y, w: WIDTH - LEFT - RIGHT, h: self.row * 0.92 };
        self.svg.rect(row, "life", "");
        let every = (11.0 / self.row).ceil();
        if p.is_multiple_of(every as u32) {
            self.svg.text(LEFT - 8.0, y + self.row.min(11.0) * 0.85, "end small", &p.to_string());
        }
    }

    fn legend(&mut self) {
        let two = self.outcome.batch.scheduler.name.promotion().is_some();
        let mut x = WIDTH - 660.0;
        let mut item = |svg: &mut Svg, classes: &[&str], h: f64, text: &str, width: f64| {
            for class in classes {
                svg.rect(Rect { x, y: 26.0 - h, w: 20.0, h }, class, "");
            }
            svg.text(x + 26.0, 25.0, "sub", text);
            x += width;
        };
        item(&mut self.svg, &["c0"], 11.0, "foreground", 102.0);
        if !two {
            return;
        }
        item(&mut self.svg, &["c0 below"], 6.0, "background", 106.0);
        item(&mut self.svg, &["c0 below", "lost"], 8.0, "killed: work lost", 134.0);
        self.svg.path(&swap_mark(x, 20.0), "steal", "");
        self.svg.text(x + 14.0, 25.0, "sub", "tiers swapped");
        x += 112.0;
        self.svg.line((x, 14.0), (x, 28.0), "hop", "");
        self.svg.text(x + 8.0, 25.0, "sub", "moved to other processors");
    }

    /// A job on its processors: one path, a rectangle a processor.
    fn spell(&mut self, job: &JobHistory, spell: &Spell) {
        let (_, end) = self.window;
        let until = spell.until.map_or(end, |(at, _)| at);
        if spell.from >= end {
            return;
        }
        let (x, w) = (self.x(spell.from), (self.x(until) - self.x(spell.from)).max(0.5));
        let mut on: Vec<u32> = spell.on.iter().copied().filter(|&p| p < self.rows).collect();
        on.sort_unstable();
        let mut d = String::new();
        let (_, h) = self.lane(0, spell.tier);
        let (before, after) = (format!("M{x:.1} "), format!("h{w:.1}v{h:.1}h-{w:.1}z"));
        for &p in &on {
            d.extend(
                [&before, &self.tops[spell.tier as usize][p as usize], &after].map(String::as_str),
            );
        }
        let colour = job.number % COLOURS as u64;
        let tier = if spell.tier == Tier::Background { " below" } else { "" };
        self.svg.path(&d, &format!("job c{colour}{tier}"), &title(job, spell, until));
        if matches!(spell.until, Some((_, SpellEnd::Killed | SpellEnd::Failed))) {
            self.svg.path(&d, "lost", "");
        }
        if spell.tier == Tier::Foreground {
            self.labels(job, &on, (x, w));
        }
    }

    /// The job's number on each block of neighbouring processors that has room for it.
    fn labels(&mut self, job: &JobHistory, on: &[u32], (x, w): (f64, f64)) {
        if w < LABEL.0 {
            return;
        }
        for block in on.chunk_by(|a, b| a + 1 == *b) {
            let (top, _) = self.lane(block[0], Tier::Foreground);
            let (last, h) = self.lane(block[block.len() - 1], Tier::Foreground);
            let height = last + h - top;
            if height >= LABEL.1 {
                let y = top + if h >= LABEL.1 { h } else { height } / 2.0 + 3.2;
                self.svg.text(x + 3.0, y, "in", &job.number.to_string());
            }
        }
    }

    /// How a job came to the foreground.
    fn moves(&mut self, job: &JobHistory) {
        for pair in job.spells.windows(2) {
            let [was, is] = pair else { continue };
            let Some((at, why)) = was.until.filter(|(at, _)| *at < self.window.1) else { continue };
            let x = self.x(at);
            let middle = |spell: &Spell| {
                spell.on.iter().filter(|&&p| p < self.rows).min().map(|&p| {
                    let (y, h) = self.lane(p, spell.tier);
                    y + h / 2.0
                })
            };
            let (Some(a), Some(b)) = (middle(was), middle(is)) else { continue };
            let what = match why {
                SpellEnd::Swapped => "its tiers were swapped",
                SpellEnd::Killed => "it was killed and began again",
                SpellEnd::Migrated => "it migrated",
                SpellEnd::Done | SpellEnd::Failed => continue,
            };
            let title = format!("job {} at {at}: {what}", job.number);
            if why == SpellEnd::Swapped {
                self.svg.path(&swap_mark(x, b), "steal", &title);
            } else {
                self.svg.line((x, a), (x, b), "hop", &title);
            }
        }
    }
}

fn swap_mark(x: f64, y: f64) -> String {
    format!("M{:.1} {:.1}l4 5h-8zm0 10l4 -5h-8z", x, y - 5.0)
}

fn title(job: &JobHistory, spell: &Spell, until: Time) -> String {
    let tier = match spell.tier {
        Tier::Foreground => "foreground",
        Tier::Background => "background",
    };
    let end = match spell.until {
        None => String::new(),
        Some((_, SpellEnd::Done)) => ", then done".to_owned(),
        Some((_, SpellEnd::Swapped)) => ", then swapped to the foreground".to_owned(),
        Some((_, SpellEnd::Killed)) => ", then killed to begin again in the foreground".to_owned(),
        Some((_, SpellEnd::Migrated)) => ", then migrated to the foreground".to_owned(),
        Some((_, SpellEnd::Failed)) => ", then lost, to begin again".to_owned(),
    };
    format!(
        "job {} ({} processes, estimated {}, submitted {}) in the {tier}: {} to {until}{end}",
        job.number, job.processes, job.estimate, job.submitted, spell.from
    )
}
