//! Kernels of the NAS Parallel Benchmarks 3.3, written from their public specification
//! (NAS-95-020), with the parameters, verification values and tolerances of NPB3.3-SER.

pub(crate) mod cg;
pub(crate) mod ep;
pub(crate) mod ft;
pub(crate) mod is;
pub(crate) mod mg;
pub(crate) mod sp;

pub(crate) mod input;
mod random;

use self::input::KernelInput;
use crate::meter::{EnoughWork, WorkMeter};
use crate::result::Figure;

/// A benchmark program that runs repeatedly and checks every run.
pub(crate) trait RepeatedKernel {
    /// Units of work in one repetition.
    fn units(&self) -> u64;

    /// Does one complete repetition, from generating the data of `input` to the figures.
    ///
    /// # Errors
    ///
    /// [`EnoughWork`] when the meter ends the run; the repetition is dropped.
    fn run(&mut self, input: KernelInput, meter: &mut WorkMeter)
    -> Result<Vec<Figure>, EnoughWork>;

    /// Returns numbers of the last repetition, beside its figures, that are known only after computing it and go into the hash of
    /// all computed values.
    fn traces(&self) -> &[u64] {
        &[]
    }
}

/// Returns the figures `references` (with expected values), into which the computed values `ours` are filled in order.
pub(crate) fn with_computed(
    references: Vec<Figure>,
    ours: impl IntoIterator<Item = f64>,
) -> Vec<Figure> {
    let both = references.into_iter().zip(ours);
    both.map(|(figure, computed)| Figure { computed, ..figure }).collect()
}

#[cfg(test)]
pub(crate) mod check {
    use super::*;

    /// Runs the kernel, checks that it does the units that it announced, and returns its figures.
    pub(crate) fn run_for_figures(kernel: &mut dyn RepeatedKernel) -> Vec<Figure> {
        let mut meter = WorkMeter::unlimited();
        let figures = kernel.run(KernelInput::Published, &mut meter);
        let figures = figures.expect("an unlimited meter never ends a run");
        assert_eq!(meter.units(), kernel.units(), "units announced");
        assert!(!figures.is_empty());
        figures
    }

    /// Tests that the results on a drawn input are reproducible and differ between inputs.
    pub(crate) fn hangs_on_its_input(kernel: &mut dyn RepeatedKernel) {
        let mut computed = |input| {
            let figures = kernel.run(input, &mut WorkMeter::unlimited()).expect("it is unlimited");
            let figures = figures.iter().map(|figure| figure.computed.to_bits());
            figures.chain(kernel.traces().iter().copied()).collect::<Vec<_>>()
        };
        let [one, other, published, again] = [
            KernelInput::Drawn(7),
            KernelInput::Drawn(8),
            KernelInput::Published,
            KernelInput::Drawn(7),
        ]
        .map(&mut computed);
        assert_eq!(one, again);
        assert!(one != other && one != published);
    }

    /// Tests that the kernel's answer is right.
    pub(crate) fn verifies(kernel: &mut dyn RepeatedKernel) {
        let figures = run_for_figures(kernel);
        assert!(figures.iter().any(|f| f.verified() == Some(true)), "{figures:#?}");
        assert!(figures.iter().all(|f| f.verified() != Some(false)), "{figures:#?}");
    }

    /// Tests that the kernel's answer is right, also on a second run.
    pub(crate) fn verifies_again(kernel: &mut dyn RepeatedKernel) {
        verifies(kernel);
        verifies(kernel);
    }

    /// Tests that the kernel notices a wrong answer.
    pub(crate) fn fails(kernel: &mut dyn RepeatedKernel) {
        let figures = run_for_figures(kernel);
        assert!(figures.iter().any(|f| f.verified() == Some(false)), "{figures:#?}");
    }
}
