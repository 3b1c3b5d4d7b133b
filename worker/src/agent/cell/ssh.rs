//! The ssh server of a cell: a program of the host, which runs in the cell as the cell's user.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Port at which a cell's ssh server listens, on the cell's loopback; users may not listen below 1024.
pub(crate) const INNER_PORT: u16 = 2222;
/// Folders in which servers are searched for: those of the system that cells see.
const PLACES: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];
/// Names of servers, the preferred one first.
const SERVERS: [&str; 2] = ["sshd", "dropbear"];

/// Returns the path of an ssh server that cells can see, if the host has one: OpenSSH's or Dropbear. `lent` are further folders
/// that cells may read.
#[must_use]
pub fn find_ssh_server(lent: &[PathBuf]) -> Option<PathBuf> {
    // A cell has a /home of its own.
    let lent = lent.iter().filter(|folder| !folder.starts_with("/home"));
    let places: Vec<PathBuf> = PLACES.into_iter().map(PathBuf::from).chain(lent.cloned()).collect();
    let all = SERVERS.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    all.into_iter().find(|path| path.is_file())
}

/// Writes the program that starts a cell's ssh server in the cell's directory: it makes the server's key, unless there is one from an earlier boot, and its settings. The
/// server gives sessions these variables.
pub(crate) fn start_script(server: &Path, env: &BTreeMap<String, String>) -> String {
    const BEGIN: &str = "#!/bin/sh\numask 077\nmkdir -p ssh && cd ssh || exit\n";
    let server_path = server.display();
    let show = "echo '-----BEGIN SSH HOST KEY KEYS-----'\ncat host_key.pub\n\
                echo '-----END SSH HOST KEY KEYS-----'\n";
    if server.ends_with("dropbear") {
        let folder = server.parent().unwrap_or(Path::new("/")).display();
        return format!(
            "{BEGIN}PATH={folder}:$PATH\n[ -s host_key ] || dropbearkey -t ed25519 -f host_key | grep '^ssh-' >host_key.pub\n{show}umask 022\n\
             exec {server_path} -F -s -j -m -r \"$PWD/host_key\" -P \"$PWD/pid\" -p 127.0.0.1:{INNER_PORT} >/dev/null 2>&1\n"
        );
    }
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_graphic() && !"\"'\\#".contains(c));
    let given = ["HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR"];
    let env = env.iter().filter(|(name, value)| {
        !given.contains(&name.as_str()) && is_plain(name) && is_plain(value)
    });
    let variables: String = env.map(|(name, value)| format!(" {name}={value}")).collect();
    let variables =
        if variables.is_empty() { String::new() } else { format!("SetEnv{variables}\n") };
    format!(
        "{BEGIN}[ -s host_key ] || ssh-keygen -q -t ed25519 -N '' -C \"$(cat /etc/hostname)\" -f host_key </dev/null || exit\n{show}\
         cat >settings <<'END'\n\
         ListenAddress 127.0.0.1:{INNER_PORT}\nHostKey host_key\nPidFile none\nLogLevel FATAL\n\
         AuthorizedKeysFile .ssh/authorized_keys\nStrictModes no\nPermitRootLogin no\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nX11Forwarding no\n\
         PrintMotd no\nSubsystem sftp internal-sftp\n{variables}END\n\
         sed -i \"s:^HostKey .*:HostKey $PWD/host_key:\" settings\numask 022\n\
         exec {server_path} -D -e -f \"$PWD/settings\"\n"
    )
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_server_is_found_where_cells_see_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sshd"), "").unwrap();
        let lent = [folder.path().to_owned()];
        let found = find_ssh_server(&lent).unwrap();
        assert!(found.ends_with("sshd"), "{}", found.display());
        let home = [PathBuf::from("/home/nobody/sshd")];
        assert_eq!(find_ssh_server(&home), find_ssh_server(&[]));
    }

    #[test]
    fn what_a_session_is_given_can_not_be_settings_of_the_server() {
        let text = |text: &str| text.to_owned();
        let env = [
            (text("AWS_REGION"), text("us-east-1")),
            (text("HOME"), text("/elsewhere")),
            (text("BAD"), text("x\nPermitRootLogin yes")),
            (text("QUOTED"), text("a \"b\"")),
        ];
        let script = start_script(Path::new("/usr/sbin/sshd"), &env.into());
        assert!(script.contains("\nSetEnv AWS_REGION=us-east-1\nEND\n"), "{script}");
        assert!(!script.contains("RootLogin yes") && !script.contains("QUOTED"), "{script}");
        let script = start_script(Path::new("/usr/sbin/dropbear"), &BTreeMap::new());
        assert!(script.contains("\nexec /usr/sbin/dropbear -F "), "{script}");
    }
}
