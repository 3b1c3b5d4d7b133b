//! The bags of the Burst-HADS paper (Table III; run times and sizes of its artifact).

use dormouse_model::Task;
use dormouse_units::{Bytes, Span};

/// Names of the built-in bags of tasks.
pub const BAGS: [&str; 4] = ["j60", "j80", "j100", "ed200"];

const TYPES: [&str; 4] = ["c3.large", "c3.xlarge", "c4.large", "t3.large"];

/// Size of a task: its name, memory in bytes, run time in seconds on each of [`TYPES`].
type Size = (&'static str, u64, [u64; 4]);

const SYNTHETIC: [Size; 3] = [
    ("400", 10_060_959, [167, 167, 168, 119]),
    ("600", 10_792_112, [217, 224, 225, 260]),
    ("1000", 13_066_344, [349, 353, 337, 304]),
];
const ED: Size = ("ed", 167_808_530, [210, 204, 195, 190]);

/// The tasks of the built-in bag of this name; `None`: there is no such bag.
#[must_use]
pub fn bag(name: &str) -> Option<Vec<Task>> {
    let [a, b, c] = SYNTHETIC;
    let sizes = match name {
        "j60" => vec![(a, 24), (b, 16), (c, 20)],
        "j80" => vec![(a, 23), (b, 32), (c, 25)],
        "j100" => vec![(a, 40), (b, 30), (c, 30)],
        "ed200" => vec![(ED, 200)],
        _ => return None,
    };
    Some(
        sizes
            .into_iter()
            .flat_map(|(size, count)| (0..count).map(move |n| task_of_size(size, n)))
            .collect(),
    )
}

fn task_of_size((size, memory, seconds): Size, n: u32) -> Task {
    Task {
        name: format!("{size}-{n}"),
        memory: Bytes::new(memory),
        runtime: TYPES.iter().zip(seconds).map(|(&t, s)| (t.into(), Span::from_secs(s))).collect(),
        submitted: Span::ZERO,
        after: Vec::new(),
    }
}
