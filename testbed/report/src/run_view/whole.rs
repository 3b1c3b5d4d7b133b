//! The view of a whole run of any kind.

use super::outcome::{BagResults, RunResults};
use super::{RunView, bag, dates, jobs, requests};

impl RunResults<'_> {
    /// Builds the view of the run.
    #[must_use]
    pub fn view(&self) -> RunView {
        let mut view = self.view_without_dates();
        dates::add(&mut view, self.header.calendar);
        if let (Some(head), Some(summary)) = (&self.log, view.summary.as_object_mut()) {
            summary.insert("log".to_owned(), serde_json::json!(head));
        }
        if let (Some(share), Some(summary)) = (self.share, view.summary.as_object_mut()) {
            summary.insert("share".to_owned(), serde_json::json!(share.as_f64()));
        }
        view.hashes.clone_from(&self.hashes);
        view
    }

    fn view_without_dates(&self) -> RunView {
        match (&self.record, &self.jobs, &self.requests) {
            // In a live run, requests alone have a record of all VMs.
            (_, None, Some(own)) if self.header.experiment.scheduler.is_none() => {
                requests::view(self, own)
            }
            (Some(record), ..) => bag::view(&BagResults { of: self, record }),
            (None, Some(of_jobs), _) => jobs::view(self, of_jobs),
            (None, None, _) => bag::view(&BagResults { of: self, record: &self.header.record() }),
        }
    }
}
