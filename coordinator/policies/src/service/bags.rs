//! The service's bags of jobs: when each is submitted, and how long its jobs take, as estimated from those that have
//! ended.

use dormouse_units::{Ppm, Span, Time};

/// A bag: the jobs that are submitted together.
#[derive(Debug)]
struct JobBag {
    submitted: Time,
    jobs: Vec<usize>,
    length: MeanLength,
}

/// The bags in the order in which they are submitted. The length of a job is estimated from the
/// jobs of its own bag that have ended: another bag may be of another application.
#[derive(Debug)]
pub(super) struct SubmittedBags {
    all: Vec<JobBag>,
    /// For each job, the index of its bag.
    of_job: Vec<usize>,
    /// Number of bags that have been submitted.
    came: usize,
}

impl SubmittedBags {
    /// Groups jobs into bags by their submission times, given for each job in order; before a job of a bag
    /// has ended, a job is expected to take `first`, if that is given.
    pub(super) fn new(submitted: &[Time], first: Option<Span>) -> Self {
        let mut times = submitted.to_vec();
        times.sort_unstable();
        times.dedup();
        let bag =
            |submitted| JobBag { submitted, jobs: Vec::new(), length: MeanLength::new(first) };
        let mut all: Vec<JobBag> = times.iter().copied().map(bag).collect();
        let of_job: Vec<usize> =
            submitted.iter().map(|at| times.partition_point(|time| time < at)).collect();
        for (job, bag) in of_job.iter().enumerate() {
            all[*bag].jobs.push(job);
        }
        Self { all, of_job, came: 0 }
    }

    /// Time at which the next bag is submitted; `None`: no more bags are submitted.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.all.get(self.came).map(|bag| bag.submitted)
    }

    /// The jobs that have been submitted by now and were not returned before.
    pub(super) fn take_submitted(&mut self, now: Time) -> Vec<usize> {
        let before = self.came;
        self.came += self.all[before..].iter().take_while(|bag| bag.submitted <= now).count();
        self.all[before..self.came].iter().flat_map(|bag| bag.jobs.iter().copied()).collect()
    }

    /// Estimate of the length of jobs in the bag of this job.
    pub(super) fn length_of(&mut self, job: usize) -> &mut MeanLength {
        &mut self.all[self.of_job[job]].length
    }

    /// Expected length of a whole job of the last bag that was submitted; `None`: unknown.
    pub(super) fn latest_length(&self) -> Option<Span> {
        self.all[self.came.checked_sub(1)?].length.whole_length()
    }
}

/// Mean length of the jobs that ran from beginning to end without an interruption.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeanLength {
    first: Option<Span>,
    total: Span,
    count: u64,
}

impl MeanLength {
    /// An estimate of the length before any job has ended: `first`, or unknown.
    pub(super) const fn new(first: Option<Span>) -> Self {
        Self { first, total: Span::ZERO, count: 0 }
    }

    /// Counts a job that took this long.
    pub(super) fn add_length(&mut self, span: Span) {
        self.total += span;
        self.count += 1;
    }

    /// Expected length of a whole job; `None`: unknown.
    pub(super) fn whole_length(&self) -> Option<Span> {
        let mean = self.total.as_micros().checked_div(self.count).map(Span::from_micros);
        mean.or(self.first)
    }

    /// Expected rest of a job whose part `kept` is done; `None`: unknown.
    pub(super) fn remaining_length(&self, kept: Ppm) -> Option<Span> {
        let whole = self.whole_length()?;
        Some(whole.saturating_sub(whole.part(kept)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_told_by_those_that_were_submitted_with_them() {
        let s = Span::from_secs;
        let at = Time::from_secs;
        // The last job belongs to the first bag, whatever its place.
        let mut bags = SubmittedBags::new(&[at(0), at(0), at(600), at(300), at(0)], Some(s(100)));
        assert_eq!((bags.latest_length(), bags.next_at()), (None, Some(at(0))));
        assert_eq!(bags.take_submitted(at(0)), [0, 1, 4]);
        bags.length_of(4).add_length(s(50));
        assert_eq!((bags.latest_length(), bags.next_at()), (Some(s(50)), Some(at(300))));
        assert!(bags.take_submitted(at(299)).is_empty());
        assert_eq!(bags.take_submitted(at(700)), [3, 2]);
        assert_eq!((bags.latest_length(), bags.next_at()), (Some(s(100)), None));
        assert_eq!(bags.length_of(1).whole_length(), Some(s(50)));
        assert_eq!(SubmittedBags::new(&[], None).latest_length(), None);
    }

    #[test]
    fn jobs_that_have_ended_are_believed_before_the_first_estimate() {
        let s = Span::from_secs;
        assert_eq!(MeanLength::new(None).remaining_length(Ppm::ZERO), None);
        let mut length = MeanLength::new(Some(s(600)));
        assert_eq!(length.remaining_length(Ppm::ZERO), Some(s(600)));
        length.add_length(s(100));
        length.add_length(s(200));
        assert_eq!(length.remaining_length(Ppm::ZERO), Some(s(150)));
        assert_eq!(length.remaining_length(Ppm::new(800_000)), Some(s(30)));
    }
}
