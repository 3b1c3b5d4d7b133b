//! Distributions that the models draw from, on a seeded stream.

use dormouse_units::RandomStream;

/// Draws from the standard normal distribution (Box and Muller 1958).
pub(crate) fn normal(stream: &mut RandomStream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.draw_unit()));
    radius * libm::cos(std::f64::consts::TAU * stream.draw_unit())
}

/// Draws from the exponential distribution with this mean.
pub(crate) fn exponential(mean: f64, stream: &mut RandomStream) -> f64 {
    -mean * libm::log(1.0 - stream.draw_unit())
}

/// Draws from the gamma distribution with this shape and scale (Marsaglia and Tsang 2000).
pub(crate) fn gamma(shape: f64, scale: f64, stream: &mut RandomStream) -> f64 {
    if shape < 1.0 {
        let boost = libm::pow(1.0 - stream.draw_unit(), 1.0 / shape);
        return boost * gamma(shape + 1.0, scale, stream);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(stream);
        let v = (1.0 + c * x).powi(3);
        let u = 1.0 - stream.draw_unit();
        if v > 0.0 && libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v * scale;
        }
    }
}

/// Cumulative distribution function P(X ≤ x) of the gamma distribution. Computed by the series of the regularised
/// lower incomplete gamma function for small x, and by Lentz's continued fraction for large x.
pub(crate) fn gamma_cdf(shape: f64, scale: f64, x: f64) -> f64 {
    let x = x / scale;
    if x <= 0.0 {
        return 0.0;
    }
    let front = libm::exp(shape * libm::log(x) - x - libm::lgamma(shape));
    if x < shape + 1.0 {
        let (mut term, mut sum) = (1.0 / shape, 1.0 / shape);
        for n in 1..500 {
            term *= x / (shape + f64::from(n));
            sum += term;
            if term < sum * 1e-15 {
                break;
            }
        }
        return front * sum;
    }
    let mut b = x + 1.0 - shape;
    let (mut c, mut d) = (1e300, 1.0 / b);
    let mut h = d;
    for n in 1..500 {
        let a = -f64::from(n) * (f64::from(n) - shape);
        b += 2.0;
        d = 1.0 / (a * d + b);
        c = b + a / c;
        let change = c * d;
        h *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    1.0 - front * h
}

/// Shuffles the items in place (Fisher and Yates).
pub(crate) fn shuffle<T>(items: &mut [T], stream: &mut RandomStream) {
    for n in (1..items.len()).rev() {
        items.swap(n, stream.draw_below(n + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_draws_have_their_mean_and_variance() {
        let mut stream = RandomStream::new(1, "test", 0);
        for (shape, scale) in [(0.5, 2.0), (4.2, 0.94), (312.0, 0.03)] {
            let draws: Vec<f64> = (0..40_000).map(|_| gamma(shape, scale, &mut stream)).collect();
            let mean = draws.iter().sum::<f64>() / 40_000.0;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 40_000.0;
            assert!((mean / (shape * scale) - 1.0).abs() < 0.03, "{shape}: {mean}");
            let expected = shape * scale * scale;
            assert!((variance / expected - 1.0).abs() < 0.06, "{shape}: {variance}");
        }
    }

    /// Compares with the Erlang distribution function: 1 − e^−x Σ x^k / k!.
    #[test]
    fn the_gamma_distribution_function_is_right_for_whole_shapes() {
        for (x, expected) in [
            (1.0, 1.0 - (-1.0_f64).exp() * 2.5),
            (3.0, 1.0 - (-3.0_f64).exp() * 8.5),
            (9.0, 1.0 - (-9.0_f64).exp() * 50.5),
        ] {
            assert!((gamma_cdf(3.0, 1.0, x) - expected).abs() < 1e-12, "{x}");
            assert!((gamma_cdf(3.0, 2.0, 2.0 * x) - expected).abs() < 1e-12, "{x}");
        }
    }
}
