//! Inert records of IAM: roles and instance profiles that clients make before they launch. They allow and forbid
//! nothing.

use std::collections::BTreeMap;

use dormouse_ec2_wire::{ApiError, QueryPairs, write_instant};

use crate::xml::element;

/// The namespace of IAM's answers.
pub(crate) const NAMESPACE: &str = "https://iam.amazonaws.com/doc/2010-05-08/";
/// Greatest number of roles in one account, and likewise of instance profiles.
const MAX_RECORDS: usize = 1_000;

/// The roles and profiles of all accounts, which regions share.
#[derive(Debug, Default)]
pub(crate) struct IdentityRecords {
    accounts: BTreeMap<String, AccountIdentities>,
}

#[derive(Debug, Default)]
struct AccountIdentities {
    roles: BTreeMap<String, RoleRecord>,
    profiles: BTreeMap<String, ProfileRecord>,
    /// Number of roles and profiles made so far; ids of new ones are derived from it.
    made: u64,
}

#[derive(Clone, Debug)]
struct RoleRecord {
    /// The path, the description and the policy of the role, by their names in the request.
    given: BTreeMap<String, String>,
    id: String,
    created: String,
}

#[derive(Clone, Debug)]
struct ProfileRecord {
    given: BTreeMap<String, String>,
    id: String,
    created: String,
    role: Option<String>,
}

/// The supported actions, each with its parameters; the first parameter is required.
const ACTIONS: &[(&str, &[&str])] = &[
    ("AddRoleToInstanceProfile", &["InstanceProfileName", "RoleName"]),
    ("AttachRolePolicy", &["RoleName", "PolicyArn"]),
    ("CreateInstanceProfile", &["InstanceProfileName", "Path"]),
    (
        "CreateRole",
        &["RoleName", "AssumeRolePolicyDocument", "Path", "Description", "MaxSessionDuration"],
    ),
    ("GetInstanceProfile", &["InstanceProfileName"]),
    ("GetRole", &["RoleName"]),
    ("PutRolePolicy", &["RoleName", "PolicyName", "PolicyDocument"]),
];

impl IdentityRecords {
    /// Answers a call with the XML of its result; `None` for an action without a result.
    ///
    /// # Errors
    ///
    /// The error of IAM; the error for an unsupported part of the call names that part.
    pub(crate) fn call(
        &mut self,
        account: &str,
        action: &str,
        pairs: &QueryPairs,
        date: i64,
    ) -> Result<Option<String>, ApiError> {
        let Some((_, known)) = ACTIONS.iter().find(|(name, _)| *name == action) else {
            let text = format!("The action iam:{action} is not played here.");
            return Err(ApiError::new("UnsupportedOperation", text));
        };
        let mut given = BTreeMap::new();
        for (name, value) in pairs.iter().filter(|(name, _)| name != "Action" && name != "Version")
        {
            if !known.contains(&name.as_str()) {
                let text = format!("The parameter {name} of iam:{action} is not played here.");
                return Err(ApiError::new("UnsupportedOperation", text));
            }
            given.insert(name.clone(), value.clone());
        }
        let of = self.accounts.entry(account.to_owned()).or_default();
        match action {
            "CreateRole" => of.create_role(account, given, date).map(Some),
            "GetRole" => Ok(Some(of.role_xml(account, required(&given, "RoleName")?)?)),
            "AttachRolePolicy" => {
                required(&given, "PolicyArn")?;
                of.role(required(&given, "RoleName")?).map(|_| None)
            }
            "PutRolePolicy" => {
                required(&given, "PolicyName")?;
                required(&given, "PolicyDocument")?;
                of.role(required(&given, "RoleName")?).map(|_| None)
            }
            "CreateInstanceProfile" => of.create_profile(account, given, date).map(Some),
            "GetInstanceProfile" => {
                of.profile_xml(account, required(&given, "InstanceProfileName")?).map(Some)
            }
            _ => of.add_role(&given).map(|()| None),
        }
    }
}

