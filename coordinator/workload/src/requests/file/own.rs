//! Reader of our own files of requests: one request per row, in order of time.

use std::borrow::Cow;

use dormouse_cloud::Market;
use dormouse_input::{Row, Rows};
use dormouse_model::VmRequest;
use dormouse_units::{Span, Time};

use super::cells::{cell_text, market_of, parse_flag, parse_time, shorten_row, text};
use super::error::RequestFileFlaw;
use super::format::{AT, DURATION, KIND, MARKET, MarketWord, VmTableLayout};
use super::kinds::NumberedTypes;
use crate::requests::offer::OfferRefusal;

/// Heading of a file in our own request format: its columns in the order in which they are written.
pub(in crate::requests) const HEADER: &str = "at,type,market,duration";

/// Example of a valid row for messages.
const LIKE: &str = "12.5,c3.large,spot,2h";

/// Reader of our own format; one row is in memory at a time.
#[derive(Debug)]
pub(super) struct OwnRows {
    rows: Rows,
    layout: VmTableLayout,
    kinds: NumberedTypes,
    /// Time of the request in the row that was read last, before which no further request may come.
    last: Time,
    has_requests: bool,
}

impl OwnRows {
    pub(super) const fn new(rows: Rows, layout: VmTableLayout, kinds: NumberedTypes) -> Self {
        Self { rows, layout, kinds, last: Time::ZERO, has_requests: false }
    }

    /// Reads the next request of the file; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<(Time, VmRequest), RequestFileFlaw>> {
        let row = match self.rows.next_row() {
            Ok(Some(row)) => row,
            Ok(None) if self.has_requests => return None,
            Ok(None) => {
                self.has_requests = true;
                return Some(Err(RequestFileFlaw::Empty));
            }
            Err(error) => {
                self.has_requests = true;
                return Some(Err(error.into()));
            }
        };
        self.has_requests = true;
        let request = read_request(&row, &self.layout, &mut self.kinds, self.last);
        if let Ok((at, _)) = &request {
            self.last = *at;
        }
        Some(request.map_err(|refusal| RequestFileFlaw::of_row(row.line(), refusal)))
    }
}

/// The request in a row; an error if its time is before that of the row above.
fn read_request(
    row: &Row<'_>,
    layout: &VmTableLayout,
    kinds: &mut NumberedTypes,
    last: Time,
) -> Result<(Time, VmRequest), OfferRefusal> {
    let text = text(row)?;
    if let Some(width) = layout.width
        && row.len() != width
    {
        let what = format!("'{}' has {} fields, not {width}", shorten_row(text), row.len());
        let remedy = match width {
            4 => format!("write {HEADER}, such as: {LIKE}"),
            _ => "write as many as the heading names".to_owned(),
        };
        return Err(OfferRefusal::new(what, remedy));
    }
    let at = Time::ZERO + parse_time("at", &number_text(row, layout.place_of_column(AT)))?;
    if at < last {
        let since = last.since(Time::ZERO);
        let what = format!("its time, {at}, is before that of the row above it, {since}");
        return Err(OfferRefusal::new(what, "sort the rows by their times"));
    }
    let market = read_market(row, layout)?;
    let kind = kinds.number_of_named(cell_text(row, layout.place_of_column(KIND)), market)?;
    let Some(kind) = kind.map(|kind| kinds.name(kind).clone()) else {
        let what = "no type holds a VM of its size";
        return Err(OfferRefusal::new(
            what,
            "map its type to another one, or offer a larger type under [cloud]",
        ));
    };
    let duration = parse_time("duration", &number_text(row, layout.place_of_column(DURATION)))?;
    if duration == Span::ZERO {
        return Err(OfferRefusal::new("its duration is 0", "write a length above 0, such as 2h"));
    }
    Ok((at, VmRequest { kind, market, duration }))
}

/// Market of the request in a row.
pub(super) fn read_market(row: &Row<'_>, layout: &VmTableLayout) -> Result<Market, OfferRefusal> {
    let said = cell_text(row, layout.place_of_column(MARKET));
    match layout.market {
        MarketWord::Nothing => Ok(Market::OnDemand),
        MarketWord::Name => market_of(said),
        MarketWord::Flag => parse_flag(said),
    }
}

/// Text of a cell's number, with a point as the decimal sign.
pub(super) fn number_text<'a>(row: &Row<'a>, at: Option<usize>) -> Cow<'a, str> {
    let said = at.map_or(Cow::Borrowed(""), |at| row.number(at));
    if said.starts_with('"') { cell_text(row, at).into() } else { said }
}
