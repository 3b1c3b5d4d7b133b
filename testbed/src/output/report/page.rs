//! The page: what came out, where the time and the money went, what happened and why.

use dormouse_cloud::{Market, TariffName};
use dormouse_policies::Plan;
use dormouse_units::{Money, Time};

use super::super::JobsPart;
use super::calibration::speedup;
use super::fidelity::fidelity;
use super::happened;
use super::html::{self, card, emulation_card, heading, page, paragraph, section, table};
use crate::output::Outcome;
use crate::output::background::Background;
use crate::output::csv::{end_word, finished_on, planned};

/// The content of `report.html`.
pub(crate) fn report(outcome: &Outcome<'_>) -> String {
    let experiment = &outcome.header.experiment;
    let title = format!("{} · {}", experiment.name, experiment.scheduler_name());
    let gantt = format!("<div class=\"wide\">{}</div>", outcome.gantt());
    let body = [
        heading(outcome.header, &title),
        cards(outcome),
        section("Where everything ran", &gantt),
        outcome
            .jobs
            .map(|jobs| section("Parallel jobs", &parallel(outcome, jobs)))
            .unwrap_or_default(),
        section("The bill", &bill(outcome)),
        section("What happened", &happened::happened(outcome)),
        outcome.plan.map(|_| section("Plan and outcome", &plan(outcome))).unwrap_or_default(),
        outcome.fidelity.map(|f| section("Fidelity", &fidelity(outcome, f))).unwrap_or_default(),
        speedup(outcome.header),
        section("Reproduce", &reproduce(outcome)),
    ]
    .concat();
    page(&title, &body)
}

fn parallel(outcome: &Outcome<'_>, jobs: &JobsPart) -> String {
    let gantt = format!("<div class=\"wide\">{}</div>", jobs.gantt);
    let background = Background::of(outcome.record).map(|it| paragraph(&it.sentence()));
    paragraph(&format!("{}.", jobs.line)) + &background.unwrap_or_default() + &gantt
}

fn cards(outcome: &Outcome<'_>) -> String {
    let record = outcome.record;
    let class = |good| if good { "good" } else { "bad" };
    let makespan =
        record.makespan().map_or("unfinished".to_owned(), |t| format!("{:.0} s", t.as_secs_f64()));
    let met = outcome.deadline_met();
    let due = format!(
        "deadline {:.0} s {}",
        outcome.deadline().as_secs_f64(),
        if met { "met" } else { "MISSED" }
    );
    let (done, total) = (record.finished(), record.tasks.len());
    let c = &record.counts;
    let mut cards = card("Makespan", &makespan, &due, class(met));
    cards += &card("Cost", &record.cost().to_string(), &format!("{} VMs", record.vms.len()), "");
    let completed = outcome.header.mode.completed();
    cards += &card("Tasks", &format!("{done} / {total}"), completed, class(done == total));
    cards +=
        &card("Hibernations", &c.hibernations.to_string(), &format!("{} resumes", c.resumes), "");
    let restores = format!("{} from checkpoints", c.restores);
    cards += &card("Migrations", &c.migrations.to_string(), &restores, "");
    let lost = format!("{:.0} s", outcome.work_lost().as_secs_f64());
    cards += &card("Work lost", &lost, &format!("{} checkpoints", c.checkpoints), "");
    if let Some(f) = outcome.fidelity {
        let worst = format!("tasks within {:.1} %", f.tasks.worst_task_error.abs() * 100.0);
        cards += &emulation_card(f.faithful, &worst);
    }
    format!("<div class=\"cards\">{cards}</div>\n")
}

fn bill(outcome: &Outcome<'_>) -> String {
    let record = outcome.record;
    let rows: Vec<_> = record
        .vms
        .values()
        .map(|vm| {
            let intervals: Vec<_> = vm
                .charges()
                .iter()
                .map(|c| format!("{:.0}–{:.0} s", c.from.as_secs_f64(), c.until.as_secs_f64()))
                .collect();
            vec![
                vm.id.to_string(),
                vm.kind.to_string(),
                vm.market.to_string(),
                vm.ended.map(|(_, why, _)| end_word(why)).unwrap_or("running").to_owned(),
                if intervals.is_empty() { "never".to_owned() } else { intervals.join(", ") },
                finished_on(record, vm.id).to_string(),
                vm.price.to_string(),
                format!("${:.6}", vm.cost().as_usd()),
            ]
        })
        .collect();
    let terms = &outcome.header.experiment.setup.terms;
    // Where prices change, what it was launched at is not what all of it cost.
    let price = if terms.prices.is_empty() { "price" } else { "price at its launch" };
    let head = ["VM", "type", "market", "end", "charged", "tasks", price, "cost"];
    let mut text = table(&head, 5, &rows);
    let total = |market| -> Money {
        record.vms.values().filter(|vm| vm.market == market).map(|vm| vm.cost()).sum()
    };
    let totals = [Market::Spot, Market::OnDemand]
        .map(|market| vec![market.to_string(), format!("${:.6}", total(market).as_usd())]);
    let mut totals = totals.to_vec();
    totals.push(vec!["all".to_owned(), format!("${:.6}", record.cost().as_usd())]);
    text += &table(&["market", "total"], 1, &totals);
    text + &paragraph(charged_how(terms.tariff))
}

