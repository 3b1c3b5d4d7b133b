//! A Gantt chart that plays: the run goes by as on the live page, in an SVG file without a script, so that it plays as an
//! image too.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use dormouse_units::{Span, Time};
use maud::{Markup, PreEscaped, html};

use super::super::axis::LaidAxis;
use super::super::svg::{Px, text};
use super::draw::seconds;
use super::layout::{GanttShape, RIGHT, WIDTH};
use super::{BarFill, GanttChart, GanttLane};
use crate::number::grouped;

/// Seconds in which the run goes by once, with the time for which its end stays.
const SECONDS: u32 = 16;
/// How often the run goes by; after the last time its end stays.
const TIMES: u32 = 3;
/// Part of each time, in per cent, after which the end is shown.
const END: u32 = 85;
/// Seconds of the first time that are over when the chart is first seen: an empty chart would tell nothing.
const SKIPPED: u32 = 8;
/// Number of moments whose counts are written above the chart.
const MOMENTS: u32 = 50;

/// What the chart counts while it plays: units of work.
#[derive(Clone, Copy, Debug)]
pub struct PlayedWork<'a> {
    /// Times at which units of work were done, in order.
    pub done: &'a [Time],
    /// Number of all units of work; 0: they are not counted.
    pub all: usize,
    /// Plural noun of the units, such as `tasks`.
    pub noun: &'a str,
}

impl GanttChart {
    /// The chart as an SVG file that plays the run three times, the first time from its middle on, and then shows its end.
    /// Who prefers less motion sees the end alone. Bars have no tooltips, which an image does not show.
    #[must_use]
    pub fn to_animation(&self, work: PlayedWork<'_>) -> String {
        let mut chart = self.clone();
        chart.bars.iter_mut().for_each(|bar| bar.title.clear());
        chart.marks.iter_mut().for_each(|mark| mark.title.clear());
        chart.links.iter_mut().for_each(|link| link.title.clear());
        chart.lanes.iter_mut().for_each(|lane| lane.title.clear());
        let play = ChartPlay { chart: &chart, work };
        chart.draw(Some(&play), GanttShape::Wide).file()
    }
}

/// The moving parts of a chart that plays.
pub(super) struct ChartPlay<'a> {
    chart: &'a GanttChart,
    work: PlayedWork<'a>,
}

