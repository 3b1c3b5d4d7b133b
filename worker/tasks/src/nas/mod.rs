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
use crate::meter::{Enough, Meter};
use crate::result::Figure;

/// A program that is run a number of times and checks every run.
pub(crate) trait Kernel {
    /// Units of work in one repetition.
    fn units(&self) -> u64;

    /// One complete repetition on this input, from the generation of that to its figures.
    ///
    /// # Errors
    ///
    /// [`Enough`] when the meter ends the run; what was computed is dropped.
    fn run(&mut self, input: KernelInput, meter: &mut Meter) -> Result<Vec<Figure>, Enough>;

    /// Numbers of the last repetition that are known only to whoever has computed it, beside its figures.
    fn traces(&self) -> &[u64] {
        &[]
    }
}

/// These figures with what was computed, in their order.
pub(crate) fn computed(
    references: Vec<Figure>,
    ours: impl IntoIterator<Item = f64>,
) -> Vec<Figure> {
    let both = references.into_iter().zip(ours);
    both.map(|(figure, computed)| Figure { computed, ..figure }).collect()
}

#[cfg(test)]
pub(crate) mod check {
    use super::*;

    /// Runs the kernel, checks that it does the units it announced, and returns its figures.
    pub(crate) fn figures(kernel: &mut dyn Kernel) -> Vec<Figure> {
        let mut meter = Meter::unlimited();
        let figures = kernel.run(KernelInput::Published, &mut meter);
        let figures = figures.expect("an unlimited meter never ends a run");
        assert_eq!(meter.units(), kernel.units(), "units announced");
        assert!(!figures.is_empty());
        figures
    }

    /// What the kernel computes on a drawn input is the same whenever it is computed, and another for another input.
    pub(crate) fn hangs_on_its_input(kernel: &mut dyn Kernel) {
        let mut computed = |input| {
            let figures = kernel.run(input, &mut Meter::unlimited()).expect("it is unlimited");
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

    /// The kernel's answer is right.
    pub(crate) fn verifies(kernel: &mut dyn Kernel) {
        let figures = figures(kernel);
        assert!(figures.iter().any(|f| f.verified() == Some(true)), "{figures:#?}");
        assert!(figures.iter().all(|f| f.verified() != Some(false)), "{figures:#?}");
    }

    /// The kernel's answer is right, and right again when it runs once more.
    pub(crate) fn verifies_again(kernel: &mut dyn Kernel) {
        verifies(kernel);
        verifies(kernel);
    }

    /// The kernel notices that it computed something else than it should have.
    pub(crate) fn fails(kernel: &mut dyn Kernel) {
        let figures = figures(kernel);
        assert!(figures.iter().any(|f| f.verified() == Some(false)), "{figures:#?}");
    }
}
