//! Sections of the page of a run with a bag.

use dormouse_analysis::outcome::wording;
use dormouse_analysis::{AttemptEnd, AttemptHistory, RunRecord, VmHistory};
use dormouse_cloud::{
    BillingTerms, InterruptionAction, InterruptionTarget, Market, ProviderTerms, StoppedDisk,
    TariffName,
};
use dormouse_model::VmEnd;
use dormouse_units::{Bytes, Money, Span, Time, VmId};
use dormouse_view::number::decimals_of_dollars;
use dormouse_view::{PageBlock, TableCell, TableColumn, TypedTable};

use super::dates;
use super::outcome::BagResults;

/// Section "The bill": the cost of each VM, and how it is computed.
pub(super) fn bill(of: &BagResults<'_>) -> Vec<PageBlock> {
    let record = of.record;
    let terms = &of.of.header.experiment.setup.terms;
    // Where prices change, the price at its launch does not explain a VM's cost.
    let price = if terms.prices.is_empty() { "price" } else { "price at its launch" };
    let unit = of.of.time_unit();
    let charged = |vm: &VmHistory| {
        let charges = vm.charges().iter().map(|charge| {
            let [from, until] = [charge.from, charge.until].map(Time::as_secs_f64);
            format!("{} to {}", unit.number(from, 0), unit.words(until, 0))
        });
        let charges: Vec<_> = charges.collect();
        if charges.is_empty() { "never".to_owned() } else { charges.join(", ") }
    };
    let table = TypedTable::with_rows(record.vms.values())
        .column(TableColumn::text("VM"), |vm| vm.id.to_string())
        .column(TableColumn::text("type"), |vm| vm.kind.as_str())
        .column(TableColumn::text("market"), |vm| vm.market.to_string())
        .column(TableColumn::text("end"), |vm| {
            vm.ended.map_or("running", |(_, why, _)| why.one_word())
        })
        .column(TableColumn::text(wording::CHARGED), |vm| charged(vm))
        .column(TableColumn::count("tasks"), |vm| record.finished_on(vm.id))
        .column(TableColumn::text(price), |vm| vm.price.to_string());
    let table = match record.stopped_disks_cost() {
        None => table,
        Some(_) => table.column(TableColumn::dollars(wording::STOPPED_DISK).digits(6), |vm| {
            vm.meter().disk_cost()
        }),
    };
    let table = match record.surplus_cost() {
        None => table,
        Some(_) => table
            .column(TableColumn::dollars(wording::SURPLUS_CREDITS).digits(6), |vm| vm.surcharge),
    };
    let table = table.column(TableColumn::dollars("cost").digits(6), |vm| vm.cost());
    let mut totals =
        TypedTable::new([TableColumn::text("market"), TableColumn::dollars("total").digits(6)]);
    for market in [Market::Spot, Market::OnDemand] {
        let of_market = record.vms.values().filter(|vm| vm.market == market);
        let total: Money = of_market.map(VmHistory::cost).sum();
        totals.push([TableCell::text(market.to_string()), TableCell::from(total)]);
    }
    if let Some(disks) = record.stopped_disks_cost() {
        totals
            .push([TableCell::text("disks of hibernated VMs among them"), TableCell::from(disks)]);
    }
    if let Some(surplus) = record.surplus_cost() {
        totals.push([TableCell::text("surplus credits among them"), TableCell::from(surplus)]);
    }
    totals.push([TableCell::text("all"), TableCell::from(record.cost())]);
    vec![
        PageBlock::Table(table.into()),
        PageBlock::Table(totals),
        PageBlock::Text(charged_how(terms)),
    ]
}

/// The sentence on the page about charged times and prices, under these terms.
fn charged_how(terms: &ProviderTerms) -> String {
    let BillingTerms { boot, frozen, stopped_disk } = terms.billing;
    let from = if boot { "from its launch" } else { "from the end of its boot" };
    let unless = match frozen {
        true => ", unless it ends without having resumed: then since it froze, too",
        false => "",
    };
    let tariff = match terms.tariff {
        TariffName::Second | TariffName::Azure => "It costs its price by the second.",
        TariffName::Ec2 => {
            "It costs its price by the second, and a minute at least for each use. A use that the provider ends \
             or hibernates within its first hour is free."
        }
        TariffName::Gce => {
            "It costs its price by the second, and a minute at least for each use. A use that the provider ends \
             or hibernates within its first minute is free."
        }
        TariffName::Hour => {
            "It costs the price at the beginning of each hour that it begins. The last hour, if it is not \
             full, is free where the provider ends or hibernates the VM, and costs a full one where its \
             user ends it."
        }
        TariffName::StartedHour => {
            "It costs the price at the beginning of each hour that it begins, a full one whoever ends or \
             hibernates the VM."
        }
    };
    let disk = stopped_disk.map_or(String::new(), |StoppedDisk { size, gib_month }| {
        let more = if size > Bytes::ZERO { format!(" and {size} more") } else { String::new() };
        format!(
            " While it is hibernated, until it runs again, its disk of its memory{more} costs {gib_month} a GiB and \
             month of 30 days."
        )
    });
    format!(
        "A VM is charged {from} to its end, and not while it is hibernated{unless}. {tariff}{disk}"
    )
}

