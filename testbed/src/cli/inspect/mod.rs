//! `dormouse inspect`: the kind of a file, its content as Dormouse reads it, and the lines of an experiment that use
//! the file.

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
