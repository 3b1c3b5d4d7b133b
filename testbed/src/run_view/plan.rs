//! "Plan and outcome": what the scheduler of the bag had planned, beside what came out.

use std::collections::BTreeMap;

use dormouse_policies::{Plan, PlannedTask, PlannedVm};
use dormouse_view::{Block, Cell, Column, Table};

use super::outcome::OfBag;
use crate::experiment::Experiment;

/// Where and when each task was to run, by its number: the plan's VMs are launched in its order,
/// so that their numbers are those of the VMs that ran. A bag that shares its run is its first
/// tenant, whose numbers are that many apart.
pub(super) fn planned(
    experiment: &Experiment,
    plan: &Plan,
) -> BTreeMap<usize, (usize, PlannedTask)> {
    let apart = experiment.tenants().len();
    let of_vm = |(n, vm): (usize, &PlannedVm)| {
        let tasks: Vec<_> = vm.vcpus.iter().flatten().copied().collect();
        tasks.into_iter().map(move |task| (task.task.get() as usize, (n * apart, task)))
    };
    plan.vms.iter().enumerate().flat_map(of_vm).collect()
}

/// The section's content; nothing where nothing was planned.
pub(super) fn plan(of: &OfBag<'_>) -> Vec<Block> {
    let Some(plan) = of.of.plan else { return Vec::new() };
    let columns = ["planned", "came out", "difference"].map(Column::text);
    let mut table = Table::new([Column::text("")].into_iter().chain(columns));
    let mut row = |name: &str, words: &dyn Fn(f64) -> String, was: f64, now: Option<f64>| {
        let change = now.filter(|_| was != 0.0).map(|now| (now / was - 1.0) * 100.0);
        table.push([
            Cell::text(name),
            Cell::text(words(was)),
            Cell::text(now.map_or("unfinished".to_owned(), words)),
            Cell::maybe(change, |change| Cell::text(format!("{change:+.1} %"))),
        ]);
    };
    let made = of.record.makespan().map(|at| at.as_secs_f64());
    row("makespan", &|s| format!("{s:.1} s"), plan.makespan.as_secs_f64(), made);
    let spent = of.record.cost().as_usd();
    row("cost", &|usd| format!("${usd:.4}"), plan.cost.as_usd(), Some(spent));
    #[expect(clippy::cast_precision_loss, reason = "some VMs")]
    let count = |n: usize| n as f64;
    row("VMs", &|n| format!("{n:.0}"), count(plan.vms.len()), Some(count(of.record.vms.len())));
    let about = format!(
        "The primary schedule wanted the spot VMs done by {:.0} s (D_spot), and took {} fitness \
         evaluations.",
        plan.spot_limit.as_secs_f64(),
        plan.evaluations
    );
    let every = Block::Folded(
        "Every task, planned and actual".to_owned(),
        vec![Block::Table(every_task(of, plan))],
    );
    vec![Block::Table(table), Block::Text(about), every]
}

fn every_task(of: &OfBag<'_>, plan: &Plan) -> Table {
    let mut table = Table::new([
        Column::text("task"),
        Column::text("planned on"),
        Column::text("finished on"),
        Column::seconds("planned start").digits(0),
        Column::seconds("first start").digits(0),
        Column::seconds("planned end").digits(0),
        Column::seconds("end").digits(0),
        Column::seconds("later by").digits(0),
    ]);
    let experiment = &of.of.header.experiment;
    let planned = planned(experiment, plan);
    for (n, (task, spec)) in
        of.record.tasks.iter().zip(experiment.setup.bag.tasks.iter()).enumerate()
    {
        let Some((vm, plan)) = planned.get(&n) else { continue };
        table.push([
            Cell::text(format!("task{n} ({})", spec.name)),
            Cell::text(format!("vm{vm}")),
            Cell::maybe(task.last(), |a| Cell::text(a.vm.to_string())),
            Cell::time(plan.start),
            Cell::maybe(task.attempts.iter().find_map(|a| a.started), Cell::time),
            Cell::time(plan.end),
            Cell::maybe(task.finished, Cell::time),
            Cell::maybe(task.finished, |at| {
                Cell::number(at.as_secs_f64() - plan.end.as_secs_f64())
            }),
        ]);
    }
    table
}