/// Reads a required parameter, which has to have the form of a name.
fn required<'a>(given: &'a BTreeMap<String, String>, name: &str) -> Result<&'a str, ApiError> {
    let value = given.get(name).map(String::as_str).filter(|value| !value.is_empty());
    value.ok_or_else(|| {
        ApiError::new("ValidationError", format!("The request must contain the parameter {name}"))
    })
}

fn no_such_entity(kind: &str, name: &str) -> ApiError {
    ApiError::new("NoSuchEntity", format!("{kind} {name} cannot be found."))
}

impl AccountIdentities {
    fn next_id(&mut self, prefix: &str) -> String {
        self.made += 1;
        format!("{prefix}{:017}", self.made)
    }

    fn role(&self, name: &str) -> Result<&RoleRecord, ApiError> {
        self.roles.get(name).ok_or_else(|| no_such_entity("The role with name", name))
    }

    fn create_role(
        &mut self,
        account: &str,
        given: BTreeMap<String, String>,
        date: i64,
    ) -> Result<String, ApiError> {
        required(&given, "AssumeRolePolicyDocument")?;
        let name = required(&given, "RoleName")?.to_owned();
        refuse_second(self.roles.contains_key(&name), self.roles.len(), "Role", &name)?;
        let id = self.next_id("AROA");
        let role = RoleRecord { given, id, created: write_instant(date) };
        self.roles.insert(name.clone(), role);
        self.role_xml(account, &name)
    }

    fn create_profile(
        &mut self,
        account: &str,
        given: BTreeMap<String, String>,
        date: i64,
    ) -> Result<String, ApiError> {
        let name = required(&given, "InstanceProfileName")?.to_owned();
        let exists = self.profiles.contains_key(&name);
        refuse_second(exists, self.profiles.len(), "Instance Profile", &name)?;
        let id = self.next_id("AIPA");
        let profile = ProfileRecord { given, id, created: write_instant(date), role: None };
        self.profiles.insert(name.clone(), profile);
        self.profile_xml(account, &name)
    }

    fn add_role(&mut self, given: &BTreeMap<String, String>) -> Result<(), ApiError> {
        let role = required(given, "RoleName")?;
        self.role(role)?;
        let name = required(given, "InstanceProfileName")?;
        let missing = || no_such_entity("Instance Profile", name);
        let profile = self.profiles.get_mut(name).ok_or_else(missing)?;
        if profile.role.is_some() {
            let text = "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1";
            return Err(ApiError::new("LimitExceeded", text));
        }
        profile.role = Some(role.to_owned());
        Ok(())
    }

    /// The fields of a role, which the answers of several actions wrap in different XML elements.
    fn role_fields(&self, account: &str, name: &str) -> Result<String, ApiError> {
        let role = self.role(name)?;
        let path = role.given.get("Path").map_or("/", String::as_str);
        let mut xml = element("Path", path);
        xml += &element("RoleName", name);
        xml += &element("RoleId", &role.id);
        xml += &element("Arn", &format!("arn:aws:iam::{account}:role{path}{name}"));
        xml += &element("CreateDate", &role.created);
        let policy = role.given.get("AssumeRolePolicyDocument").map_or("", String::as_str);
        xml += &element("AssumeRolePolicyDocument", &url_encoded(policy));
        if let Some(description) = role.given.get("Description") {
            xml += &element("Description", description);
        }
        if let Some(longest) = role.given.get("MaxSessionDuration") {
            xml += &element("MaxSessionDuration", longest);
        }
        Ok(xml)
    }

    fn role_xml(&self, account: &str, name: &str) -> Result<String, ApiError> {
        Ok(format!("<Role>{}</Role>", self.role_fields(account, name)?))
    }

