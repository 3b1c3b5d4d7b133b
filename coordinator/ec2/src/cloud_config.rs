//! User data of the kind `#cloud-config`: the part of cloud-init's keys that is played where instances run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dormouse_ec2_wire::ApiError;

use crate::config_text::{ConfigValue, read_config};

/// Beginning of user data of this kind.
pub(crate) const BEGINNING: &str = "#cloud-config";
/// Names of an instance's user that need not be configured: that of every task, and those of common images.
pub(crate) const USER_NAMES: [&str; 4] = ["task", "ubuntu", "ec2-user", "admin"];
/// Most names that user data may add.
const USERS: usize = 8;
/// Keys of a user that change nothing here, or say what is so anyway.
const IDLE_USER_KEYS: [&str; 2] = ["gecos", "lock_passwd"];
/// Permissions of a file that names none.
const FILE_MODE: u32 = 0o644;

/// What `#cloud-config` user data ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloudConfig {
    /// Further names of the instance's user.
    pub users: Vec<String>,
    /// Public keys that may log in.
    pub ssh_keys: Vec<String>,
    /// Files that are written at the boot.
    pub files: Vec<ConfiguredFile>,
    /// The commands, as a program; `None`: there are none.
    pub commands: Option<String>,
}

/// A file that user data have written at the boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredFile {
    /// Its path, in `/tmp` or a home directory.
    pub path: String,
    /// Its content, or what is added to it.
    pub content: Vec<u8>,
    /// Permission bits of the file, such as `0o644`.
    pub mode: u32,
    /// True if the content is added to the end of a file that may be there.
    pub appends: bool,
}

/// The error for a part that isn't played, by its name.
fn refused(what: &str, remedy: &str) -> ApiError {
    let text = format!("#cloud-config: {what} is not played live; {remedy}");
    ApiError::new("UnsupportedOperation", text)
}

/// The error for a part that cloud-init would not accept either.
fn wrong(what: &str) -> ApiError {
    ApiError::new("InvalidParameterValue", format!("#cloud-config: {what}"))
}

