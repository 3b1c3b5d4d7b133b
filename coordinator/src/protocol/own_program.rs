//! Users' own programs, converted between the formats of experiments, of the wire and of the log.

use dormouse_model::{KeptFile, ProgramEnd, ProgramExit};
use dormouse_proto::v1;
use dormouse_tasks::limits::{LEFT_FILES, NOT_KEPT, NOT_KEPT_BYTES, check_left_path, not_kept};
use dormouse_tasks::own::{FileRef, OwnProgram, Saves, Verify};
use dormouse_units::{Bytes, one_line};

/// Converts a user's own program to the wire format.
pub(crate) fn own_to_wire(own: &OwnProgram) -> v1::OwnProgram {
    use v1::own_program::Saves as Wire;
    let saves = match &own.saves {
        Saves::Criu => Wire::ByCriu(v1::Nothing {}),
        Saves::Own => Wire::ByItself(v1::Nothing {}),
        Saves::None => Wire::ByNothing(v1::Nothing {}),
        Saves::Notice { signal, file } => Wire::AtNotice(v1::SavesAtNotice {
            signal: signal.as_deref().and_then(signal_number).unwrap_or_default(),
            file: file.clone().unwrap_or_default(),
        }),
    };
    let verify = match &own.verify {
        Some(Verify::Command(verify)) => verify.clone(),
        Some(Verify::Outputs(_)) | None => Vec::new(),
    };
    v1::OwnProgram {
        argv: own.argv.clone(),
        env: own.env.clone().into_iter().collect(),
        inputs: own.inputs.iter().map(file_to_wire).collect(),
        outputs: own.outputs.clone(),
        mounts: own.mounts.clone(),
        directory_bytes: own.quota.get(),
        processes: own.processes,
        saves: Some(saves),
        verify,
    }
}

/// Returns the number of a signal by its name, such as `SIGUSR1`; experiments with other names are refused.
fn signal_number(name: &str) -> Option<i32> {
    name.parse::<nix::sys::signal::Signal>().ok().map(|signal| signal as i32)
}

fn file_to_wire(file: &FileRef) -> v1::File {
    let FileRef { path, digest, bytes, executable } = file;
    let digest =
        blake3::Hash::from_hex(digest).map_or_else(|_| Vec::new(), |it| it.as_bytes().to_vec());
    v1::File { path: path.clone(), digest: digest.into(), bytes: *bytes, executable: *executable }
}

/// Reads the reported end of a user's own program.
///
/// # Errors
///
/// What is impossible about it.
pub(crate) fn own_end(end: v1::OwnEnd) -> Result<ProgramEnd, String> {
    use v1::own_end::End;
    if end.files.len() > LEFT_FILES {
        let many = end.files.len();
        return Err(format!("a program left {many} files; a run keeps at most {LEFT_FILES}"));
    }
    let mut files = Vec::with_capacity(end.files.len());
    let mut missing = Vec::new();
    for file in end.files {
        // A program names its files as it likes: for that no worker is given up.
        match check_left_path(&file.path) {
            Ok(()) => files.push(kept_file(file)?),
            Err(why) => missing.push(not_kept(&file.path, &why)),
        }
    }
    let said = end.not_kept.iter().map(|why| one_line(why, NOT_KEPT_BYTES).into_owned());
    missing.extend(said);
    missing.truncate(NOT_KEPT);
    Ok(ProgramEnd {
        exit: end.end.map(|end| match end {
            End::Status(status) => ProgramExit::Status(status),
            End::Signal(signal) => ProgramExit::Signal(signal),
        }),
        verify_status: end.verify_status,
        files,
        not_kept: missing,
        real_waited_us: end.real_waited_us,
        memory: Bytes::new(end.memory_bytes),
        directory: Bytes::new(end.directory_bytes),
    })
}

fn kept_file(file: v1::File) -> Result<KeptFile, String> {
    let v1::File { path, digest, bytes, executable } = file;
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    if !path.split('/').all(is_plain) {
        return Err("the path of an output file is not within the task's directory".to_owned());
    }
    let digest = blake3::Hash::from_slice(&digest).map_err(|_| {
        format!(
            "the digest of {path} is not a BLAKE3 \
                 digest"
        )
    })?;
    let digest = digest.to_hex().to_string();
    Ok(KeptFile { path, digest, bytes: Bytes::new(bytes), executable })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;

    fn left(path: &str, digest: &[u8]) -> Result<ProgramEnd, String> {
        let file = v1::File {
            path: path.to_owned(),
            digest: digest.to_vec().into(),
            ..v1::File::default()
        };
        own_end(v1::OwnEnd { files: vec![file], ..v1::OwnEnd::default() })
    }

    #[test]
    fn a_file_that_is_none_of_its_directory_is_refused() {
        let digest = [7; 32];
        let kept = left("outputs/a/b.csv", &digest).unwrap();
        assert_eq!(kept.files[0].digest, "07".repeat(32));
        for path in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a"] {
            assert!(left(path, &digest).is_err(), "{path:?}");
        }
        assert!(left("a", &digest[1..]).unwrap_err().contains("digest of a"));
    }

    #[test]
    fn a_file_of_a_name_that_can_t_be_shown_is_not_kept_and_costs_no_worker() {
        let long = format!("outputs/{}", "x".repeat(1020));
        for path in ["a\0b", "outputs/a\nb", "outputs/\u{1b}[2J", &long] {
            let end = left(path, &[7; 32]).unwrap();
            assert!(end.files.is_empty(), "{path:?}");
            let [said] = &end.not_kept[..] else { panic!("{:?}", end.not_kept) };
            assert!(said.len() <= NOT_KEPT_BYTES && !said.contains(char::is_control), "{said:?}");
        }
        let file = v1::File { path: "a".to_owned(), ..v1::File::default() };
        let files = vec![file; LEFT_FILES + 1];
        let end = v1::OwnEnd { files, ..v1::OwnEnd::default() };
        assert!(own_end(end).unwrap_err().contains("4097 files"));
    }

    #[test]
    fn what_is_run_is_what_was_said() {
        let own = OwnProgram {
            argv: vec!["./solve".to_owned()],
            env: [("A".to_owned(), "1".to_owned())].into(),
            inputs: vec![FileRef {
                path: "in".to_owned(),
                digest: "07".repeat(32),
                bytes: 3,
                executable: true,
            }],
            handed: Vec::new(),
            outputs: vec!["*.csv".to_owned()],
            mounts: vec!["/opt/R".to_owned()],
            quota: Bytes::new(9),
            processes: 4,
            saves: Saves::Notice { signal: Some("SIGUSR1".to_owned()), file: None },
            verify: Some(Verify::Command(vec!["true".to_owned()])),
            deterministic: false,
        };
        let wire = own_to_wire(&own);
        assert_eq!((wire.argv, wire.verify), (own.argv, vec!["true".to_owned()]));
        assert_eq!(wire.mounts, own.mounts);
        assert_eq!((&wire.inputs[0].digest[..], wire.inputs[0].executable), (&[7; 32][..], true));
        let at_notice = v1::SavesAtNotice { signal: libc::SIGUSR1, file: String::new() };
        assert_eq!(wire.saves, Some(v1::own_program::Saves::AtNotice(at_notice)));
    }
}
