//! Gas constants and the quantities derived from the conserved ones at a point.

use super::field::GridField;

/// Ratio γ of the gas's specific heats.
pub(super) const C1: f64 = 1.4;
/// γ − 1: pressure = C2 · (E − ½ρ|V|²).
pub(super) const C2: f64 = 0.4;
/// Viscosity of the gas: the product C3 · C4 of NPB's constants.
pub(super) const C3C4: f64 = 0.1;
/// Product C1 · C5 of NPB's constants, a factor of the diffusion of energy, with the Prandtl number in C5.
pub(super) const C1C5: f64 = 1.96;
/// Factor of the diffusion of velocity along the direction of differences.
pub(super) const CON43: f64 = 4.0 / 3.0;
/// Coefficients of second-order dissipation along x, y and z.
pub(super) const DIFFUSION: [f64; 3] = [0.75, 0.75, 1.0];
/// Coefficient of fourth-order dissipation: a quarter of the greatest of [`DIFFUSION`].
pub(super) const DISSIPATION: f64 = 0.25;

/// Index of 1/density among the quantities of the derived field.
pub(super) const INVERSE_DENSITY: usize = 0;
/// Index of half the square of the speed, ½|V|², in the derived field.
pub(super) const KINETIC: usize = 1;
/// Index of the speed of sound in the derived field.
pub(super) const SOUND: usize = 2;

/// Computes plane `k` of the field `gas`, whose quantities derive from the conserved quantities `u`.
pub(super) fn derive_plane(u: &GridField<5>, gas: &mut GridField<3>, k: usize) {
    for j in 0..u.points() {
        let [density, x, y, z, energy] = u.row(k, j);
        let [inverse, kinetic, sound] = gas.row_mut(k, j);
        let n = density.len();
        let (x, y, z, energy) = (&x[..n], &y[..n], &z[..n], &energy[..n]);
        let (inverse, kinetic, sound) = (&mut inverse[..n], &mut kinetic[..n], &mut sound[..n]);
        for i in 0..n {
            let r = 1.0 / density[i];
            let half_square = 0.5 * (x[i] * x[i] + y[i] * y[i] + z[i] * z[i]) * (r * r);
            inverse[i] = r;
            kinetic[i] = half_square;
            sound[i] = (C1 * C2 * (energy[i] * r - half_square)).sqrt();
        }
    }
}