impl CloudConfig {
    /// Reads user data that begin with `#cloud-config`.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` for what is not YAML, or not of the right form; `UnsupportedOperation` with the name of a
    /// key that isn't played.
    pub fn read(text: &str) -> Result<Self, ApiError> {
        let mut config = Self::default();
        let whole = read_config(text).map_err(|why| wrong(&why))?;
        let members = match &whole {
            ConfigValue::Map(members) => members.as_slice(),
            ConfigValue::Null => &[],
            _ => return Err(wrong("it is not a list of keys with values")),
        };
        let of = |name: &str| {
            members.iter().find(|(key, _)| key == name).map_or(&ConfigValue::Null, |(_, it)| it)
        };
        let known = ["users", "ssh_authorized_keys", "write_files", "runcmd"];
        if let Some((key, _)) = members.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            let remedy = match key.as_str() {
                "packages" | "package_update" | "package_upgrade" => {
                    "leave it out: an instance has the programs of its host"
                }
                _ => "leave it out, or do it in runcmd",
            };
            return Err(refused(&format!("'{key}'"), remedy));
        }
        for user in of("users").items().ok_or_else(|| wrong("'users' is not a list"))? {
            config.add_user(user)?;
        }
        config.add_keys("ssh_authorized_keys", of("ssh_authorized_keys"))?;
        for file in of("write_files").items().ok_or_else(|| wrong("'write_files' is not a list"))? {
            let file = config.read_file(file)?;
            config.files.push(file);
        }
        config.commands = script_of(of("runcmd"))?;
        Ok(config)
    }

    fn add_user(&mut self, user: &ConfigValue) -> Result<(), ApiError> {
        let members = match user {
            ConfigValue::Text(name) if name == "default" => return Ok(()),
            ConfigValue::Text(name) => return self.add_name(name),
            ConfigValue::Map(members) => members,
            _ => return Err(wrong("one of 'users' is not a name, and has none")),
        };
        let name = members.iter().find(|(key, _)| key == "name");
        let name = name.and_then(|(_, name)| name.text());
        self.add_name(name.ok_or_else(|| wrong("one of 'users' has no name"))?)?;
        for (key, value) in members {
            match key.as_str() {
                "name" => {}
                "ssh_authorized_keys" | "ssh-authorized-keys" => self.add_keys(key, value)?,
                key if IDLE_USER_KEYS.contains(&key) => {}
                key => {
                    let remedy = "leave it out: all users are one, who is not root";
                    return Err(refused(&format!("'users' with '{key}'"), remedy));
                }
            }
        }
        Ok(())
    }

    fn add_name(&mut self, name: &str) -> Result<(), ApiError> {
        if !is_user_name(name) {
            return Err(wrong(&format!("'{name}' can't be the name of a user")));
        }
        if !USER_NAMES.contains(&name) && !self.users.iter().any(|own| own == name) {
            self.users.push(name.to_owned());
        }
        if self.users.len() > USERS {
            return Err(refused(&format!("more than {USERS} of 'users'"), "name fewer"));
        }
        Ok(())
    }

    fn add_keys(&mut self, name: &str, value: &ConfigValue) -> Result<(), ApiError> {
        let not_keys = || wrong(&format!("'{name}' is not a list of public keys"));
        for key in value.items().ok_or_else(not_keys)? {
            let key = key.text().map(str::trim).ok_or_else(not_keys)?;
            if key.is_empty() || key.chars().any(char::is_control) {
                return Err(not_keys());
            }
            self.ssh_keys.push(key.to_owned());
        }
        Ok(())
    }

    fn read_file(&self, file: &ConfigValue) -> Result<ConfiguredFile, ApiError> {
        let ConfigValue::Map(members) = file else {
            return Err(wrong("one of 'write_files' has no path"));
        };
        let (mut path, mut content, mut encoding) = ("", "", "text/plain");
        let (mut mode, mut appends) = (FILE_MODE, false);
        for (key, value) in members {
            let not_right = || wrong(&format!("'write_files' with a '{key}' that can't be read"));
            match key.as_str() {
                "path" => path = value.text().ok_or_else(not_right)?,
                "content" if *value == ConfigValue::Null => {}
                "content" => content = value.text().ok_or_else(not_right)?,
                "encoding" => encoding = value.text().ok_or_else(not_right)?,
                "permissions" => {
                    let digits = value.text().ok_or_else(not_right)?;
                    let digits = digits.strip_prefix("0o").unwrap_or(digits);
                    let read = u32::from_str_radix(digits, 8).ok();
                    mode = read.filter(|mode| *mode <= 0o777).ok_or_else(not_right)?;
                }
                "append" => appends = value.flag().ok_or_else(not_right)?,
                // All files are written when the users are there.
                "defer" => drop(value.flag().ok_or_else(not_right)?),
                key => {
                    let remedy = "leave it out: all files belong to the instance's only user";
                    return Err(refused(&format!("'write_files' with '{key}'"), remedy));
                }
            }
        }
        if !self.is_writable(path) {
            let remedy = "write below /tmp, or below the home directory of a user, such as /home/ubuntu: nothing else of an instance can be written";
            return Err(refused(&format!("'write_files' with the path '{path}'"), remedy));
        }
        let content = match encoding {
            "text/plain" | "text" => content.as_bytes().to_vec(),
            "b64" | "base64" => {
                let plain: String = content.split_whitespace().collect();
                let read = STANDARD.decode(plain);
                read.map_err(|_| wrong(&format!("the content of '{path}' is not base64")))?
            }
            other => {
                let what = format!("'write_files' with the encoding '{other}'");
                return Err(refused(&what, "take b64, or text"));
            }
        };
        Ok(ConfiguredFile { path: path.to_owned(), content, mode, appends })
    }

    /// Whether a path is that of a file below `/tmp` or a user's home directory.
    fn is_writable(&self, path: &str) -> bool {
        let Some(parts) = path.strip_prefix('/') else { return false };
        let parts: Vec<&str> = parts.split('/').collect();
        let is_plain = |part: &&str| {
            !part.is_empty() && *part != "." && *part != ".." && !part.chars().any(char::is_control)
        };
        let is_user = |name: &str| {
            USER_NAMES.contains(&name) || self.users.iter().any(|own| own.as_str() == name)
        };
        parts.iter().all(is_plain)
            && match parts[..] {
                ["tmp", _, ..] => true,
                ["home", name, _, ..] => is_user(name),
                _ => false,
            }
    }
}

/// Whether a text can be the name of a user.
fn is_user_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(is_plain)
        && !["root", "nobody"].contains(&name)
}

