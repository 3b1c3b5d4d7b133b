//! Our own files: a request a row, in the order of time.

use std::borrow::Cow;

use dormouse_cloud::Market;
use dormouse_input::{Row, Rows};
use dormouse_model::Request;
use dormouse_units::{Span, Time};

use super::cells::{begins, cell, flag, market_of, text, time};
use super::error::Flaw;
use super::format::{AT, DURATION, KIND, Layout, MARKET, MarketWord};
use super::kinds::Kinds;
use crate::requests::offer::Refusal;

/// The columns as they are written, in their order.
pub(in crate::requests) const HEADER: &str = "at,type,market,duration";

/// An example of a right row.
const LIKE: &str = "12.5,c3.large,spot,2h";

/// Requests of a file, one in memory at a time.
#[derive(Debug)]
pub(super) struct OwnRows {
    rows: Rows,
    layout: Layout,
    kinds: Kinds,
    /// Time of the request in the row before.
    last: Time,
    has_requests: bool,
}

impl OwnRows {
    pub(super) const fn new(rows: Rows, layout: Layout, kinds: Kinds) -> Self {
        Self { rows, layout, kinds, last: Time::ZERO, has_requests: false }
    }

    /// The next request.
    pub(super) fn next(&mut self) -> Option<Result<(Time, Request), Flaw>> {
        let row = match self.rows.next_row() {
            Ok(Some(row)) => row,
            Ok(None) if self.has_requests => return None,
            Ok(None) => {
                self.has_requests = true;
                return Some(Err(Flaw::Empty));
            }
            Err(error) => {
                self.has_requests = true;
                return Some(Err(error.into()));
            }
        };
        self.has_requests = true;
        let request = request(&row, &self.layout, &mut self.kinds, self.last);
        if let Ok((at, _)) = &request {
            self.last = *at;
        }
        Some(request.map_err(|refusal| Flaw::row(row.line(), refusal)))
    }
}

/// The request in a row, which does not come before the one above it.
fn request(
    row: &Row<'_>,
    layout: &Layout,
    kinds: &mut Kinds,
    last: Time,
) -> Result<(Time, Request), Refusal> {
    let text = text(row)?;
    if let Some(width) = layout.width
        && row.len() != width
    {
        let what = format!("'{}' has {} fields, not {width}", begins(text), row.len());
        let remedy = match width {
            4 => format!("write {HEADER}, such as: {LIKE}"),
            _ => "write as many as the heading names".to_owned(),
        };
        return Err(Refusal::new(what, remedy));
    }
    let at = Time::ZERO + time("at", &number(row, layout.place(AT)))?;
    if at < last {
        let since = last.since(Time::ZERO);
        let what = format!("its time, {at}, is before that of the row above it, {since}");
        return Err(Refusal::new(what, "sort the rows by their times"));
    }
    let market = market(row, layout)?;
    let kind = kinds.named(cell(row, layout.place(KIND)), market)?;
    let Some(kind) = kind.map(|kind| kinds.name(kind).clone()) else {
        let what = "no type holds a VM of its size";
        return Err(Refusal::new(what, "map the type to a larger one"));
    };
    let duration = time("duration", &number(row, layout.place(DURATION)))?;
    if duration == Span::ZERO {
        return Err(Refusal::new("its duration is 0", "write more than nothing, such as 2h"));
    }
    Ok((at, Request { kind, market, duration }))
}

/// The market of a row.
pub(super) fn market(row: &Row<'_>, layout: &Layout) -> Result<Market, Refusal> {
    let said = cell(row, layout.place(MARKET));
    match layout.market {
        MarketWord::Nothing => Ok(Market::OnDemand),
        MarketWord::Name => market_of(said),
        MarketWord::Flag => flag(said),
    }
}

/// A cell's number with a decimal point.
pub(super) fn number<'a>(row: &Row<'a>, at: Option<usize>) -> Cow<'a, str> {
    let said = at.map_or(Cow::Borrowed(""), |at| row.number(at));
    if said.starts_with('"') { cell(row, at).into() } else { said }
}
