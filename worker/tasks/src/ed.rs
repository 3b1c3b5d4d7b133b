//! GridNPB 3.1 ED ("embarrassingly distributed"): a bag of independent SP runs.
//!
//! Task i is SP of the class with the constant term of the exact density 2·(1 + 0.01·i) and
//! an initial field interpolated from the eight corners.
//!
//! There are references for tasks 0 to 99 of the classes S and W, 0 to 4 of A and 0 of B. Any
//! other task runs and says that it has no reference. A bag with more tasks than references
//! (the 200 of ED200) takes its task numbers modulo the number of references.

mod reference;

use crate::class::ProblemClass;
use crate::nas::sp::{InitialField, SpSolver};

/// Returns the solver of ED task `id` of a NAS class; it has values to compare its figures with only if they are published.
pub(crate) fn solver_of_task(class: ProblemClass, id: u32) -> SpSolver {
    let density = 2.0 * (1.0 + 0.01 * f64::from(id));
    SpSolver::solver_variant(
        class,
        density,
        InitialField::Trilinear,
        reference::reference_norms(class, id),
    )
}

/// Returns the figures of ED task `id` of a NAS class with their published values; the computed values are still missing.
pub(crate) fn task_references(class: ProblemClass, id: u32) -> Vec<crate::result::Figure> {
    crate::nas::sp::norm_figures(reference::reference_norms(class, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nas::check;

    #[test]
    fn tasks_of_class_s_verify() {
        for id in 0..100 {
            check::verifies(&mut solver_of_task(ProblemClass::S, id));
        }
    }

    #[test]
    fn a_task_of_class_w_verifies() {
        check::verifies(&mut solver_of_task(ProblemClass::W, 7));
    }

    #[test]
    fn the_references_agree_with_the_published_values() {
        // GridNPB 3.1, ED.S.0 and ED.B.0; the latter to the digits at hand.
        let published = |class, id, residual: [f64; 5], tolerance: f64| {
            let ours = reference::reference_norms(class, id).expect("a published task").residual;
            for (ours, theirs) in ours.iter().zip(residual) {
                assert!((ours - theirs).abs() <= tolerance * theirs, "{ours} {theirs}");
            }
        };
        let s0 = [
            0.867_654_301_174_193_7e-4,
            0.603_349_340_831_053e-4,
            0.627_811_403_252_879_8e-4,
            0.660_317_990_263_894_6e-4,
            0.912_202_886_654_374e-4,
        ];
        published(ProblemClass::S, 0, s0, 1e-8);
        let b0 =
            [0.288_839_72e-2, 0.198_628_33e-2, 0.205_683_68e-2, 0.191_906_81e-2, 0.176_037_36e-2];
        published(ProblemClass::B, 0, b0, 1e-7);
    }

    #[test]
    fn a_task_without_a_reference_has_figures_but_no_verdict() {
        let figures = check::run_for_figures(&mut solver_of_task(ProblemClass::S, 100));
        assert_eq!(figures.len(), 10);
        assert!(figures.iter().all(|f| f.verified().is_none() && f.computed > 0.0));
    }

    #[test]
    fn the_answer_of_another_task_does_not_verify() {
        let (density, initial) = (2.0 * 1.08, InitialField::Trilinear);
        check::fails(&mut SpSolver::solver_variant(
            ProblemClass::S,
            density,
            initial,
            reference::reference_norms(ProblemClass::S, 7),
        ));
    }
}
