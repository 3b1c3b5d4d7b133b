//! Launch templates and their versions.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::desk_records::{LaunchTemplate, TemplateVersion};
use crate::ec2_instance::Ec2Instance;
use crate::instance_answers::tag_values;
use crate::launch_spec::{self, LaunchSpec};
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::{account_number, check_id};
use crate::resource_tags::{tags_for, tags_to_wire};

/// Key of a template's market options, which are read when instances are launched.
const MARKET: &str = "InstanceMarketOptions";

fn number(version: usize) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

impl LaunchTemplate {
    /// The number of the template's version that a name stands for: a number, `$Latest` or `$Default` (also for no name). `None` if
    /// there is no such version.
    fn version_named(&self, name: Option<&str>) -> Option<usize> {
        let version = match name {
            None | Some("" | "$Default") => self.default,
            Some("$Latest") => self.latest(),
            Some(number) => number.parse().ok()?,
        };
        self.versions.contains_key(&version).then_some(version)
    }

    /// The number of the newest existing version.
    fn latest(&self) -> usize {
        self.versions.last_key_value().map_or(self.default, |(number, _)| *number)
    }

    /// The launch specification of a version, by its name.
    ///
    /// # Errors
    ///
    /// `InvalidLaunchTemplateId.VersionNotFound`.
    fn version(&self, name: Option<&str>) -> Result<&TemplateVersion, ApiError> {
        let number = self.version_named(name);
        number.and_then(|number| self.versions.get(&number)).ok_or_else(|| {
            let text = format!(
                "Could not find the specified version {} for the launch template with ID {}.",
                name.unwrap_or("$Default"),
                self.id
            );
            ApiError::new("InvalidLaunchTemplateId.VersionNotFound", text)
        })
    }

    fn to_wire(&self, desk: &ApiDesk) -> WireValue {
        WireValue::structure()
            .with("LaunchTemplateId", self.id.as_str())
            .with("LaunchTemplateName", self.name.as_str())
            .with("CreateTime", desk.instant(self.created))
            .with("CreatedBy", creator(&self.scope))
            .with("DefaultVersionNumber", number(self.default))
            .with("LatestVersionNumber", number(self.latest()))
            .with("Tags", tags_to_wire(&self.tags))
    }

    fn version_to_wire(&self, version: usize, desk: &ApiDesk) -> Option<WireValue> {
        let of = self.versions.get(&version)?;
        Some(
            WireValue::structure()
                .with("LaunchTemplateId", self.id.as_str())
                .with("LaunchTemplateName", self.name.as_str())
                .with("VersionNumber", number(version))
                .with("CreateTime", desk.instant(of.created))
                .with("CreatedBy", creator(&self.scope))
                .with("DefaultVersion", version == self.default)
                .with("LaunchTemplateData", of.data.clone())
                .with_some("VersionDescription", of.description.as_deref()),
        )
    }
}

/// The tags of an instance in the form of templates, without the tags of AWS itself.
fn own_tags(it: &Ec2Instance) -> Option<WireValue> {
    let own = it.tags.iter().filter(|(key, _)| !key.starts_with("aws:")).cloned();
    let own: Vec<(String, String)> = own.collect();
    (!own.is_empty()).then(|| {
        WireValue::structure().with("ResourceType", "instance").with("Tags", tags_to_wire(&own))
    })
}

/// EC2's error for a call that lists templates by name, one of which is not there.
fn one_is_missing(error: ApiError) -> ApiError {
    if error.code != "InvalidLaunchTemplateName.NotFoundException" {
        return error;
    }
    let text = "At least one of the launch templates specified in the request does not exist.";
    ApiError { message: text.to_owned(), ..error }
}

fn creator(scope: &CallScope) -> String {
    format!("arn:aws:iam::{}:root", account_number(&scope.account))
}

