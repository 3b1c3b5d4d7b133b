//! Published parameters of the estimates model (Tsafrir, Etsion and Feitelson 2005).

/// Number of distinct estimates by number of jobs, as points of a line.
pub(super) const BINS: [(f64, f64); 7] = [
    (0.0, 0.0),
    (20.0, 10.0),
    (200.0, 20.0),
    (1_000.0, 35.0),
    (10_000.0, 90.0),
    (70_000.0, 340.0),
    (250_000.0, 565.0),
];

/// Number of distinct estimates beyond the last point: factor and exponent of a power of the number
/// of jobs.
pub(super) const BINS_BEYOND: (f64, f64) = (0.653_566, 0.547_761);

/// Popular estimates that all logs have, in seconds.
pub(super) const JOINT_S: [u64; 15] = [
    300, 900, 600, 1_200, 1_800, 3_600, 7_200, 10_800, 14_400, 18_000, 21_600, 28_800, 36_000,
    43_200, 64_800,
];

/// Steps whose multiples fill the head up to its size, in seconds.
pub(super) const LADDER_S: [u64; 10] =
    [720_000, 360_000, 180_000, 36_000, 18_000, 7_200, 3_600, 1_200, 600, 300];

/// Number of distinct estimates in the head.
pub(super) const HEAD: usize = 20;
/// Percent of all jobs whose estimate is in the head.
pub(super) const HEAD_PERCENT: f64 = 89.0;
/// Percent of the estimate of a rank: a · e^(b · rank) + c.
pub(super) const HEAD_SIZE: (f64, f64, f64) = (14.0491, -0.177_531, 0.462_513);
/// Share of the tail's estimate of a rank: a · rank^b.
pub(super) const TAIL_SIZE: (f64, f64) = (795.6, -2.267);
/// The tail's times bend by 1 + a · bins^b.
pub(super) const TAIL_TIME: (f64, f64) = (12.1039, -0.6026);

/// For each rank by time (longest first), the rank by popularity in four logs.
pub(super) const POPULARITY: [[u8; 4]; HEAD] = [
    [3, 1, 1, 1],
    [1, 3, 4, 6],
    [4, 4, 10, 5],
    [17, 2, 14, 3],
    [13, 12, 20, 7],
    [7, 9, 2, 2],
    [8, 8, 3, 18],
    [18, 18, 7, 19],
    [2, 6, 12, 4],
    [6, 7, 6, 11],
    [16, 11, 19, 20],
    [10, 20, 5, 9],
    [5, 16, 18, 10],
    [15, 5, 16, 14],
    [14, 14, 9, 13],
    [19, 13, 17, 16],
    [11, 10, 15, 15],
    [12, 15, 13, 17],
    [9, 17, 8, 8],
    [20, 19, 11, 12],
];

/// Offsets in seconds by which a time of the tail moves if it is taken.
pub(super) const OFFSETS_S: [i64; 7] = [0, 30, -30, 20, -20, 10, -10];