/// Greatest number of rows of a table that is not folded.
const LONGEST_OPEN: usize = 15;

/// Section "Interruptions, migrations and failures": interruptions, migrations, failures and lost hosts, with their costs.
pub(super) fn happened(of: &BagResults<'_>) -> Vec<PageBlock> {
    let record = of.record;
    let tables = [
        ("Acts of the provider", interruption_table(record)),
        (wording::LOST_HOSTS, host_table(record)),
        ("Migrations", migration_table(of)),
        ("Failed attempts", failure_table(record)),
    ];
    let there = tables.into_iter().filter(|(_, table)| !table.is_empty());
    let mut blocks: Vec<_> = there
        .map(|(name, table)| match table.len() {
            // A longer one would push what follows off the screen.
            rows if rows > LONGEST_OPEN => {
                PageBlock::Folded(format!("{name} ({rows})"), vec![PageBlock::Table(table)])
            }
            _ => PageBlock::Table(table),
        })
        .collect();
    if let Some(why) = &record.cancelled {
        blocks.push(PageBlock::text(format!("The run was ended before its time: {why}.")));
    }
    let time = dates::at(of.of.time_unit());
    for (n, attempt) in all_attempts(record) {
        if let Some(why) = &attempt.unsaved {
            blocks.push(PageBlock::text(format!("task{n} on {}: {why}.", attempt.vm)));
        }
        for (at, what) in attempt.changed_words().into_iter().chain(attempt.idle_words()) {
            let text = format!("task{n} on {} {what}, as was said at {}.", attempt.vm, time(at));
            blocks.push(PageBlock::text(text));
        }
    }
    blocks.extend(record.rejected.iter().map(|(at, why)| {
        PageBlock::text(format!("A decision at {} could not be carried out: {why}.", time(*at)))
    }));
    if blocks.is_empty() {
        blocks.push(PageBlock::text("Nothing out of the ordinary."));
    }
    blocks
}

