//! The chart: VMs as rows, their vCPUs as lanes, what happened on them over time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dormouse_cloud::Market;
use dormouse_engine::VmEnd;
use dormouse_policies::StartReason;
use dormouse_units::Mode;
use dormouse_units::{Credits, TaskId, Time};

use super::layout::{LEFT, Layout, RIGHT, TOP, WIDTH};
use super::style::{COLOURS, HEAD};
use super::svg::{Rect, Svg};
use crate::output::csv::{end_word, finished_on};
use crate::output::{self, Outcome};
use crate::record::{AttemptEnd, AttemptHistory, TaskHistory, VmHistory};

/// Kinds of tasks, by the part of their name before the number, and their colours.
type Kinds<'a> = BTreeMap<&'a str, usize>;

struct Chart<'a> {
    outcome: &'a Outcome<'a>,
    layout: Layout,
    kinds: Kinds<'a>,
    svg: Svg,
}

/// The Gantt chart of a run, an SVG document.
pub(crate) fn gantt(outcome: &Outcome<'_>) -> String {
    let tasks = &outcome.header.experiment.setup.bag.tasks;
    let mut kinds = Kinds::new();
    for task in tasks.iter() {
        let next = kinds.len() % COLOURS;
        kinds.entry(kind_of(&task.name)).or_insert(next);
    }
    let mut chart = Chart { outcome, layout: Layout::of(outcome), kinds, svg: Svg::default() };
    chart.frame();
    for vm in outcome.record.vms.values() {
        chart.vm(vm);
    }
    for (n, task) in (0..).zip(&outcome.record.tasks) {
        chart.task(TaskId::new(n), task);
    }
    for vm in outcome.record.vms.values() {
        chart.hibernations(vm);
    }
    for (n, task) in (0..).zip(&outcome.record.tasks) {
        chart.moves(TaskId::new(n), task);
    }
    chart.lines();
    let height = chart.layout.bottom + 34.0;
    let label = format!("Gantt chart of {}", outcome.header.experiment.name);
    chart.svg.finish((WIDTH, height), &label, HEAD)
}

fn kind_of(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(kind, _)| kind)
}

fn s(at: Time) -> String {
    format!("{:.1} s", at.as_secs_f64())
}

