//! Reader of tables of VMs: one VM per row, in any order.

use dormouse_input::{Row, Rows};

use super::cells::{
    cell_text, is_null, parse_bucket, parse_instant, parse_length, shorten_row, text,
};
use super::error::RequestFileFlaw;
use super::format::{AT, DURATION, END, KIND, MEMORY, RequestFormat, VCPUS, VmTableLayout};
use super::held::{FileTimes, NO_TYPE, RequestCollector, THERE_BEFORE, UNSEEN};
use super::kinds::{GIB, NumberedTypes};
use super::own::{number_text, read_market};
use crate::requests::offer::{OfferRefusal, VmSize};

/// Collects all VMs of a table; returns true if the table's times are dates.
pub(super) fn collect_rows(
    rows: &mut Rows,
    (format, layout): (RequestFormat, &VmTableLayout),
    kinds: &mut NumberedTypes,
    hold: &mut RequestCollector,
) -> Result<FileTimes, RequestFileFlaw> {
    let mut times =
        FileTimes { ends_cut: format == RequestFormat::AzureVms, ..FileTimes::default() };
    while let Some(row) = rows.next_row()? {
        let vm = VmTableRow { row, layout, format };
        let are_dates = vm
            .collect_row(kinds, hold)
            .map_err(|refusal| RequestFileFlaw::of_row(row.line(), refusal))?;
        times.are_dates |= are_dates;
    }
    Ok(times)
}

/// The row of one VM in a table, with the layout by which it is read.
struct VmTableRow<'a> {
    row: Row<'a>,
    layout: &'a VmTableLayout,
    format: RequestFormat,
}

impl VmTableRow<'_> {
    /// Collects the row's VM if it is a request; returns true if the row's times are dates.
    fn collect_row(
        &self,
        kinds: &mut NumberedTypes,
        hold: &mut RequestCollector,
    ) -> Result<bool, OfferRefusal> {
        let Self { row, layout, format } = self;
        let line = row.line();
        let text = text(row)?;
        if let Some(width) = layout.width
            && row.len() != width
        {
            let what = format!("'{}' has {} cells, not {width}", shorten_row(text), row.len());
            return Err(OfferRefusal::new(
                what,
                "give a file whose rows have as many cells as its first row",
            ));
        }
        let (begun, are_dates) = parse_instant(
            "beginning",
            &number_text(row, layout.place_of_column(AT)),
            layout.units[0],
        )?;
        let (mut at, until) = (begun, self.end_of_vm(begun)?);
        // These count time from the beginning of the trace.
        let since_trace = matches!(format, RequestFormat::AzureVms | RequestFormat::AzurePacking);
        if since_trace && at <= 0 {
            at = 0;
            if until <= 0 {
                hold.left_out.add("that ended before the trace began", line);
                return Ok(false);
            }
        }
        let market = read_market(row, layout)?;
        let kind = match layout.place_of_column(KIND) {
            Some(_) => self.type_by_name(kinds, market)?,
            None => self.type_by_size(kinds, market)?,
        };
        let Some(kind) = kind else {
            hold.left_out.add(NO_TYPE, line);
            // The trace goes on as long as it is there.
            hold.note_instant(if until == UNSEEN { at } else { until });
            return Ok(are_dates);
        };
        if since_trace && begun <= 0 {
            hold.changed.add(THERE_BEFORE, line);
        }
        hold.add((at, until), kind, market, line);
        Ok(are_dates)
    }

    /// End of the VM in microseconds on the file's clock, given its beginning.
    fn end_of_vm(&self, begun: i64) -> Result<i64, OfferRefusal> {
        let Self { row, layout, .. } = self;
        let duration = number_text(row, layout.place_of_column(DURATION));
        if layout.place_of_column(DURATION).is_some() && !is_null(&duration) {
            let duration = parse_length("duration", &duration, layout.units[2])?;
            return Ok(begun.saturating_add(duration));
        }
        let end = number_text(row, layout.place_of_column(END));
        if is_null(&end) {
            return Ok(UNSEEN);
        }
        Ok(parse_instant("end", &end, layout.units[1])?.0)
    }

    fn type_by_name(
        &self,
        kinds: &mut NumberedTypes,
        market: dormouse_cloud::Market,
    ) -> Result<Option<u32>, OfferRefusal> {
        let name = cell_text(&self.row, self.layout.place_of_column(KIND));
        kinds.number_of_named(name, market).map_err(|refusal| {
            let OfferRefusal { what, remedy } = refusal;
            let remedy = format!(
                "{remedy}; or say which type it is: types-map = {{ \"{}\" = \"TYPE\" }}",
                shorten_row(name)
            );
            OfferRefusal { what, remedy }
        })
    }

    fn type_by_size(
        &self,
        kinds: &mut NumberedTypes,
        market: dormouse_cloud::Market,
    ) -> Result<Option<u32>, OfferRefusal> {
        let Self { row, layout, .. } = self;
        let (vcpus, memory) = (
            number_text(row, layout.place_of_column(VCPUS)),
            number_text(row, layout.place_of_column(MEMORY)),
        );
        let gib = if memory.is_empty() { 0.0 } else { parse_bucket("memory", &memory)? };
        let size = VmSize { vcpus: parse_bucket("number of vCPUs", &vcpus)?, memory: gib * GIB };
        kinds.number_of_sized((&vcpus, &memory), &size, market)
    }
}