const fn charged_how(tariff: TariffName) -> &'static str {
    match tariff {
        TariffName::Second => {
            "A VM is charged from the end of its boot to its end, by the second, and not while it is \
             hibernated."
        }
        TariffName::Hour => {
            "A VM is charged from the end of its boot to its end, and not while it is hibernated, by \
             the hour: each hour that it begins costs the price at its beginning. The last, if it is \
             not full, is free where the provider ends or hibernates the VM, and costs a full one \
             where its user ends it."
        }
    }
}

fn plan(outcome: &Outcome<'_>) -> String {
    let Some(plan) = outcome.plan else { return String::new() };
    let made = outcome.record.makespan().map(|t| t.as_secs_f64());
    let (planned, cost) = (plan.makespan.as_secs_f64(), plan.cost.as_usd());
    let change = |now: f64, was: f64| match was {
        0.0 => String::new(),
        was => format!("{:+.1} %", (now / was - 1.0) * 100.0),
    };
    let spent = outcome.record.cost().as_usd();
    let rows = [
        vec![
            "makespan".to_owned(),
            format!("{planned:.1} s"),
            made.map_or("unfinished".to_owned(), |m| format!("{m:.1} s")),
            made.map(|m| change(m, planned)).unwrap_or_default(),
        ],
        vec!["cost".to_owned(), format!("${cost:.4}"), format!("${spent:.4}"), change(spent, cost)],
        vec![
            "VMs".to_owned(),
            plan.vms.len().to_string(),
            outcome.record.vms.len().to_string(),
            String::new(),
        ],
    ];
    let text = table(&["", "planned", "came out", "difference"], 1, &rows);
    let about = format!(
        "The primary schedule wanted the spot VMs done by {:.0} s (D_spot), and took {} fitness evaluations.",
        plan.spot_limit.as_secs_f64(),
        plan.evaluations
    );
    text + &paragraph(&about) + &planned_tasks(outcome, plan)
}

/// Each task as it was planned and as it ran, folded: there may be many.
fn planned_tasks(outcome: &Outcome<'_>, plan: &Plan) -> String {
    let secs = |t: Time| format!("{:.0} s", t.as_secs_f64());
    let planned = planned(&outcome.header.experiment, plan);
    let tasks = outcome.record.tasks.iter().zip(outcome.header.experiment.setup.bag.tasks.iter());
    let rows: Vec<_> = tasks
        .enumerate()
        .filter_map(|(n, (task, spec))| {
            let (vm, plan) = planned.get(&n)?;
            let started = task.attempts.iter().find_map(|a| a.started);
            let late = |at: Time| at.as_secs_f64() - plan.end.as_secs_f64();
            Some(vec![
                format!("task{n} ({})", spec.name),
                format!("vm{vm}"),
                task.last().map(|a| a.vm.to_string()).unwrap_or_default(),
                secs(plan.start),
                started.map(secs).unwrap_or_default(),
                secs(plan.end),
                task.finished.map(secs).unwrap_or_default(),
                task.finished.map(|at| format!("{:+.0} s", late(at))).unwrap_or_default(),
            ])
        })
        .collect();
    let head = [
        "task",
        "planned on",
        "finished on",
        "planned start",
        "first start",
        "planned end",
        "end",
        "later by",
    ];
    let table = table(&head, 3, &rows);
    format!("<details><summary>Every task, planned and actual</summary>{table}</details>\n")
}

fn reproduce(outcome: &Outcome<'_>) -> String {
    let record = outcome.record;
    let how = format!(" in {} steps with {} decisions", record.steps, record.decisions);
    html::reproduce(outcome.header, &how, &record.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_says_how_it_is_reckoned() {
        let [second, hour] = [TariffName::Second, TariffName::Hour].map(charged_how);
        assert!(second.contains("by the second") && !second.contains("hour"), "{second}");
        assert!(hour.contains("by the hour") && !hour.contains("second"), "{hour}");
    }
}