impl Chart<'_> {
    /// Background, title, legend, grid.
    fn frame(&mut self) {
        let outcome = self.outcome;
        let bottom = self.layout.bottom;
        let all = Rect { x: 0.0, y: 0.0, w: WIDTH, h: bottom + 34.0 };
        self.svg.rect(all, "bg", "");
        let experiment = &outcome.header.experiment;
        let title = format!("{} · {}", experiment.name, experiment.scheduler_name());
        self.svg.text(14.0, 24.0, "title", &title);
        let record = outcome.record;
        let made = record
            .makespan()
            .map_or("not all tasks finished".to_owned(), |t| format!("makespan {}", s(t)));
        let sub = format!(
            "{} · seed {} · {made} · ${:.4} · {} of {} tasks",
            outcome.header.mode,
            experiment.setup.seed,
            record.cost().as_usd(),
            record.finished(),
            record.tasks.len()
        );
        self.svg.text(14.0, 42.0, "sub", &sub);
        self.legend();
        self.layout.axis().grid(&mut self.svg, TOP - 6.0, bottom);
    }

    fn legend(&mut self) {
        let mut x = 560.0;
        let y = 15.0;
        let mut item = |svg: &mut Svg, classes: &[&str], text: &str| {
            for class in classes {
                svg.rect(Rect { x, y, w: 18.0, h: 11.0 }, class, "");
            }
            svg.text(x + 23.0, y + 9.5, "sub", text);
            #[expect(clippy::cast_precision_loss, reason = "a short text")]
            let width = text.chars().count() as f64;
            x += 42.0 + width * 6.2;
        };
        let many = self.kinds.len() > COLOURS;
        for (kind, colour) in self.kinds.iter().take(if many { 0 } else { COLOURS }) {
            item(&mut self.svg, &[&format!("c{colour}")], kind);
        }
        item(&mut self.svg, &["c0", "slow"], "baseline");
        item(&mut self.svg, &["boot"], "boot");
        item(&mut self.svg, &["ice"], "hibernated");
        item(&mut self.svg, &["lost"], "work lost");
        item(&mut self.svg, &["credit"], "credits");
        let mut x = 560.0;
        let y = 38.0;
        self.svg.path(&diamond(x + 5.0, y), "ckpt", "");
        self.svg.text(x + 14.0, y + 4.0, "sub", "checkpoint");
        x += 95.0;
        self.svg.path(&format!("M{x} {y}h24"), "move", "");
        self.svg.text(
            x + 31.0,
            y + 4.0,
            "sub",
            "migration, from the checkpoint to where it went on",
        );
        x += 345.0;
        self.svg.path(&corner(x, y - 5.0), "steal", "");
        self.svg.text(x + 14.0, y + 4.0, "sub", "stolen by an idle VM");
    }

    /// A VM's label, life, boot, credits.
    fn vm(&mut self, vm: &VmHistory) {
        let record = self.outcome.record;
        let end = vm.end_or(record.end());
        let Some(life) = self.layout.across(vm.id, vm.launched, end) else { return };
        let row = life.y;
        let title = format!(
            "{} {} {} at {}: launched {}, {}, cost {}",
            vm.id,
            vm.market,
            vm.kind,
            vm.price,
            s(vm.launched),
            vm.ended.map_or("still there".to_owned(), |(at, why, _)| format!(
                "{} {}",
                end_word(why),
                s(at)
            )),
            vm.cost()
        );
        self.svg.rect(life, "life", &title);
        if let Some(boot) = self.layout.across(vm.id, vm.launched, vm.ready.unwrap_or(end)) {
            self.svg.rect(boot, "boot", &format!("{} boots", vm.id));
        }
        self.svg.text(14.0, row + 11.0, "name", &format!("{} {}", vm.id, vm.kind));
        let market = match (vm.market, vm.credits.is_empty()) {
            (Market::Spot, _) => "spot",
            (Market::OnDemand, true) => "on-demand",
            (Market::OnDemand, false) => "burstable",
        };
        let about =
            format!("{market} · ${:.4} · {} done", vm.cost().as_usd(), finished_on(record, vm.id));
        self.svg.text(14.0, row + 23.0, "small", &about);
        if let Some((at, why @ (VmEnd::Preempted | VmEnd::HostLost | VmEnd::Failed), _)) = vm.ended
        {
            let x = self.layout.x(at);
            self.svg.line(
                (x, row - 2.0),
                (x, row + life.h + 2.0),
                "gone",
                &format!("{} {}", vm.id, end_word(why)),
            );
        }
        self.credits(vm, end);
    }

    fn credits(&mut self, vm: &VmHistory, end: Time) {
        let Some((top, bottom)) = self.layout.credits(vm.id) else { return };
        let earned = self.earned_since(vm, end);
        let most = vm.credits.iter().chain(&earned).map(|(_, c)| c.as_f64()).fold(1.0, f64::max);
        let first = vm.credits.first().map_or(vm.launched, |&(at, _)| at);
        let mut d = format!("M{:.1} {bottom:.1}", self.layout.x(first));
        let mut last = 0.0;
        for (at, balance) in vm.credits.iter().copied().chain(earned) {
            last = bottom - balance.as_f64() / most * (bottom - top);
            let _ = write!(d, "L{:.1} {last:.1}", self.layout.x(at));
        }
        let x = self.layout.x(end);
        let _ = write!(d, "L{x:.1} {last:.1}L{x:.1} {bottom:.1}");
        self.svg.path(&d, "credit", &format!("{}: CPU credits, at most {most:.1}", vm.id));
    }

    /// The balance at the end of a VM that was idle since its last report.
    fn earned_since(&self, vm: &VmHistory, end: Time) -> Option<(Time, Credits)> {
        let &(last, balance) = vm.credits.last()?;
        let attempts = self.outcome.record.tasks.iter().flat_map(|t| &t.attempts);
        let busy = |a: &AttemptHistory| a.vm == vm.id && self.end_of(a) > last;
        let types = &self.outcome.header.experiment.setup.catalogue.types;
        let burstable = types.get(&vm.kind)?.burstable?;
        let rate = burstable.earned_per_hour.as_vcpu_micros();
        let earned = u128::from(rate) * u128::from(vm.awake(last, end).as_micros()) / 3_600_000_000;
        let earned = Credits::from_vcpu_micros(u64::try_from(earned).unwrap_or(u64::MAX));
        let idle = !attempts.into_iter().any(busy);
        idle.then(|| (end, (balance + earned).min(burstable.cap.max(balance))))
    }

    fn hibernations(&mut self, vm: &VmHistory) {
        let end = vm.end_or(self.outcome.record.end());
        for h in &vm.hibernations {
            let until = h.resumed.map_or(end, |(_, at)| at);
            let Some(rect) = self.layout.across(vm.id, h.frozen, until) else { continue };
            let back = h
                .resumed
                .map_or("never resumed".to_owned(), |(_, at)| format!("resumed {}", s(at)));
            let title = format!(
                "{} hibernated: asked {}, took effect {}, {back}",
                vm.id,
                s(h.asked),
                s(h.frozen)
            );
            self.svg.rect(rect, "ice", &title);
        }
    }

    /// Every attempt at a task.
    fn task(&mut self, id: TaskId, task: &TaskHistory) {
        let Some(spec) = self.outcome.header.experiment.setup.bag.tasks.get(id.get() as usize)
        else {
            return;
        };
        let colour = self.kinds.get(kind_of(&spec.name)).copied().unwrap_or(0);
        for attempt in &task.attempts {
            let until = self.end_of(attempt);
            let from = attempt.started.unwrap_or(attempt.sent);
            let Some(rect) = self.layout.lane(attempt.vm, attempt.lane, from, until) else {
                continue;
            };
            let title = format!(
                "{id} ({}) on {}: {} to {}\n{}",
                spec.name,
                attempt.vm,
                s(from),
                s(until),
                story(attempt, self.outcome.header.mode)
            );
            self.svg.rect(rect, &format!("task c{colour}"), &title);
            self.slow(attempt, until);
            self.lost(attempt, until);
            if rect.w > 22.0 {
                self.svg.text(rect.x + 3.0, rect.y + 9.8, "in", &id.get().to_string());
            }
            for mark in &attempt.checkpoints {
                let title = format!(
                    "checkpoint {} of {id} at {}: keeps {}",
                    mark.seq.get(),
                    s(mark.at),
                    mark.done
                );
                let d = diamond(self.layout.x(mark.at), rect.y + rect.h / 2.0);
                self.svg.path(&d, "ckpt", &title);
            }
            if attempt.reason == StartReason::Stolen {
                self.svg.path(
                    &corner(rect.x, rect.y),
                    "steal",
                    &format!("{id} was stolen by {}", attempt.vm),
                );
            }
        }
    }

    fn end_of(&self, attempt: &AttemptHistory) -> Time {
        attempt.ended.as_ref().map_or(self.outcome.record.end(), |(at, _)| *at)
    }

    /// Where it ran in baseline mode.
    fn slow(&mut self, attempt: &AttemptHistory, until: Time) {
        let changes = attempt.modes.iter().map(|&(at, _)| at).skip(1).chain([until]);
        for (&(from, mode), to) in attempt.modes.iter().zip(changes) {
            if mode == Mode::Baseline
                && let Some(rect) = self.layout.lane(attempt.vm, attempt.lane, from, to)
            {
                self.svg.rect(rect, "slow", "");
            }
        }
    }

    /// What it computed for nothing.
    fn lost(&mut self, attempt: &AttemptHistory, until: Time) {
        let Some(vm) = self.outcome.record.vms.get(&attempt.vm) else { return };
        if attempt.lost(vm) == dormouse_units::Span::ZERO {
            return;
        }
        let since = attempt.checkpoints.last().map(|m| m.at).or(attempt.started);
        let frozen =
            vm.hibernations.iter().map(|h| h.frozen).find(|&at| since.is_some_and(|s| at >= s));
        let end = frozen.map_or(until, |at| at.min(until));
        if let Some(rect) =
            since.and_then(|from| self.layout.lane(attempt.vm, attempt.lane, from, end))
        {
            self.svg.rect(rect, "lost", "");
        }
    }

    /// Arrows from what was kept to where it went on.
    fn moves(&mut self, id: TaskId, task: &TaskHistory) {
        for pair in task.attempts.windows(2) {
            let [was, is] = pair else { continue };
            if is.reason != StartReason::Migrated {
                continue;
            }
            let kept = was.checkpoints.last().map(|mark| mark.at);
            let from = kept.or(was.started).unwrap_or(was.sent);
            let to = is.started.unwrap_or(is.sent);
            let ends = (
                self.layout.lane(was.vm, was.lane, from, from),
                self.layout.lane(is.vm, is.lane, to, to),
            );
            let (Some(a), Some(b)) = ends else { continue };
            let (ya, yb) = (a.y + a.h / 2.0, b.y + b.h / 2.0);
            let bend = ((b.x - a.x) * 0.5).max(18.0);
            let d = format!(
                "M{:.1} {ya:.1}C{:.1} {ya:.1} {:.1} {yb:.1} {:.1} {yb:.1}",
                a.x,
                a.x + bend,
                b.x - bend,
                b.x
            );
            let done =
                is.from.map_or("from the beginning".to_owned(), |(_, done)| format!("from {done}"));
            self.svg.path(&d, "move", &format!("{id} went from {} to {}, {done}", was.vm, is.vm));
        }
    }

    /// Deadline, spot limit, makespan.
    fn lines(&mut self) {
        let deadline = Time::ZERO + self.outcome.deadline();
        let spot = self.outcome.plan.map(|plan| Time::ZERO + plan.spot_limit);
        let made = self.outcome.record.makespan();
        let lines = [
            (Some(deadline), "due", "deadline"),
            (spot.filter(|&at| at < deadline), "spot", "D_spot"),
            (made, "done", "makespan"),
        ];
        for (at, class, text) in lines {
            let Some(at) = at.filter(|&at| at <= self.layout.end) else { continue };
            let x = self.layout.x(at);
            self.svg.line(
                (x, TOP - 8.0),
                (x, self.layout.bottom),
                class,
                &format!("{text} {}", s(at)),
            );
            let anchor = if x > WIDTH - RIGHT - 60.0 { "end" } else { "mid" };
            // The makespan may lie beside any of the others: a line of its own.
            let y = if class == "done" { TOP - 22.0 } else { TOP - 11.0 };
            self.svg.text(x.max(LEFT), y, &format!("{anchor} {class}-t"), text);
        }
    }
}

