//! Records of spot prices.

use std::fmt::Write as _;

use dormouse_cloud::PriceStatistics;
use dormouse_experiment::{Pick, price_series};
use dormouse_units::{Span, Time};

use super::command::InspectArgs;
use super::found::Found;
use super::head::Head;
use crate::cli::failure::Failure;

/// Most series that are named one by one.
const SHOWN: usize = 16;

/// Reads a record whole.
pub(super) fn inspect(args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
    let mut notes = Vec::new();
    let pick = Pick { columns: args.column.clone(), ..Pick::default() };
    let all = price_series(&args.file, &pick, &mut notes)?;
    let format = if head.is_json() { "JSON of EC2's price history" } else { "table" };
    let mut found = Found::new(args, head, ("spot prices", format));
    let rows: usize = all.iter().map(|series| series.record.rows()).sum();
    found.fact("prices", rows);
    found.fact("series", all.len());
    let file = args.quoted();
    let mut experiment = "[cloud.prices]\n".to_owned();
    let columns = match args.columns().as_str() {
        "" => String::new(),
        columns => format!(", columns = {columns}"),
    };
    for series in all.iter().take(SHOWN) {
        let trace = series.record.from(Span::ZERO).unwrap_or_default();
        let of = PriceStatistics::of(&trace, Time::ZERO + series.length);
        let when = series.record.dates().map_or_else(
            || format!("{} from the first to the last", series.length),
            |dates| dates.to_string(),
        );
        let mean = of.map(|of| format!(", {:.4} dollars an hour on average", of.mean_usd));
        found.fact(&series.name, format!("{when}{}", mean.unwrap_or_default()));
        let words: Vec<&str> = series.name.splitn(3, ' ').collect();
        // Writing to a text can't fail.
        let _ = match words[..] {
            [kind, zone, product] if all.len() > 1 => writeln!(
                experiment,
                "\"{kind}\" = {{ file = {file}, type = \"{kind}\", zone = \"{zone}\", product = \
                 \"{product}\"{columns} }}"
            ),
            _ if columns.is_empty() => {
                writeln!(experiment, "\"TYPE\" = {file} # the instance type that costs this")
            }
            _ => writeln!(experiment, "\"TYPE\" = {{ file = {file}{columns} }}"),
        };
    }
    if all.len() > SHOWN {
        found.fact("and", format!("{} series more", all.len() - SHOWN));
    }
    let path = format!("{}: ", args.file.display());
    let plain = |note: String| note.strip_prefix(&path).map(str::to_owned).unwrap_or(note);
    found.oddities = notes.into_iter().map(plain).collect();
    found.experiment = experiment;
    Ok(found)
}
