//! VMs that the provider took for others, on the page, in `taken.csv` and in `summary.json`.

use dormouse_analysis::outcome::wording;
use dormouse_analysis::{DisplacedTask, TakenVm, TenantToll, VmTenant, taken, tolls};
use dormouse_model::Work;
use dormouse_units::Span;
use dormouse_view::{Block, Column, Table};
use serde_json::{Value, json};

use super::outcome::OfBag;

/// All VMs that were taken in a run.
pub(super) struct All<'a> {
    taken: Vec<TakenVm<'a>>,
    tolls: Vec<TenantToll>,
}

/// All VMs that were taken; `None` if none was and the run has no requests.
pub(super) fn all_taken<'a>(of: &OfBag<'a>) -> Option<All<'a>> {
    let experiment = &of.of.header.experiment;
    let tenants = experiment.tenants();
    let taken = taken(of.record, &tenants);
    let tolls = tolls(&taken, &tenants);
    (experiment.requests.is_some() || !taken.is_empty()).then_some(All { taken, tolls })
}

fn whose(party: &VmTenant) -> String {
    match (party.work, party.request) {
        (_, Some(request)) => request.to_string(),
        (Work::Jobs, None) => "parallel jobs".to_owned(),
        (_, None) => "the bag".to_owned(),
    }
}

impl All<'_> {
    /// Table with one row for each VM.
    pub(super) fn table(&self) -> Table {
        let tasks = |it: &&TakenVm<'_>| {
            let all = it.tasks.iter().map(|task| task.task.to_string());
            all.collect::<Vec<_>>().join(" ")
        };
        Table::with_rows(&self.taken)
            .column(Column::seconds("told at").named("told_s"), |it| it.at)
            .column(Column::count("VM"), |it| it.vm.id.get())
            .column(Column::text("type"), |it| it.vm.kind.as_str())
            .column(Column::text("taken from").named("owner"), |it| it.owner.work.name())
            .column(Column::text("taken for").named("taker"), |it| whose(&it.taker))
            .column(Column::count("VM in its place").named("by_vm"), |it| it.by.id.get())
            .column(Column::text("type of that VM").named("by_type"), |it| it.by.kind.as_str())
            .column(Column::text("how it ended").named("end"), |it| it.ending.words())
            .column(Column::seconds("gone at").named("gone_s"), |it| it.ending.at())
            .column(Column::text("tasks on it").named("tasks"), |it| tasks(it))
            .column(Column::seconds(wording::WORK_LOST).named("work_lost_s"), |it| it.lost())
            .column(Column::dollars(wording::COST_OF_LOST_WORK).digits(6).named("lost_usd"), |it| {
                it.charged()
            })
            .column(Column::seconds("tasks stood still for").named("stood_s"), |it| it.stood())
            .column(Column::seconds("VM in its place ready at").named("by_ready_s"), |it| {
                it.by.ready
            })
            .column(Column::seconds("after a wait of").named("by_waited_s"), |it| it.waited())
            .column(Column::dollars("cost of that VM").digits(6).named("by_paid_usd"), |it| {
                it.by.cost()
            })
            .into()
    }

    fn tasks(&self) -> Table {
        let all = self.taken.iter().flat_map(|it| it.tasks.iter().map(move |task| (it, task)));
        let went_on = |task: &DisplacedTask| task.went_on;
        Table::with_rows(all)
            .column(Column::text("task"), |(_, task)| task.task.to_string())
            .column(Column::text("was on"), |(it, _)| it.vm.id.to_string())
            .column(Column::seconds("left at"), |(_, task)| task.left)
            .column(Column::text("work kept"), |(_, task)| task.kept.to_string())
            .column(Column::seconds(wording::WORK_LOST), |(_, task)| task.lost)
            .column(Column::dollars(wording::COST_OF_LOST_WORK).digits(6), |(_, task)| task.charged)
            .column(Column::text("continued on"), |(_, task)| {
                went_on(task).map_or("nowhere".to_owned(), |(vm, _)| vm.to_string())
            })
            .column(Column::seconds("continued at"), |(_, task)| went_on(task).map(|(_, at)| at))
            .column(Column::seconds("stood still for"), |(_, task)| task.stood())
            .into()
    }

    /// Section "VMs that were taken": whose request took which VM, and the cost for each tenant.
    pub(super) fn section(&self) -> Vec<Block> {
        if self.taken.is_empty() {
            return vec![Block::text("No VM was taken for another: there was room for all.")];
        }
        let by_tenant: Table = Table::with_rows(&self.tolls)
            .column(Column::text("tenant"), |toll| toll.work.name())
            .column(Column::count("VMs taken from it"), |toll| toll.vms_lost)
            .column(Column::count("tasks on them"), |toll| toll.tasks)
            .column(Column::count("of these, continued from checkpoints"), |toll| {
                toll.from_checkpoints
            })
            .column(Column::seconds(wording::WORK_LOST), |toll| toll.work_lost)
            .column(Column::dollars(wording::COST_OF_LOST_WORK).digits(6), |toll| toll.charged)
            .column(Column::seconds("tasks stood still for"), |toll| toll.stood)
            .column(Column::count("VMs taken for it"), |toll| toll.vms_taken)
            .column(Column::seconds("longest wait for one of them"), |toll| toll.waited)
            .column(Column::dollars("cost of those").digits(6), |toll| toll.paid)
            .into();
        let how = "A task stands still from when it stopped, froze or was gone with its VM until it runs \
                   again.";
        let how = format!("{how} {}", wording::HOW_LOST_WORK_COUNTS);
        let tasks = Block::Folded(
            "Every task that was on them".to_owned(),
            vec![Block::Table(self.tasks())],
        );
        vec![Block::Table(by_tenant), Block::Table(self.table()), tasks, Block::text(how)]
    }

    /// The object on taken VMs in the summary.
    pub(super) fn summary(&self) -> Value {
        let tenants = self.tolls.iter().map(|toll| {
            json!({
                "work": toll.work.name(),
                "vms_lost": toll.vms_lost,
                "tasks": toll.tasks,
                "from_checkpoints": toll.from_checkpoints,
                "work_lost_s": toll.work_lost.as_secs_f64(),
                "lost_usd": toll.charged.as_usd(),
                "stood_s": toll.stood.as_secs_f64(),
                "vms_taken": toll.vms_taken,
                "waited_s": toll.waited.map(Span::as_secs_f64),
                "paid_usd": toll.paid.as_usd(),
            })
        });
        let lost: Span = self.tolls.iter().map(|toll| toll.work_lost).sum();
        json!({
            "vms": self.taken.len(),
            "work_lost_s": lost.as_secs_f64(),
            "tenants": tenants.collect::<Vec<_>>(),
        })
    }
}
