//! VMs of a run as lanes of the chart, with the tasks on them and their events.

use std::collections::BTreeMap;

use dormouse_cloud::Market;
use dormouse_model::TenantWork;
use dormouse_model::{StartReason, VmEnd};
use dormouse_units::{Mode, Ppm, Span, Time, VmId};
use dormouse_view::number;
use dormouse_view::plot::{
    BarFill, COLOURS, GanttBar, GanttChart, GanttLane, GanttLink, GanttMark, GanttPlace,
    LaneMeasure, MarkKind, PlotLimit,
};

use super::dates;
use super::outcome::{BagResults, TaskOutcome};
use super::requests::percent;
use dormouse_analysis::{AttemptEnd, AttemptHistory, TaskHistory, VmHistory};

/// Colour of each kind of tasks; the kind is the part of a task's name before its number.
type Kinds<'a> = BTreeMap<&'a str, usize>;

struct VmLanes<'a> {
    of: &'a BagResults<'a>,
    kinds: Kinds<'a>,
    /// Lane number of each VM.
    lanes: BTreeMap<VmId, usize>,
    gantt: GanttChart,
}

/// A part of a task's work, for people.
fn part(of: Ppm) -> String {
    percent(of.as_f64())
}

/// Chart of the bag's run, over its whole time.
pub(super) fn gantt(of: &BagResults<'_>) -> GanttChart {
    let experiment = &of.of.header.experiment;
    let mut kinds = Kinds::new();
    for task in experiment.setup.bag.tasks.iter() {
        let next = kinds.len();
        kinds.entry(kind_of(&task.name)).or_insert(next);
    }
    // The machine of parallel jobs has a lane of another kind.
    let tenants = experiment.tenants();
    let own = |vm: &&VmHistory| of.of.jobs.is_none() || tenants.owns_vm(TenantWork::Bag, vm.id);
    let own: Vec<_> = of.record.vms.values().filter(own).collect();
    let lanes = own.iter().enumerate().map(|(n, vm)| (vm.id, n)).collect();
    let mut all = VmLanes { of, gantt: empty_chart(of, &kinds), kinds, lanes };
    own.iter().for_each(|vm| all.draw_vm(vm));
    of.tasks().for_each(|task| all.draw_task(&task));
    own.iter().for_each(|vm| all.draw_hibernations(vm));
    of.tasks().for_each(|task| all.draw_migrations(&task));
    all.gantt
}

/// An empty chart with title, figures, window, colours and marks.
fn empty_chart(of: &BagResults<'_>, kinds: &Kinds<'_>) -> GanttChart {
    let (header, record, unit) = (of.of.header, of.record, of.of.time_unit());
    let experiment = &header.experiment;
    let made = record.makespan();
    let s = dates::at(unit);
    let lead = format!(
        "{} · seed {} · {} · {} · {} of {} tasks{}",
        header.mode,
        experiment.setup.seed,
        made.map_or("not all tasks finished".to_owned(), |at| format!("makespan {}", s(at))),
        number::dollars(record.cost()),
        record.outcomes().done(),
        record.tasks.len(),
        dates::from_date(header.calendar)
    );
    let mut names: Vec<_> = kinds.iter().collect();
    names.sort_by_key(|(_, colour)| **colour);
    // With more kinds than colours a colour names none of them.
    names.retain(|_| kinds.len() <= COLOURS);
    let deadline = Time::ZERO + of.deadline();
    let spot = of.of.plan.as_ref().map(|plan| Time::ZERO + plan.spot_limit);
    let limits = [
        ("last task done", made),
        ("limit of spot VMs", spot.filter(|at| *at < deadline)),
        ("deadline", Some(deadline)),
    ];
    let limit = |(name, at): (&str, Option<Time>)| {
        Some(PlotLimit { name: name.into(), at: at?.as_secs_f64() })
    };
    GanttChart {
        title: format!("{} · {}", experiment.name, experiment.scheduler_name()),
        lead,
        window: (Time::ZERO, record.end().max(Time::from_secs(1))),
        unit,
        colours: names.into_iter().map(|(kind, _)| format!("task '{kind}'")).collect(),
        limits: limits.into_iter().filter_map(limit).collect(),
        ..GanttChart::default()
    }
}

fn kind_of(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(kind, _)| kind)
}

