//! The command line.

mod args;
mod calibrate;
mod check;
mod conduct;
mod doctor;
mod duration;
mod explain;
mod failure;
mod list;
mod log;
mod main;
mod manual;
mod measy;
mod observe;
mod preflight;
mod print;
mod ranking;
mod recorded;
mod replay;
mod reproduce;
mod run;
mod speedup;
mod submit;
mod twin;
mod two_tier;
mod worker;
mod workload;

pub use main::main;