impl ApiDesk {
    /// The launch specification of a template, and its market options; an empty specification if no template is named.
    ///
    /// # Errors
    ///
    /// `InvalidLaunchTemplateId.NotFound` and the like, and errors in the template's data.
    pub(crate) fn template_of(
        &self,
        scope: &CallScope,
        named: Option<&WireValue>,
    ) -> Result<(LaunchSpec, Option<WireValue>), ApiError> {
        let Some(named) = named else { return Ok((LaunchSpec::default(), None)) };
        let template = self.named_template(scope, named)?;
        let version = template.version(named.text("Version"))?;
        let mut spec = LaunchSpec::default().overridden(&version.data)?;
        let number = template.version_named(named.text("Version")).unwrap_or(template.default);
        spec.template_tags = vec![
            ("aws:ec2launchtemplate:id".to_owned(), template.id.clone()),
            ("aws:ec2launchtemplate:version".to_owned(), number.to_string()),
        ];
        Ok((spec, version.data.member(MARKET).cloned()))
    }

    /// The id of the template that a specification names, and the number of the version that the specification now
    /// stands for.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::template_of`].
    pub(crate) fn resolved_template(
        &self,
        scope: &CallScope,
        named: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let template = self.named_template(scope, named)?;
        template.version(named.text("Version"))?;
        let version = template.version_named(named.text("Version"));
        Ok(WireValue::structure()
            .with("LaunchTemplateId", template.id.as_str())
            .with_some("Version", version.map(|version| version.to_string())))
    }

    fn named_template(
        &self,
        scope: &CallScope,
        named: &WireValue,
    ) -> Result<&LaunchTemplate, ApiError> {
        let (id, name) = (named.text("LaunchTemplateId"), named.text("LaunchTemplateName"));
        if id.is_some() && name.is_some() {
            let text = "Either provide launch template ID or launch template name, not both.";
            return Err(ApiError::new("InvalidParameterCombination", text));
        }
        if let Some(id) = id {
            check_id("InvalidLaunchTemplateId.Malformed", id, "lt-")?;
        }
        let mut own = self.templates.iter().filter(|it| it.scope == *scope);
        let found = own.find(|it| id.map_or(name == Some(it.name.as_str()), |id| id == it.id));
        found.ok_or_else(|| match (id, name) {
            (Some(id), _) => {
                let text = format!(
                    "The specified launch template, with template ID {id}, does not exist."
                );
                ApiError::new("InvalidLaunchTemplateId.NotFound", text)
            }
            (None, Some(name)) => {
                let text = format!(
                    "The specified launch template, with template name {name}, does not exist."
                );
                ApiError::new("InvalidLaunchTemplateName.NotFoundException", text)
            }
            (None, None) => {
                let text = "The request must contain the parameter launch template ID or launch template name";
                ApiError::new("MissingParameter", text)
            }
        })
    }

    fn template_mut(
        &mut self,
        scope: &CallScope,
        named: &WireValue,
    ) -> Result<&mut LaunchTemplate, ApiError> {
        let id = self.named_template(scope, named)?.id.clone();
        let found = self.templates.iter_mut().find(|it| it.id == id);
        found.ok_or_else(|| ApiError::new("InvalidLaunchTemplateId.NotFound", id))
    }

    fn read_data(input: &WireValue) -> Result<WireValue, ApiError> {
        let data = input.member("LaunchTemplateData").cloned().unwrap_or_else(WireValue::structure);
        let mut played = launch_spec::PLAYED.to_vec();
        played.push(MARKET);
        refuse_others("LaunchTemplateData", &data, &played)?;
        LaunchSpec::default().overridden(&data)?;
        Ok(data)
    }

