//! GitLab.

use anyhow::{Context, bail};
use fl_http::{HeaderName, Method};
use fl_types::Secret;
use serde_json::{Value, json};

use super::provider::{DeployToken, Host, Place};
use super::provider_api::{Rest, segment};

pub(super) struct Gitlab {
    place: Place,
    rest: Rest,
    visibility: String,
}

impl Gitlab {
    pub(super) fn new(place: Place) -> anyhow::Result<Self> {
        let letter = |c: char| c.is_alphanumeric() || c == '_' || !c.is_ascii();
        let name = place.repository.rsplit('/').next().unwrap_or_default();
        let valid =
            name.starts_with(letter) && name.chars().all(|c| letter(c) || ['.', '-', ' ', '+'].contains(&c));
        if !valid {
            bail!(
                "{name} is an invalid project name for gitlab.\nIt can contain only letters, digits, emojis, '_', '.', dash, space. It must start with letter, digit, emoji or '_'."
            );
        }
        let login = (HeaderName::from_static("private-token"), place.token.expose().clone());
        let rest = Rest::new(format!("{}/api/v4", place.url()), login, place.authority.as_deref())?;
        Ok(Gitlab { place, rest, visibility: String::new() })
    }

    fn base(&self) -> String {
        format!("/projects/{}", segment(&self.path()))
    }

    async fn group(&self, name: &str) -> anyhow::Result<Value> {
        let found = self.rest.get(&format!("/groups/{}", segment(name))).await?;
        found.map(|g| g["id"].clone()).with_context(|| format!("there is no group {name:?}"))
    }
}

impl Host for Gitlab {
    fn place(&self) -> &Place {
        &self.place
    }

    /// The repository's name may hold groups below the owner.
    fn path(&self) -> String {
        format!("{}/{}", self.place.owner, self.place.repository)
    }

    async fn exists(&mut self) -> anyhow::Result<bool> {
        let found = self.rest.get(&self.base()).await?;
        if let Some(visibility) = found.as_ref().and_then(|p| p["visibility"].as_str()) {
            visibility.clone_into(&mut self.visibility);
        }
        Ok(found.is_some())
    }

    async fn create(&mut self) -> anyhow::Result<()> {
        let path = self.path();
        let (group, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let mut body = json!({"name": name, "path": name, "visibility": self.place.visibility});
        if !self.place.personal {
            body["namespace_id"] = self.group(group).await?;
        }
        self.rest.write(Method::POST, "/projects", &body).await?;
        self.place.visibility.clone_into(&mut self.visibility);
        Ok(())
    }

    async fn reconcile(&mut self) -> anyhow::Result<bool> {
        if self.visibility == self.place.visibility {
            return Ok(false);
        }
        let body = json!({"visibility": self.place.visibility});
        self.rest.write(Method::PUT, &self.base(), &body).await?;
        Ok(true)
    }

    async fn grant(&mut self, team: &str, permission: &str, again: bool) -> anyhow::Result<bool> {
        let level = match permission {
            "pull" => 10,
            "triage" => 20,
            "push" => 30,
            "maintain" => 40,
            "admin" => 50,
            other => bail!("{other:?} is no permission; use pull, triage, push, maintain or admin"),
        };
        let group = self.group(team).await?;
        let project = self.rest.get(&self.base()).await?.unwrap_or_default();
        let shared = project["shared_with_groups"].as_array().cloned().unwrap_or_default();
        if let Some(known) = shared.iter().find(|s| s["group_id"] == group) {
            if !again || known["group_access_level"] == level {
                return Ok(false);
            }
            self.rest.delete(&format!("{}/share/{group}", self.base())).await?;
        }
        let body = json!({"group_id": group, "group_access": level});
        self.rest.write(Method::POST, &format!("{}/share", self.base()), &body).await?;
        Ok(true)
    }

    async fn deploy_key(&mut self, title: &str, key: &str, write: bool) -> anyhow::Result<bool> {
        let path = format!("{}/deploy_keys", self.base());
        let bare = |text: &str| text.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        for known in self.rest.list(&path).await? {
            if known["title"] != title {
                continue;
            }
            let same = bare(known["key"].as_str().unwrap_or_default()) == bare(key);
            if same && known["can_push"].as_bool() == Some(write) {
                return Ok(false);
            }
            self.rest.delete(&format!("{path}/{}", known["id"])).await?;
        }
        let body = json!({"title": title, "key": key, "can_push": write});
        self.rest.write(Method::POST, &path, &body).await?;
        Ok(true)
    }

    async fn deploy_token(&mut self, name: &str) -> anyhow::Result<Option<DeployToken>> {
        let path = format!("{}/deploy_tokens", self.base());
        let alive = |t: &Value| t["name"] == name && t["revoked"] != true && t["expired"] != true;
        if self.rest.list(&path).await?.iter().any(alive) {
            return Ok(None);
        }
        let body = json!({"name": name, "scopes": ["read_repository"]});
        let made = self.rest.write(Method::POST, &path, &body).await?;
        let text = |field: &str| made[field].as_str().unwrap_or_default().to_owned();
        Ok(Some(DeployToken { user: text("username"), token: Secret::new(text("token")) }))
    }
}
