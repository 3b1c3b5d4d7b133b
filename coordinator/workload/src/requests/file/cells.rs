//! Cells of requests: times, markets, sizes.

use dormouse_cloud::Market;
use dormouse_input::{LONGEST_LINE, Moment, Row};
use dormouse_units::Span;

use crate::requests::check::LAST;
use crate::requests::offer::OfferRefusal;

const US: f64 = 1e6;

/// Beginning of a row, shortened for a message.
pub(super) fn shorten_row(row: &str) -> String {
    row.trim().chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Text of a row for a message; an error if the row is not valid UTF-8.
pub(super) fn text<'a>(row: &Row<'a>) -> Result<&'a str, OfferRefusal> {
    debug_assert!(row.text().len() as u64 <= LONGEST_LINE);
    std::str::from_utf8(row.text()).map_err(|error| {
        let what = format!("its byte {} is not text in UTF-8", error.valid_up_to() + 1);
        OfferRefusal::new(what, "give a CSV file of requests in UTF-8")
    })
}

/// Text of a cell, without quotation marks even if blanks stand before them.
pub(super) fn cell_text<'a>(row: &Row<'a>, at: Option<usize>) -> &'a str {
    let cell = at.map_or("", |at| row.cell(at));
    cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).unwrap_or(cell)
}

/// True if a cell is empty or has a database's word for no value.
pub(super) fn is_null(cell: &str) -> bool {
    let nulls = ["", "null", "none", "nan", "\\n", "nat"];
    nulls.iter().any(|null| cell.eq_ignore_ascii_case(null))
}

/// Parses the name of a market: spot or on-demand.
pub(super) fn market_of(text: &str) -> Result<Market, OfferRefusal> {
    match text {
        "on-demand" | "normal" => Ok(Market::OnDemand),
        "spot" | "preemptible" => Ok(Market::Spot),
        _ => {
            let what = format!("there is no market '{}'", shorten_row(text));
            Err(OfferRefusal::new(what, "write on-demand (or normal) or spot (or preemptible)"))
        }
    }
}

/// Parses a yes-or-no cell of a column such as `preemptible` to the market: spot for yes.
pub(super) fn parse_flag(text: &str) -> Result<Market, OfferRefusal> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["1", "true", "yes", "y", "t", "spot", "low", "preemptible"]) {
        return Ok(Market::Spot);
    }
    if is_null(text)
        || is(&["0", "false", "no", "n", "f", "on-demand", "normal", "regular", "high"])
    {
        return Ok(Market::OnDemand);
    }
    let what = format!("'{}' does not say whether it may be preempted", shorten_row(text));
    Err(OfferRefusal::new(what, "write true or false, or give a column of markets"))
}

/// Parses seconds, or a time with a unit.
pub(super) fn parse_time(column: &str, text: &str) -> Result<Span, OfferRefusal> {
    let right = "write seconds, such as 90.5, or a time like 1m30s";
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let read = if is_number { format!("{text}s").parse::<Span>() } else { text.parse() };
    match read {
        Ok(time) if time <= LAST => Ok(time),
        Ok(_) => Err(OfferRefusal::new(
            format!("its {column}, {}, is too large", shorten_row(text)),
            format!("write {:.0} seconds or less", LAST.as_secs_f64()),
        )),
        Err(_) if text.starts_with('-') => Err(OfferRefusal::new(
            format!("its {column}, {}, is negative", shorten_row(text)),
            "write 0 or more seconds, or a time like 1m30s",
        )),
        Err(_) => Err(OfferRefusal::new(
            format!("its {column}, '{}', is not a time", shorten_row(text)),
            right,
        )),
    }
}

/// Parses an instant to microseconds, and true if it is a date.
pub(super) fn parse_instant(
    column: &str,
    text: &str,
    unit: f64,
) -> Result<(i64, bool), OfferRefusal> {
    if let Some(us) = parse_number(text, unit) {
        return Ok((us, false));
    }
    if let Some(moment) = Moment::read(text) {
        return Ok((moment.second.saturating_mul(1_000_000), true));
    }
    let span = text.parse::<Span>().ok().filter(|span| *span <= LAST);
    let us = span.and_then(|span| i64::try_from(span.as_micros()).ok());
    us.map(|us| (us, false)).ok_or_else(|| {
        let what = format!("its {column}, '{}', is not a time", shorten_row(text));
        OfferRefusal::new(
            what,
            "write seconds, a time like 1m30s, or a date like 2020-01-31 12:00:00",
        )
    })
}

