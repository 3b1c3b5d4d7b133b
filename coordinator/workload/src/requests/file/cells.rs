//! Cells of requests: times, markets, sizes.

use dormouse_cloud::Market;
use dormouse_input::{LONGEST_LINE, Moment, Row};
use dormouse_units::Span;

use crate::requests::check::LAST;
use crate::requests::offer::Refusal;

const US: f64 = 1e6;

/// Beginning of a row, for a message.
pub(super) fn begins(row: &str) -> String {
    row.trim().chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Text of a row, for a message; an error if the row is no UTF-8.
pub(super) fn text<'a>(row: &Row<'a>) -> Result<&'a str, Refusal> {
    debug_assert!(row.text().len() as u64 <= LONGEST_LINE);
    std::str::from_utf8(row.text()).map_err(|error| {
        let what = format!("its byte {} is no text in UTF-8", error.valid_up_to() + 1);
        Refusal::new(what, "give a CSV file of requests in UTF-8")
    })
}

/// A cell without quotation marks around it, even where blanks stood before them.
pub(super) fn cell<'a>(row: &Row<'a>, at: Option<usize>) -> &'a str {
    let cell = at.map_or("", |at| row.cell(at));
    cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).unwrap_or(cell)
}

/// Whether a cell says nothing, as databases write it.
pub(super) fn is_null(cell: &str) -> bool {
    let nulls = ["", "null", "none", "nan", "\\n", "nat"];
    nulls.iter().any(|null| cell.eq_ignore_ascii_case(null))
}

/// The market of our own word.
pub(super) fn market_of(text: &str) -> Result<Market, Refusal> {
    match text {
        "on-demand" | "normal" => Ok(Market::OnDemand),
        "spot" | "preemptible" => Ok(Market::Spot),
        _ => {
            let what = format!("there is no market '{}'", begins(text));
            Err(Refusal::new(what, "write on-demand (or normal) or spot (or preemptible)"))
        }
    }
}

/// Whether a cell of a column called `preemptible` or so says yes.
pub(super) fn flag(text: &str) -> Result<Market, Refusal> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["1", "true", "yes", "y", "t", "spot", "low", "preemptible"]) {
        return Ok(Market::Spot);
    }
    if is_null(text)
        || is(&["0", "false", "no", "n", "f", "on-demand", "normal", "regular", "high"])
    {
        return Ok(Market::OnDemand);
    }
    let what = format!("'{}' does not say whether it may be preempted", begins(text));
    Err(Refusal::new(what, "write true or false, or give a column of markets"))
}

/// Reads seconds, or a time with its units.
pub(super) fn time(column: &str, text: &str) -> Result<Span, Refusal> {
    let right = "write seconds, such as 90.5, or a time like 1m30s";
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let read = if is_number { format!("{text}s").parse::<Span>() } else { text.parse() };
    match read {
        Ok(time) if time <= LAST => Ok(time),
        Ok(_) => Err(Refusal::new(format!("its {column}, {}, is too large", begins(text)), right)),
        Err(_) if text.starts_with('-') => {
            Err(Refusal::new(format!("its {column}, {}, is negative", begins(text)), right))
        }
        Err(_) => Err(Refusal::new(format!("its {column}, '{}', is no time", begins(text)), right)),
    }
}

/// An instant in microseconds, and whether it is a date.
pub(super) fn instant(column: &str, text: &str, unit: f64) -> Result<(i64, bool), Refusal> {
    if let Some(us) = number(text, unit) {
        return Ok((us, false));
    }
    if let Some(moment) = Moment::read(text) {
        return Ok((moment.second.saturating_mul(1_000_000), true));
    }
    let span = text.parse::<Span>().ok().filter(|span| *span <= LAST);
    let us = span.and_then(|span| i64::try_from(span.as_micros()).ok());
    us.map(|us| (us, false)).ok_or_else(|| {
        let what = format!("its {column}, '{}', is no time", begins(text));
        Refusal::new(what, "write seconds, a time like 1m30s, or a date like 2020-01-31 12:00:00")
    })
}

/// A length of time in microseconds; negative ones are there, too.
pub(super) fn length(column: &str, text: &str, unit: f64) -> Result<i64, Refusal> {
    if let Some(us) = number(text, unit) {
        return Ok(us);
    }
    let span = text.parse::<Span>().ok().filter(|span| *span <= LAST);
    span.and_then(|span| i64::try_from(span.as_micros()).ok()).ok_or_else(|| {
        let what = format!("its {column}, '{}', is no time", begins(text));
        Refusal::new(what, "write seconds, or a time like 1m30s")
    })
}

/// A number of units in microseconds; `None`: it is none, or past all counting.
#[expect(clippy::cast_possible_truncation, reason = "it is within range")]
fn number(text: &str, unit: f64) -> Option<i64> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
    let us = (number * unit * US).round();
    (us.abs() <= LAST.as_secs_f64() * US).then_some(us as i64)
}

/// Seconds of the unit that a heading ends with, such as `lifetime_h` or `start (ms)`; seconds where
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

/// A number above or at 0 that may be a bucket without end, such as `>24`, which is a little more.
pub(super) fn bucket(column: &str, text: &str) -> Result<f64, Refusal> {
    let (digits, more) = match text.strip_prefix('>') {
        Some(digits) => (digits.trim(), 1e-6),
        None => (text, 0.0),
    };
    let number = digits.parse::<f64>().ok().filter(|n| (0.0..=1e9).contains(n));
    number.map(|number| number + more).ok_or_else(|| {
        let what = format!("its {column}, '{}', is no number", begins(text));
        Refusal::new(what, "write a number such as 4, or >24 for more than 24")
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
            assert_eq!(instant("at", text, unit).unwrap().0, us, "{text}");
        }
        for text in ["", "soon", "1e99", "inf"] {
            assert!(instant("at", text, 1.0).is_err(), "{text}");
        }
        assert_eq!(length("duration", "2h", 1.0).unwrap(), 7_200_000_000);
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
        assert_eq!(bucket("vcpus", "24").unwrap().to_bits(), 24.0_f64.to_bits());
        assert!(bucket("vcpus", ">24").unwrap() > 24.0);
        assert!(bucket("vcpus", "many").is_err() && bucket("vcpus", "-1").is_err());
    }

    #[test]
    fn markets_are_words_or_flags() {
        assert_eq!(flag("True").unwrap(), Market::Spot);
        assert_eq!(flag("NULL").unwrap(), Market::OnDemand);
        assert!(flag("7").is_err() && market_of("Spot").is_err());
    }
}
