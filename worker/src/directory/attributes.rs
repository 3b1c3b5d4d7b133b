//! The attributes that a program has given its files and directories (xattr(7), `user.*`).

use std::{collections::BTreeMap, ffi::CString, io, os::fd::AsFd, os::fd::AsRawFd as _};

/// Prefix of the extended attributes that a checkpoint keeps: other attributes are the system's, and no task may set them.
const USER: &str = "user.";
/// Most bytes of all extended attributes in a task's directory together.
pub(super) const MAX_ATTRIBUTES: usize = 1 << 20;

/// Reads the attributes of an open file or directory by name, each value in hexadecimal; empty if the file system has
/// no attributes.
///
/// # Errors
///
/// The system refuses, or a name isn't text.
pub(crate) fn read_attributes(of: impl AsFd) -> io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let names = match list_attributes(&of) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(found),
        names => names?,
    };
    for name in names.split(|byte| *byte == 0).filter(|name| name.starts_with(USER.as_bytes())) {
        let name = std::str::from_utf8(name).map_err(|_| {
            let why = "an attribute has a name that is not UTF-8; rename it";
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        let hex = get(&of, name)?.iter().map(|byte| format!("{byte:02x}")).collect();
        found.insert(name.to_owned(), hex);
    }
    Ok(found)
}

/// Gives an open file or directory the given extended attributes.
///
/// # Errors
/// The system refuses, as does a file system without attributes.
pub(super) fn set_attributes(
    of: impl AsFd,
    attributes: &BTreeMap<String, String>,
) -> io::Result<()> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    for (name, hex) in attributes {
        set_attribute(&of, name, &bytes_of(hex).ok_or_else(wrong)?)?;
    }
    Ok(())
}

/// Returns whether attributes that came from elsewhere all have a user's names (`user.*`) and valid values.
pub(super) fn are_plain(attributes: &BTreeMap<String, String>) -> bool {
    attributes.iter().all(|(name, hex)| {
        name.starts_with(USER) && !name.contains('\0') && bytes_of(hex).is_some()
    })
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    pairs.map(|pair| u8::from_str_radix(pair.filter(|pair| pair.len() == 2)?, 16).ok()).collect()
}

/// Reads a whole result by the system call `read`, which returns the length of its result if it gets no buffer.
fn read_all(read: impl Fn(*mut libc::c_void, usize) -> libc::ssize_t) -> io::Result<Vec<u8>> {
    loop {
        let length = usize::try_from(read(std::ptr::null_mut(), 0));
        let mut bytes = vec![0; length.map_err(|_| io::Error::last_os_error())?];
        match usize::try_from(read(bytes.as_mut_ptr().cast(), bytes.len())) {
            Ok(length) => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            // Somebody has made it longer meanwhile.
            Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::ERANGE) => {}
            Err(_) => return Err(io::Error::last_os_error()),
        }
    }
}

#[expect(unsafe_code, reason = "neither nix nor the standard library has attributes")]
fn list_attributes(of: &impl AsFd) -> io::Result<Vec<u8>> {
    let fd = of.as_fd().as_raw_fd();
    // SAFETY: the kernel writes so many bytes at most, which are the caller's.
    read_all(|to, room| unsafe { libc::flistxattr(fd, to.cast(), room) })
}

#[expect(unsafe_code, reason = "neither nix nor the standard library has attributes")]
fn get(of: &impl AsFd, name: &str) -> io::Result<Vec<u8>> {
    let (fd, name) = (of.as_fd().as_raw_fd(), CString::new(name)?);
    // SAFETY: the same; the name is this function's.
    read_all(|to, room| unsafe { libc::fgetxattr(fd, name.as_ptr(), to, room) })
}

#[expect(unsafe_code, reason = "neither nix nor the standard library has attributes")]
fn set_attribute(of: &impl AsFd, name: &str, value: &[u8]) -> io::Result<()> {
    let (fd, name) = (of.as_fd().as_raw_fd(), CString::new(name)?);
    // SAFETY: the kernel reads the name and so many bytes of the value.
    match unsafe { libc::fsetxattr(fd, name.as_ptr(), value.as_ptr().cast(), value.len(), 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_gave_a_file_is_read_and_given_again() {
        let file = tempfile::tempfile().unwrap();
        let given = [("user.origin", "00ff"), ("user.empty", "")]
            .map(|(name, hex)| (name.to_owned(), hex.to_owned()));
        let given = BTreeMap::from(given);
        match set_attributes(&file, &given) {
            // This file system has none.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                assert_eq!(read_attributes(&file).unwrap(), BTreeMap::new());
            }
            set => {
                set.unwrap();
                assert_eq!(read_attributes(&file).unwrap(), given);
            }
        }
        assert!(are_plain(&given));
    }

    #[test]
    fn only_a_user_s_attributes_are_taken_from_elsewhere() {
        for (name, hex) in
            [("security.capability", "01"), ("user.a\0b", ""), ("user.a", "0"), ("user.a", "é0")]
        {
            let wrong = BTreeMap::from([(name.to_owned(), hex.to_owned())]);
            assert!(!are_plain(&wrong), "{name:?} {hex:?}");
        }
    }
}
