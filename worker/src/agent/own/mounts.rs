//! Folders of this host that users' own programs may read, as allowed by the worker's operator.

use std::path::{Component, Path, PathBuf};

use dormouse_proto::v1::StartTask;

/// Most folders of the host that one program may read.
const MOST: usize = 64;

/// Checks that this worker's operator allows all host folders that the command's program reads: each must be in one of
/// `allowed`.
///
/// # Errors
///
/// The program reads too many folders, or one that isn't allowed, which is named.
pub(crate) fn check_mounts(order: &StartTask, allowed: &[PathBuf]) -> Result<(), String> {
    let asked = order.own.as_ref().map_or(&[][..], |own| &own.mounts);
    if asked.len() > MOST {
        return Err(format!(
            "its program reads {} folders of this host; a worker accepts at most {MOST}: name fewer in mounts",
            asked.len()
        ));
    }
    let is_plain = |path: &Path| {
        path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
    };
    let may = |path: &Path| is_plain(path) && allowed.iter().any(|folder| path.starts_with(folder));
    match asked.iter().find(|path| !may(Path::new(path))) {
        None => Ok(()),
        Some(path) => Err(format!(
            "its program reads {path:?} of this host, which the worker does not allow: start the \
             worker with --allow-mounts {path}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use dormouse_proto::v1::OwnProgram;

    use super::*;

    #[test]
    fn only_what_is_allowed_and_in_it_is_read() {
        let asks = |path: &str| {
            let own = OwnProgram { mounts: vec![path.to_owned()], ..OwnProgram::default() };
            let order = StartTask { own: Some(own), ..StartTask::default() };
            check_mounts(&order, &[PathBuf::from("/opt/R")])
        };
        assert_eq!([asks("/opt/R"), asks("/opt/R/lib")], [Ok(()), Ok(())]);
        for path in ["/opt", "/opt/Rust", "/opt/R/../../etc", "/etc", "opt/R", "", "/"] {
            let refused = asks(path);
            assert!(refused.is_err_and(|why| why.contains("--allow-mounts")), "{path}");
        }
        assert_eq!(check_mounts(&StartTask::default(), &[]), Ok(()));
    }
}
