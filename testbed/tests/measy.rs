//! The evaluation of the paper, on few jobs.

use dormouse::reproduce::measy::{
    Evaluation, FACTORS, Figure, Options, ReproduceError, Statement, View, evaluate,
};
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

fn made(figure: &str, threads: usize) -> Evaluation {
    evaluate(&options(figure, threads), |_, _, _| {}).expect("it runs")
}

#[test]
fn it_is_the_same_bytes_on_any_number_of_threads() {
    let bytes = |threads| {
        let done = made("figure-13", threads);
        (done.csv(), done.table(), done.figures[0].chart(&done.results).to_svg())
    };
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
    let kth = evaluate(&options("kth-cost", 1), |_, _, _| {}).expect_err("no log");
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
