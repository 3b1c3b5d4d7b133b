//! Tables of VMs: one a row, in any order.

use dormouse_input::{Row, Rows};

use super::cells::{begins, bucket, cell, instant, is_null, length, text};
use super::error::Flaw;
use super::format::{AT, DURATION, END, KIND, Layout, MEMORY, RequestFormat, VCPUS};
use super::held::{Hold, NO_TYPE, THERE_BEFORE, Times, UNSEEN};
use super::kinds::{GIB, Kinds};
use super::own::{market, number};
use crate::requests::offer::{Refusal, VmSize};

/// Reads all VMs of a table, and says whether its times are dates.
pub(super) fn hold(
    rows: &mut Rows,
    (format, layout): (RequestFormat, &Layout),
    kinds: &mut Kinds,
    hold: &mut Hold,
) -> Result<Times, Flaw> {
    let mut times = Times { ends_cut: format == RequestFormat::AzureVms, ..Times::default() };
    while let Some(row) = rows.next_row()? {
        let vm = Vm { row, layout, format };
        let are_dates = vm.hold(kinds, hold).map_err(|refusal| Flaw::row(row.line(), refusal))?;
        times.are_dates |= are_dates;
    }
    Ok(times)
}

/// A row of a table.
struct Vm<'a> {
    row: Row<'a>,
    layout: &'a Layout,
    format: RequestFormat,
}

impl Vm<'_> {
    /// Adds the VM, if it is a request, and says whether its times are dates.
    fn hold(&self, kinds: &mut Kinds, hold: &mut Hold) -> Result<bool, Refusal> {
        let Self { row, layout, format } = self;
        let line = row.line();
        let text = text(row)?;
        if let Some(width) = layout.width
            && row.len() != width
        {
            let what = format!("'{}' has {} cells, not {width}", begins(text), row.len());
            return Err(Refusal::new(what, "give a file whose rows have all columns"));
        }
        let (begun, are_dates) =
            instant("beginning", &number(row, layout.place(AT)), layout.units[0])?;
        let (mut at, until) = (begun, self.until(begun)?);
        // These count time from the beginning of the trace.
        let since_trace = matches!(format, RequestFormat::AzureVms | RequestFormat::AzurePacking);
        if since_trace && at <= 0 {
            at = 0;
            if until <= 0 {
                hold.left_out.add("that ended before the trace began", line);
                return Ok(false);
            }
        }
        let market = market(row, layout)?;
        let kind = match layout.place(KIND) {
            Some(_) => self.named(kinds, market)?,
            None => self.sized(kinds, market)?,
        };
        let Some(kind) = kind else {
            hold.left_out.add(NO_TYPE, line);
            // The trace goes on as long as it is there.
            hold.see(if until == UNSEEN { at } else { until });
            return Ok(are_dates);
        };
        if since_trace && begun <= 0 {
            hold.changed.add(THERE_BEFORE, line);
        }
        hold.add((at, until), kind, market, line);
        Ok(are_dates)
    }

    /// The end of the VM.
    fn until(&self, begun: i64) -> Result<i64, Refusal> {
        let Self { row, layout, .. } = self;
        let duration = number(row, layout.place(DURATION));
        if layout.place(DURATION).is_some() && !is_null(&duration) {
            let duration = length("duration", &duration, layout.units[2])?;
            return Ok(begun.saturating_add(duration));
        }
        let end = number(row, layout.place(END));
        if is_null(&end) {
            return Ok(UNSEEN);
        }
        Ok(instant("end", &end, layout.units[1])?.0)
    }

    fn named(
        &self,
        kinds: &mut Kinds,
        market: dormouse_cloud::Market,
    ) -> Result<Option<u32>, Refusal> {
        let name = cell(&self.row, self.layout.place(KIND));
        kinds.named(name, market).map_err(|refusal| {
            let Refusal { what, remedy } = refusal;
            let remedy = format!(
                "{remedy}; or say which type it is: types-map = {{ \"{}\" = \"TYPE\" }}",
                begins(name)
            );
            Refusal { what, remedy }
        })
    }

    fn sized(
        &self,
        kinds: &mut Kinds,
        market: dormouse_cloud::Market,
    ) -> Result<Option<u32>, Refusal> {
        let Self { row, layout, .. } = self;
        let (vcpus, memory) = (number(row, layout.place(VCPUS)), number(row, layout.place(MEMORY)));
        let gib = if memory.is_empty() { 0.0 } else { bucket("memory", &memory)? };
        let size = VmSize { vcpus: bucket("number of vCPUs", &vcpus)?, memory: gib * GIB };
        kinds.sized((&vcpus, &memory), &size, market)
    }
}
