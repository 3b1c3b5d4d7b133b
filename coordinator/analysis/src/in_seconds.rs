//! Serialisers that write times as seconds and money as dollars in JSON.

use dormouse_units::{Money, Span, Time};
use serde::{Serialize, Serializer};

pub(crate) fn time<S: Serializer>(at: &Time, to: S) -> Result<S::Ok, S::Error> {
    at.as_secs_f64().serialize(to)
}

pub(crate) fn maybe_time<S: Serializer>(at: &Option<Time>, to: S) -> Result<S::Ok, S::Error> {
    at.map(Time::as_secs_f64).serialize(to)
}

pub(crate) fn maybe_span<S: Serializer>(span: &Option<Span>, to: S) -> Result<S::Ok, S::Error> {
    span.map(Span::as_secs_f64).serialize(to)
}

pub(crate) fn dollars<S: Serializer>(money: &Money, to: S) -> Result<S::Ok, S::Error> {
    money.as_usd().serialize(to)
}
