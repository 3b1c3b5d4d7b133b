//! The evaluation of the paper, on few jobs.

use std::path::Path;

use dormouse::reproduce::measy::{
    Evaluation, FACTORS, Figure, Options, Outcome, ReproduceError, Statement, View, evaluate,
};
use dormouse::sweep::{Folder, Shard, Spec};
use dormouse_vm::Sharing;

fn options(figure: &str, threads: usize) -> Options {
    Options {
        figures: vec![Figure::named(figure).expect("there is such a figure")],
        kth: None,
        most_jobs: Some(300),
        sharing: Sharing::default(),
        seed: 1,
        threads,
        causes: true,
    }
}

fn spec(figure: &str) -> Spec {
    let (what, kth, two_tier) = (format!("measy/{figure}"), None, None);
    Spec::ReproduceMeasy { what, kth, jobs: Some(300), seed: 1, two_tier, causes: true }
}

fn opened(figure: &str, path: &Path) -> Folder<Outcome> {
    Folder::open(path, &spec(figure), false).expect("it is its own")
}

fn made(figure: &str, threads: usize) -> Evaluation {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut folder = opened(figure, dir.path());
    evaluate(&options(figure, threads), &mut folder, Some(Shard::ALL), &mut |_, _, _| {})
        .expect("it runs")
        .expect("it is no part")
}

fn bytes_of(done: &Evaluation) -> (String, String, String) {
    (done.csv(), done.table(), done.figures[0].chart(&done.results).to_svg())
}

/// What was made before a kill is not made again, and parts come to the same as the whole.
#[test]
fn it_goes_on_after_a_kill_and_comes_in_parts() {
    let figure = "figure-14";
    let dir = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| dir.path().join(name);
    let run = |name: &str, compute: Option<Shard>| {
        let (mut runs, mut folder) = (0, opened(figure, &at(name)));
        let done = evaluate(&options(figure, 2), &mut folder, compute, &mut |_, n, _| {
            runs += usize::from(n > 0);
        });
        (runs, done.expect("it runs"))
    };
    let (all, whole) = run("whole", Some(Shard::ALL));
    let whole = bytes_of(&whole.expect("it is no part"));
    let (again, same) = run("whole", Some(Shard::ALL));
    assert_eq!((again, bytes_of(&same.expect("it is no part"))), (0, whole.clone()));
    // A kill leaves what was made so far, and half a line.
    let samples = std::fs::read(at("whole").join("samples.jsonl")).expect("they are there");
    let half = samples.len() / 2;
    assert_ne!(samples[half - 1], b'\n', "the kill should tear a line");
    drop(opened(figure, &at("killed")));
    std::fs::write(at("killed").join("samples.part.jsonl"), &samples[..half]).expect("room");
    let (rest, same) = run("killed", Some(Shard::ALL));
    assert!((1..all).contains(&rest), "{rest} of {all} were made again");
    assert_eq!(bytes_of(&same.expect("it is no part")), whole);
    for part in ["1/3", "2/3", "3/3"] {
        let shard: Shard = part.parse().expect("it is one");
        assert!(run(&part.replace('/', "-"), Some(shard)).1.is_none());
    }
    let parts = ["1-3", "2-3", "3-3"].map(at);
    let (mut folder, _) = Folder::merge(&at("merged"), &parts, false).expect("parts of one");
    let merged = evaluate(&options(figure, 2), &mut folder, None, &mut |_, _, _| {});
    assert_eq!(bytes_of(&merged.expect("all is there").expect("it is no part")), whole);
    let read = |name: &str| std::fs::read(at(name).join("samples.jsonl")).expect("it is there");
    assert_eq!(read("merged"), samples);
    // Without one of them there is something missing.
    let (mut folder, _) = Folder::merge(&at("lacking"), &parts[..2], false).expect("parts of one");
    let error = evaluate(&options(figure, 2), &mut folder, None, &mut |_, _, _| {});
    assert!(error.expect_err("a part is missing").to_string().contains("in none of the parts"));
}

#[test]
fn it_is_the_same_bytes_on_any_number_of_threads() {
    let bytes = |threads| bytes_of(&made("figure-13", threads));
    let one = bytes(1);
    assert!(one == bytes(3));
    assert!(one.0.starts_with("case,metric,paper,ours_mean,ours_ci95_low,ours_ci95_high,n\n"));
    let row = "fw-like/measy against keasy,break_even_cost_least_s,900,";
    assert!(one.0.contains(row), "{}", one.0);
}

/// What does not hold is looked into with every factor that its workloads heed, and only that.
#[test]
fn what_does_not_hold_has_its_causes_looked_for() {
    let done = made("figure-14", 2);
    let open: Vec<_> = done.claims.iter().filter(|c| c.holds == Some(false)).collect();
    assert!(!open.is_empty(), "300 jobs bear out no break-even cost");
    assert_eq!(open.len(), done.causes.len());
    for (claim, cause) in open.iter().zip(&done.causes) {
        assert_eq!((claim.statement, claim.ours.mean), (cause.statement, cause.ours));
        assert_eq!(cause.moves.len(), FACTORS.len());
        assert!(cause.moves.is_sorted_by(|a, b| a.distance <= b.distance));
        let changed = cause.moves.iter().filter(|m| (m.becomes - cause.ours).abs() > 1e-9);
        assert!(changed.count() > 3, "factors that change nothing are no experiments");
    }
}

#[test]
fn a_figure_that_is_not_there_names_those_that_are() {
    let error = Figure::named("figure-5").expect_err("no such figure").to_string();
    assert!(error.contains("figure-6"), "{error}");
    let kth = options("kth-cost", 1).cells().expect_err("no log");
    assert!(matches!(kth, ReproduceError::NoKth));
}

/// The paper's figures bear themselves out, and their opposites do not.
#[test]
fn statements_hold_on_the_papers_own_figures() {
    let view = View::STANDARD;
    for statement in Statement::all() {
        let Some(paper) = statement.paper(&view) else { continue };
        if let Some(holds) = statement.holds(paper, &view) {
            assert!(holds, "{}", statement.text());
            assert_eq!(statement.holds(paper / 2.0, &view), Some(false), "{}", statement.text());
        }
        assert_eq!(statement.distance(paper, &view), Some(0.0), "{}", statement.text());
    }
}
