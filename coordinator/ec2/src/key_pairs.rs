//! Key pairs. Where instances run, they open them; else they are mere records: nobody can log in to a modelled instance.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::desk_records::KeyPair;
use crate::instance_answers::tag_values;
use crate::key_fingerprint::{created_fingerprint, read_public_key};
use crate::listing::{filter_by, refuse_others};
use crate::resource_tags::{tags_for, tags_to_wire};

impl ApiDesk {
    pub(crate) fn change_key_pairs(
        &mut self,
        scope: &CallScope,
        action: &str,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played: &[&str] = match action {
            "ImportKeyPair" => &["KeyName", "PublicKeyMaterial", "TagSpecifications", "DryRun"],
            "CreateKeyPair" => &["KeyName", "KeyType", "KeyFormat", "TagSpecifications", "DryRun"],
            _ => &["KeyName", "KeyPairId", "DryRun"],
        };
        refuse_others(action, input, played)?;
        let name = input.text("KeyName").unwrap_or_default().to_owned();
        if action == "DeleteKeyPair" {
            let id = input.text("KeyPairId");
            let gone = self.key_pairs.iter().find(|((owner, own), pair)| {
                owner == scope && (id == Some(pair.id.as_str()) || id.is_none() && *own == name)
            });
            // A key pair that is not there counts as deleted.
            if let Some(key) = gone.map(|(key, _)| key.clone()) {
                self.key_pairs.remove(&key);
            }
            return Ok(PendingAnswer::Ready(WireValue::structure().with("Return", true)));
        }
        let key = (scope.clone(), name.clone());
        if self.key_pairs.contains_key(&key) {
            let text = format!("The keypair '{name}' already exists.");
            return Err(ApiError::new("InvalidKeyPair.Duplicate", text));
        }
        let public_key = (action == "ImportKeyPair")
            .then(|| String::from_utf8_lossy(input.bytes("PublicKeyMaterial").unwrap_or_default()))
            .map(std::borrow::Cow::into_owned);
        let id = self.new_id("key");
        // Where instances run, the pair opens them; there no type but ed25519 can be asked for.
        let made = self.secret.as_ref().filter(|_| public_key.is_none());
        let made = made.and_then(|secret| secret.ssh_key_pair(&id));
        let public_key = public_key.or(made.as_ref().map(|pair| pair.public.clone()));
        let (kind, fingerprint) = match &public_key {
            Some(text) => read_public_key(text).ok_or_else(|| {
                let text = "Key is not in valid OpenSSH public key format";
                ApiError::new("InvalidKeyPair.Format", text)
            })?,
            None => {
                let kind = if input.text("KeyType") == Some("ed25519") { "ed25519" } else { "rsa" };
                (kind, created_fingerprint(kind, &id))
            }
        };
        let tags = tags_for(input, "key-pair");
        let pair = KeyPair { id, fingerprint, kind, public_key, created: self.now, tags };
        let mut answer = WireValue::structure()
            .with("KeyPairId", pair.id.as_str())
            .with("KeyName", name)
            .with("KeyFingerprint", pair.fingerprint.as_str())
            .with_some("Tags", (!pair.tags.is_empty()).then(|| tags_to_wire(&pair.tags)));
        if action == "CreateKeyPair" {
            let none =
                "no key: the instances of this API are modelled, and nobody logs in to them\n";
            answer.set("KeyMaterial", made.map_or(none.to_owned(), |pair| pair.private));
        }
        self.key_pairs.insert(key, pair);
        Ok(PendingAnswer::Ready(answer))
    }

    pub(crate) fn describe_key_pairs(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["KeyNames", "KeyPairIds", "DryRun", "Filters", "IncludePublicKey"];
        refuse_others("DescribeKeyPairs", input, &played)?;
        let (names, ids) = (input.texts("KeyNames"), input.texts("KeyPairIds"));
        let own = self.key_pairs.iter().filter(|((owner, _), _)| owner == scope);
        let mut pairs: Vec<(&String, &KeyPair)> =
            own.map(|((_, name), pair)| (name, pair)).collect();
        let missing = names.iter().find(|name| pairs.iter().all(|(own, _)| own != *name));
        let missing =
            missing.or(ids.iter().find(|id| pairs.iter().all(|(_, pair)| pair.id != **id)));
        if let Some(name) = missing {
            let text = format!("The key pair '{name}' does not exist");
            return Err(ApiError::new("InvalidKeyPair.NotFound", text));
        }
        pairs.retain(|(name, pair)| {
            (names.is_empty() || names.contains(&name.as_str()))
                && (ids.is_empty() || ids.contains(&pair.id.as_str()))
        });
        let known = ["key-name", "key-pair-id", "fingerprint", "tag-key", "tag-value"];
        let values = |(name, pair): &(&String, &KeyPair), filter: &str| match filter {
            "key-name" => Some(vec![(*name).clone()]),
            "key-pair-id" => Some(vec![pair.id.clone()]),
            "fingerprint" => Some(vec![pair.fingerprint.clone()]),
            _ => tag_values(&pair.tags, filter),
        };
        let pairs = filter_by(pairs, input, values, &known)?;
        let with_key = input.flag("IncludePublicKey") == Some(true);
        let written = pairs.into_iter().map(|(name, pair)| {
            WireValue::structure()
                .with("KeyPairId", pair.id.as_str())
                .with("KeyName", name.as_str())
                .with("KeyFingerprint", pair.fingerprint.as_str())
                .with("KeyType", pair.kind)
                .with("CreateTime", self.instant(pair.created))
                .with_some("PublicKey", pair.public_key.as_deref().filter(|_| with_key))
                .with_some("Tags", (!pair.tags.is_empty()).then(|| tags_to_wire(&pair.tags)))
        });
        Ok(WireValue::structure().with("KeyPairs", WireValue::list_of(written)))
    }
}
