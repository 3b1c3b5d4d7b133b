//! Secrets of a live run's API: private keys that it gives out, and credentials of instances' roles. They all follow from one
//! random secret, so that the desk draws nothing, and none of them is in a log.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use sha2::{Digest as _, Sha256};

/// Name of the only kind of key that is made here, in OpenSSH's form.
const ED25519: &str = "ssh-ed25519";
/// Letters of an access key.
const KEY_LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// Characters in a line of a private key.
const LINE: usize = 70;

/// The secret that a live run's keys and credentials follow from.
#[derive(Clone)]
pub struct RunSecret([u8; 32]);

impl std::fmt::Debug for RunSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunSecret")
    }
}

/// Credentials of an instance's role.
#[derive(Clone, PartialEq, Eq)]
pub struct RoleKey {
    /// The account that the instance belongs to.
    pub account: String,
    /// The access key.
    pub access_key: String,
    /// The secret of the access key.
    pub secret: String,
    /// The session token.
    pub token: String,
}

impl std::fmt::Debug for RoleKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoleKey").field("account", &self.account).finish_non_exhaustive()
    }
}

/// A pair of SSH keys.
#[derive(Clone)]
pub(crate) struct SshKeyPair {
    /// The public key as a line, without a comment.
    pub(crate) public: String,
    /// The private key, as OpenSSH's clients read it from a file.
    pub(crate) private: String,
}

impl RunSecret {
    /// Makes a secret of random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Bytes that follow from the secret for one purpose and one resource.
    fn derive(&self, purpose: &str, id: &str) -> [u8; 32] {
        let inner = Sha256::new().chain_update(self.0).chain_update(format!("{purpose} {id}"));
        let outer = Sha256::new().chain_update(self.0).chain_update(inner.finalize());
        outer.finalize().into()
    }

    /// The credentials of the role of an instance.
    pub(crate) fn role_key(&self, account: &str, instance: &str) -> RoleKey {
        let letters = self.derive("access key", instance);
        let letter = |byte: &u8| char::from(KEY_LETTERS[usize::from(*byte) % KEY_LETTERS.len()]);
        let letters: String = letters.iter().take(16).map(letter).collect();
        RoleKey {
            account: account.to_owned(),
            access_key: format!("ASIA{letters}"),
            secret: STANDARD.encode(self.derive("secret", instance)),
            token: STANDARD.encode(self.derive("token", instance)),
        }
    }

    /// The key pair with this id; `None`: the system's cryptography refuses.
    pub(crate) fn ssh_key_pair(&self, id: &str) -> Option<SshKeyPair> {
        let seed = self.derive("key pair", id);
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).ok()?;
        let public = pair.public_key().as_ref();
        let mut blob = Vec::new();
        add_string(&mut blob, ED25519.as_bytes());
        add_string(&mut blob, public);
        let [a, b, c, d, ..] = self.derive("check", id);
        let mut secret = [a, b, c, d, a, b, c, d].to_vec();
        add_string(&mut secret, ED25519.as_bytes());
        add_string(&mut secret, public);
        add_string(&mut secret, &[&seed[..], public].concat());
        add_string(&mut secret, b"");
        let padding = secret.len().next_multiple_of(8) - secret.len();
        secret.extend((1..).take(padding));
        let mut all = b"openssh-key-v1\0".to_vec();
        for text in ["none", "none", ""] {
            add_string(&mut all, text.as_bytes());
        }
        all.extend(1_u32.to_be_bytes());
        add_string(&mut all, &blob);
        add_string(&mut all, &secret);
        let text = STANDARD.encode(all);
        let lines: Vec<&str> =
            text.as_bytes().chunks(LINE).filter_map(|line| str::from_utf8(line).ok()).collect();
        let lines = lines.join("\n");
        Some(SshKeyPair {
            public: format!("{ED25519} {}", STANDARD.encode(&blob)),
            private: format!(
                "-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----\n"
            ),
        })
    }
}

/// Adds a text with its length, as SSH encodes it.
fn add_string(to: &mut Vec<u8>, text: &[u8]) {
    to.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    to.extend(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_from_the_secret_and_differ_from_each_other() {
        let (secret, other) = (RunSecret::new([1; 32]), RunSecret::new([2; 32]));
        let pair = |secret: &RunSecret, id: &str| secret.ssh_key_pair(id).expect("a key").public;
        assert_eq!(pair(&secret, "key-1"), pair(&secret, "key-1"));
        assert_ne!(pair(&secret, "key-1"), pair(&secret, "key-2"));
        assert_ne!(pair(&secret, "key-1"), pair(&other, "key-1"));
        let role = secret.role_key("123456789012", "i-1");
        assert!(role.access_key.starts_with("ASIA") && role.access_key.len() == 20, "{role:?}");
        assert!(!format!("{role:?}").contains(&role.secret));
        assert_ne!(role.secret, role.token);
        assert_ne!(role, secret.role_key("123456789012", "i-2"));
    }

    #[test]
    fn a_private_key_holds_its_public_half_twice_and_whole_blocks() {
        let pair = RunSecret::new([7; 32]).ssh_key_pair("key-1").expect("a key");
        let body: String = pair.private.lines().filter(|line| !line.starts_with('-')).collect();
        let bytes = STANDARD.decode(body).expect("base64");
        assert!(bytes.starts_with(b"openssh-key-v1\0\0\0\0\x04none"));
        let public = STANDARD.decode(&pair.public["ssh-ed25519 ".len()..]).expect("base64");
        let key = &public[public.len() - 32..];
        // In the public part, in the private part, and behind the seed.
        assert_eq!(bytes.windows(32).filter(|window| *window == key).count(), 3);
        assert!(pair.private.lines().all(|line| line.len() <= LINE));
    }
}