impl ChartPlay<'_> {
    /// The rules of the style sheet that move the parts: the curtain, the names of lanes, the lines of counts.
    fn rules(&self, wide: f64, lines: &[(u32, String)]) -> String {
        let mut rules = format!(
            ".curtain{{transform:translateX({WIDTH}px)}}.said{{opacity:0}}.said.end{{opacity:1}}.fig .now{{stroke:#1d4fd7;\
             stroke-width:1.5}}@media screen and (prefers-color-scheme:dark){{.fig .now{{stroke:#8fb4ff}}}}\
             @media (prefers-reduced-motion:no-preference){{.curtain{{animation:curtain {SECONDS}s linear -{SKIPPED}s {TIMES}}}\
             .comes,.said{{animation-duration:{SECONDS}s;animation-delay:-{SKIPPED}s;animation-timing-function:step-end;\
             animation-iteration-count:{TIMES}}}}}@keyframes curtain{{0%{{transform:none}}{END}%,100%\
             {{transform:translateX({}px)}}}}",
            Px(wide)
        );
        // Writing to a String can't fail.
        let comes: BTreeSet<_> =
            self.chart.lanes.iter().filter_map(|lane| self.comes(lane)).collect();
        for at in comes.into_iter().filter(|at| *at > 0) {
            let _ = write!(rules, "@keyframes v{at}{{0%{{opacity:0}}{at}%{{opacity:1}}}}");
        }
        for (n, (from, _)) in lines.iter().enumerate() {
            let until = lines.get(n + 1).map_or(END, |next| next.0);
            let before = if *from == 0 { String::new() } else { "0%{opacity:0}".to_owned() };
            let _ = write!(
                rules,
                "@keyframes s{n}{{{before}{from}%{{opacity:1}}{until}%{{opacity:0}}}}"
            );
        }
        let _ = write!(rules, "@keyframes end{{0%{{opacity:0}}{END}%{{opacity:1}}}}");
        rules
    }

    /// The line of figures above the chart: the counts at each moment, and at the end the figures of the whole run.
    pub(super) fn lead(&self, lead: &str, x: &LaidAxis) -> Markup {
        let lines = self.lines();
        let wide = WIDTH - RIGHT - x.at(seconds(self.chart.window.0));
        html! {
            style { (PreEscaped(self.rules(wide, &lines))) }
            @for (n, (_, words)) in lines.iter().enumerate() {
                g.said style={ "animation-name:s" (n) } { (text((14.0, 41.0), "dim", words)) }
            }
            g.said.end style="animation-name:end" { (text((14.0, 41.0), "dim", lead)) }
        }
    }

    /// Style of a lane's frame, by which the lane comes when its machine does; `None` if it is there from the beginning.
    pub(super) fn lane_style(&self, lane: &GanttLane) -> Option<String> {
        let at = self.comes(lane).filter(|at| *at > 0)?;
        Some(format!("animation-name:v{at}"))
    }

    /// What hides the time to come: paper, with a line for the present at its left end.
    pub(super) fn curtain(&self, x: &LaidAxis, (top, bottom): (f64, f64)) -> Markup {
        let left = x.at(seconds(self.chart.window.0));
        html! {
            g.curtain {
                rect.paper x=(Px(left)) y=(Px(top)) width=(Px(WIDTH - left)) height=(Px(bottom - top)) {}
                path.now d={ "M" (Px(left)) " " (Px(top)) "V" (Px(bottom)) } {}
            }
        }
    }

    /// Per cent of the playing time at which a lane's machine comes.
    fn comes(&self, lane: &GanttLane) -> Option<u32> {
        let (from, until) = (seconds(self.chart.window.0), seconds(self.chart.window.1));
        let part = (seconds(lane.life?.0) - from) / (until - from).max(1e-9);
        Some((part.clamp(0.0, 1.0) * f64::from(END)).floor() as u32)
    }

    /// The counts at each moment at which they differ from those before, with the per cent of the playing time.
    fn lines(&self) -> Vec<(u32, String)> {
        let (from, until) = self.chart.window;
        let mut lines: Vec<(u32, String)> = Vec::new();
        for n in 0..MOMENTS {
            let passed = until.since(from).as_micros() / u64::from(MOMENTS) * u64::from(n);
            let at = from + Span::from_micros(passed);
            lines.push((n * END / MOMENTS, self.counts(at)));
        }
        lines.dedup_by(|later, earlier| later.0 == earlier.0 || later.1 == earlier.1);
        lines
    }

    /// The counts at a time in words.
    fn counts(&self, at: Time) -> String {
        let PlayedWork { done, all, noun } = self.work;
        let is_there = |&&(from, until): &&(Time, Time)| from <= at && at < until;
        let lives: Vec<_> = self.chart.lanes.iter().filter_map(|lane| lane.life).collect();
        let machines = lives.iter().filter(is_there).count();
        let frozen = self
            .chart
            .bars
            .iter()
            .filter(|bar| bar.fill == BarFill::Hibernated && bar.from <= at && at < bar.until);
        let mut words = self.chart.unit.words(seconds(at), 0);
        if all > 0 {
            let done = done.partition_point(|it| *it <= at);
            let [done, all] = [done, all].map(|n| grouped(&n.to_string()));
            let _ = write!(words, " · {done} of {all} {noun} done");
        }
        let _ = write!(words, " · {machines} {}", if machines == 1 { "VM" } else { "VMs" });
        let frozen = frozen.count();
        if frozen > 0 {
            let _ = write!(words, ", {frozen} hibernated");
        }
        words
    }
}
