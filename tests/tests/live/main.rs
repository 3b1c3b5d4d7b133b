//! Tests of whole runs with real processes, each of which takes a turn on the host.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

// The name of each test begins with that of its program: `cargo test live::tenants`.
#[path = ""]
mod live {
    mod acc;
    mod book_live;
    mod bound;
    mod bucket_live;
    mod calibrate;
    mod checkpointing;
    mod ec2_access;
    mod ec2_live;
    mod faults_live;
    mod fidelity;
    mod identity;
    mod jobs_live;
    mod joining;
    mod lifetimes;
    mod live_page;
    mod metrics_live;
    mod own_attacks;
    mod own_carried;
    mod own_mounts;
    mod own_pace;
    mod own_programs;
    mod own_saves;
    mod own_unnoticed;
    mod papers_live;
    mod program_live;
    mod scarce_live;
    mod spot_checks;
    mod stopped;
    mod storms;
    mod taken;
    mod tenants;
    mod two_tier;
    mod whole_runs;
}
