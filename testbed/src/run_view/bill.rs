//! "The bill": what each VM cost, and how that is reckoned.

use dormouse_cloud::{Market, TariffName};
use dormouse_tell::VmHistory;
use dormouse_units::Money;
use dormouse_view::{Block, Cell, Column, Table};

use super::outcome::OfBag;
use crate::output::end_word;

/// The section's content.
pub(super) fn bill(of: &OfBag<'_>) -> Vec<Block> {
    let record = of.record;
    let terms = &of.of.header.experiment.setup.terms;
    // Where prices change, what it was launched at is not what all of it cost.
    let price = if terms.prices.is_empty() { "price" } else { "price at its launch" };
    let charged = |vm: &VmHistory| {
        let charges = vm.charges().iter().map(|charge| {
            format!("{:.0}–{:.0} s", charge.from.as_secs_f64(), charge.until.as_secs_f64())
        });
        let charges: Vec<_> = charges.collect();
        if charges.is_empty() { "never".to_owned() } else { charges.join(", ") }
    };
    let table = Table::of(record.vms.values())
        .column(Column::text("VM"), |vm| vm.id.to_string())
        .column(Column::text("type"), |vm| vm.kind.as_str())
        .column(Column::text("market"), |vm| vm.market.to_string())
        .column(Column::text("end"), |vm| vm.ended.map_or("running", |(_, why, _)| end_word(why)))
        .column(Column::text("charged"), |vm| charged(vm))
        .column(Column::count("tasks"), |vm| record.finished_on(vm.id))
        .column(Column::text(price), |vm| vm.price.to_string())
        .column(Column::dollars("cost").digits(6), |vm| vm.cost());
    let mut totals = Table::new([Column::text("market"), Column::dollars("total").digits(6)]);
    for market in [Market::Spot, Market::OnDemand] {
        let of_market = record.vms.values().filter(|vm| vm.market == market);
        let total: Money = of_market.map(VmHistory::cost).sum();
        totals.push([Cell::text(market.to_string()), Cell::from(total)]);
    }
    totals.push([Cell::text("all"), Cell::from(record.cost())]);
    vec![Block::Table(table.into()), Block::Table(totals), Block::text(charged_how(terms.tariff))]
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