    fn profile_xml(&self, account: &str, name: &str) -> Result<String, ApiError> {
        let missing = || no_such_entity("Instance Profile", name);
        let profile = self.profiles.get(name).ok_or_else(missing)?;
        let path = profile.given.get("Path").map_or("/", String::as_str);
        let mut xml = element("Path", path);
        xml += &element("InstanceProfileName", name);
        xml += &element("InstanceProfileId", &profile.id);
        xml += &element("Arn", &format!("arn:aws:iam::{account}:instance-profile{path}{name}"));
        xml += &element("CreateDate", &profile.created);
        let role =
            profile.role.as_deref().map(|role| self.role_fields(account, role)).transpose()?;
        let role = role.map(|role| format!("<member>{role}</member>")).unwrap_or_default();
        Ok(format!("<InstanceProfile>{xml}<Roles>{role}</Roles></InstanceProfile>"))
    }
}

fn refuse_second(exists: bool, count: usize, kind: &str, name: &str) -> Result<(), ApiError> {
    if exists {
        let text = format!("{kind} with name {name} already exists.");
        return Err(ApiError::new("EntityAlreadyExists", text));
    }
    if count >= MAX_RECORDS {
        let text = format!("Cannot exceed quota for {kind}s of an account: {MAX_RECORDS}");
        return Err(ApiError::new("LimitExceeded", text));
    }
    Ok(())
}

/// A policy in the form of IAM's answers: encoded as in a URL (RFC 3986).
fn url_encoded(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(
        records: &mut IdentityRecords,
        action: &str,
        pairs: &[(&str, &str)],
    ) -> Result<Option<String>, ApiError> {
        let pairs =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        records.call("123456789012", action, &pairs, 0)
    }

    /// Makes the calls that Ray's launcher makes.
    #[test]
    fn a_profile_has_the_role_that_it_was_given() {
        let mut records = IdentityRecords::default();
        let profile = ("InstanceProfileName", "p");
        let role = ("RoleName", "r");
        let code = |answer: Result<Option<String>, ApiError>| answer.expect_err("refused").code;
        assert_eq!(code(call(&mut records, "GetInstanceProfile", &[profile])), "NoSuchEntity");
        call(&mut records, "CreateInstanceProfile", &[profile]).expect("it is new");
        assert_eq!(code(call(&mut records, "GetRole", &[role])), "NoSuchEntity");
        let policy = ("AssumeRolePolicyDocument", "{\"a\": 1}");
        call(&mut records, "CreateRole", &[role, policy]).expect("it is new");
        assert_eq!(code(call(&mut records, "CreateRole", &[role, policy])), "EntityAlreadyExists");
        let arn = ("PolicyArn", "arn:aws:iam::aws:policy/x");
        assert_eq!(call(&mut records, "AttachRolePolicy", &[role, arn]), Ok(None));
        assert_eq!(call(&mut records, "AddRoleToInstanceProfile", &[profile, role]), Ok(None));
        let xml = call(&mut records, "GetInstanceProfile", &[profile]).expect("it is there");
        let xml = xml.expect("a result");
        assert!(xml.contains("<Arn>arn:aws:iam::123456789012:instance-profile/p</Arn>"), "{xml}");
        assert!(xml.contains("<Roles><member><Path>/</Path><RoleName>r</RoleName>"), "{xml}");
        assert!(xml.contains("%7B%22a%22%3A%201%7D"), "{xml}");
        let full = call(&mut records, "AddRoleToInstanceProfile", &[profile, role]);
        assert_eq!(code(full), "LimitExceeded");
    }

    #[test]
    fn what_is_not_played_is_refused_by_its_name() {
        let mut records = IdentityRecords::default();
        let error = call(&mut records, "DeleteRole", &[]).expect_err("not played");
        assert_eq!(error.message, "The action iam:DeleteRole is not played here.");
        let boundary = [("RoleName", "r"), ("PermissionsBoundary", "x")];
        let error = call(&mut records, "CreateRole", &boundary).expect_err("not played");
        assert!(error.message.contains("PermissionsBoundary"), "{error}");
        let error = call(&mut records, "GetRole", &[]).expect_err("no name");
        assert_eq!(error.code, "ValidationError");
    }
}
