//! A Gantt chart as SVG.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use dormouse_units::{Tier, Time};
use maud::{Markup, html};

use super::super::axis::{Laid, Scale};
use super::super::legend::{Entry, legend};
use super::super::mark::colour;
use super::super::svg::{Drawing, Px, line, text, title};
use super::super::text::width;
use super::layout::{LABELLED, Layout, RIGHT, WIDTH, stagger};
use super::value::{Bar, Fill, Gantt, Instant, Lane, Link, Mark, MarkKind, Measure};
use crate::number::{short, time};

/// More links than these are thin, and have no heads.
const MANY_LINKS: usize = 150;

/// A line of names of instants.
const NAMES: f64 = 14.0;

impl Gantt {
    /// A file of its own.
    #[must_use]
    pub fn to_svg(&self) -> String {
        self.draw().file()
    }

    /// For a page.
    #[must_use]
    pub fn to_markup(&self) -> Markup {
        self.draw().inline()
    }

    fn draw(&self) -> Drawing {
        let (keys, keys_height) = legend(&self.entries(), (14.0, 50.0), WIDTH - RIGHT);
        let top = 50.0 + keys_height + 8.0;
        let (shown, later): (Vec<_>, Vec<_>) =
            self.instants.iter().partition(|instant| instant.at <= self.window.1);
        let probe = Layout::of(self, top);
        let x = self.axis(&probe);
        let names: Vec<_> = shown.iter().map(|instant| name_at(instant, &x)).collect();
        let lines = stagger(&names);
        let high = lines.iter().max().map_or(0.0, |most| (*most as f64 + 1.0) * NAMES);
        let layout = Layout::of(self, top + high);
        let (first, bottom) = (top + high - 4.0, layout.bottom + 2.0);
        let lead = match later.as_slice() {
            [] => self.lead.clone(),
            later => {
                let words = later.iter().map(|i| format!("{} at {}", i.name, time(i.at)));
                format!("{} · {}", self.lead, words.collect::<Vec<_>>().join(", "))
            }
        };
        let content = html! {
            (text((14.0, 23.0), "title", &self.title))
            (text((14.0, 41.0), "dim", &lead))
            (keys)
            @for (n, lane) in self.lanes.iter().enumerate() { (lane_frame(n, lane, &layout, &x)) }
            @for (at, label) in x.ticks_across() {
                (line((x.at(at), first), (x.at(at), bottom), "grid"))
                (text((x.at(at), bottom + 15.0), "mid dim", &label))
            }
            @for (n, lane) in self.lanes.iter().enumerate() {
                @if let Some(measure) = &lane.measure { (measured(measure, lane, layout.measure(n, lane), &x)) }
            }
            g.thin-rows[layout.row() < 6.0] {
                @for bar in self.bars.iter().filter(|bar| self.is_shown(bar.from, bar.until)) {
                    (self.bar(bar, &layout, &x))
                }
                @for link in self.links.iter().filter(|l| self.is_shown(l.from.1, l.to.1)) {
                    (self.link(link, &layout, &x))
                }
            }
            @for mark in self.marks.iter().filter(|mark| self.is_shown(mark.at, mark.at)) {
                (self.mark(mark, &layout, &x))
            }
            @for ((instant, (from, _)), row) in shown.iter().zip(names).zip(lines) {
                @let (x, y) = (x.at(seconds(instant.at)), first - 4.0 - row as f64 * NAMES);
                (line((x, y - 2.0), (x, bottom), "limit"))
                (text((from, y), "limit", &instant_words(instant)))
            }
        };
        let label = format!("Gantt chart: {}", self.title);
        Drawing { width: WIDTH, height: bottom + 24.0, label, content }
    }

    fn axis(&self, layout: &Layout) -> Laid {
        let (from, until) = (seconds(self.window.0), seconds(self.window.1));
        let until = if until > from { until } else { from + 1.0 };
        Laid::exactly(Scale::Time, (from, until), (layout.left, WIDTH - RIGHT))
    }

    fn is_shown(&self, from: Time, until: Time) -> bool {
        from <= self.window.1 && until >= self.window.0
    }

    fn lane(&self, n: usize) -> Option<&Lane> {
        self.lanes.get(n)
    }