    pub(crate) fn create_template(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "ClientToken",
            "LaunchTemplateName",
            "VersionDescription",
            "LaunchTemplateData",
            "TagSpecifications",
            "DryRun",
        ];
        refuse_others("CreateLaunchTemplate", input, &played)?;
        let name = input.text("LaunchTemplateName").unwrap_or_default().to_owned();
        let is_legal = |it: u8| it.is_ascii_alphanumeric() || b"().-/_".contains(&it);
        if !(3..=128).contains(&name.len()) || !name.bytes().all(is_legal) {
            let text = format!(
                "Invalid launch template name: '{name}'. A name has 3 to 128 letters, digits and the characters ().-/_"
            );
            return Err(ApiError::new("InvalidLaunchTemplateName.MalformedException", text));
        }
        if self.templates.iter().any(|it| it.scope == *scope && it.name == name) {
            let text = "Launch template name already in use.";
            return Err(ApiError::new("InvalidLaunchTemplateName.AlreadyExistsException", text));
        }
        let version = TemplateVersion {
            description: input.text("VersionDescription").map(str::to_owned),
            created: self.now,
            data: Self::read_data(input)?,
        };
        let template = LaunchTemplate {
            id: self.new_id("lt"),
            scope: scope.clone(),
            name,
            created: self.now,
            default: 1,
            versions: BTreeMap::from([(1, version)]),
            next_version: 2,
            tags: tags_for(input, "launch-template"),
        };
        let answer = WireValue::structure().with("LaunchTemplate", template.to_wire(self));
        self.templates.push(template);
        Ok(PendingAnswer::Ready(answer))
    }

    pub(crate) fn create_template_version(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "ClientToken",
            "LaunchTemplateId",
            "LaunchTemplateName",
            "SourceVersion",
            "VersionDescription",
            "LaunchTemplateData",
            "DryRun",
        ];
        refuse_others("CreateLaunchTemplateVersion", input, &played)?;
        let mut data = Self::read_data(input)?;
        let now = self.now;
        let template = self.template_mut(scope, input)?;
        if let Some(source) = input.text("SourceVersion") {
            let mut whole = template.version(Some(source))?.data.clone();
            data.members().for_each(|(name, value)| whole.set(name.to_owned(), value.clone()));
            data = whole;
        }
        let description = input.text("VersionDescription").map(str::to_owned);
        let (id, number) = (template.id.clone(), template.next_version);
        template.versions.insert(number, TemplateVersion { description, created: now, data });
        template.next_version += 1;
        let template = self.templates.iter().find(|it| it.id == id);
        let written = template.and_then(|it| it.version_to_wire(number, self));
        Ok(PendingAnswer::Ready(WireValue::structure().with_some("LaunchTemplateVersion", written)))
    }

    pub(crate) fn modify_template(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played =
            ["ClientToken", "LaunchTemplateId", "LaunchTemplateName", "DefaultVersion", "DryRun"];
        refuse_others("ModifyLaunchTemplate", input, &played)?;
        if input.text("LaunchTemplateId").is_some() && input.text("LaunchTemplateName").is_some() {
            let text =
                "Either provide launch template ID or launch template name to modify the template.";
            return Err(ApiError::new("InvalidParameterCombination", text));
        }
        let template = self.template_mut(scope, input)?;
        if let Some(name) = input.text("DefaultVersion") {
            let Some(version) = template.version_named(Some(name)) else {
                let text = format!(
                    "The launch template version {name} is not found for the specified launch template."
                );
                return Err(ApiError::new("InvalidLaunchTemplateId.VersionNotFound", text));
            };
            template.default = version;
        }
        let written = self.named_template(scope, input)?.to_wire(self);
        Ok(PendingAnswer::Ready(WireValue::structure().with("LaunchTemplate", written)))
    }

    pub(crate) fn delete_template(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others(
            "DeleteLaunchTemplate",
            input,
            &["LaunchTemplateId", "LaunchTemplateName", "DryRun"],
        )?;
        let template = self.named_template(scope, input)?;
        let (id, written) = (template.id.clone(), template.to_wire(self));
        self.templates.retain(|it| it.id != id);
        Ok(PendingAnswer::Ready(WireValue::structure().with("LaunchTemplate", written)))
    }

    pub(crate) fn describe_templates(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = [
            "LaunchTemplateIds",
            "LaunchTemplateNames",
            "DryRun",
            "Filters",
            "NextToken",
            "MaxResults",
        ];
        refuse_others("DescribeLaunchTemplates", input, &played)?;
        let mut found: Vec<&LaunchTemplate> = Vec::new();
        for (key, list) in [
            ("LaunchTemplateId", "LaunchTemplateIds"),
            ("LaunchTemplateName", "LaunchTemplateNames"),
        ] {
            for named in input.texts(list) {
                let wanted = WireValue::structure().with(key, named);
                found.push(self.named_template(scope, &wanted).map_err(one_is_missing)?);
            }
        }
        if input.list("LaunchTemplateIds").is_empty()
            && input.list("LaunchTemplateNames").is_empty()
        {
            found.extend(self.templates.iter().filter(|it| it.scope == *scope));
        }
        let values = |it: &&LaunchTemplate, name: &str| match name {
            "launch-template-name" => Some(vec![it.name.clone()]),
            _ => tag_values(&it.tags, name),
        };
        let found =
            filter_by(found, input, values, &["launch-template-name", "tag-key", "tag-value"])?;
        let (page, next) = take_page(found, input, (1, 200))?;
        let written = page.into_iter().map(|it| it.to_wire(self));
        Ok(WireValue::structure()
            .with("LaunchTemplates", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    /// The latest and default versions of all templates, for a call that names no template.
    fn describe_of_all_templates(
        &self,
        scope: &CallScope,
        named: &[&str],
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        if named.is_empty() || named.iter().any(|name| !["$Latest", "$Default"].contains(name)) {
            let text = "To describe the launch template data for all your launch templates, for \u{2018}--versions\u{2019} \
                        specify \u{2018}$Latest\u{2019}, \u{2018}$Default\u{2019}, or both, and omit \
                        \u{2018}--launch-template-id\u{2019}, \u{2018}--launch-template-name\u{2019}, and version numbers. To \
                        describe the launch template data for a specific launch template, specify \
                        \u{2018}--launch-template-id\u{2019} or \u{2018}--launch-template-name\u{2019}, and for \
                        \u{2018}--versions\u{2019} specify one or more of the following values: \u{2018}$Latest\u{2019}, \
                        \u{2018}$Default\u{2019}, or one or more version numbers.";
            let code = if named.is_empty() { "MissingParameter" } else { "InvalidParameterValue" };
            return Err(ApiError::new(code, text));
        }
        let own = self.templates.iter().filter(|it| it.scope == *scope);
        let all = own.flat_map(|it| {
            let versions: BTreeSet<usize> =
                named.iter().filter_map(|name| it.version_named(Some(name))).collect();
            versions.into_iter().map(move |version| (it, version))
        });
        let (page, next) = take_page(all.collect(), input, (1, 200))?;
        let written =
            page.into_iter().filter_map(|(it, version)| it.version_to_wire(version, self));
        Ok(WireValue::structure()
            .with("LaunchTemplateVersions", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    pub(crate) fn describe_template_versions(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = [
            "LaunchTemplateId",
            "LaunchTemplateName",
            "Versions",
            "MinVersion",
            "MaxVersion",
            "DryRun",
            "NextToken",
            "MaxResults",
        ];
        refuse_others("DescribeLaunchTemplateVersions", input, &played)?;
        let named = input.texts("Versions");
        if input.text("LaunchTemplateId").or(input.text("LaunchTemplateName")).is_none() {
            return self.describe_of_all_templates(scope, &named, input);
        }
        let template = self.named_template(scope, input)?;
        let mut versions: Vec<usize> = template.versions.keys().rev().copied().collect();
        if !named.is_empty() {
            versions.clear();
            for name in named {
                template.version(Some(name))?;
                versions.extend(template.version_named(Some(name)));
            }
        }
        let bound = |name: &str, or: usize| {
            input.text(name).and_then(|text| text.parse().ok()).unwrap_or(or)
        };
        let (least, most) = (bound("MinVersion", 0), bound("MaxVersion", usize::MAX));
        versions.retain(|version| (least..=most).contains(version));
        let (page, next) = take_page(versions, input, (1, 200))?;
        let written =
            page.into_iter().filter_map(|version| template.version_to_wire(version, self));
        Ok(WireValue::structure()
            .with("LaunchTemplateVersions", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    pub(crate) fn delete_template_versions(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = ["LaunchTemplateId", "LaunchTemplateName", "Versions", "DryRun"];
        refuse_others("DeleteLaunchTemplateVersions", input, &played)?;
        let template = self.template_mut(scope, input)?;
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for name in input.texts("Versions") {
            let version = name.parse::<usize>().ok();
            let item = WireValue::structure()
                .with("LaunchTemplateId", template.id.as_str())
                .with("LaunchTemplateName", template.name.as_str())
                .with("VersionNumber", version.map_or(0, number));
            let found = version.filter(|version| template.versions.contains_key(version));
            let (code, text) = match found {
                Some(version) if version != template.default => {
                    template.versions.remove(&version);
                    done.push(item);
                    continue;
                }
                Some(_) => ("unexpectedError", "The default version can't be deleted"),
                None => ("launchTemplateVersionDoesNotExist", "There is no such version"),
            };
            let error = WireValue::structure().with("Code", code).with("Message", text);
            failed.push(item.with("ResponseError", error));
        }
        Ok(PendingAnswer::Ready(
            WireValue::structure()
                .with("SuccessfullyDeletedLaunchTemplateVersions", done)
                .with("UnsuccessfullyDeletedLaunchTemplateVersions", failed),
        ))
    }

    /// The data of a template that would launch an instance like this.
    pub(crate) fn template_data(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        refuse_others("GetLaunchTemplateData", input, &["InstanceId", "DryRun"])?;
        let index = self.instance_of(scope, input.text("InstanceId").unwrap_or_default())?;
        let Some(it) = self.instances.get(index) else { return Ok(WireValue::structure()) };
        let spec = &it.spec;
        let groups = self.groups_of(it).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
        let placement = WireValue::structure()
            .with("AvailabilityZone", it.pool.zone.as_str())
            .with("GroupName", "")
            .with("Tenancy", "default");
        let hibernation = WireValue::structure().with("Configured", spec.hibernation);
        let shutdown = spec.shutdown_behavior.as_deref().unwrap_or("stop");
        let interface = WireValue::structure()
            .with("DeviceIndex", 0_i64)
            .with("DeleteOnTermination", true)
            .with("Description", "")
            .with("Groups", groups)
            .with_some("SubnetId", it.seat.as_ref().map(|seat| seat.subnet.as_str()));
        let data = WireValue::structure()
            .with("ImageId", spec.image.as_str())
            .with("InstanceType", it.pool.name.as_str())
            .with("EbsOptimized", spec.ebs_optimized)
            .with("DisableApiTermination", spec.keeps_from_termination)
            .with("DisableApiStop", spec.keeps_from_stop)
            .with("InstanceInitiatedShutdownBehavior", shutdown)
            .with("Monitoring", WireValue::structure().with("Enabled", spec.monitored))
            .with("Placement", placement)
            .with("HibernationOptions", hibernation)
            .with("BlockDeviceMappings", WireValue::List(Vec::new()))
            .with("NetworkInterfaces", vec![interface])
            .with("TagSpecifications", WireValue::list_of(own_tags(it)))
            .with_some("UserData", spec.user_data.as_deref())
            .with_some("KeyName", spec.key.as_deref());
        Ok(WireValue::structure().with("LaunchTemplateData", data))
    }
}
