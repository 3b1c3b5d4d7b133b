//! The host tables of the OPIE paper: the selected VMs beside those that the paper marks.

use std::collections::BTreeMap;

use dormouse_cloud::tables::{HostTable, TABLES, TableVm};
use dormouse_cloud::{Market, PlacementRule, Weigher};
use dormouse_units::RandomStream;
use dormouse_view::{PageBlock, TableCell, TableColumn, TextTone, TypedTable};

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

/// Figures of the selection on a table: `victim-cost/cost_min`, and more.
pub(crate) fn selections(case: &str, seed: u64) -> Option<BTreeMap<String, f64>> {
    let table = table(case)?;
    let of_reading = |(name, _, weigher)| {
        let vms = selected_vms(&table, weigher, seed);
        #[expect(clippy::cast_precision_loss, reason = "minutes and VMs")]
        let figures = [
            ("cost_min", total_cost(&vms) as f64),
            ("terminated", vms.len() as f64),
            ("as_marked", f64::from(u8::from(vms == marked_vms(&table)))),
        ];
        figures.map(|(figure, x)| (format!("{name}/{figure}"), x))
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
