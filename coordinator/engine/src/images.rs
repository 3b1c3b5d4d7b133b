//! The checkpoints from which a task can continue. If one can't be restored, the one before it is tried, else the last
//! one is tried on another host, else the task begins from scratch.

use dormouse_units::{Attempt, CheckpointSeq, HostId, Ppm};
use dormouse_vm::OLDER_CHECKPOINTS;

/// Number of the newest checkpoints of each task that the engine holds, as many as the coordinator stores.
const KEPT: usize = 3;

/// A complete checkpoint of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskImage {
    pub(crate) seq: CheckpointSeq,
    /// Part of the task's work that the checkpoint holds.
    pub(crate) done: Ppm,
    /// The attempt that took the checkpoint.
    pub(crate) by: Attempt,
}

impl TaskImage {
    pub(crate) const fn seq_and_done(self) -> (CheckpointSeq, Ppm) {
        (self.seq, self.done)
    }
}

/// The checkpoint with which a task's next attempt begins, after an attempt couldn't begin with a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FellBack {
    pub(crate) from: (CheckpointSeq, Ppm),
    pub(crate) to: Option<(CheckpointSeq, Ppm)>,
    /// Host on which the task must not be restored again; `None`: no host is excluded.
    pub(crate) not_on: Option<HostId>,
}

/// The newest checkpoints of a task, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskImages {
    kept: Vec<TaskImage>,
    /// Checkpoints older than those in `kept`, oldest first: a worker may still find one of them stored.
    before: Vec<TaskImage>,
    /// Host that couldn't restore the only checkpoint left; `None` if none has failed to.
    refused_by: Option<HostId>,
}

impl TaskImages {
    pub(crate) fn newest_image(&self) -> Option<TaskImage> {
        self.kept.last().copied()
    }

    /// Returns the numbers of all checkpoints that the task may be restored from, oldest first: the newest ones, which the
    /// coordinator stores, and some older ones.
    pub(crate) fn restorable_numbers(&self) -> impl Iterator<Item = CheckpointSeq> {
        self.before.iter().chain(&self.kept).map(|image| image.seq)
    }

