//! `dormouse inspect`: what a file is, what was understood of it, and the experiment lines that use it.

mod acts;
mod args;
mod availability;
mod catalogue;
mod command;
mod found;
mod head;
mod jobs;
mod kind;
mod lifetimes;
mod price_lines;
mod prices;
mod requests;
mod workflows;

pub(crate) use args::InspectArgs;
pub(crate) use command::inspect;
