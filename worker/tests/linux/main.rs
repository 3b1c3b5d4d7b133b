//! The Linux layer against the real kernel: control groups, CRIU, processes.
//!
//! Needs root, writable control groups and a CRIU that passes its check (`scripts/get-criu`);
//! each test says which of them, and is skipped with that reason where they are missing. With
//! `CI=true` a skipped test is a failed one.
//!
//! There is no libtest harness, because a worker sets up its mount namespace and its guardian
//! before it has threads. Each test runs in a process of its own: this program, started
//! again with `--exact <name>`. The tasks are this program too, started with `task`, and the
//! worker that is killed with SIGKILL is as well, started with `worker`.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bench;
mod captive;
mod checkpoints;
mod deaths;
mod groups;
mod harness;
mod hostile;
mod jail;
mod metadata;
mod mounts;
mod parallel;
mod programs;
mod task;
mod worker;

use std::{env, process::ExitCode};

use harness::{
    Need::{Cgroup, Criu, Quiet},
    Test,
};

/// Number of tests that run at a time, except those that measure processor time: they mostly wait for the kernel and
/// CRIU.
const AT_A_TIME: usize = 2;

const TESTS: &[Test] = &[
    // A busy host has more dumps of a shell's short programs to be tried again than are tried.
    Test(
        "programs_leave_what_they_leave_outside",
        &[Cgroup, Criu, Quiet],
        programs::programs_leave_what_they_leave_outside,
    ),
    Test("quota_is_what_the_task_gets", &[Cgroup, Quiet], groups::quota_is_what_the_task_gets),
    Test(
        "quotas_change_while_a_slot_is_exempt",
        &[Cgroup],
        groups::quotas_change_while_a_slot_is_exempt,
    ),
    Test("a_cap_outlives_a_promotion", &[Cgroup], groups::a_cap_outlives_a_promotion),
    Test(
        "a_throttled_vm_freezes_promptly",
        &[Cgroup, Quiet],
        groups::a_throttled_vm_freezes_promptly,
    ),
    Test("swapping_tiers_swaps_the_processor", &[Cgroup, Quiet], groups::swapping_tiers),
    Test("a_frozen_vm_can_be_killed", &[Cgroup], groups::a_frozen_vm_can_be_killed),
    Test("tasks_are_isolated_and_reaped", &[Cgroup], groups::tasks_are_isolated_and_reaped),
    Test("failures_to_start_say_why", &[Cgroup], groups::failures_to_start_say_why),
    Test("a_late_start_is_given_up", &[Cgroup], groups::a_late_start_is_given_up),
    Test("memory_counts_against_the_vm", &[Cgroup], groups::memory_counts_against_the_vm),
    Test("dump_and_stop_then_restore", &[Cgroup, Criu], checkpoints::dump_and_stop_then_restore),
    Test("a_task_of_a_quota_moves", &[Cgroup, Criu], checkpoints::a_task_of_a_quota_moves),
    Test("roll_back_to_a_running_checkpoint", &[Cgroup, Criu], checkpoints::roll_back),
    Test("damaged_images_fall_back", &[Cgroup, Criu], checkpoints::damaged_images_fall_back),
    Test("a_refused_restore_leaves_nothing", &[Cgroup, Criu], checkpoints::a_refused_restore),
    Test("criu_is_killed_at_the_deadline", &[Cgroup, Criu], checkpoints::deadline),
    Test("memory_has_its_time", &[Cgroup, Criu], checkpoints::memory_has_its_time),
    Test("a_criu_that_dies_spoils_its_task", &[Cgroup, Criu], checkpoints::a_criu_that_dies),
    Test("checkpoints_at_the_same_time", &[Cgroup, Criu], checkpoints::at_the_same_time),
    Test("another_worker_restores", &[Cgroup, Criu], checkpoints::another_worker_restores),
    Test("a_container_s_mounts_are_made_writable", &[Cgroup, Criu], mounts::read_only_mounts),
    Test("a_captive_gets_nowhere", &[Cgroup, Criu], jail::a_captive_gets_nowhere),
    Test(
        "programs_of_each_habit_are_right",
        &[Cgroup, Criu],
        programs::programs_of_each_habit_are_right,
    ),
    Test("what_a_move_changes_is_named", &[Cgroup, Criu], programs::what_a_move_changes_is_named),
    Test("without_a_jail_it_gets_far", &[Cgroup, Criu], jail::without_a_jail_it_gets_far),
    Test("metadata_are_answered_by_ipv6", &[Cgroup], metadata::answer_by_ipv6),
    Test("a_hostile_image_never_runs", &[Cgroup, Criu], hostile::a_hostile_image_never_runs),
    Test("ranks_run_on_processors_of_their_own", &[Cgroup, Quiet], parallel::ranks_have_processors),
    Test("a_parallel_job_moves", &[Cgroup, Criu], parallel::a_parallel_job_moves),
    Test("kill_9_leaves_nothing", &[Cgroup, Criu, Quiet], deaths::kill_9_leaves_nothing),
    Test(
        "a_start_in_another_namespace_takes_nothing",
        &[Cgroup, Criu],
        deaths::a_start_in_another_namespace,
    ),
    Test("the_next_worker_sweeps", &[Cgroup, Criu], deaths::the_next_worker_sweeps),
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["task", mode, rest @ ..] => task::run(mode, rest),
        ["worker", rest @ ..] => worker::run(rest),
        ["bench", name] => bench::run(name),
        args => harness::main(TESTS, AT_A_TIME, args),
    }
}