    /// Adds a complete checkpoint. It replaces checkpoints with its number or a greater one: the task has since continued from an
    /// older checkpoint.
    pub(crate) fn keep_image(&mut self, image: TaskImage) {
        self.kept.retain(|older| older.seq < image.seq);
        self.before.retain(|older| older.seq < image.seq);
        let surplus = (self.kept.len() + 1).saturating_sub(KEPT);
        self.before.extend(self.kept.drain(..surplus));
        let surplus = self.before.len().saturating_sub(OLDER_CHECKPOINTS as usize);
        self.before.drain(..surplus);
        self.kept.push(image);
        self.refused_by = None;
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Records that an attempt on this host couldn't begin with the newest checkpoint; returns what to begin with
    /// instead, or `None` if there is no checkpoint.
    pub(crate) fn refuse_newest(&mut self, host: HostId) -> Option<FellBack> {
        let from = self.newest_image()?.seq_and_done();
        if self.kept.len() == 1 && self.refused_by.is_none() {
            self.refused_by = Some(host);
            return Some(FellBack { from, to: Some(from), not_on: Some(host) });
        }
        self.kept.pop();
        self.refused_by = None;
        Some(FellBack { from, to: self.newest_image().map(TaskImage::seq_and_done), not_on: None })
    }

    /// Prepares an attempt on this host. If the host couldn't restore the only checkpoint left, the task begins from scratch; else
    /// returns `None`.
    pub(crate) fn begin_on(&mut self, host: HostId) -> Option<FellBack> {
        let from = self.newest_image()?.seq_and_done();
        if self.refused_by != Some(host) {
            return None;
        }
        self.clear();
        Some(FellBack { from, to: None, not_on: None })
    }

    /// Records that an attempt began with `done` of the work done. If the newest checkpoint holds more work, it couldn't be used:
    /// returns the checkpoint used instead; else `None`.
    pub(crate) fn note_begun(&mut self, done: Ppm) -> Option<FellBack> {
        let from = self.newest_image().filter(|newest| newest.done > done)?.seq_and_done();
        self.kept.retain(|image| image.done <= done);
        if self.kept.is_empty() {
            // The worker has found one before those that were kept.
            self.before.retain(|image| image.done <= done);
            self.kept.extend(self.before.pop());
        }
        self.refused_by = None;
        Some(FellBack { from, to: self.newest_image().map(TaskImage::seq_and_done), not_on: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: HostId = HostId::new(1);
    const THERE: HostId = HostId::new(2);

    fn image(seq: u32) -> TaskImage {
        let (seq, done) = (CheckpointSeq::new(seq), Ppm::new(100_000 * seq));
        TaskImage { seq, done, by: Attempt::new(1) }
    }

    fn images(seqs: impl IntoIterator<Item = u32>) -> TaskImages {
        let mut images = TaskImages::default();
        seqs.into_iter().for_each(|seq| images.keep_image(image(seq)));
        images
    }

    /// Returns the number of the checkpoint that is tried after each host in turn has refused its own; `None`: from
    /// scratch.
    fn tried(images: &mut TaskImages, hosts: &[HostId]) -> Vec<Option<u32>> {
        let mut tried = Vec::new();
        for &host in hosts {
            images.begin_on(host);
            tried.push(images.newest_image().map(|image| image.seq.get()));
            images.refuse_newest(host);
        }
        tried
    }

    #[test]
    fn the_image_before_comes_first_then_another_host_then_scratch() {
        let mut all = images(1..=5);
        let tried_here = tried(&mut all, &[HERE; 5]);
        assert_eq!(tried_here, [Some(5), Some(4), Some(3), None, None], "three are kept");
        let mut all = images(1..=2);
        let elsewhere = tried(&mut all, &[HERE, HERE, THERE, THERE]);
        assert_eq!(elsewhere, [Some(2), Some(1), Some(1), None]);
        let mut one = images([1]);
        let from = image(1).seq_and_done();
        let again = FellBack { from, to: Some(from), not_on: Some(HERE) };
        assert_eq!((one.refuse_newest(HERE), one.begin_on(THERE)), (Some(again), None));
        let scratch = FellBack { from, to: None, not_on: None };
        assert_eq!((one.begin_on(HERE), one.begin_on(HERE)), (Some(scratch), None));
        assert_eq!(one.refuse_newest(HERE), None);
    }

    #[test]
    fn a_worker_may_go_back_by_two_from_the_oldest_that_is_kept() {
        let numbers =
            |all: &TaskImages| all.restorable_numbers().map(CheckpointSeq::get).collect::<Vec<_>>();
        let mut all = images(1..=6);
        assert_eq!(numbers(&all), [2, 3, 4, 5, 6]);
        let _ = (all.refuse_newest(HERE), all.refuse_newest(HERE));
        assert_eq!(numbers(&all), [2, 3, 4]);
        // It was gone on with from the third, and the second is older.
        all.keep_image(image(3));
        assert_eq!(numbers(&all), [2, 3]);
    }

    #[test]
    fn one_before_those_that_are_kept_is_kept_again_once_a_task_went_on_from_it() {
        let mut all = images(1..=6);
        let third = FellBack {
            from: image(6).seq_and_done(),
            to: Some(image(3).seq_and_done()),
            not_on: None,
        };
        assert_eq!(all.note_begun(image(3).done), Some(third));
        assert_eq!((&all.kept[..], &all.before[..]), (&[image(3)][..], &[image(2)][..]));
        let mut all = images(1..=6);
        let scratch = FellBack { from: image(6).seq_and_done(), to: None, not_on: None };
        assert_eq!(
            (all.note_begun(Ppm::ZERO), all.restorable_numbers().count()),
            (Some(scratch), 0)
        );
    }

    #[test]
    fn what_a_life_that_was_given_up_kept_is_none_of_the_new_ones() {
        let mut all = images(1..=3);
        all.refuse_newest(HERE);
        let anew = TaskImage { by: Attempt::new(2), ..image(3) };
        all.keep_image(anew);
        assert_eq!(all.kept, [image(1), image(2), anew]);
        assert_eq!(all.note_begun(image(3).done), None);
        let older =
            FellBack { from: anew.seq_and_done(), to: Some(image(1).seq_and_done()), not_on: None };
        assert_eq!((all.note_begun(image(1).done), &all.kept[..]), (Some(older), &[image(1)][..]));
        let scratch = FellBack { from: image(1).seq_and_done(), to: None, not_on: None };
        assert_eq!((all.note_begun(Ppm::ZERO), all.newest_image()), (Some(scratch), None));
    }
}