    /// Keys of what is drawn, and of nothing else.
    fn entries(&self) -> Vec<Entry> {
        let rect = |class: String, height: f64| {
            move |(x, y): (f64, f64)| {
                html! { rect class=(class) x=(Px(x)) y=(Px(y - height / 2.0)) width="18" height=(Px(height)) {} }
            }
        };
        let entry = |name: &str, key: Box<dyn Fn((f64, f64)) -> Markup>| Entry {
            name: name.to_owned(),
            key_width: 18.0,
            key,
        };
        let mut entries: Vec<_> = (0..)
            .zip(&self.colours)
            .map(|(n, name)| entry(name, Box::new(rect(format!("bar {}", colour(n)), 11.0))))
            .collect();
        if self.lanes.iter().any(|lane| lane.has_background) {
            entries.push(entry("foreground", Box::new(rect("bar k7".into(), 11.0))));
            entries.push(entry("background", Box::new(rect("bar below k7".into(), 6.0))));
        }
        let fills: BTreeSet<_> = self.bars.iter().map(|bar| bar.fill).collect();
        for fill in fills.into_iter().filter(|fill| !fill.name().is_empty()) {
            let under = if fill.is_overlay() { "bar k7" } else { "paper" };
            let (under, over) = (rect(under.into(), 11.0), rect(fill_class(fill), 11.0));
            entries.push(entry(fill.name(), Box::new(move |at| html! { (under(at)) (over(at)) })));
        }
        if let Some(measure) = self.lanes.iter().find_map(|lane| lane.measure.as_ref()) {
            entries.push(entry(&measure.name, Box::new(rect("measure".into(), 9.0))));
        }
        let kinds: BTreeSet<_> = self.marks.iter().map(|mark| mark.kind).collect();
        for kind in kinds {
            entries.push(entry(
                kind.name(),
                Box::new(move |(x, y)| shape(kind, (x + 9.0, y), 10.0, "")),
            ));
        }
        if !self.links.is_empty() {
            let arrow = |(x, y): (f64, f64)| {
                html! { path.link d={ "M" (Px(x)) " " (Px(y)) "h17" } marker-end="url(#dm-tip)" {} }
            };
            entries.push(entry("migration", Box::new(arrow)));
        }
        entries
    }

    /// A bar: one path over all its blocks.
    fn bar(&self, bar: &Bar, layout: &Layout, x: &Laid) -> Markup {
        let Some(lane) = self.lane(bar.place.lane) else { return Markup::default() };
        let (from, to) = (x.at(seconds(bar.from)), x.at(seconds(bar.until)));
        let wide = (to - from).max(0.6);
        let mut d = String::new();
        for (y, h) in layout.blocks(lane, &bar.place) {
            // Writing to a String can't fail.
            let _ = write!(d, "M{} {}h{}v{}h-{2}z", Px(from), Px(y), Px(wide), Px(h));
        }
        let class = match (bar.fill, bar.place.tier) {
            (Fill::Work(_), Tier::Background) => format!("item {} below", fill_class(bar.fill)),
            _ => format!("item {}", fill_class(bar.fill)),
        };
        let needs = width(&bar.label, 9.0) + 5.0;
        let is_labelled =
            !bar.label.is_empty() && wide > needs && bar.place.tier == Tier::Foreground;
        // Between the parts of a job there is a gap: its own colour around the letters fills that.
        let around = if lane.has_background { " own" } else { "" };
        let label_class = format!("in{around} {}", fill_class(bar.fill));
        html! {
            path class=(class) d=(d) { (title(&bar.title)) }
            @if is_labelled {
                @for rows in &bar.place.rows {
                    @let height = f64::from(rows.end - rows.start) * layout.row();
                    @let (top, _) = layout.lane(bar.place.lane);
                    @if height >= 9.5 {
                        @let first = if lane.has_background && layout.row() >= 15.0 { layout.row() * 0.62 } else { height };
                        @let y = top + f64::from(rows.start) * layout.row() + first / 2.0 + 3.2;
                        (text((from + 2.5, y), &label_class, &bar.label))
                    }
                }
            }
        }
    }

    fn mark(&self, mark: &Mark, layout: &Layout, x: &Laid) -> Markup {
        let Some(lane) = self.lane(mark.place.lane) else { return Markup::default() };
        let at = x.at(seconds(mark.at));
        if mark.kind == MarkKind::Gone {
            let (top, height) = layout.lane(mark.place.lane);
            let d = format!("M{} {}v{}", Px(at), Px(top - 2.0), Px(height + 4.0));
            return html! { path class="item gone" d=(d) { (title(&mark.title)) } };
        }
        let size = (layout.row() * 0.75).clamp(2.0, 10.0);
        shape(mark.kind, (at, layout.middle(lane, &mark.place)), size, &mark.title)
    }

    fn link(&self, link: &Link, layout: &Layout, x: &Laid) -> Markup {
        let end = |(place, at): &(super::Place, Time)| {
            let lane = self.lane(place.lane)?;
            Some((x.at(seconds(*at)), layout.middle(lane, place)))
        };
        let (Some((xa, ya)), Some((xb, yb))) = (end(&link.from), end(&link.to)) else {
            return Markup::default();
        };
        let bend = ((xb - xa) * 0.5).max(18.0);
        let d = format!(
            "M{} {}C{} {} {} {} {} {}",
            Px(xa),
            Px(ya),
            Px(xa + bend),
            Px(ya),
            Px(xb - bend),
            Px(yb),
            Px(xb),
            Px(yb)
        );
        let is_one_of_many = self.links.len() > MANY_LINKS;
        let (class, end) = match is_one_of_many {
            false => ("item link", Some("url(#dm-tip)")),
            true => ("item link many", None),
        };
        html! { path class=(class) d=(d) marker-end=[end] { (title(&link.title)) } }
    }
}

