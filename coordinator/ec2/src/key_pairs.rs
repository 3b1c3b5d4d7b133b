//! Key pairs, which are mere records: the private key of a new pair opens nothing, as nobody can log in to an instance.

use dormouse_ec2_wire::{ApiError, WireValue};
use sha2::{Digest, Sha256};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::desk_records::KeyPair;
use crate::ec2_instance::tags_to_wire;
use crate::instance_answers::tag_values;
use crate::launch_spec::tags_for;
use crate::listing::{filter_by, refuse_others};

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
        let id = self.new_id("key");
        let material = input.bytes("PublicKeyMaterial").unwrap_or(id.as_bytes());
        let digest = Sha256::digest(material);
        let hex: Vec<String> = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let kind = if input.text("KeyType") == Some("ed25519") { "ed25519" } else { "rsa" };
        let tags = tags_for(input, "key-pair");
        let pair = KeyPair { id, fingerprint: hex.join(":"), kind, created: self.now, tags };
        let mut answer = WireValue::structure()
            .with("KeyPairId", pair.id.as_str())
            .with("KeyName", name)
            .with("KeyFingerprint", pair.fingerprint.as_str())
            .with_some("Tags", (!pair.tags.is_empty()).then(|| tags_to_wire(&pair.tags)));
        if action == "CreateKeyPair" {
            let text =
                "no key: the instances of this API are modelled, and nobody logs in to them\n";
            answer.set("KeyMaterial", text);
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
        let written = pairs.into_iter().map(|(name, pair)| {
            WireValue::structure()
                .with("KeyPairId", pair.id.as_str())
                .with("KeyName", name.as_str())
                .with("KeyFingerprint", pair.fingerprint.as_str())
                .with("KeyType", pair.kind)
                .with("CreateTime", self.instant(pair.created))
                .with_some("Tags", (!pair.tags.is_empty()).then(|| tags_to_wire(&pair.tags)))
        });
        Ok(WireValue::structure().with("KeyPairs", WireValue::list_of(written)))
    }
}
