//! The host tables of the OPIE paper: the selected VMs beside those that the paper marks.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::tables::{HostTable, TABLES, TableVm};
use dormouse_cloud::{Market, PlacementRule, Weigher};
use dormouse_units::RandomStream;
use dormouse_view::{PageBlock, TableCell, TableColumn, TextTone, TypedTable};

/// Number of vCPUs of each host.
const HOST_VCPUS: u32 = 8;

/// Cost functions of hosts: name in cases, name in words, and weigher. The default, and Algorithm 4
/// as it is printed.
const READINGS: [(&str, &str, Weigher); 2] = [
    ("victim-cost", "of the cheapest VMs that make room", Weigher::VictimCost),
    ("total-cost", "of all preemptible VMs", Weigher::TotalCost),
];

fn table(case: &str) -> Option<HostTable> {
    let (_, text) = TABLES.into_iter().find(|(name, _)| *name == case)?;
    HostTable::read(text).ok()
}

fn selected_vms(table: &HostTable, weigher: Weigher, seed: u64) -> Vec<&TableVm> {
    let weighers = vec![Weigher::Overcommit.weighed_once(), weigher.weighed_once()];
    let rule = PlacementRule { weighers, ..PlacementRule::default() };
    table.select_victims(rule, &mut RandomStream::new(seed, "tables", 0))
}

fn marked_vms(table: &HostTable) -> Vec<&TableVm> {
    table.instances.iter().filter(|vm| vm.is_marked).collect()
}

fn total_cost(vms: &[&TableVm]) -> u64 {
    vms.iter().map(|vm| vm.ending_cost()).sum()
}

/// Least cost of a set of preemptible VMs, other than `chosen`, that makes room on its host. Sets that contain all of
/// `chosen` do not count, as in the paper's text. `None` if there is no other set.
fn next_least_cost(table: &HostTable, chosen: &[&TableVm]) -> Option<u64> {
    // Sizes are in proportion, so that vCPUs stand for all that a VM takes.
    let takes = |vms: &[&TableVm]| vms.iter().map(|vm| vm.size.vm_room().vcpus).sum::<u32>();
    let wanted = table.request.vm_room().vcpus;
    let hosts: BTreeSet<&str> = table.instances.iter().map(|vm| &*vm.host).collect();
    let of_host = |host: &str| {
        let vms: Vec<&TableVm> = table.instances.iter().filter(|vm| vm.host == host).collect();
        let free = HOST_VCPUS.saturating_sub(takes(&vms));
        let preemptible: Vec<&TableVm> =
            vms.into_iter().filter(|vm| vm.market == Market::Spot).collect();
        let sets = (0_u32..1 << preemptible.len()).map(move |set| {
            let is_in = |n: &usize| set >> n & 1 == 1;
            (0..preemptible.len()).filter(is_in).map(|n| preemptible[n]).collect::<Vec<_>>()
        });
        sets.filter(move |set| free + takes(set) >= wanted)
    };
    let is_other = |set: &Vec<&TableVm>| !chosen.iter().all(|vm| set.contains(vm));
    let others = hosts.into_iter().flat_map(of_host).filter(is_other);
    others.map(|set| total_cost(&set)).min()
}

/// Figures of the VMs that each cost function selects on a host table: `victim-cost/cost_min`, and more; `None` if the case has no
/// table.
pub(crate) fn selections(case: &str, seed: u64) -> Option<BTreeMap<String, f64>> {
    let table = table(case)?;
    let of_reading = |(name, _, weigher)| {
        let vms = selected_vms(&table, weigher, seed);
        let next = next_least_cost(&table, &vms);
        #[expect(clippy::cast_precision_loss, reason = "minutes and VMs")]
        let (cost, vms_ended, next) =
            (total_cost(&vms) as f64, vms.len() as f64, next.map(|next| next as f64));
        let figures = [
            ("cost_min", Some(cost)),
            ("cheaper_by_min", next.map(|next| next - cost)),
            ("terminated", Some(vms_ended)),
            ("as_marked", Some(f64::from(u8::from(vms == marked_vms(&table))))),
        ];
        figures.into_iter().filter_map(move |(figure, x)| Some((format!("{name}/{figure}"), x?)))
    };
    Some(READINGS.into_iter().flat_map(of_reading).collect())
}

/// The tables with the selection of each cost function.
pub(crate) fn blocks() -> Vec<PageBlock> {
    let of_table = |(case, _): (&str, &str)| {
        let table = table(case)?;
        let by = READINGS.map(|(_, words, weigher)| (words, selected_vms(&table, weigher, 1)));
        let request = table.request.letter();
        let mut shown = TypedTable::with_rows(&table.instances)
            .column(TableColumn::text("host"), |vm| vm.host.clone())
            .column(TableColumn::text("instance"), |vm| vm.name.clone())
            .column(TableColumn::text("kind"), |vm| match vm.market {
                Market::Spot => "preemptible",
                Market::OnDemand => "normal",
            })
            .column(TableColumn::text("size"), |vm| vm.size.letter())
            .column(TableColumn::count("minutes"), |vm| vm.minutes)
            .column(TableColumn::count("into its hour"), |vm| vm.ending_cost())
            .column(TableColumn::text("the paper"), |vm| selection_mark(vm.is_marked));
        for (words, vms) in &by {
            let heading = format!("ours, by the cost {words}: {} min", total_cost(vms));
            shown = shown.column(TableColumn::text(heading), |vm| {
                let is_selected = vms.contains(vm);
                let tone =
                    if is_selected == vm.is_marked { TextTone::Plain } else { TextTone::Bad };
                TableCell::text(selection_mark(is_selected)).toned(tone)
            });
        }
        let heading =
            PageBlock::text(format!("{case}: the VMs that end for a request of size {request}"));
        Some([heading, PageBlock::Table(shown.into())])
    };
    TABLES.into_iter().filter_map(of_table).flatten().collect()
}

const fn selection_mark(is_selected: bool) -> &'static str {
    if is_selected { "selected" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the third table the other choices cost 58 minutes (BP1), 57 (CP1) and 112 (CP2 and CP3). In the fourth table
    /// DP3 is the next best choice, with 24 minutes, and no set that contains BP3 counts.
    #[test]
    fn the_next_best_choice_is_found_among_all() {
        let found = |case: &str| {
            let figures = selections(case, 1).expect("there is such a table");
            (figures["victim-cost/cost_min"], figures["victim-cost/cheaper_by_min"])
        };
        assert_eq!(found("several-sizes-1"), (55.0, 2.0));
        assert_eq!(found("several-sizes-2"), (20.0, 4.0));
        assert_eq!(found("same-sizes-1"), (11.0, 8.0));
        assert_eq!(found("same-sizes-2"), (1.0, 6.0));
    }
}