fn seconds(at: Time) -> f64 {
    at.as_secs_f64()
}

fn instant_words(instant: &Instant) -> String {
    format!("{} {}", instant.name, time(instant.at))
}

/// Where the name of an instant begins, and how wide it is.
fn name_at(instant: &Instant, x: &Laid) -> (f64, f64) {
    let wide = width(&instant_words(instant), 11.0);
    let (left, right) = x.paper;
    let middle = x.at(seconds(instant.at));
    ((middle - wide / 2.0).clamp(left, (right - wide).max(left)), wide)
}

fn fill_class(fill: Fill) -> String {
    match fill {
        Fill::Work(n) => format!("bar {}", colour(n)),
        Fill::Boot => "boot".to_owned(),
        Fill::Hibernated => "frozen".to_owned(),
        Fill::Baseline => "slow".to_owned(),
        Fill::Lost => "lost".to_owned(),
    }
}

/// A mark around a point, so many pixels high.
fn shape(kind: MarkKind, (x, y): (f64, f64), size: f64, words: &str) -> Markup {
    let half = size / 2.0;
    let (class, d) = match kind {
        MarkKind::Checkpoint => (
            "item kept",
            format!(
                "M{} {}l{half:.1} {half:.1}l-{half:.1} {half:.1}l-{half:.1} -{half:.1}z",
                Px(x),
                Px(y - half)
            ),
        ),
        // What begins a bar stands before it, beside the bar's label.
        MarkKind::Stolen => {
            ("item stolen", format!("M{} {}h{size:.1}v{size:.1}z", Px(x - size), Px(y - half)))
        }
        MarkKind::Swapped => (
            "item stolen",
            format!(
                "M{} {}l{half:.1} {half:.1}h-{size:.1}zm0 {size:.1}l{half:.1} -{half:.1}h-{size:.1}z",
                Px(x - half),
                Px(y - half)
            ),
        ),
        MarkKind::Gone => ("item gone", format!("M{} {}v{size:.1}", Px(x), Px(y - half))),
    };
    html! { path class=(class) d=(d) { (title(words)) } }
}

/// A lane's life and names.
fn lane_frame(n: usize, lane: &Lane, layout: &Layout, x: &Laid) -> Markup {
    let (top, height) = layout.lane(n);
    let life = lane.life.map(|(from, until)| (x.at(seconds(from)), x.at(seconds(until))));
    let every = (11.0 / layout.row()).ceil() as usize;
    html! {
        @if let Some((from, to)) = life {
            rect class="item life" x=(Px(from)) y=(Px(top)) width=(Px(to - from)) height=(Px(height)) {
                (title(&lane.title))
            }
        }
        @match layout.lines(n) {
            0 => {}
            1 => (text((14.0, top + (height / 2.0 + 4.0).min(11.0)), "", &lane.name)),
            _ => {
                (text((14.0, top + 11.0), "head", &lane.name))
                (text((14.0, top + 22.0), "small", &lane.about))
            }
        }
        @if lane.is_numbered {
            @for row in (0..lane.rows).step_by(every.max(1)) {
                @let y = top + f64::from(row) * layout.row() + layout.row().min(12.0) / 2.0 + 3.5;
                (text((layout.left - 6.0, y), "end small", &row.to_string()))
            }
        }
    }
}

/// A quantity over time, with its scale where there is room.
fn measured(measure: &Measure, lane: &Lane, (top, bottom): (f64, f64), x: &Laid) -> Markup {
    let Some(first) = measure.points.first() else { return Markup::default() };
    let most = measure.points.iter().map(|p| p.1).fold(1e-9, f64::max);
    let y = |value: f64| bottom - value / most * (bottom - top);
    let from = x.at(seconds(first.0));
    let mut d = format!("M{} {}", Px(from), Px(bottom));
    for (at, value) in &measure.points {
        // Writing to a String can't fail.
        let _ = write!(d, "L{} {}", Px(x.at(seconds(*at))), Px(y(*value)));
    }
    let _ = write!(d, "V{}z", Px(bottom));
    let words = format!("{}: {}, at most {}", lane.name, measure.name, short(most));
    html! {
        path class="item measure" d=(d) { (title(&words)) }
        @if bottom - top >= LABELLED {
            (text((from - 4.0, top + 7.0), "end small", &short(most)))
            (text((from - 4.0, bottom), "end small", "0"))
        }
    }
}
