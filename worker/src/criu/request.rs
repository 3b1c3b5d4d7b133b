//! The requests that are sent to CRIU.

use std::{fs::File, os::fd::AsRawFd as _, time::Duration};

use super::rpc::{CriuCgMode, CriuFeatures, CriuNetworkLockMethod, CriuOpts, CriuReq, CriuReqType};

/// Log level with which CRIU logs errors and warnings; a higher one would slow CRIU down.
pub(super) const LOG_LEVEL: i32 = 2;
/// Largest file without a name that is dumped, in bytes; CRIU's own limit is one million.
const LARGEST_GHOST: u32 = 1 << 30;

/// Makes a request to CRIU of kind `kind` without options.
pub(super) fn make_request(kind: CriuReqType) -> CriuReq {
    CriuReq { r#type: kind.into(), ..CriuReq::default() }
}

/// Returns the list of features that CRIU is asked about.
pub(super) fn asked_features() -> CriuFeatures {
    CriuFeatures { mem_track: Some(true), lazy_pages: Some(true), pidfd_store: Some(true) }
}

/// Returns the options that requests for dumps and for restores share.
pub(super) fn shared_options(
    images: &File,
    work: &File,
    log: &str,
    deadline: Duration,
) -> CriuOpts {
    CriuOpts {
        images_dir_fd: images.as_raw_fd(),
        work_dir_fd: Some(work.as_raw_fd()),
        log_file: Some(log.to_owned()),
        log_level: Some(LOG_LEVEL),
        notify_scripts: Some(true),
        file_locks: Some(true),
        // Groups are the worker's business: a restore is usually into another VM's.
        manage_cgroups: Some(true),
        manage_cgroups_mode: Some(CriuCgMode::Ignore.into()),
        // A task's own connections have both their ends in it, and both stand still; without this CRIU
        // sets up a packet filter.
        tcp_established: Some(true),
        network_lock: Some(CriuNetworkLockMethod::Skip.into()),
        // Files that a program has open and that have no name any more are part of its images; how large those
        // may be is looked at when they are stored.
        ghost_limit: Some(LARGEST_GHOST),
        link_remap: Some(true),
        // Its own limit for stopping the tasks.
        timeout: Some(u32::try_from(deadline.as_secs()).unwrap_or(u32::MAX).max(1)),
        ..CriuOpts::default()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use prost::Message as _;

    use super::*;

    /// Compares requests with the bytes that rust-protobuf makes of the same requests.
    #[test]
    fn requests_are_what_criu_reads() {
        let hex = |request: &CriuReq| {
            let bytes = request.encode_to_vec();
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(hex(&make_request(CriuReqType::Version)), "080a");
        let features =
            CriuReq { features: Some(asked_features()), ..make_request(CriuReqType::FeatureCheck) };
        assert_eq!(hex(&features), "08092a06080110011801");
        let refusal = CriuReq { notify_success: Some(false), ..make_request(CriuReqType::Notify) };
        assert_eq!(hex(&refusal), "08061800");
        let folder = File::open("/").unwrap();
        let opts = CriuOpts {
            pid: Some(300),
            leave_running: Some(true),
            images_dir_fd: 7,
            work_dir_fd: Some(8),
            ..shared_options(&folder, &folder, "dump.log", Duration::from_secs(30))
        };
        assert_eq!(
            hex(&CriuReq { opts: Some(opts), ..make_request(CriuReqType::Dump) }),
            "08011232080710ac021801280140014802520864756d702e6c6f676001880108900101c0010190020098028080\
             808004e8021e800403"
        );
    }
}