pub(super) fn names<'a>(vms: impl IntoIterator<Item = &'a VmId>) -> String {
    vms.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn interruption_table(record: &RunRecord) -> TypedTable {
    TypedTable::with_rows(&record.interruptions)
        .column(TableColumn::text("act of the provider"), |i| match i.action {
            InterruptionAction::Hibernate => "hibernate",
            InterruptionAction::Resume => "resume",
            InterruptionAction::Preempt => "preempt",
            InterruptionAction::Rebalance => "rebalance",
        })
        .column(TableColumn::text("VMs hit"), |i| match i.vms.as_slice() {
            [] => "none: no such VM ran".to_owned(),
            hit => names(hit),
        })
        .column(TableColumn::seconds(wording::WORK_LOST), |i| record.lost_by(i))
        .column(TableColumn::seconds("asked for at"), |i| i.asked)
        .column(TableColumn::seconds("took effect at"), |i| record.took_effect(i))
        .column(TableColumn::text("asked for by"), |i| match &i.asked_by {
            None => "the provider".to_owned(),
            Some(why) => format!("a person who watched: {why}"),
        })
        .column(TableColumn::text("meant for"), |i| match &i.target {
            InterruptionTarget::Type(kind) => format!("all spot {kind}"),
            InterruptionTarget::Vm(vm) => vm.to_string(),
            InterruptionTarget::Zone(zone) => format!("all spot VMs of {zone}"),
            InterruptionTarget::All => "all spot VMs".to_owned(),
        })
        .into()
}

fn host_table(record: &RunRecord) -> TypedTable {
    let lost = record.hosts.iter().filter_map(|(id, host)| {
        let (at, why) = host.lost.as_ref()?;
        let gone = record.vms.values().filter(|vm| {
            vm.host == *id && vm.ended.is_some_and(|(_, end, _)| end == VmEnd::HostLost)
        });
        let gone: Vec<_> = gone.map(|vm| vm.id).collect();
        Some((format!("{id} ({})", host.name), gone, *at, why))
    });
    TypedTable::with_rows(lost)
        .column(TableColumn::text(wording::HOST_LOST), |(name, ..)| name.clone())
        .column(TableColumn::text("why"), |(.., why)| why.as_str())
        .column(TableColumn::text("VMs on it"), |(_, gone, ..)| names(gone))
        .column(TableColumn::seconds(wording::LOST_AT), |(_, _, at, _)| *at)
        .column(TableColumn::seconds(wording::WORK_LOST), |(_, gone, at, _)| {
            gone.iter().map(|&vm| record.lost_on(vm, *at, *at)).sum::<Span>()
        })
        .into()
}

/// Table with one row for each migration.
fn migration_table(of: &BagResults<'_>) -> TypedTable {
    let mut all: Vec<_> = of
        .tasks()
        .flat_map(|task| task.is.migrations().map(move |(was, is)| (task, was, is)))
        .collect();
    all.sort_by_key(|(.., is)| is.sent);
    TypedTable::with_rows(all)
        .column(TableColumn::text("task that migrated"), |(task, ..)| task.name())
        .column(TableColumn::text("from"), |(_, was, _)| was.vm.to_string())
        .column(TableColumn::text("to"), |(.., is)| is.vm.to_string())
        .column(TableColumn::seconds(wording::WORK_LOST), |(_, was, _)| of.record.lost(was))
        .column(TableColumn::percent("work kept"), |(.., is)| {
            is.from.map_or(0.0, |(_, done)| done.as_f64())
        })
        .column(TableColumn::seconds("left at"), |(_, was, _)| Some(was.ended.as_ref()?.0))
        .column(TableColumn::seconds("ran again at"), |(.., is)| is.started)
        .into()
}

/// Attempts at all tasks, each with the number of its task.
fn all_attempts(record: &RunRecord) -> impl Iterator<Item = (usize, &AttemptHistory)> {
    let tasks = record.tasks.iter().enumerate();
    tasks.flat_map(|(n, task)| task.attempts.iter().map(move |attempt| (n, attempt)))
}

fn failure_table(record: &RunRecord) -> TypedTable {
    let failed = all_attempts(record).filter_map(|(n, attempt)| match &attempt.ended {
        Some((at, AttemptEnd::Failed(why))) => Some((n, attempt, *at, why)),
        _ => None,
    });
    TypedTable::with_rows(failed)
        .column(TableColumn::text("task whose attempt failed"), |(n, ..)| format!("task{n}"))
        .column(TableColumn::text("on VM"), |(_, attempt, ..)| attempt.vm.to_string())
        .column(TableColumn::text("why"), |(.., why)| why.as_str())
        .column(TableColumn::seconds("failed at"), |(_, _, at, _)| *at)
        .column(TableColumn::seconds(wording::WORK_LOST), |(_, attempt, ..)| record.lost(attempt))
        .into()
}

/// Section "Plan and outcome": the scheduler's plan beside the results; empty without a plan.
pub(super) fn plan(of: &BagResults<'_>) -> Vec<PageBlock> {
    let Some((plan, planned)) = of.of.plan.as_ref().zip(of.planned_figures()) else {
        return Vec::new();
    };
    let columns = ["figure", "planned", "actual", "difference"].map(TableColumn::text);
    let mut table = TypedTable::new(columns);
    let mut row = |name: &str, words: &dyn Fn(f64) -> String, was: f64, now: Option<f64>| {
        let change =
            now.filter(|_| was != 0.0 && planned.is_whole()).map(|now| (now / was - 1.0) * 100.0);
        table.push([
            TableCell::text(name),
            TableCell::text(words(was)),
            TableCell::text(now.map_or("unfinished".to_owned(), words)),
            change.map(|change| format!("{change:+.1} %")).into(),
        ]);
    };
    let made = of.record.makespan().map(|at| at.as_secs_f64());
    let unit = of.of.time_unit();
    row("makespan", &|s| unit.words(s, 1), planned.makespan.as_secs_f64(), made);
    let spent = of.cost_of_bag().as_usd();
    row(
        "cost",
        &|usd| format!("${usd:.*}", decimals_of_dollars(usd)),
        planned.bill.as_usd(),
        Some(spent),
    );
    #[expect(clippy::cast_precision_loss, reason = "some VMs")]
    let count = |n: usize| n as f64;
    row("VMs", &|n| format!("{n:.0}"), count(plan.vms.len()), Some(count(of.vms_of_bag().count())));
    let of_some = (!planned.is_whole()).then(|| {
        let (tasks, all) = (planned.tasks, planned.of);
        format!("It is a plan of the {tasks} of {all} tasks that can begin at once. ")
    });
    let about = format!(
        "{}The plan has all tasks on spot VMs done by {} (D_spot). Finding it took {} fitness \
         evaluations.",
        of_some.unwrap_or_default(),
        dates::round(unit, plan.spot_limit),
        plan.evaluations
    );
    let every = vec![PageBlock::Table(every_task(of))];
    vec![
        PageBlock::Table(table),
        PageBlock::Text(about),
        PageBlock::Folded("Every task, planned and actual".to_owned(), every),
    ]
}

fn every_task(of: &BagResults<'_>) -> TypedTable {
    let seconds = |heading: &str| TableColumn::seconds(heading).digits(0);
    TypedTable::with_rows(
        of.tasks().filter_map(|task| task.planned.map(|(vm, plan)| (task, vm, plan))),
    )
    .column(TableColumn::text("task"), |(task, ..)| task.name())
    .column(TableColumn::text("planned on"), |(_, vm, _)| format!("vm{vm}"))
    .column(TableColumn::text("finished on"), |(t, ..)| t.is.last().map(|a| a.vm.to_string()))
    .column(seconds("planned start"), |(.., plan)| plan.start)
    .column(seconds("first start"), |(task, ..)| task.started())
    .column(seconds("planned end"), |(.., plan)| plan.end)
    .column(seconds("end"), |(task, ..)| task.is.finished)
    .column(seconds("later than planned by"), |(task, _, plan)| {
        task.is.finished.map(|at| at.as_secs_f64() - plan.end.as_secs_f64())
    })
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the sentence about charges for every tariff: with or without charged boot, and with
    /// or without charged frozen time.
    #[test]
    fn the_bill_says_how_it_is_reckoned() {
        let of = |tariff, boot, frozen| {
            charged_how(&ProviderTerms {
                tariff,
                billing: BillingTerms { boot, frozen, ..BillingTerms::default() },
                ..ProviderTerms::default()
            })
        };
        assert_eq!(
            of(TariffName::Second, true, false),
            "A VM is charged from its launch to its end, and not while it is hibernated. It costs its price \
             by the second."
        );
        assert_eq!(
            of(TariffName::StartedHour, false, true),
            "A VM is charged from the end of its boot to its end, and not while it is hibernated, unless it \
             ends without having resumed: then since it froze, too. It costs the price at the beginning of \
             each hour that it begins, a full one whoever ends or hibernates the VM."
        );
        let disk = |gib: u64| {
            let gib_month = Money::from_nanos(80_000_000);
            let stopped_disk = Some(StoppedDisk { size: Bytes::new(gib << 30), gib_month });
            let billing = BillingTerms { stopped_disk, ..BillingTerms::default() };
            charged_how(&ProviderTerms { billing, ..ProviderTerms::default() })
        };
        assert_eq!(
            disk(8),
            "A VM is charged from the end of its boot to its end, and not while it is hibernated. It costs its \
             price by the second. While it is hibernated, until it runs again, its disk of its memory and 8 GiB \
             more costs $0.0800 a GiB and month of 30 days."
        );
        assert!(disk(0).contains("its disk of its memory costs $0.08"), "{}", disk(0));
        use TariffName::{Azure, Ec2, Gce, Hour, Second, StartedHour};
        for tariff in [Second, Hour, StartedHour, Ec2, Gce, Azure] {
            let [boot, no_boot] = [true, false].map(|boot| of(tariff, boot, false));
            assert!(boot.contains("from its launch") && !boot.contains("boot"), "{boot}");
            assert!(
                no_boot.contains("the end of its boot") && !no_boot.contains("launch"),
                "{no_boot}"
            );
            assert_eq!(boot.contains("hour"), [Hour, StartedHour, Ec2].contains(&tariff), "{boot}");
            assert_eq!(boot.contains("free"), [Hour, Ec2, Gce].contains(&tariff), "{boot}");
            assert_eq!(boot.contains("minute"), [Ec2, Gce].contains(&tariff), "{boot}");
        }
    }
}