/// The commands as a program, as cloud-init makes it: a text is a line of it, and a list is a command with its words.
fn script_of(commands: &ConfigValue) -> Result<Option<String>, ApiError> {
    let not_commands = || wrong("'runcmd' is not a list of commands");
    let mut script = String::new();
    for command in commands.items().ok_or_else(not_commands)? {
        match command {
            ConfigValue::Text(line) => script.push_str(line),
            ConfigValue::List(words) => {
                for (index, word) in words.iter().enumerate() {
                    let word = word.text().ok_or_else(not_commands)?;
                    let space = if index == 0 { "" } else { " " };
                    script.push_str(&format!("{space}'{}'", word.replace('\'', r"'\''")));
                }
            }
            ConfigValue::Null => continue,
            ConfigValue::Map(_) => return Err(not_commands()),
        }
        script.push('\n');
    }
    Ok((!script.is_empty()).then(|| format!("#!/bin/sh\n{script}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r##"#cloud-config
users:
  - default
  - name: ana
    gecos: Ana
    lock_passwd: true
    ssh_authorized_keys:
      - ssh-ed25519 AAAA ana@laptop
ssh_authorized_keys: [ "ssh-ed25519 BBBB" ]
write_files:
  - path: /home/ana/hello.sh
    permissions: '0755'
    content: |
      #!/bin/sh
      echo "hello"
  - path: /tmp/raw
    encoding: b64
    content: AAEC
    append: true
runcmd:
  - cd /home/ana
  - [ echo, "it's", 5 ]
  - ./hello.sh
"##;

    fn code(text: &str) -> (String, String) {
        let error = CloudConfig::read(&format!("#cloud-config\n{text}")).expect_err(text);
        (error.code, error.message)
    }

    #[test]
    fn users_keys_files_and_commands_are_read() {
        let config = CloudConfig::read(WHOLE).expect("it is right");
        assert_eq!(config.users, ["ana"]);
        assert_eq!(config.ssh_keys, ["ssh-ed25519 AAAA ana@laptop", "ssh-ed25519 BBBB"]);
        let [hello, raw] = &config.files[..] else { panic!("{config:?}") };
        assert_eq!((hello.path.as_str(), hello.mode), ("/home/ana/hello.sh", 0o755));
        assert_eq!(hello.content, b"#!/bin/sh\necho \"hello\"\n");
        assert_eq!((raw.content.as_slice(), raw.appends, raw.mode), (&[0, 1, 2][..], true, 0o644));
        let script = "#!/bin/sh\ncd /home/ana\n'echo' 'it'\\''s' '5'\n./hello.sh\n";
        assert_eq!(config.commands.as_deref(), Some(script));
        assert_eq!(CloudConfig::read("#cloud-config\n"), Ok(CloudConfig::default()));
    }

    #[test]
    fn what_is_not_played_is_refused_by_its_name() {
        for (text, name) in [
            ("packages: [htop]", "'packages'"),
            ("package_update: true", "'package_update'"),
            ("bootcmd: [ls]", "'bootcmd'"),
            ("users: [{name: ana, sudo: 'ALL=(ALL) NOPASSWD:ALL'}]", "'users' with 'sudo'"),
            ("write_files: [{path: /etc/motd, content: x}]", "'/etc/motd'"),
            ("write_files: [{path: /home/eve/x, content: x}]", "'/home/eve/x'"),
            ("write_files: [{path: /tmp/../etc/x, content: x}]", "'/tmp/../etc/x'"),
            ("write_files: [{path: /tmp, content: x}]", "'/tmp'"),
            ("write_files: [{path: /tmp/x, owner: 'root:root'}]", "'owner'"),
            ("write_files: [{path: /tmp/x, encoding: gz}]", "'gz'"),
        ] {
            let (code, message) = code(text);
            assert!(code == "UnsupportedOperation" && message.contains(name), "{code}: {message}");
        }
    }

    #[test]
    fn what_cloud_init_would_not_read_is_wrong() {
        for text in [
            "- a list",
            "users: 5",
            "users: [root]",
            "users: ['a b']",
            "users: [{gecos: nobody}]",
            "users: [\"x:0:0\"]",
            "ssh_authorized_keys: [\"ssh-ed25519 A\\nssh-ed25519 B\"]",
            "write_files: [{path: /tmp/x, permissions: rw}]",
            "write_files: [{path: /tmp/x, permissions: '7777'}]",
            "write_files: [{path: /tmp/x, encoding: b64, content: '?'}]",
            "runcmd: [{a: b}]",
            "runcmd: &a [*a]",
            "a: [",
            "a: b\na: c",
        ] {
            let (code, message) = code(text);
            assert_eq!(code, "InvalidParameterValue", "{text}: {message}");
        }
    }
}
