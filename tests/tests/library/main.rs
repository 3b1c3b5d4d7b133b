//! Tests of whole runs through the library: experiments are loaded, run in virtual time, checked, replayed and
//! compared within this process. The other tests of this crate use only programs and files of the workspace.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

// The name of each test begins with that of its program: `cargo test library::twin`.
#[path = ""]
mod library {
    mod answers;
    mod background;
    mod calibration;
    mod checked;
    mod corpora;
    mod credits;
    mod invariants;
    mod job_checkpoints;
    mod job_credits;
    mod job_followers;
    mod job_memory;
    mod market;
    mod measured_figures;
    mod mutations;
    mod paper_pages;
    mod paper_results;
    mod papers;
    mod pictured;
    mod planned_bills;
    mod random_runs;
    mod requests;
    mod restarts;
    mod runs;
    mod scarcity;
    mod scheduler_page;
    mod stopped_disks;
    mod stored_plans;
    mod task_times;
    mod twin;
    mod twin_exact;
    mod twin_jobs;
    mod unlimited;
}
