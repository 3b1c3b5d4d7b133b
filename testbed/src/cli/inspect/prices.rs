//! Inspects records of spot prices.

use dormouse_cloud::{PriceQuery, PriceStatistics, SeriesName, read_prices};
use dormouse_experiment::{read_file, without_ending};
use dormouse_units::{Span, Time};
use serde_json::json;

use super::args::InspectArgs;
use super::found::Found;
use super::head::Head;
use super::price_lines::price_lines;
use crate::cli::failure::Failure;

/// Most price series that are named individually.
const SHOWN: usize = 16;
/// Most oddities of series that are listed.
const MOST_ODD: usize = 8;

/// Reads a whole record of prices.
pub(super) fn inspect(args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
    let query = PriceQuery { columns: args.chosen(), ..PriceQuery::default() };
    let all = read_file(&args.file, |source| read_prices(source, &query))?;
    let with_length = all.series.iter().filter_map(|(of, record)| {
        let length = record.length()?;
        Some((of, record, length))
    });
    let series: Vec<_> = with_length.collect();
    if series.is_empty() {
        return Err(args.refused("it has no prices", "write rows like: 2009-12-01 01:43:17,0.425"));
    }
    let is_rows = all.form.starts_with("rows");
    let format = match (head.is_json(), is_rows) {
        (true, _) => "JSON of EC2's price history",
        (false, true) => "table",
        (false, false) => all.form.split(" (").next().unwrap_or_default(),
    };
    let mut found = Found::new(args, head, ("spot prices", format.to_owned()));
    if !head.is_json()
        && let Some((_, columns)) = all.form.split_once(": ")
    {
        columns.clone_into(&mut found.columns);
    }
    found.fact("prices", series.iter().map(|(_, record, _)| record.row_count()).sum::<usize>());
    found.fact("series", series.len());
    let file = args.file.file_name().unwrap_or(args.file.as_os_str()).to_string_lossy();
    let named = |of: &SeriesName| match of.to_string() {
        none if none.is_empty() => without_ending(&file).to_owned(),
        name => name,
    };
    for (of, record, length) in series.iter().take(SHOWN) {
        let trace = record.from(Span::ZERO).unwrap_or_default();
        let statistics = PriceStatistics::measure_trace(&trace, Time::ZERO + *length);
        let when = record.dates().map_or_else(
            || format!("{length} from the first to the last"),
            |dates| dates.to_string(),
        );
        let mean = statistics.map(|of| format!(", {:.4} dollars an hour on average", of.mean_usd));
        found.fact(named(of), format!("{when}{}", mean.unwrap_or_default()));
    }
    if series.len() > SHOWN {
        found.fact("and", format!("{} series more", series.len() - SHOWN));
    }
    if !all.left_out.is_empty() {
        found.oddities.push(format!("rows left out: {}", all.left_out));
    }
    found.left_out = json!(all.left_out);
    let is_one = series.len() == 1;
    let mut odd = Vec::new();
    for (of, record, _) in &series {
        let whose = if is_one { String::new() } else { format!("{}: ", named(of)) };
        odd.extend(record.describe_oddities().map(|what| format!("{whose}{what}")));
    }
    let more = odd.len().saturating_sub(MOST_ODD);
    found.oddities.extend(odd.into_iter().take(MOST_ODD));
    if more > 0 {
        found.oddities.push(format!("{more} more of its series are odd"));
    }
    let names: Vec<&SeriesName> = series.iter().map(|(of, ..)| *of).collect();
    found.experiment = price_lines(args, &names);
    Ok(found)
}
