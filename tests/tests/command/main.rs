//! Tests of the `dormouse` command as its users have it, without live runs: output, files, refusals and its pages in a
//! browser; and tests of the source tree.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

// The name of each test begins with that of its program: `cargo test command::remedies`.
#[path = ""]
mod command {
    mod advise;
    mod awaited;
    mod batch;
    mod book;
    mod command_line;
    mod compared;
    mod data_files;
    mod dates;
    mod endpoint_alone;
    mod engines;
    mod examples;
    mod experiment_files;
    mod files_of_others;
    mod fit;
    mod inspect;
    mod linked_scheduler;
    mod nonsense;
    mod outcome_words;
    mod outputs;
    mod page_looks;
    mod page_modules;
    mod page_units;
    mod price_files;
    mod private;
    mod program_schedulers;
    mod programs;
    mod purity;
    mod recorded_prices;
    mod remedies;
    mod reproduced;
    mod request_streams;
    mod requested;
    mod rooms;
    mod samples;
    mod scheduler_schema;
    mod scripts;
    mod shown;
    mod spot_policies;
    mod traced;
    mod typed;
    mod wrong_schedulers;
    mod yardsticks;
}