/// What became of an attempt, in words.
fn story(attempt: &AttemptHistory, run: output::Mode) -> String {
    let from = attempt.from.map_or(String::new(), |(_, done)| format!(" from {done}"));
    let mode = match attempt.first_mode() {
        Mode::Baseline => ", in baseline mode",
        Mode::Burst => "",
    };
    let end = match &attempt.ended {
        None => "still running".to_owned(),
        Some((_, AttemptEnd::Finished)) => run.completed().to_owned(),
        Some((_, AttemptEnd::Failed(why))) => format!("failed: {why}"),
        Some((_, AttemptEnd::Stopped(done))) => format!("stopped, {done} kept"),
        Some((_, AttemptEnd::Dropped)) => format!("left there, {} kept", attempt.kept()),
        Some((_, AttemptEnd::VmGone(why))) => {
            format!("its VM was gone ({}), {} kept", end_word(*why), attempt.kept())
        }
    };
    format!("{}{from}{mode}; {end}", started(&attempt.reason))
}

/// Why an attempt was started, in a word or two.
const fn started(why: &StartReason) -> &'static str {
    match why {
        StartReason::Planned => "planned",
        StartReason::Migrated => "migrated",
        StartReason::Stolen => "stolen",
        StartReason::Retried => "retried",
        StartReason::FirstInLine => "first in line",
        StartReason::EndsBeforeShadow { .. } | StartReason::OnExtra { .. } => "backfilled",
        StartReason::ShortestWaiting => "shortest waiting",
    }
}

fn diamond(x: f64, y: f64) -> String {
    format!("M{x:.1} {:.1}l2.6 3.6l-2.6 3.6l-2.6 -3.6z", y - 3.6)
}

fn corner(x: f64, y: f64) -> String {
    format!("M{x:.1} {y:.1}h8l-8 8z")
}