/// Parses a duration to microseconds; it may be negative.
pub(super) fn parse_length(column: &str, text: &str, unit: f64) -> Result<i64, OfferRefusal> {
    if let Some(us) = parse_number(text, unit) {
        return Ok(us);
    }
    let span = text.parse::<Span>().ok().filter(|span| *span <= LAST);
    span.and_then(|span| i64::try_from(span.as_micros()).ok()).ok_or_else(|| {
        let what = format!("its {column}, '{}', is not a time", shorten_row(text));
        OfferRefusal::new(what, "write seconds, or a time like 1m30s")
    })
}

/// Parses a number of `unit` seconds to microseconds; `None` if it is not a number or too large.
#[expect(clippy::cast_possible_truncation, reason = "it is within range")]
fn parse_number(text: &str, unit: f64) -> Option<i64> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
    let us = (number * unit * US).round();
    (us.abs() <= LAST.as_secs_f64() * US).then_some(us as i64)
}

/// Seconds per unit that a heading names at its end, such as `lifetime_h` or `start (ms)`; 1 where
/// it names none.
pub(super) fn unit_of(heading: &str) -> f64 {
    let words = heading.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    let [_, .., last] = &words[..] else { return 1.0 };
    match last.as_str() {
        "us" | "microseconds" => 1e-6,
        "ms" | "milliseconds" => 1e-3,
        "min" | "mins" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hours" => 3_600.0,
        "d" | "days" => 86_400.0,
        _ => 1.0,
    }
}

/// Parses a number of at least 0 that may be an open bucket such as `>24`, which counts as slightly
/// more.
pub(super) fn parse_bucket(column: &str, text: &str) -> Result<f64, OfferRefusal> {
    let (digits, more) = match text.strip_prefix('>') {
        Some(digits) => (digits.trim(), 1e-6),
        None => (text, 0.0),
    };
    let number = digits.parse::<f64>().ok().filter(|n| (0.0..=1e9).contains(n));
    number.map(|number| number + more).ok_or_else(|| {
        let what = format!("its {column}, '{}', is not a number of 0 or more", shorten_row(text));
        OfferRefusal::new(what, "write a number such as 4, or >24 for more than 24")
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_dates_or_spans() {
        for (text, unit, us) in [
            ("90.5", 1.0, 90_500_000),
            ("-0.5", 86_400.0, -43_200_000_000),
            ("1e3", 1.0, 1_000_000_000),
            ("1m30s", 1.0, 90_000_000),
            ("1970-01-02 00:00:01", 1.0, 86_401_000_000),
        ] {
            assert_eq!(parse_instant("at", text, unit).unwrap().0, us, "{text}");
        }
        for text in ["", "soon", "1e99", "inf"] {
            assert!(parse_instant("at", text, 1.0).is_err(), "{text}");
        }
        assert_eq!(parse_length("duration", "2h", 1.0).unwrap(), 7_200_000_000);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "exact constants")]
    fn headings_may_end_with_their_unit() {
        let all = [("duration", 1.0), ("lifetime_h", 3_600.0), ("start (ms)", 1e-3), ("h", 1.0)];
        for (heading, unit) in all {
            assert_eq!(unit_of(heading), unit, "{heading}");
        }
    }

    #[test]
    fn buckets_without_end_are_a_little_more() {
        assert_eq!(parse_bucket("vcpus", "24").unwrap().to_bits(), 24.0_f64.to_bits());
        assert!(parse_bucket("vcpus", ">24").unwrap() > 24.0);
        assert!(parse_bucket("vcpus", "many").is_err() && parse_bucket("vcpus", "-1").is_err());
    }

    #[test]
    fn markets_are_words_or_flags() {
        assert_eq!(parse_flag("True").unwrap(), Market::Spot);
        assert_eq!(parse_flag("NULL").unwrap(), Market::OnDemand);
        assert!(parse_flag("7").is_err() && market_of("Spot").is_err());
    }
}
