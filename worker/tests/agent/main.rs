//! The agent against the real kernel, real CRIU and a coordinator that does what the tests say.
//!
//! Like the tests of the Linux layer it has no libtest harness, needs root, writable control
//! groups and a working CRIU, and is skipped with the reason where they are missing (failed
//! with `CI=true`). The worker is this program, started again with `agent`; the tasks are the
//! real `dormouse-task`.
#![expect(clippy::unwrap_used, reason = "tests")]

mod agent;
mod at_once;
mod attacks;
mod bench;
mod cells;
mod coordinator;
mod hangs;
#[path = "../linux/harness.rs"]
mod harness;
mod life;
mod parallel;
mod proof;
mod tasks;

use std::{env, process::ExitCode};

use harness::{
    Need::{Cgroup, Criu, Quiet},
    Test,
};

/// Number of tests that run at a time, except those that measure processor time: they mostly wait.
const AT_A_TIME: usize = 4;

const TESTS: &[Test] = &[
    // They wait longest, and begin first.
    Test("a_job_that_hangs_is_noticed", &[Cgroup], parallel::a_job_that_hangs_is_noticed),
    Test(
        "a_hang_that_does_not_die_is_reported",
        &[Cgroup],
        hangs::a_hang_that_does_not_die_is_reported,
    ),
    Test("a_hang_is_noticed", &[Cgroup], hangs::a_hang_is_noticed),
    Test("a_task_runs_and_is_verified", &[Cgroup], tasks::a_task_runs_and_is_verified),
    Test(
        "a_program_that_does_nothing_is_not_verified",
        &[Cgroup],
        tasks::a_program_that_does_nothing_is_not_verified,
    ),
    Test("a_wrong_task_fails_in_its_own_words", &[Cgroup], tasks::a_wrong_task_fails),
    Test("checkpoints_are_taken_when_due", &[Cgroup, Criu], tasks::checkpoints_are_taken_when_due),
    Test(
        "a_checkpoint_that_is_not_stored_by_the_end_is_said_to_be_missed",
        &[Cgroup, Criu],
        tasks::a_checkpoint_that_is_not_stored_by_the_end_is_said_to_be_missed,
    ),
    Test("a_checkpoint_is_taken_now", &[Cgroup, Criu], tasks::a_checkpoint_is_taken_now),
    Test("an_old_checkpoint_may_stay", &[Cgroup, Criu], tasks::an_old_checkpoint_may_stay),
    Test("hibernation_stops_and_resumes", &[Cgroup, Quiet], tasks::hibernation_stops_and_resumes),
    Test("a_stop_on_a_frozen_vm_is_final", &[Cgroup], tasks::a_stop_on_a_frozen_vm_is_final),
    Test("a_task_is_kept_and_goes_on", &[Cgroup, Criu], tasks::a_task_is_kept_and_goes_on),
    Test(
        "a_former_lifes_checkpoint_is_not_used",
        &[Cgroup, Criu],
        tasks::a_former_lifes_checkpoint_is_not_used,
    ),
    Test("the_background_gets_the_rest", &[Cgroup, Quiet], tasks::the_background_gets_the_rest),
    Test("a_vcpu_has_what_it_is_left", &[Cgroup, Quiet], tasks::a_vcpu_has_what_it_is_left),
    Test(
        "instances_call_each_other_and_keep_their_files",
        &[Cgroup],
        cells::instances_call_each_other_and_keep_their_files,
    ),
    Test("programs_are_measured", &[Cgroup, Quiet], tasks::programs_are_measured),
    Test("credits_run_out", &[Cgroup, Quiet], tasks::credits_run_out),
    Test("a_host_is_proved", &[Cgroup, Criu], proof::a_host_is_proved),
    Test(
        "a_host_without_criu_is_proved_without_checkpoints",
        &[Cgroup],
        proof::a_host_without_criu_is_proved_without_checkpoints,
    ),
    Test(
        "a_program_that_does_nothing_is_no_proof",
        &[Cgroup],
        proof::a_program_that_does_nothing_is_no_proof,
    ),
    Test("a_task_moves_to_another_worker", &[Cgroup, Criu], life::a_task_moves),
    Test("a_damaged_checkpoint_gives_way", &[Cgroup, Criu], life::a_damaged_checkpoint),
    Test("a_broken_session_is_resumed", &[Cgroup], life::a_broken_session_is_resumed),
    Test("a_certificate_is_renewed", &[Cgroup], life::a_certificate_is_renewed),
    Test("an_unknown_command_is_answered", &[Cgroup], life::an_unknown_command_is_answered),
    Test("a_folder_that_vanishes_is_left", &[Cgroup], life::a_folder_that_vanishes),
    Test(
        "a_coordinator_of_another_version_is_left",
        &[Cgroup],
        life::a_coordinator_of_another_version,
    ),
    Test("a_worker_given_up_joins_anew", &[Cgroup], life::a_worker_given_up_joins_anew),
    Test("an_owner_that_panics_loses_its_vm", &[Cgroup], life::an_owner_that_panics),
    Test("a_silent_coordinator_is_given_up", &[Cgroup], life::a_silent_coordinator),
    Test("sigterm_leaves_nothing", &[Cgroup, Criu], life::sigterm_leaves_nothing),
    Test("kill_9_of_the_agent_leaves_nothing", &[Cgroup, Criu], life::kill_9_leaves_nothing),
    Test("destroy_waits_for_no_fetch", &[Cgroup, Criu], at_once::destroy_waits_for_no_fetch),
    Test("destroy_waits_for_no_dump", &[Cgroup, Criu], at_once::destroy_waits_for_no_dump),
    Test("destroy_waits_for_no_restore", &[Cgroup, Criu], at_once::destroy_waits_for_no_restore),
    Test("destroy_waits_for_no_move", &[Cgroup, Criu], at_once::destroy_waits_for_no_move),
    Test("freeze_waits_for_no_fetch", &[Cgroup, Criu], at_once::freeze_waits_for_no_fetch),
    Test("freeze_waits_for_no_dump", &[Cgroup, Criu], at_once::freeze_waits_for_no_dump),
    Test("freeze_waits_for_no_restore", &[Cgroup, Criu], at_once::freeze_waits_for_no_restore),
    Test(
        "a_restore_uses_credits_as_its_work_would",
        &[Cgroup, Criu, Quiet],
        at_once::a_restore_uses_credits_as_its_work_would,
    ),
    Test("a_birth_is_frozen", &[Cgroup], at_once::a_birth_is_frozen),
    Test("a_stop_of_a_frozen_launch", &[Cgroup, Criu], at_once::a_stop_of_a_frozen_launch),
    Test(
        "jobs_are_checkpointed_and_go_on_elsewhere",
        &[Cgroup, Criu],
        parallel::jobs_are_checkpointed_and_go_on_elsewhere,
    ),
    Test("a_job_without_memory_is_told_so", &[Cgroup], parallel::a_job_without_memory_is_told_so),
    Test("a_job_s_credits_run_out", &[Cgroup, Quiet], parallel::a_job_s_credits_run_out),
    Test("a_job_swaps_and_moves", &[Cgroup, Criu], parallel::a_job_swaps_and_moves),
    Test("a_killed_job_starts_again", &[Cgroup], parallel::a_killed_job_starts_again),
    Test("jobs_are_frozen_with_their_vm", &[Cgroup], parallel::jobs_are_frozen_with_their_vm),
    Test(
        "a_job_that_was_stopped_on_a_frozen_vm_is_over",
        &[Cgroup],
        parallel::a_job_that_was_stopped_on_a_frozen_vm_is_over,
    ),
    Test(
        "a_job_and_a_task_share_a_vm_and_no_vcpu",
        &[Cgroup, Quiet],
        parallel::a_job_and_a_task_share_a_vm_and_no_vcpu,
    ),
    Test("no_job_goes_nowhere", &[Cgroup], parallel::places_that_are_not_there_are_refused),
    Test("kill_9_leaves_no_job", &[Cgroup], parallel::kill_9_leaves_no_job),
    Test("arguments_reach_no_files", &[Cgroup], attacks::arguments_reach_no_files),
    Test("a_check_goes_with_its_task", &[Cgroup], attacks::a_check_goes_with_its_task),
    Test("a_worker_has_bounds_of_its_own", &[Cgroup], attacks::a_worker_has_bounds_of_its_own),
    Test("shares_are_kept", &[Cgroup, Quiet], bench::shares_are_kept),
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["agent", address, name, root] => agent::main(address, name, root),
        ["bench", what, rest @ ..] => bench::run(what, rest),
        args => harness::main(TESTS, AT_A_TIME, args),
    }
}
