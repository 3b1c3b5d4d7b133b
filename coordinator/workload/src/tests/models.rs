//! Tests that generated workloads have the means that the papers print, and that estimates are not below run times.

use dormouse_units::Span;

use crate::{Model, Statistics, UsageRule, offered_load, scale_arrivals, tsafrir_estimates};

fn statistics(model: Model, jobs: usize, machine: u32) -> Statistics {
    let mut statistics = Statistics::new(machine);
    model.generate(jobs, machine, 1).expect("it generates").iter().for_each(|j| statistics.add(j));
    statistics
}

fn assert_near(what: &str, got: f64, wanted: f64, by: f64) {
    assert!((got / wanted - 1.0).abs() < by, "{what}: {got}, not {wanted}");
}

/// The MEASY paper on its FW workload: "200,000 jobs …, the average parallelism of it is 23.4, and the average runtime
/// is 2606.6 seconds", serial jobs "less than 18.0%".
#[test]
fn fw_like_has_the_papers_moments() {
    let got = statistics(Model::FwLike, 100_000, 320);
    assert_near("size", got.size.mean(), 23.4, 0.015);
    assert_near("run time", got.runtime.mean(), 2606.6, 0.001);
    assert!((0.17..0.18).contains(&got.serial_share()), "{}", got.serial_share());
}

/// The MEASY paper on its JW workload: "100,000 jobs …", with a mean of 10.5 processes and 11267.0 seconds, serial jobs
/// "about 40.8%".
#[test]
fn jw_like_has_the_papers_moments() {
    let got = statistics(Model::JwLike, 100_000, 320);
    assert_near("size", got.size.mean(), 10.5, 0.02);
    assert_near("run time", got.runtime.mean(), 11_267.0, 0.001);
    assert_near("serial", got.serial_share(), 0.408, 0.01);
    assert!(got.gap.deviation() > 1.5 * got.gap.mean(), "bursty");
}

/// Lublin's model with its published parameters agrees with its authors' programs for 128 processors: .2927 of batch
/// and .1541 of interactive jobs are serial, most other sizes are powers of two, and few jobs come in the early
/// morning.
#[test]
fn lublin_has_its_published_shape() {
    let jobs = Model::Lublin.generate(40_000, 128, 1).expect("it generates");
    let mut got = Statistics::new(128);
    jobs.iter().for_each(|j| got.add(j));
    assert!((0.16..0.32).contains(&got.serial_share()), "{}", got.serial_share());
    assert!(got.power_of_two_share() > 0.6, "{}", got.power_of_two_share());
    let mut by_hour = [0_u32; 24];
    for job in &jobs {
        by_hour[(job.submitted.as_micros() / 3_600_000_000 % 24) as usize] += 1;
    }
    let night: u32 = by_hour[3..6].iter().sum();
    let day: u32 = by_hour[12..15].iter().sum();
    assert!(day > 3 * night, "{by_hour:?}");
    assert!(jobs.is_sorted_by_key(|j| j.submitted));
}

#[test]
fn the_same_seed_gives_the_same_workload() {
    for model in Model::ALL {
        let of = |seed| {
            let jobs = model.generate(500, 64, seed).expect("it generates");
            jobs.iter().map(|j| (j.submitted, j.processes, j.runtime)).collect::<Vec<_>>()
        };
        assert_eq!(of(3), of(3), "{model}");
        assert_ne!(of(3), of(4), "{model}");
    }
}

#[test]
fn estimates_cover_run_times_and_are_few() {
    let mut jobs = Model::JwLike.generate(50_000, 320, 1).expect("it generates");
    let longest = Span::from_secs(64_800);
    let raised = tsafrir_estimates(&mut jobs, longest, 1).expect("it estimates");
    assert!(jobs.iter().all(|j| j.runtime <= j.estimate && j.estimate <= longest));
    let distinct: std::collections::BTreeSet<_> = jobs.iter().map(|j| j.estimate).collect();
    assert!((200..600).contains(&distinct.len()), "{}", distinct.len());
    let at_limit = jobs.iter().filter(|j| j.estimate == longest).count();
    assert!(at_limit > jobs.len() / 10, "the limit is the most popular: {at_limit}");
    assert!(raised < jobs.len() / 20, "{raised} of {} have no estimate of the model", jobs.len());
    let long = tsafrir_estimates(&mut jobs, Span::from_secs(3600), 1).expect_err("too short");
    assert!(long.to_string().contains("longer than the longest estimate 1h"), "{long}");
}

#[test]
fn scaling_sets_the_load() {
    let jobs = Model::FwLike.generate(5_000, 320, 1).expect("it generates");
    let factor = offered_load(&jobs, 320) / 0.6;
    let scaled: Vec<_> = jobs
        .into_iter()
        .map(|j| scale_arrivals(j, dormouse_units::Time::ZERO, factor).expect("it fits"))
        .collect();
    assert_near("load", offered_load(&scaled, 320), 0.6, 1e-6);
}

#[test]
fn usage_is_whole_for_one_process_and_drawn_for_more() {
    let jobs = Model::FwLike.generate(2_000, 320, 1).expect("it generates");
    let (mut total, mut count) = (0.0, 0.0);
    for job in jobs {
        let job = UsageRule::paper_rule(5).assign_usage(job);
        for n in 0..job.processes as usize {
            let usage = job.usage.of_process(n).as_f64();
            assert!((0.4..=1.0).contains(&usage));
            assert!(job.processes > 1 || usage >= 1.0);
            if job.processes > 1 {
                total += usage;
                count += 1.0;
            }
        }
    }
    assert_near("mean usage", total / count, 0.7, 0.01);
}
