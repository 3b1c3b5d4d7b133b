//! The command line.

mod advise;
mod args;
mod begun;
mod calibrate;
mod compare;
mod conduct;
mod doctor;
mod experiment_name;
mod export;
mod failure;
mod fit;
mod inspect;
mod known_name;
mod list;
mod log;
mod main;
mod manual;
mod many;
mod observe;
mod preflight;
mod prices;
mod print;
mod progress;
mod ranking;
mod recorded;
mod reproduce;
mod requests;
mod run;
mod scheduler_name;
mod speedup;
mod sweep;
mod terminal;
#[cfg(feature = "otlp")]
mod traces;
mod two_tier;
mod watch;
mod when;
mod worker;
mod workload;

pub use main::main;
