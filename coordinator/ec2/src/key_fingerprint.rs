//! Public keys as clients import them, and their fingerprints as EC2 computes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha2::{Digest, Sha256};

/// The algorithm of an RSA key in X.509: the object 1.2.840.113549.1.1.1, without parameters.
const RSA_ALGORITHM: [u8; 15] =
    [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

/// First characters of the base64 of a key, with the key's name in OpenSSH's form and its type.
const KEY_KINDS: [(&str, Option<&str>, &str); 3] = [
    ("AAAAB3NzaC1yc2E", Some("ssh-rsa"), "rsa"),
    ("AAAAC3NzaC1lZDI1NTE5", Some("ssh-ed25519"), "ed25519"),
    ("MII", None, "rsa"),
];

/// Type of a public key, and its fingerprint. The key is in OpenSSH's form, in that of RFC 4716, or in base64 alone; `None`: EC2 does
/// not accept the key. Characters that base64 does not have are skipped, as decoders do.
pub(crate) fn read_public_key(text: &str) -> Option<(&'static str, String)> {
    let body = read_key_body(text)?;
    let (_, _, kind) = KEY_KINDS.into_iter().find(|(begin, ..)| body.starts_with(begin))?;
    let key = STANDARD.decode(&body).unwrap_or_else(|_| body.into_bytes());
    let fingerprint = match kind {
        "rsa" => hex_pairs(&Md5::digest(x509_of(&key).unwrap_or(key))),
        _ => STANDARD.encode(Sha256::digest(key)),
    };
    Some((kind, fingerprint))
}

/// A public key as a line of OpenSSH's form, without a comment; `None`: it can't be one.
pub(crate) fn login_line(text: &str) -> Option<String> {
    let body = read_key_body(text)?;
    let (_, name, _) = KEY_KINDS.into_iter().find(|(begin, ..)| body.starts_with(begin))?;
    Some(format!("{} {body}", name?))
}

/// The base64 of a public key; `None` if the text is no key of a form that EC2 accepts.
fn read_key_body(text: &str) -> Option<String> {
    let text = text.trim();
    let body = if text.starts_with("---- BEGIN SSH2 PUBLIC KEY ----") {
        let (mut body, mut continues) = (String::new(), false);
        for line in text.lines().skip(1).take_while(|line| !line.starts_with("---- END")) {
            // A line of a header may go on in the next.
            if !continues && !line.contains(':') {
                body.push_str(line.trim());
                continue;
            }
            continues = line.ends_with('\\');
        }
        body
    } else {
        let mut words = text.split_ascii_whitespace();
        let first = words.next()?;
        let is_named = ["ssh-rsa", "ssh-ed25519"].contains(&first);
        (if is_named { words.next()? } else { first }).to_owned()
    };
    let is_base64 = |char: &char| char.is_ascii_alphanumeric() || "+/=".contains(*char);
    let body: String = body.chars().filter(is_base64).collect();
    (body.len() >= 60).then_some(body)
}

/// A fingerprint of a key pair that was created here, in the form of EC2's: SHA-1 in hexadecimal for RSA, else SHA-256 in base64. There
/// is no key, so that the fingerprint is the id's.
pub(crate) fn created_fingerprint(kind: &str, id: &str) -> String {
    let digest = Sha256::digest(id.as_bytes());
    if kind == "rsa" {
        hex_pairs(digest.get(..20).unwrap_or_default())
    } else {
        STANDARD.encode(digest)
    }
}

fn hex_pairs(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(":")
}

/// An RSA key of SSH (RFC 4253) as X.509 has it in DER, of which EC2 computes the fingerprint; `None`: the key has another form.
fn x509_of(key: &[u8]) -> Option<Vec<u8>> {
    let (name, rest) = take_string(key)?;
    let (exponent, rest) = take_string(rest)?;
    let (modulus, _) = take_string(rest)?;
    if name != b"ssh-rsa" {
        return None;
    }
    let numbers = [der(0x02, modulus), der(0x02, exponent)].concat();
    let bits = [vec![0], der(0x30, &numbers)].concat();
    Some(der(0x30, &[&RSA_ALGORITHM[..], &der(0x03, &bits)].concat()))
}

/// The first string of SSH's data, and the bytes after it; `None` if the data ends before.
fn take_string(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

/// An element of DER.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut element = vec![tag];
    match (length.len(), content.len()) {
        (_, short) if short < 0x80 => element.push(length.first().copied().unwrap_or(0)),
        (count, _) => {
            // At most eight bytes.
            element.push(0x80 | u8::try_from(count).unwrap_or(8));
            element.extend(length);
        }
    }
    element.extend(content);
    element
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of_key(text: &str) -> Option<&'static str> {
        read_public_key(text).map(|(kind, _)| kind)
    }

    #[test]
    fn keys_of_three_forms_are_known_by_their_first_bytes() {
        let body = format!("AAAAB3NzaC1yc2E{}", "A".repeat(60));
        let lines = format!(
            "---- BEGIN SSH2 PUBLIC KEY ----\nComment: of a key on \\\nservers\n{}\n{}\n---- END SSH2 PUBLIC KEY ----",
            &body[..40],
            &body[40..]
        );
        for text in [format!("ssh-rsa {body} me@here"), lines, body.clone()] {
            assert_eq!(kind_of_key(&text), Some("rsa"), "{text}");
            assert_eq!(login_line(&text), Some(format!("ssh-rsa {body}")), "{text}");
        }
        let edwards = format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{}", "A".repeat(48));
        assert_eq!(kind_of_key(&edwards), Some("ed25519"));
        let dss = format!("ssh-dss AAAAB3NzaC1kc3M{}", "A".repeat(60));
        let short = "ssh-rsa AAAAB3NzaC1yc2E".to_owned();
        let cut = "---- BEGIN SSH2 PUBLIC KEY ----\nsth".to_owned();
        for wrong in [String::new(), "garbage".to_owned(), dss, short, cut] {
            assert_eq!(kind_of_key(&wrong), None, "{wrong}");
        }
    }

    /// By `ssh-keygen -e -m PKCS8 -f KEY | openssl pkey -pubin -outform DER | openssl md5 -c`, and by `ssh-keygen -l -f KEY`.
    #[test]
    fn fingerprints_are_those_of_openssl_and_ssh_keygen() {
        let rsa = "AAAAB3NzaC1yc2EAAAADAQABAAABAQCPkVMoCrUpfjQBFN9unEhRo2SFJtkFlAzn5Ymcxb7pZQB2CTrMn0y+crTqBax3S48InXH6\
            GFU7zZTyjIWcRqSKaejkYPwyDR65NhhkBj5dpQYxoZTvx3jJvR0sgQurRa6JPh2lnlRngWI/i5pocoYwYGAauGKar7iYgxWGDtKw\
            CFDtHPHHTfvgZTI4yhToAaLsHLiUlpj+HjCsfRL+zvmKl8taZhUINdWpduf27aodRkPS+94hziVWCfH8XHD5RacGVK5v0Cs7bX/e\
            W+BjNJ3cfc0oGx5G/H+1J5bLEv7cgxGurXpcGibdmbb5KRNqrglKaWv0eaTaGLQR0VTpy8sj";
        let edwards = "AAAAC3NzaC1lZDI1NTE5AAAAIJ5nYgTcRoOYhhoY+4z0RlColz5PJs8SsNQf3jEHzOiP";
        let expected = "24:5c:dd:5a:bf:59:c8:da:4b:54:9b:f8:86:1f:31:9f";
        let read = read_public_key(&format!("ssh-rsa {rsa} me@here"));
        assert_eq!(read, Some(("rsa", expected.to_owned())));
        let expected = "gPC01BhMv2zRyyk8FKWp9pwc4XdsFvVO1TZac3xO87I=";
        let read = read_public_key(&format!("ssh-ed25519 {edwards} me@here"));
        assert_eq!(read, Some(("ed25519", expected.to_owned())));
        assert_eq!(created_fingerprint("rsa", "key-1").len(), 59);
        assert_eq!(created_fingerprint("ed25519", "key-1").len(), 44);
    }
}
