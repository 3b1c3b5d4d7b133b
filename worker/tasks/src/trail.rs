//! Trail of a task: a number that depends on all values computed so far, recorded at points of the
//! work.
//!
//! The number has no known closed form, so a task that has the numbers of two points has done the passes between them,
//! or equally much work. The state at each point is known in closed form, so a check repeats only one segment, from one
//! point to the next.

use serde::{Deserialize, Serialize};

use crate::digest::mix_bits;

/// Greatest number of points at which a trail records a hash of the values computed so far; a trail that would have more loses
/// every second point.
const MOST_POINTS: usize = 32;
/// Number of hash chains over the elements of a pass: with a single chain the processor would have to wait for each step.
pub(crate) const LANES: usize = 4;
/// Odd multiplier of the hash of computed values: multiplication by an odd number loses no information.
const FACTOR: u64 = 0xD6E8_FEB8_6659_FD93;

/// The trail of a computation, as it is written in the answer: a hash of all values so far, at points of the work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkTrail {
    /// Number of passes of the program from one point of the trail to the next.
    pub every: u64,
    /// Hash of all values computed up to each point; the first point is after `every` passes.
    pub points: Vec<u64>,
}

/// A segment of a task's work between two points at which hashes were recorded; it can be computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrailSegment {
    /// Number of passes of the program before the segment; for a parallel job, the rank's value at the beginning of the segment.
    pub from: u64,
    /// Number of passes of the program in the segment; for a parallel job, the number of blocks of work.
    pub passes: u64,
    /// Hash of the computed values at the beginning of the segment.
    pub trail: u64,
}

impl WorkTrail {
    /// Returns the segment of work that ends at point `point` of the trail of a task with the nonce `nonce`; `None`: there is no
    /// such point.
    #[must_use]
    pub fn segment(&self, point: usize, nonce: u64) -> Option<TrailSegment> {
        self.points.get(point)?;
        let trail = match point.checked_sub(1) {
            Some(before) => *self.points.get(before)?,
            None => nonce,
        };
        let from = self.every.checked_mul(point as u64)?;
        Some(TrailSegment { from, passes: self.every, trail })
    }
}

impl TrailSegment {
    /// Returns the segment of a task's work as an argument for the task program.
    #[must_use]
    pub fn to_argument(&self) -> String {
        format!("{}:{}:{:x}", self.from, self.passes, self.trail)
    }

    /// Parses a segment of a task's work from a command-line argument; `None`: the text is not a segment.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (from, passes, trail) = (parts.next()?, parts.next()?, parts.next()?);
        let (from, passes) = (from.parse().ok()?, passes.parse().ok().filter(|n| *n > 0)?);
        let trail = u64::from_str_radix(trail, 16).ok()?;
        parts.next().is_none().then_some(Self { from, passes, trail })
    }
}

/// Recorder of a computation's trail (a hash at points of the work), while a task computes.
#[derive(Clone, Debug)]
pub(crate) struct TrailRecorder {
    number: u64,
    lanes: [u64; LANES],
    /// Number of passes since the last point of the trail.
    since: u64,
    trail: WorkTrail,
}

impl TrailRecorder {
    /// Makes a recorder of a task's hashes; the hash of computed values begins with `number`.
    pub(crate) fn new(number: u64) -> Self {
        let trail = WorkTrail { every: 1, points: Vec::new() };
        Self { number, lanes: begin_lanes(number), since: 0, trail }
    }

    /// Returns the hash chains that include the elements of the current pass.
    pub(crate) const fn pass_lanes(&mut self) -> &mut [u64; LANES] {
        &mut self.lanes
    }

    /// Returns the hash of all values that the completed passes computed.
    pub(crate) const fn trail_number(&self) -> u64 {
        self.number
    }

    /// Includes a value of the current pass of the program in the hash of computed values.
    pub(crate) const fn take_in(&mut self, value: u64) {
        self.lanes[0] = mix_bits(self.lanes[0] ^ value);
    }

    /// Ends a pass of the program over its data, after all values of the pass were included.
    pub(crate) fn pass_is_over(&mut self) {
        self.number = self.lanes.iter().fold(self.number, |number, lane| mix_bits(number ^ lane));
        self.lanes = begin_lanes(self.number);
        self.since += 1;
        if self.since < self.trail.every {
            return;
        }
        self.since = 0;
        let WorkTrail { every, points } = &mut self.trail;
        if points.len() == MOST_POINTS {
            // Every second one stays, and the one that comes now is none of these.
            let mut place = 0;
            points.retain(|_| {
                place += 1;
                place % 2 == 0
            });
            *every *= 2;
            self.since = *every / 2;
            return;
        }
        points.push(self.number);
    }

    /// Returns the trail (the hashes at points of the work), and the hash of all values after the last pass.
    pub(crate) fn finish_trail(&self) -> (WorkTrail, u64) {
        (self.trail.clone(), self.number)
    }
}

const fn begin_lanes(number: u64) -> [u64; LANES] {
    [mix_bits(number), mix_bits(number ^ 1), mix_bits(number ^ 2), mix_bits(number ^ 3)]
}

/// Extends a hash chain by one element; returns the chain's new value.
pub(crate) const fn extend_lane(lane: u64, element: u64) -> u64 {
    (lane ^ element).wrapping_mul(FACTOR).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trail of so many passes over one element, and the number after each.
    fn passes(count: u64) -> (WorkTrail, Vec<u64>) {
        let mut recorder = TrailRecorder::new(7);
        let mut numbers = Vec::new();
        for element in 0..count {
            let lanes = recorder.pass_lanes();
            lanes[0] = extend_lane(lanes[0], element);
            recorder.pass_is_over();
            numbers.push(recorder.number);
        }
        (recorder.finish_trail().0, numbers)
    }

    #[test]
    fn points_are_as_far_from_each_other_however_long_the_work_is() {
        for count in [0, 1, 31, 32, 33, 34, 63, 64, 65, 1000] {
            let (trail, numbers) = passes(count);
            let every = usize::try_from(trail.every).expect("few");
            let at = |point: usize| numbers[(point + 1) * every - 1];
            let expected: Vec<_> = (0..trail.points.len()).map(at).collect();
            assert_eq!(trail.points, expected, "{count}");
            assert_eq!(trail.points.len(), numbers.len() / every, "{count}");
            assert!(trail.points.len() <= MOST_POINTS && (count < 2 || trail.points.len() > 1));
        }
    }

    #[test]
    fn a_segment_is_what_lies_between_two_points() {
        let (trail, _) = passes(100);
        assert_eq!(trail.every, 4);
        let first = trail.segment(0, 7).expect("there is a point");
        assert_eq!(first, TrailSegment { from: 0, passes: 4, trail: 7 });
        let last = trail.segment(24, 7).expect("there is a point");
        assert_eq!(last, TrailSegment { from: 96, passes: 4, trail: trail.points[23] });
        assert_eq!(trail.segment(25, 7), None);
        assert_eq!(TrailSegment::parse(&last.to_argument()), Some(last));
        for wrong in ["", "1:2", "1:0:a", "1:2:g", "1:2:a:b", "-1:2:a"] {
            assert_eq!(TrailSegment::parse(wrong), None, "{wrong}");
        }
    }
}
