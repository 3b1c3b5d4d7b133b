//! `dormouse prices`: records of spot prices.

mod command;
mod describe;

pub(crate) use command::{PricesCommand, prices};
