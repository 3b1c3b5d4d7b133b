//! The file of a host's calibration, and the check that it belongs to this host.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Calibration, CalibrationError, FORMAT, HostIdentity};

const NAME: &str = "calibration.json";

/// Folder of the calibration if `$DORMOUSE_HOME` is not set: beside the folders of workers.
const SYSTEM: &str = "/var/lib/dormouse";

/// The state of a host's calibration.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredCalibration {
    /// The host has no calibration.
    None,
    /// A calibration of this host.
    Current(Box<Calibration>),
    /// A calibration that must not be used, with the reason as a clause.
    Unusable(String),
}

/// Path of the calibration: `$DORMOUSE_HOME/calibration.json`, or the file of that name in `/var/lib/dormouse`.
#[must_use]
pub fn default_path() -> PathBuf {
    let home = std::env::var_os("DORMOUSE_HOME").filter(|home| !home.is_empty());
    home.map_or_else(|| PathBuf::from(SYSTEM), PathBuf::from).join(NAME)
}

/// Looks for a calibration at `path` that belongs to this host. Damage is reported as unusable, not
/// as an error, since the user did not ask for the file.
#[must_use]
pub fn find(path: &Path, host: impl FnOnce() -> HostIdentity) -> StoredCalibration {
    match read(path) {
        Ok(None) => StoredCalibration::None,
        Ok(Some(calibration)) => match calibration.host.first_difference(&host()) {
            None => StoredCalibration::Current(Box::new(calibration)),
            Some(difference) => StoredCalibration::Unusable(format!(
                "the calibration in {} is stale ({difference}); `dormouse calibrate` makes a new one",
                path.display()
            )),
        },
        Err(error) => StoredCalibration::Unusable(error.to_string()),
    }
}

/// Reads a calibration; `None` if the file doesn't exist.
///
/// # Errors
///
/// The file can't be read, or is not a calibration of a known version.
pub fn read(path: &Path) -> Result<Option<Calibration>, CalibrationError> {
    #[derive(Deserialize)]
    struct FormatVersion {
        format: u32,
    }
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CalibrationError::io("read", path, "--calibration")(error)),
    };
    let damaged = |why: String| CalibrationError::Damaged { path: path.to_path_buf(), why };
    let no_json = |error: serde_json::Error| damaged(format!("it is not a calibration ({error})"));
    let FormatVersion { format } = serde_json::from_str(&text).map_err(no_json)?;
    if format != FORMAT {
        let why = format!("its format is {format}, this program reads {FORMAT}");
        return Err(damaged(why));
    }
    let calibration: Calibration = serde_json::from_str(&text).map_err(no_json)?;
    match calibration.cells.iter().find(|cell| !cell.makes_sense()) {
        Some(cell) => {
            let (speedup, load) = (cell.speedup, cell.load);
            Err(damaged(format!(
                "its figures for speed-up {speedup} at load {load} are impossible"
            )))
        }
        None => Ok(Some(calibration)),
    }
}

/// Writes the calibration atomically, and creates its folder if necessary.
///
/// # Errors
///
/// The system refuses.
pub fn write(path: &Path, calibration: &Calibration) -> Result<(), CalibrationError> {
    let refused = || CalibrationError::io("write", path, "--out");
    let folder = folder_of(path)?;
    let mut file = tempfile::Builder::new()
        .prefix(".calibration.json-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(refused())?;
    let text = format!("{:#}\n", serde_json::json!(calibration));
    file.write_all(text.as_bytes()).map_err(refused())?;
    file.as_file().sync_all().map_err(refused())?;
    file.persist(path).map_err(|error| refused()(error.error))?;
    Ok(())
}

/// The folder of a file to be written, created if necessary.
///
/// # Errors
///
/// The path is a folder, or the system refuses.
pub fn folder_of(path: &Path) -> Result<&Path, CalibrationError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if path.is_dir() {
        let is_folder = std::io::Error::from(std::io::ErrorKind::IsADirectory);
        return Err(CalibrationError::io("write", path, "--out")(is_folder));
    }
    fs::create_dir_all(folder).map_err(CalibrationError::io("make", folder, "--out"))?;
    Ok(folder)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;
    use crate::calibration::host::tests::host_for_tests;
    use crate::calibration::table::tests::{calibration, cell};
    use crate::calibration::{CalibrationCell, CellOutcome};

    fn whole() -> Calibration {
        let why = "task 0 would be given 11 µs".to_owned();
        let refused =
            CalibrationCell { came: CellOutcome::Refused { why }, ..cell(200.0, 1.0, 0.0) };
        calibration(vec![cell(10.0, 1.0, -0.0123), refused, cell(10.0, 0.25, 0.001)])
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not/there/yet/calibration.json");
        assert_eq!(find(&path, host_for_tests), StoredCalibration::None);
        write(&path, &whole()).unwrap();
        assert_eq!(find(&path, host_for_tests), StoredCalibration::Current(whole().into()));
        // Written again, it is replaced, and nothing else is left in the folder.
        write(&path, &calibration(Vec::new())).unwrap();
        assert_eq!(read(&path).unwrap().unwrap().cells, []);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn one_of_another_host_is_not_used_and_says_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.json");
        write(&path, &whole()).unwrap();
        let other = || HostIdentity { kernel: "6.99".into(), ..host_for_tests() };
        let StoredCalibration::Unusable(why) = find(&path, other) else { panic!("used") };
        assert!(why.contains("stale (kernel 6.18.0 then, 6.99 now)"), "{why}");
        assert!(why.contains("dormouse calibrate") && !why.contains('\n'), "{why}");
    }

    #[test]
    fn a_damaged_file_is_not_used_wherever_it_is_torn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.json");
        write(&path, &whole()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        // Its last characters are the end of the object and of the line.
        for end in 0..text.len() - 2 {
            fs::write(&path, text.get(..end).unwrap_or("{")).unwrap();
            let StoredCalibration::Unusable(why) = find(&path, host_for_tests) else {
                panic!("used: {end}")
            };
            assert!(why.contains("calibration.json") && !why.contains('\n'), "{why}");
        }
        for (from, to) in [
            ("\"format\": 1", "\"format\": 2"),
            ("\"speedup\": 10.0", "\"speedup\": 0.0"),
            ("\"speedup\": 10.0", "\"speedup\": 1e99"),
            ("\"load\": 1.0", "\"load\": -1.0"),
            ("\"worst-error\": -0.0123", "\"worst-error\": \"none\""),
            ("\"tasks\": 40", "\"tasks\": 0"),
        ] {
            assert!(text.contains(from), "{from}: {text}");
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            assert!(matches!(find(&path, host_for_tests), StoredCalibration::Unusable(_)), "{to}");
        }
        fs::write(&path, b"\x7fELF\xff\xfe").unwrap();
        assert!(matches!(find(&path, host_for_tests), StoredCalibration::Unusable(_)));
    }

    #[test]
    fn what_cannot_be_written_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "mine").unwrap();
        for path in [file.join("deeper/calibration.json"), folder.path().to_path_buf()] {
            let error = write(&path, &whole()).unwrap_err();
            assert!(error.to_string().contains("--out"), "{error}");
        }
    }
}
