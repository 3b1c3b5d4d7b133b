//! The metadata service of one VM: what has been announced to it, and who answers which request.

use crate::{
    Announcement, Answer, Facts, Interruption, Key, Request, Settings, UnixTime, azure, ec2,
    google, notices::VmAnnouncements,
};

/// Metadata service of one VM. It reads no clock: callers pass the time.
///
/// Use: make it when the VM is launched, call [`Service::announce`] for each announcement of the
/// provider, and [`Service::answer`] for each request of a program on the VM.
#[derive(Debug)]
pub struct Service {
    pub(crate) facts: Facts,
    pub(crate) settings: Settings,
    pub(crate) key: Key,
    pub(crate) notices: VmAnnouncements,
}

impl Service {
    /// Service of a VM without announcements.
    #[must_use]
    pub fn new(facts: Facts, settings: Settings, key: Key) -> Self {
        Self { facts, settings, key, notices: VmAnnouncements::default() }
    }

    /// Records an announcement of the provider.
    pub fn announce(&mut self, what: Announcement) {
        let before = self.notices.clone();
        let VmAnnouncements { interruption, rebalance, maintenance, is_approved, .. } =
            &mut self.notices;
        match what {
            Announcement::Interruption(next) => {
                *interruption = Some(next);
                *is_approved = false;
            }
            // The first is what counts.
            Announcement::Rebalance(since) => *rebalance = rebalance.or(Some(since)),
            Announcement::Maintenance(event) => *maintenance = Some(event),
            Announcement::Resumed => {
                (*interruption, *rebalance, *is_approved) = (None, None, false);
            }
        }
        if self.notices != before {
            self.notices.changes += 1;
        }
    }

    /// The interruption that is announced.
    #[must_use]
    pub const fn interruption(&self) -> Option<Interruption> {
        self.notices.interruption
    }

    /// JSON of an interruption notice in EC2's dialect: `{"action":"terminate","time":"…"}`.
    #[must_use]
    pub fn notice(interruption: Interruption) -> String {
        let Interruption { taking, at } = interruption;
        serde_json::json!({ "action": taking.word(), "time": at.iso() }).to_string()
    }

    /// Like [`Self::notice`], with the time until which a program may save its work: what is saved
    /// by then is kept.
    #[must_use]
    pub fn notice_to_save(interruption: Interruption, save_by: UnixTime) -> String {
        let Interruption { taking, at } = interruption;
        let save_by = save_by.iso_ms();
        serde_json::json!({ "action": taking.word(), "time": at.iso(), "save-by": save_by })
            .to_string()
    }

    /// Answers a request now, in the dialect of its path.
    pub fn answer(&mut self, request: &Request, now: UnixTime) -> Answer {
        match request.path_parts().first() {
            Some(&"computeMetadata") => google::answer_google(self, request),
            Some(&"metadata") => Answer::Now(azure::answer_azure(self, request)),
            // Google's libraries send this header to find out if they are on one of its VMs.
            None if request.header(google::FLAVOR).is_some() => {
                google::answer_google(self, request)
            }
            _ => Answer::Now(ec2::answer_ec2(self, request, now)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Taking, facts::tests::spot_facts};

    /// Present time in tests: half a day before [`TAKEN`].
    pub(crate) const NOW: UnixTime = UnixTime::from_micros(1_781_000_000_000_000);
    /// Time at which the VM of tests is taken away: 2026-06-09T22:13:20Z.
    pub(crate) const TAKEN: UnixTime = UnixTime::from_micros(1_781_043_200_000_000);

    /// The service of a spot VM.
    pub(crate) fn service() -> Service {
        Service::new(spot_facts(), Settings::default(), Key::new([3; 32]))
    }

    /// Announcement of an interruption at [`TAKEN`].
    pub(crate) const fn announce_taken(taking: Taking) -> Announcement {
        Announcement::Interruption(Interruption { taking, at: TAKEN })
    }

    #[test]
    fn what_is_announced_is_over_after_a_hibernation() {
        let mut service = service();
        service.announce(Announcement::Rebalance(NOW));
        service.announce(announce_taken(Taking::Hibernate));
        assert_eq!(service.interruption().map(|it| it.at), Some(TAKEN));
        service.announce(Announcement::Resumed);
        assert_eq!((service.interruption(), service.notices.rebalance), (None, None));
        assert_eq!(service.notices.changes, 3);
        service.announce(Announcement::Resumed);
        assert_eq!(service.notices.changes, 3, "nothing has changed");
    }

    #[test]
    fn a_notice_says_what_and_when() {
        let interruption = Interruption { taking: Taking::Stop, at: TAKEN };
        let notice = Service::notice(interruption);
        assert_eq!(notice, r#"{"action":"stop","time":"2026-06-09T22:13:20Z"}"#);
        let save_by = UnixTime::from_micros(1_781_043_199_250_000);
        let notice = Service::notice_to_save(interruption, save_by);
        let said = r#"{"action":"stop","time":"2026-06-09T22:13:20Z","save-by":"2026-06-09T22:13:19.250Z"}"#;
        assert_eq!(notice, said);
    }
}
