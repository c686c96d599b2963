//! Bitbucket Server.

use anyhow::{Context, bail};
use fl_http::{Method, header};
use serde_json::{Value, json};

use super::provider::{Host, Place};
use super::provider_api::{Rest, segment};

pub(super) struct Bitbucket {
    place: Place,
    rest: Rest,
    /// The project's key; a user's is the name with a tilde.
    project: String,
    public: bool,
}

impl Bitbucket {
    pub(super) fn new(place: Place) -> anyhow::Result<Self> {
        let login = (header::AUTHORIZATION, format!("Bearer {}", place.token.expose()));
        let rest = Rest::new(format!("{}/rest/api/1.0", place.url()), login, place.authority.as_deref())?;
        let project = if place.personal { format!("~{}", place.owner) } else { String::new() };
        Ok(Bitbucket { place, rest, project, public: false })
    }

    /// Names in addresses are lower case, with dashes for blanks.
    fn slug(&self) -> String {
        self.place.repository.to_lowercase().replace(' ', "-")
    }

    fn base(&self) -> String {
        format!("/projects/{}/repos/{}", segment(&self.project), segment(&self.slug()))
    }

    fn keys(&self) -> String {
        format!("{}/rest/keys/1.0{}/ssh", self.place.url(), self.base())
    }

    fn wants_public(&self) -> bool {
        self.place.visibility == "public"
    }

    /// The owner is given by name or by key.
    async fn find_project(&self) -> anyhow::Result<String> {
        let answer = self.rest.get(&format!("/projects?name={}", segment(&self.place.owner))).await?;
        let listed = answer.unwrap_or_default();
        let fits =
            |p: &&Value| p["name"] == self.place.owner.as_str() || p["key"] == self.place.owner.as_str();
        let named = listed["values"].as_array().into_iter().flatten().find(fits).cloned();
        let found = match named {
            Some(project) => Some(project),
            None => self.rest.get(&format!("/projects/{}", segment(&self.place.owner))).await?,
        };
        found.and_then(|p| p["key"].as_str().map(str::to_owned)).with_context(|| {
            format!("failed to get Git organization: there is no project {:?}", self.place.owner)
        })
    }
}

impl Host for Bitbucket {
    fn place(&self) -> &Place {
        &self.place
    }

    fn path(&self) -> String {
        format!("{}/{}", self.project.to_lowercase(), self.slug())
    }

    fn clone_path(&self) -> String {
        format!("scm/{}.git", self.path())
    }

    async fn exists(&mut self) -> anyhow::Result<bool> {
        if self.project.is_empty() {
            self.project = self.find_project().await?;
        }
        let found = self.rest.get(&self.base()).await?;
        if let Some(repository) = &found {
            self.public = repository["public"].as_bool().unwrap_or(false);
        }
        Ok(found.is_some())
    }

    async fn create(&mut self) -> anyhow::Result<()> {
        let path = format!("/projects/{}/repos", segment(&self.project));
        let body = json!({"name": self.place.repository, "scmId": "git", "public": self.wants_public()});
        self.rest.write(Method::POST, &path, &body).await?;
        self.public = self.wants_public();
        Ok(())
    }

    async fn reconcile(&mut self) -> anyhow::Result<bool> {
        if self.public == self.wants_public() {
            return Ok(false);
        }
        self.rest.write(Method::PUT, &self.base(), &json!({"public": self.wants_public()})).await?;
        Ok(true)
    }

    async fn grant(&mut self, team: &str, permission: &str, again: bool) -> anyhow::Result<bool> {
        let right = match permission {
            "pull" => "REPO_READ",
            "push" | "maintain" => "REPO_WRITE",
            "admin" => "REPO_ADMIN",
            other => bail!("{other:?} is no permission; use pull, push or admin"),
        };
        let path = format!("{}/permissions/groups", self.base());
        if !again {
            let answer =
                self.rest.get(&format!("{path}?filter={}", segment(team))).await?.unwrap_or_default();
            let known = answer["values"].as_array().cloned().unwrap_or_default();
            if known.iter().any(|p| p["group"]["name"] == team) {
                return Ok(false);
            }
        }
        let path = format!("{path}?name={}&permission={right}", segment(team));
        self.rest.write(Method::PUT, &path, &json!({})).await?;
        Ok(true)
    }

    async fn deploy_key(&mut self, title: &str, key: &str, write: bool) -> anyhow::Result<bool> {
        let permission = if write { "REPO_WRITE" } else { "REPO_READ" };
        let bare = |text: &str| text.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        let answer = self.rest.get(&format!("{}?limit=500", self.keys())).await?.unwrap_or_default();
        for known in answer["values"].as_array().into_iter().flatten() {
            if known["key"]["label"] != title {
                continue;
            }
            let same = bare(known["key"]["text"].as_str().unwrap_or_default()) == bare(key);
            if same && known["permission"] == permission {
                return Ok(false);
            }
            self.rest.delete(&format!("{}/{}", self.keys(), known["key"]["id"])).await?;
        }
        // The label is the comment behind the key.
        let body = json!({"key": {"text": format!("{} {title}", bare(key))}, "permission": permission});
        self.rest.write(Method::POST, &self.keys(), &body).await?;
        Ok(true)
    }
}
