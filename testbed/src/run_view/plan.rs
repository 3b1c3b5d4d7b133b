//! "Plan and outcome": what the scheduler of the bag had planned, beside what came out.

use dormouse_view::{Block, Cell, Column, Table};

use super::outcome::OfBag;

/// The section's content; nothing where nothing was planned.
pub(super) fn plan(of: &OfBag<'_>) -> Vec<Block> {
    let Some(plan) = &of.of.plan else { return Vec::new() };
    let columns = ["", "planned", "came out", "difference"].map(Column::text);
    let mut table = Table::new(columns);
    let mut row = |name: &str, words: &dyn Fn(f64) -> String, was: f64, now: Option<f64>| {
        let change = now.filter(|_| was != 0.0).map(|now| (now / was - 1.0) * 100.0);
        table.push([
            Cell::text(name),
            Cell::text(words(was)),
            Cell::text(now.map_or("unfinished".to_owned(), words)),
            change.map(|change| format!("{change:+.1} %")).into(),
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
    let every = vec![Block::Table(every_task(of))];
    vec![
        Block::Table(table),
        Block::Text(about),
        Block::Folded("Every task, planned and actual".to_owned(), every),
    ]
}

fn every_task(of: &OfBag<'_>) -> Table {
    let seconds = |heading: &str| Column::seconds(heading).digits(0);
    Table::of(of.tasks().filter_map(|task| task.planned.map(|(vm, plan)| (task, vm, plan))))
        .column(Column::text("task"), |(task, ..)| task.name())
        .column(Column::text("planned on"), |(_, vm, _)| format!("vm{vm}"))
        .column(Column::text("finished on"), |(t, ..)| t.is.last().map(|a| a.vm.to_string()))
        .column(seconds("planned start"), |(.., plan)| plan.start)
        .column(seconds("first start"), |(task, ..)| task.started())
        .column(seconds("planned end"), |(.., plan)| plan.end)
        .column(seconds("end"), |(task, ..)| task.is.finished)
        .column(seconds("later by"), |(task, _, plan)| {
            task.is.finished.map(|at| at.as_secs_f64() - plan.end.as_secs_f64())
        })
        .into()
}
