//! GitHub, and Gitea, whose API is shaped after it.

use anyhow::bail;
use fl_http::{Method, header};
use serde_json::{Value, json};

use super::provider::{Host, Place};
use super::provider_api::{Rest, segment};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flavour {
    Github,
    Gitea,
}

pub(super) struct Github {
    place: Place,
    rest: Rest,
    flavour: Flavour,
    private: bool,
}

impl Github {
    pub(super) fn of_github(place: Place) -> anyhow::Result<Self> {
        let base = match place.host.as_str() {
            "github.com" => "https://api.github.com".to_owned(),
            _ => format!("{}/api/v3", place.url()),
        };
        Github::new(place, base, "Bearer", Flavour::Github)
    }

    pub(super) fn gitea(place: Place) -> anyhow::Result<Self> {
        let base = format!("{}/api/v1", place.url());
        Github::new(place, base, "token", Flavour::Gitea)
    }

    fn new(place: Place, base: String, scheme: &str, flavour: Flavour) -> anyhow::Result<Self> {
        let login = (header::AUTHORIZATION, format!("{scheme} {}", place.token.expose()));
        let rest = Rest::new(base, login, place.authority.as_deref())?;
        Ok(Github { place, rest, flavour, private: true })
    }

    fn base(&self) -> String {
        format!("/repos/{}/{}", segment(&self.place.owner), segment(&self.place.repository))
    }

    fn wants_private(&self) -> bool {
        self.place.visibility != "public"
    }
}

impl Host for Github {
    fn place(&self) -> &Place {
        &self.place
    }

    fn path(&self) -> String {
        format!("{}/{}", self.place.owner, self.place.repository)
    }

    async fn exists(&mut self) -> anyhow::Result<bool> {
        let found = self.rest.get(&self.base()).await?;
        if let Some(repository) = &found {
            self.private = repository["private"].as_bool().unwrap_or(true);
        }
        Ok(found.is_some())
    }

    async fn create(&mut self) -> anyhow::Result<()> {
        let path = if self.place.personal {
            let user = self.rest.get("/user").await?.unwrap_or_default();
            let name = user["login"].as_str().unwrap_or_default();
            if !name.eq_ignore_ascii_case(&self.place.owner) {
                bail!(
                    "the specified owner '{}' doesn't match the identity associated with the given token",
                    self.place.owner
                );
            }
            "/user/repos".to_owned()
        } else {
            format!("/orgs/{}/repos", segment(&self.place.owner))
        };
        let body = json!({"name": self.place.repository, "private": self.wants_private()});
        self.rest.write(Method::POST, &path, &body).await?;
        self.private = self.wants_private();
        Ok(())
    }

    async fn reconcile(&mut self) -> anyhow::Result<bool> {
        if self.private == self.wants_private() {
            return Ok(false);
        }
        let body = json!({"private": self.wants_private()});
        self.rest.write(Method::PATCH, &self.base(), &body).await?;
        Ok(true)
    }

    async fn grant(&mut self, team: &str, permission: &str, again: bool) -> anyhow::Result<bool> {
        let path = match self.flavour {
            Flavour::Github => {
                format!("/orgs/{}/teams/{}{}", segment(&self.place.owner), segment(team), self.base())
            }
            Flavour::Gitea => format!("{}/teams/{}", self.base(), segment(team)),
        };
        if !again && self.rest.get(&path).await?.is_some() {
            return Ok(false);
        }
        self.rest.write(Method::PUT, &path, &json!({"permission": permission})).await?;
        Ok(true)
    }

    async fn deploy_key(&mut self, title: &str, key: &str, write: bool) -> anyhow::Result<bool> {
        let path = format!("{}/keys", self.base());
        // Hosts keep type and key, and drop the comment behind them.
        let bare = |text: &str| text.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        for known in self.rest.list(&path).await? {
            if known["title"] != title {
                continue;
            }
            let same = bare(known["key"].as_str().unwrap_or_default()) == bare(key);
            if same && known["read_only"].as_bool() == Some(!write) {
                return Ok(false);
            }
            let id = known.get("id").map(Value::to_string).unwrap_or_default();
            self.rest.delete(&format!("{path}/{id}")).await?;
        }
        self.rest
            .write(Method::POST, &path, &json!({"title": title, "key": key, "read_only": !write}))
            .await?;
        Ok(true)
    }
}
