//! The metadata service of one VM: it keeps the announcements to the VM, and answers requests.

use crate::{
    EndpointSettings, HttpRequest, InterruptionNotice, ServiceAnswer, TokenSecret, UnixTime,
    VmAnnouncement, VmFacts, azure, ec2, google, notices::VmAnnouncements,
};

/// Metadata service of one VM. It reads no clock: callers pass the time.
///
/// Use: make it when the VM is launched, call [`MetadataService::announce_event`] for each announcement of the
/// provider, and [`MetadataService::answer_request`] for each request of a program on the VM.
#[derive(Debug)]
pub struct MetadataService {
    pub(crate) facts: VmFacts,
    pub(crate) settings: EndpointSettings,
    pub(crate) key: TokenSecret,
    pub(crate) notices: VmAnnouncements,
}

impl MetadataService {
    /// Service of a VM without announcements.
    #[must_use]
    pub fn new(facts: VmFacts, settings: EndpointSettings, key: TokenSecret) -> Self {
        Self { facts, settings, key, notices: VmAnnouncements::default() }
    }

    /// Records an announcement of the provider.
    pub fn announce_event(&mut self, what: VmAnnouncement) {
        let before = self.notices.clone();
        let VmAnnouncements { interruption, rebalance, maintenance, is_approved, .. } =
            &mut self.notices;
        match what {
            VmAnnouncement::Interruption(next) => {
                *interruption = Some(next);
                *is_approved = false;
            }
            // The first is what counts.
            VmAnnouncement::Rebalance(since) => *rebalance = rebalance.or(Some(since)),
            VmAnnouncement::Maintenance(event) => *maintenance = Some(event),
            VmAnnouncement::SecurityGroups(names) => self.facts.security_groups = names,
            VmAnnouncement::Resumed => {
                (*interruption, *rebalance, *is_approved) = (None, None, false);
            }
        }
        if self.notices != before {
            self.notices.changes += 1;
        }
    }

    /// The announced interruption; `None`: none is announced.
    #[must_use]
    pub const fn announced_interruption(&self) -> Option<InterruptionNotice> {
        self.notices.interruption
    }

    /// JSON of an interruption notice in EC2's dialect: `{"action":"terminate","time":"…"}`.
    #[must_use]
    pub fn interruption_json(interruption: InterruptionNotice) -> String {
        let InterruptionNotice { taking, at } = interruption;
        serde_json::json!({ "action": taking.ec2_word(), "time": at.iso_text() }).to_string()
    }

    /// JSON of an interruption notice like [`Self::interruption_json`], with the time until which a program may save
    /// its work: work that is saved by then is kept.
    #[must_use]
    pub fn notice_to_save(interruption: InterruptionNotice, save_by: UnixTime) -> String {
        let InterruptionNotice { taking, at } = interruption;
        let save_by = save_by.iso_ms();
        serde_json::json!({ "action": taking.ec2_word(), "time": at.iso_text(), "save-by": save_by })
            .to_string()
    }

    /// Answers a request now, in the dialect of its path.
    pub fn answer_request(&mut self, request: &HttpRequest, now: UnixTime) -> ServiceAnswer {
        match request.path_parts().first() {
            Some(&"computeMetadata") => google::answer_google(self, request),
            Some(&"metadata") => ServiceAnswer::Now(azure::answer_azure(self, request)),
            // Google's libraries send this header to find out if they are on one of its VMs.
            None if request.find_header(google::FLAVOR).is_some() => {
                google::answer_google(self, request)
            }
            _ => ServiceAnswer::Now(ec2::answer_ec2(self, request, now)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{TakingAction, facts::tests::spot_facts};

    /// Present time in tests: half a day before [`TAKEN`].
    pub(crate) const NOW: UnixTime = UnixTime::from_micros(1_781_000_000_000_000);
    /// Time at which the VM of tests is taken away: 2026-06-09T22:13:20Z.
    pub(crate) const TAKEN: UnixTime = UnixTime::from_micros(1_781_043_200_000_000);

    /// The service of a spot VM.
    pub(crate) fn spot_service() -> MetadataService {
        MetadataService::new(spot_facts(), EndpointSettings::default(), TokenSecret::new([3; 32]))
    }

    /// Announcement of an interruption at [`TAKEN`].
    pub(crate) const fn announce_taken(taking: TakingAction) -> VmAnnouncement {
        VmAnnouncement::Interruption(InterruptionNotice { taking, at: TAKEN })
    }

    #[test]
    fn what_is_announced_is_over_after_a_hibernation() {
        let mut service = spot_service();
        service.announce_event(VmAnnouncement::Rebalance(NOW));
        service.announce_event(announce_taken(TakingAction::Hibernate));
        assert_eq!(service.announced_interruption().map(|it| it.at), Some(TAKEN));
        service.announce_event(VmAnnouncement::Resumed);
        assert_eq!((service.announced_interruption(), service.notices.rebalance), (None, None));
        assert_eq!(service.notices.changes, 3);
        service.announce_event(VmAnnouncement::Resumed);
        assert_eq!(service.notices.changes, 3, "nothing has changed");
    }

    #[test]
    fn a_notice_says_what_and_when() {
        let interruption = InterruptionNotice { taking: TakingAction::Stop, at: TAKEN };
        let notice = MetadataService::interruption_json(interruption);
        assert_eq!(notice, r#"{"action":"stop","time":"2026-06-09T22:13:20Z"}"#);
        let save_by = UnixTime::from_micros(1_781_043_199_250_000);
        let notice = MetadataService::notice_to_save(interruption, save_by);
        let said = r#"{"action":"stop","time":"2026-06-09T22:13:20Z","save-by":"2026-06-09T22:13:19.250Z"}"#;
        assert_eq!(notice, said);
    }
}
