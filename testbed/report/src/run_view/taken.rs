//! VMs that the provider preempted to make room for other VMs: on the page, in `taken.csv` and in
//! `summary.json`.

use dormouse_analysis::outcome::wording;
use dormouse_analysis::{DisplacedTask, TakenVm, TenantToll, VmTenant, taken, tolls};
use dormouse_model::TenantWork;
use dormouse_units::Span;
use dormouse_view::{PageBlock, TableColumn, TypedTable};
use serde_json::{Value, json};

use super::outcome::BagResults;

/// All VMs that were preempted to make room in a run.
pub(super) struct TakenVms<'a> {
    taken: Vec<TakenVm<'a>>,
    tolls: Vec<TenantToll>,
}

/// All VMs that were preempted to make room; `None` if none was and the run has no requests.
pub(super) fn all_taken<'a>(of: &BagResults<'a>) -> Option<TakenVms<'a>> {
    let experiment = &of.of.header.experiment;
    let tenants = experiment.tenants();
    let taken = taken(of.record, &tenants);
    let tolls = tolls(&taken, &tenants);
    (experiment.requests.is_some() || !taken.is_empty()).then_some(TakenVms { taken, tolls })
}

fn tenant_in_words(party: &VmTenant) -> String {
    match (party.work, party.request) {
        (_, Some(request)) => request.to_string(),
        (TenantWork::Jobs, None) => "parallel jobs".to_owned(),
        (_, None) => "the bag".to_owned(),
    }
}

impl TakenVms<'_> {
    /// Table with one row for each VM that was preempted to make room.
    pub(super) fn table(&self) -> TypedTable {
        let tasks = |it: &&TakenVm<'_>| {
            let all = it.tasks.iter().map(|task| task.task.to_string());
            all.collect::<Vec<_>>().join(" ")
        };
        TypedTable::with_rows(&self.taken)
            .column(TableColumn::seconds("told at").named("told_s"), |it| it.at)
            .column(TableColumn::count("VM").as_name(), |it| it.vm.id.get())
            .column(TableColumn::text("type"), |it| it.vm.kind.as_str())
            .column(TableColumn::text("taken from").named("owner"), |it| it.owner.work.name())
            .column(TableColumn::text("taken for").named("taker"), |it| tenant_in_words(&it.taker))
            .column(TableColumn::count("VM in its place").named("by_vm").as_name(), |it| {
                it.by.id.get()
            })
            .column(TableColumn::text("type of that VM").named("by_type"), |it| it.by.kind.as_str())
            .column(TableColumn::text("how it ended").named("end"), |it| it.ending.words())
            .column(TableColumn::seconds("gone at").named("gone_s"), |it| it.ending.at())
            .column(TableColumn::text("tasks on it").named("tasks"), |it| tasks(it))
            .column(TableColumn::seconds(wording::WORK_LOST).named("work_lost_s"), |it| it.lost())
            .column(
                TableColumn::dollars(wording::COST_OF_LOST_WORK).digits(6).named("lost_usd"),
                |it| it.charged(),
            )
            .column(TableColumn::seconds("tasks stopped for").named("stood_s"), |it| it.stood())
            .column(TableColumn::seconds("VM in its place ready at").named("by_ready_s"), |it| {
                it.by.ready
            })
            .column(TableColumn::seconds("after a wait of").named("by_waited_s"), |it| it.waited())
            .column(TableColumn::dollars("cost of that VM").digits(6).named("by_paid_usd"), |it| {
                it.by.cost()
            })
            .into()
    }

    fn task_table(&self) -> TypedTable {
        let all = self.taken.iter().flat_map(|it| it.tasks.iter().map(move |task| (it, task)));
        let went_on = |task: &DisplacedTask| task.went_on;
        TypedTable::with_rows(all)
            .column(TableColumn::text("task"), |(_, task)| task.task.to_string())
            .column(TableColumn::text("was on"), |(it, _)| it.vm.id.to_string())
            .column(TableColumn::seconds("left at"), |(_, task)| task.left)
            .column(TableColumn::percent("work kept"), |(_, task)| task.kept.as_f64())
            .column(TableColumn::seconds(wording::WORK_LOST), |(_, task)| task.lost)
            .column(TableColumn::dollars(wording::COST_OF_LOST_WORK).digits(6), |(_, task)| {
                task.charged
            })
            .column(TableColumn::text("continued on"), |(_, task)| {
                went_on(task).map_or("nowhere".to_owned(), |(vm, _)| vm.to_string())
            })
            .column(TableColumn::seconds("continued at"), |(_, task)| {
                went_on(task).map(|(_, at)| at)
            })
            .column(TableColumn::seconds("stopped for"), |(_, task)| task.stood())
            .into()
    }

    /// Section "VMs that were taken": which request displaced which VM, and the cost for each
    /// tenant.
    pub(super) fn section(&self) -> Vec<PageBlock> {
        if self.taken.is_empty() {
            return vec![PageBlock::text("No VM was taken for another: there was room for all.")];
        }
        let by_tenant: TypedTable = TypedTable::with_rows(&self.tolls)
            .column(TableColumn::text("tenant"), |toll| toll.work.name())
            .column(TableColumn::count("VMs taken from it"), |toll| toll.vms_lost)
            .column(TableColumn::count("tasks on them"), |toll| toll.tasks)
            .column(TableColumn::count("of these, continued from checkpoints"), |toll| {
                toll.from_checkpoints
            })
            .column(TableColumn::seconds(wording::WORK_LOST), |toll| toll.work_lost)
            .column(TableColumn::dollars(wording::COST_OF_LOST_WORK).digits(6), |toll| toll.charged)
            .column(TableColumn::seconds("tasks stopped for"), |toll| toll.stood)
            .column(TableColumn::count("VMs taken for it"), |toll| toll.vms_taken)
            .column(TableColumn::seconds("longest wait for one of them"), |toll| toll.waited)
            .column(TableColumn::dollars("cost of those").digits(6), |toll| toll.paid)
            .into();
        let how = "A task is stopped from when it stopped, froze or was gone with its VM until it runs \
                   again.";
        let how = format!("{how} {}", wording::HOW_LOST_WORK_COUNTS);
        let tasks = PageBlock::Folded(
            "Every task that was on them".to_owned(),
            vec![PageBlock::Table(self.task_table())],
        );
        vec![
            PageBlock::Table(by_tenant),
            PageBlock::Table(self.table()),
            tasks,
            PageBlock::text(how),
        ]
    }

    /// The object of the summary on VMs that were preempted to make room.
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
