//! Safe access to files in a task's own directory, which the task may have replaced by something else, such as a link
//! or a pipe.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// Opens a regular file in a task's directory. Links, which could lead elsewhere, and pipes, which
/// would block the opener, are refused.
///
/// # Errors
///
/// The file is missing or not regular, or the system refuses.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Reads a regular file of at most `most` bytes in a task's directory.
///
/// # Errors
///
/// The file is missing, not regular or longer, or the system refuses.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open(path, OpenOptions::new().read(true))?;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= most => Ok(bytes),
        _ => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        )),
    }
}

/// Returns the last `most` bytes of a regular file in a task's directory.
///
/// # Errors
///
/// The file is missing or not regular, or the system refuses.
pub fn tail(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path, OpenOptions::new().read(true))?;
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "nothing here makes a pipe with a name")]
    fn only_a_regular_file_of_a_bounded_size_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "seven b").unwrap();
        assert_eq!(read(&at("file"), 7).unwrap(), b"seven b");
        assert!(read(&at("file"), 6).unwrap_err().to_string().contains("more than 6 bytes"));
        assert_eq!(
            (tail(&at("file"), 1).unwrap(), tail(&at("file"), 99).unwrap().len()),
            (b"b".to_vec(), 7)
        );
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        read(&at("link"), 7).unwrap_err();
        let pipe = std::ffi::CString::new(at("pipe").to_str().unwrap()).unwrap();
        // SAFETY: a path that lives.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        assert!(read(&at("pipe"), 7).unwrap_err().to_string().contains("not a regular file"));
    }
}
