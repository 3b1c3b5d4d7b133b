//! Test of the colours of series: the first six differ for everybody, with normal sight, without the red cones and
//! without the green ones, on light and on dark paper.

use super::STYLE;

/// Number of colours that differ for everybody; the marks of series tell the others apart.
const TOLD_APART: usize = 6;
/// Least difference of two colours (CIEDE2000); 2 is about the least that is seen side by side.
const LEAST: f64 = 15.0;

type Triple = [f64; 3];

/// What is seen of linear red, green and blue: with normal sight, and with protanopia and deuteranopia in full (Machado,
/// Oliveira and Fernandes, 2009, table 1, severity 1.0).
const SIGHTS: [(&str, [Triple; 3]); 3] = [
    ("normal", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ),
];

fn times(matrix: &[Triple; 3], of: Triple) -> Triple {
    matrix.map(|row| row.iter().zip(of).map(|(a, b)| a * b).sum())
}

/// Linear red, green and blue of a colour such as `#1d6ee2`.
fn linear(hex: &str) -> Triple {
    [1, 3, 5].map(|at| {
        let byte = u8::from_str_radix(&hex[at..at + 2], 16).expect("two hexadecimal digits");
        let x = f64::from(byte) / 255.0;
        if x <= 0.040_45 { x / 12.92 } else { libm::pow((x + 0.055) / 1.055, 2.4) }
    })
}

/// CIELAB (D65) of linear red, green and blue.
fn lab(linear: Triple) -> Triple {
    let [r, g, b] = linear.map(|x| x.clamp(0.0, 1.0));
    let root = |t: f64| {
        if t > 216.0 / 24_389.0 { libm::cbrt(t) } else { (24_389.0 / 27.0 * t + 16.0) / 116.0 }
    };
    let x = root((0.412_456 * r + 0.357_576 * g + 0.180_438 * b) / 0.950_47);
    let y = root(0.212_673 * r + 0.715_152 * g + 0.072_175 * b);
    let z = root((0.019_334 * r + 0.119_192 * g + 0.950_304 * b) / 1.088_83);
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// Difference of two colours of CIELAB by CIEDE2000 (Sharma, Wu and Dalal, 2005).
fn difference([l1, a1, b1]: Triple, [l2, a2, b2]: Triple) -> f64 {
    let seventh = |c: f64| {
        let c = libm::pow(c, 7.0);
        libm::sqrt(c / (c + libm::pow(25.0, 7.0)))
    };
    let g = 1.5 - 0.5 * seventh(f64::midpoint(libm::hypot(a1, b1), libm::hypot(a2, b2)));
    let (a1, a2) = (a1 * g, a2 * g);
    let (c1, c2) = (libm::hypot(a1, b1), libm::hypot(a2, b2));
    let hue = |a: f64, b: f64| libm::atan2(b, a).to_degrees().rem_euclid(360.0);
    let (h1, h2) = (hue(a1, b1), hue(a2, b2));
    let turn = match h2 - h1 {
        over if over > 180.0 => over - 360.0,
        under if under < -180.0 => under + 360.0,
        turn => turn,
    };
    let (l, c, h) = (f64::midpoint(l1, l2), f64::midpoint(c1, c2), h1 + turn / 2.0);
    let cos = |degrees: f64| libm::cos(degrees.to_radians());
    let t = 1.0 - 0.17 * cos(h - 30.0) + 0.24 * cos(2.0 * h) + 0.32 * cos(3.0 * h + 6.0)
        - 0.2 * cos(4.0 * h - 63.0);
    let from_middle = (l - 50.0) * (l - 50.0);
    let dl = (l2 - l1) / (1.0 + 0.015 * from_middle / libm::sqrt(20.0 + from_middle));
    let dc = (c2 - c1) / (1.0 + 0.045 * c);
    let half = libm::sin((turn / 2.0).to_radians());
    let dh = 2.0 * libm::sqrt(c1 * c2) * half / (1.0 + 0.015 * c * t);
    let bend = (h.rem_euclid(360.0) - 275.0) / 25.0;
    let rotation =
        -2.0 * seventh(c) * libm::sin(2.0 * (30.0 * libm::exp(-bend * bend)).to_radians());
    libm::sqrt(dl * dl + dc * dc + dh * dh + rotation * dc * dh)
}

/// Colours k0, k1, … of the light and of the dark palette.
fn palettes() -> [Vec<&'static str>; 2] {
    let of = |n: usize| -> Vec<&'static str> {
        let begin = format!(".k{n}{{color:");
        let places: Vec<_> = STYLE.match_indices(&begin).map(|(at, _)| at + begin.len()).collect();
        places.into_iter().map(|at| &STYLE[at..at + 7]).collect()
    };
    let all: Vec<_> = (0..super::COLOURS).map(of).collect();
    [0, 1].map(|paper| all.iter().map(|of| of[paper]).collect())
}

/// Contrast of two colours by WCAG.
fn contrast(one: &str, other: &str) -> f64 {
    let luminance = |hex| {
        let [r, g, b] = linear(hex);
        0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
    };
    let (a, b) = (luminance(one), luminance(other));
    a.max(b) / a.min(b)
}

#[test]
fn six_colours_differ_for_everybody_and_are_read_on_their_paper() {
    for (colours, paper) in palettes().iter().zip(["#ffffff", "#12161f"]) {
        assert_eq!(colours.len(), super::COLOURS);
        for colour in colours {
            assert!(contrast(colour, paper) >= 4.5, "{colour} on {paper}");
        }
        for (sight, matrix) in &SIGHTS {
            let seen = |colour: &&str| lab(times(matrix, linear(colour)));
            for (n, one) in colours[..TOLD_APART].iter().enumerate() {
                for other in &colours[..n] {
                    let apart = difference(seen(one), seen(other));
                    assert!(apart >= LEAST, "{sight}: {one} and {other} differ by {apart:.1}");
                }
            }
        }
    }
}

/// The difference of two pairs of colours that Sharma, Wu and Dalal print, and of purple and blue in an earlier palette, which a
/// blind person could hardly tell apart.
#[test]
fn the_difference_is_that_of_its_paper() {
    for (one, other, printed) in [
        ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
        ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
        ([22.7233, 20.0904, -46.694], [23.0331, 14.973, -42.5619], 2.0373),
    ] {
        let is = difference(one, other);
        assert!((is - printed).abs() < 1e-3, "{is} and not {printed}");
    }
    let (_, deuteranopia) = &SIGHTS[2];
    let seen = |hex| lab(times(deuteranopia, linear(hex)));
    let before = difference(seen("#2f66b5"), seen("#7a4fb0"));
    assert!(before < 5.0, "{before}");
}