impl VmLanes<'_> {
    fn lane_of(&self, vm: VmId) -> usize {
        self.lanes.get(&vm).copied().unwrap_or(usize::MAX)
    }

    fn row_of(&self, attempt: &AttemptHistory) -> GanttPlace {
        let row = u32::try_from(attempt.lane).unwrap_or(u32::MAX - 1);
        GanttPlace::rows(self.lane_of(attempt.vm), row..row + 1)
    }

    fn draw_bar(
        &mut self,
        place: GanttPlace,
        (from, until): (Time, Time),
        fill: BarFill,
        title: String,
    ) {
        self.gantt.bars.push(GanttBar { place, from, until, fill, label: String::new(), title });
    }

    /// Adds a VM's lane, boot and credits.
    fn draw_vm(&mut self, vm: &VmHistory) {
        let (record, s) = (self.of.record, dates::at(self.gantt.unit));
        let end = vm.end_or(record.end());
        let used = record.tasks.iter().flat_map(|task| &task.attempts);
        let used = used.filter(|a| a.vm == vm.id).map(|a| a.lane + 1).max().unwrap_or(0);
        let rows = u32::try_from(used).unwrap_or(u32::MAX).max(vm.vcpus.min(64));
        let gone = vm.ended.map_or("still there".to_owned(), |(at, why, _)| {
            format!("{} {}", why.one_word(), s(at))
        });
        let points = record.credits(vm.id, &self.of.of.header.experiment.setup.catalogue);
        let market = match (vm.market, points.is_empty()) {
            (Market::Spot, _) => "spot",
            (Market::OnDemand, true) => "on-demand",
            (Market::OnDemand, false) => "burstable",
        };
        let points: Vec<_> = points.into_iter().map(|(at, c)| (at, c.as_f64())).collect();
        let name = "CPU credits".to_owned();
        let measure = (!points.is_empty()).then_some(LaneMeasure { name, points });
        let done = record.finished_on(vm.id);
        let tasks = if done == 1 { "1 task".to_owned() } else { format!("{done} tasks") };
        let (VmHistory { id, kind, price, .. }, cost) = (vm, number::dollars(vm.cost()));
        let launched = s(vm.launched);
        self.gantt.lanes.push(GanttLane {
            name: format!("{id} {kind}"),
            about: format!("{market} · {cost} · {tasks} done"),
            title: format!(
                "{id} {} {kind} at {price}: launched {launched}, {gone}, cost {cost}",
                vm.market
            ),
            life: Some((vm.launched, end)),
            rows,
            measure,
            ..GanttLane::default()
        });
        let place = GanttPlace::rows(self.lane_of(vm.id), 0..rows);
        let booted = vm.ready.unwrap_or(end);
        self.draw_bar(
            place.clone(),
            (vm.launched, booted),
            BarFill::Boot,
            format!("{} boots", vm.id),
        );
        if let Some((at, why @ (VmEnd::Preempted | VmEnd::HostLost | VmEnd::Failed), _)) = vm.ended
        {
            let title = format!("{} {} {}", vm.id, why.one_word(), s(at));
            self.gantt.marks.push(GanttMark { place, at, kind: MarkKind::Gone, title });
        }
    }

    fn draw_hibernations(&mut self, vm: &VmHistory) {
        let (end, s) = (vm.end_or(self.of.record.end()), dates::at(self.gantt.unit));
        let lane = self.lane_of(vm.id);
        let rows = self.gantt.lanes.get(lane).map_or(1, |lane| lane.rows);
        for h in &vm.hibernations {
            let back = h.resumed.map(|(_, at)| at);
            let (asked, frozen) = (s(h.asked), s(h.frozen));
            let after = back.map_or("never resumed".to_owned(), |at| format!("resumed {}", s(at)));
            let title =
                format!("{} hibernated: asked {asked}, took effect {frozen}, {after}", vm.id);
            let place = GanttPlace::rows(lane, 0..rows);
            self.draw_bar(place, (h.frozen, back.unwrap_or(end)), BarFill::Hibernated, title);
        }
    }

    /// Draws every attempt at a task.
    fn draw_task(&mut self, task: &TaskOutcome<'_>) {
        let (id, name) = (task.id(), &task.spec.name);
        let s = dates::at(self.gantt.unit);
        let colour = self.kinds.get(kind_of(name)).copied().unwrap_or(0);
        for attempt in &task.is.attempts {
            let until = attempt.end_or(self.of.record.end());
            let from = attempt.started.unwrap_or(attempt.sent);
            let place = self.row_of(attempt);
            let (on, story) = (attempt.vm, self.attempt_story(task.is, attempt));
            let title = format!("{id} ({name}) on {on}: {} to {}\n{story}", s(from), s(until));
            let (fill, label) = (BarFill::Work(colour), task.n.to_string());
            let bar =
                GanttBar { place: place.clone(), from, until, fill, label, title: title.clone() };
            self.gantt.bars.push(bar);
            self.draw_overlays(attempt, until, &title);
            let mark = |at, kind, title| GanttMark { place: place.clone(), at, kind, title };
            self.gantt.marks.extend(attempt.checkpoints.iter().map(|kept| {
                let (seq, done) = (kept.seq.get(), part(kept.done));
                let title = format!("checkpoint {seq} of {id} at {}: keeps {done}", s(kept.at));
                mark(kept.at, MarkKind::Checkpoint, title)
            }));
            if attempt.reason == StartReason::Stolen {
                let title = format!("{id} was stolen by {}", attempt.vm);
                self.gantt.marks.push(mark(from, MarkKind::Stolen, title));
            }
        }
    }

    /// Draws where an attempt ran at the baseline, and the part of its work that was lost.
    fn draw_overlays(&mut self, attempt: &AttemptHistory, until: Time, title: &str) {
        let place = self.row_of(attempt);
        let changes = attempt.modes.iter().map(|&(at, _)| at).skip(1).chain([until]);
        for (&(from, mode), to) in attempt.modes.iter().zip(changes) {
            if mode == Mode::Baseline {
                self.draw_bar(place.clone(), (from, to), BarFill::Baseline, title.to_owned());
            }
        }
        let Some(vm) = self.of.record.vms.get(&attempt.vm) else { return };
        if let Some(since) = attempt.kept_at().filter(|_| attempt.lost(vm) > Span::ZERO) {
            let frozen = vm.hibernations.iter().map(|h| h.frozen).find(|at| *at >= since);
            let end = frozen.map_or(until, |at| at.min(until));
            self.draw_bar(place, (since, end), BarFill::Lost, title.to_owned());
        }
    }

    /// Draws a link from where and when a task left a VM to where and when it continued.
    fn draw_migrations(&mut self, task: &TaskOutcome<'_>) {
        for (was, is) in task.is.migrations() {
            let from = was.ended.as_ref().map_or(was.sent, |(at, _)| *at);
            let to = is.started.unwrap_or(is.sent);
            let done = is.from.map_or("from the beginning".to_owned(), |(_, done)| {
                format!("from {}", part(done))
            });
            self.gantt.links.push(GanttLink {
                from: (self.row_of(was), from),
                to: (self.row_of(is), to),
                title: format!("{} went from {} to {}, {done}", task.id(), was.vm, is.vm),
            });
        }
    }

    /// How an attempt went and ended, in words.
    fn attempt_story(&self, task: &TaskHistory, attempt: &AttemptHistory) -> String {
        let from = attempt.from.map_or(String::new(), |(_, done)| format!(" from {}", part(done)));
        let mode = match attempt.first_mode() {
            Mode::Baseline => ", in baseline mode",
            Mode::Burst => "",
        };
        let end = match &attempt.ended {
            None => "still running".to_owned(),
            Some((_, AttemptEnd::Finished)) => match self.of.record.outcome(task) {
                Some(outcome) => outcome.to_string(),
                None => "ended".to_owned(),
            },
            Some((_, AttemptEnd::Failed(why))) => format!("failed: {why}"),
            Some((_, AttemptEnd::Stopped(done))) => format!("stopped, {} kept", part(*done)),
            Some((_, AttemptEnd::Dropped)) => format!("left there, {} kept", part(attempt.kept())),
            Some((_, AttemptEnd::VmGone(why))) => {
                format!("its VM was gone ({}), {} kept", why.one_word(), part(attempt.kept()))
            }
        };
        format!("{}{from}{mode}; {end}", self.start_reason(&attempt.reason))
    }

    /// The reason for the start of an attempt, in a word or two.
    const fn start_reason(&self, why: &StartReason) -> &'static str {
        match why {
            StartReason::Chosen => "chosen",
            StartReason::Planned if self.of.of.plan.is_some() => "planned",
            StartReason::Planned => "next in order",
            StartReason::Migrated => "migrated",
            StartReason::Stolen => "stolen",
            StartReason::Retried => "retried",
            StartReason::Due => "came due",
            StartReason::FirstInLine => "first in line",
            StartReason::EndsBeforeShadow { .. } | StartReason::OnExtra { .. } => "backfilled",
            StartReason::ShortestWaiting => "shortest waiting",
            StartReason::Reused { .. } => "on a VM that was there",
            StartReason::NewVm { .. } => "on a new VM",
        }
    }
}
