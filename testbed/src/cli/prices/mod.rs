//! `dormouse prices`: records of spot prices.

mod command;
mod describe;
mod generate;

pub(crate) use command::{PricesCommand, prices};
