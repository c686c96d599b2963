//! Reading: digests, manifests, tags, blobs, referrers.

use bytes::Bytes;
use fl_http::{BodyReader, HeaderMap, HeaderName, HeaderValue, Method, header};
use serde::Deserialize;
use url::Url;

use crate::registry::MAX_RESPONSE_BYTES;
use crate::{
    Descriptor, Error, Index, Manifest, Reference, Registry, Repository, VerifiedBlob, digest_of, media_type,
};

const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
/// Pages of a listing. A registry that gives 100 a page can have a million tags.
const PAGES: usize = 10_000;
/// Bytes of all tags together.
const TAG_BYTES: usize = 32 << 20;

#[derive(Deserialize)]
struct TagList {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

/// A manifest as it came: its bytes are what the digest is of.
pub(crate) struct Raw {
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) bytes: Bytes,
}

fn accepts(types: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(&types.join(",")) {
        headers.insert(header::ACCEPT, value);
    }
    headers
}

const MANIFESTS: &[&str] =
    &[media_type::DOCKER_MANIFEST, media_type::OCI_MANIFEST, media_type::DOCKER_LIST, media_type::OCI_INDEX];

impl Registry {
    /// The digest of a tag, from a header of the response; without the header, the manifest is read.
    pub async fn resolve(&self, reference: &Reference) -> Result<String, Error> {
        if let Reference::Digest { digest, .. } = reference {
            return Ok(digest.clone());
        }
        let path = format!("manifests/{}", reference.identifier());
        let head =
            self.call(reference.repository(), Method::HEAD, &path, accepts(MANIFESTS), Bytes::new()).await;
        let told = head.ok().and_then(|response| {
            let digest = response.headers().get(CONTENT_DIGEST)?.to_str().ok()?.to_owned();
            reference.repository().digest(&digest).ok().map(|_| digest)
        });
        match told {
            Some(digest) => Ok(digest),
            None => Ok(self.raw_manifest(reference).await?.digest),
        }
    }

    pub(crate) async fn raw_manifest(&self, reference: &Reference) -> Result<Raw, Error> {
        let path = format!("manifests/{}", reference.identifier());
        let response =
            self.call(reference.repository(), Method::GET, &path, accepts(MANIFESTS), Bytes::new()).await?;
        let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        let media_type =
            content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_owned();
        let bytes = response.bytes(MAX_RESPONSE_BYTES).await?;
        let digest = match reference {
            Reference::Digest { digest, .. } if digest.starts_with("sha512:") => {
                // Checked by reading it through the verifying stream, which knows both kinds.
                let mut all = Vec::new();
                let size = bytes.len() as u64;
                std::io::Read::read_to_end(&mut VerifiedBlob::new(bytes.as_ref(), digest, size)?, &mut all)?;
                digest.clone()
            }
            _ => digest_of(&bytes),
        };
        if let Reference::Digest { digest: wanted, .. } = reference
            && *wanted != digest
        {
            let reference = reference.to_string();
            return Err(Error::WrongDigest { found: digest, wanted: wanted.clone(), reference });
        }
        Ok(Raw { media_type, digest, bytes })
    }

    /// A manifest and its digest. Of an index, the child for the usual platform.
    pub async fn image(&self, reference: &Reference) -> Result<(Manifest, String), Error> {
        let raw = self.raw_manifest(reference).await?;
        if !is_index(&raw) {
            return Ok((parse(reference, &raw.bytes)?, raw.digest));
        }
        let index: Index = parse(reference, &raw.bytes)?;
        let child = index.usual_child().ok_or_else(|| Error::NoPlatform {
            platform: "linux/amd64".to_owned(),
            reference: reference.to_string(),
        })?;
        let child = reference.repository().digest(&child.digest)?;
        let raw = self.raw_manifest(&child).await?;
        if is_index(&raw) {
            return Err(Error::Malformed {
                url: child.to_string(),
                problem: "an index inside an index".to_owned(),
            });
        }
        Ok((parse(&child, &raw.bytes)?, raw.digest))
    }

    /// All tags of a repository.
    pub async fn tags(&self, repository: &Repository) -> Result<Vec<String>, Error> {
        let mut tags: Vec<String> = Vec::new();
        let mut bytes = 0;
        let mut response =
            self.call(repository, Method::GET, "tags/list?n=1000", HeaderMap::new(), Bytes::new()).await?;
        for _ in 0..PAGES {
            let here = response.url().clone();
            let next = next_page(&here, response.headers())?;
            let url = here.to_string();
            let page: TagList = serde_json::from_slice(&response.bytes(MAX_RESPONSE_BYTES).await?)
                .map_err(|e| Error::Malformed { url: url.clone(), problem: e.to_string() })?;
            let page = page.tags.unwrap_or_default();
            let empty = page.is_empty();
            bytes += page.iter().map(String::len).sum::<usize>();
            tags.extend(page);
            if bytes > TAG_BYTES {
                return Err(Error::TooLarge { what: "the list of tags", url, limit: TAG_BYTES as u64 });
            }
            match next {
                // A page without tags that names another is a loop in the making.
                Some(next) if !empty => {
                    response = self
                        .call_url(repository, Method::GET, next.as_str(), HeaderMap::new(), Bytes::new())
                        .await?;
                }
                _ => return Ok(tags),
            }
        }
        Err(Error::TooLarge { what: "the list of tags", url: repository.to_string(), limit: PAGES as u64 })
    }

    /// A blob as a stream for the blocking pool; at most the size of its descriptor, which must be within `limit`.
    pub async fn blob(
        &self,
        repository: &Repository,
        descriptor: &Descriptor,
        limit: u64,
    ) -> Result<VerifiedBlob<BodyReader>, Error> {
        let reference = repository.digest(&descriptor.digest)?;
        if descriptor.size > limit {
            return Err(Error::TooLarge { what: "a blob", url: reference.to_string(), limit });
        }
        let path = format!("blobs/{}", descriptor.digest);
        let response = self.call(repository, Method::GET, &path, HeaderMap::new(), Bytes::new()).await?;
        let body = response.reader(descriptor.size.saturating_add(1));
        Ok(VerifiedBlob::new(body, &descriptor.digest, descriptor.size)?)
    }

    /// A blob in memory.
    pub async fn blob_bytes(
        &self,
        repository: &Repository,
        descriptor: &Descriptor,
        limit: u64,
    ) -> Result<Vec<u8>, Error> {
        let mut blob = self.blob(repository, descriptor, limit).await?;
        let read = tokio::task::spawn_blocking(move || {
            let mut all = Vec::new();
            std::io::Read::read_to_end(&mut blob, &mut all).map(|_| all)
        });
        match read.await {
            Ok(result) => Ok(result?),
            Err(stopped) => Err(Error::Io(std::io::Error::other(stopped))),
        }
    }

    /// What refers to a manifest: by the referrers API, or by the tag that stands for it where a registry has none.
    pub async fn referrers(
        &self,
        repository: &Repository,
        digest: &str,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, Error> {
        let path = format!("referrers/{digest}");
        let answer =
            self.call(repository, Method::GET, &path, accepts(&[media_type::OCI_INDEX]), Bytes::new()).await;
        let index: Option<Index> = match answer {
            Ok(response) => serde_json::from_slice(&response.bytes(MAX_RESPONSE_BYTES).await?).ok(),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let index = match index {
            Some(index) => index,
            None => match self.raw_manifest(&repository.tag(&digest.replace(':', "-"))?).await {
                Ok(raw) => parse(&repository.tag("referrers")?, &raw.bytes)?,
                Err(error) if error.is_not_found() => Index::default(),
                Err(error) => return Err(error),
            },
        };
        let wanted = |d: &Descriptor| artifact_type.is_none_or(|t| d.artifact_type.as_deref() == Some(t));
        Ok(index.manifests.into_iter().filter(wanted).collect())
    }
}

fn is_index(raw: &Raw) -> bool {
    if raw.media_type == media_type::OCI_INDEX || raw.media_type == media_type::DOCKER_LIST {
        return true;
    }
    // A registry may not say; then the content does.
    #[derive(Deserialize)]
    struct Probe {
        #[serde(default)]
        manifests: Option<serde_json::Value>,
        #[serde(default)]
        config: Option<serde_json::Value>,
    }
    !raw.media_type.contains("manifest.v")
        && serde_json::from_slice::<Probe>(&raw.bytes)
            .is_ok_and(|p| p.manifests.is_some() && p.config.is_none())
}

fn parse<T: for<'de> Deserialize<'de>>(reference: &Reference, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|e| Error::Malformed {
        url: reference.to_string(),
        problem: format!("its manifest is malformed: {e}"),
    })
}

/// The next page, when a `Link` header names one. It must be on the same host, or our token would travel.
fn next_page(here: &Url, headers: &HeaderMap) -> Result<Option<Url>, Error> {
    let Some(link) = headers.get(header::LINK).and_then(|v| v.to_str().ok()) else { return Ok(None) };
    let is_next = |part: &&str| part.contains("rel=\"next\"") || part.contains("rel=next");
    let Some(part) = link.split(',').find(is_next).or_else(|| Some(link).filter(|l| !l.contains("rel=")))
    else {
        return Ok(None);
    };
    let bad = |problem: &str| Error::Malformed { url: here.to_string(), problem: problem.to_owned() };
    let target = part.trim().strip_prefix('<').and_then(|p| p.split_once('>')).map(|(t, _)| t);
    let next = target
        .and_then(|t| here.join(t).ok())
        .ok_or_else(|| bad("the link to the next page is malformed"))?;
    let place = |u: &Url| (u.scheme().to_owned(), u.host_str().map(str::to_owned), u.port_or_known_default());
    if place(&next) != place(here) {
        return Err(bad("the link to the next page leads to another host"));
    }
    if next == *here {
        return Err(bad("the link to the next page leads to itself"));
    }
    Ok(Some(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_stay_on_their_host() {
        let here = Url::parse("https://r.example/v2/a/tags/list?n=2").unwrap();
        let page = |link: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::LINK, HeaderValue::from_str(link).unwrap());
            next_page(&here, &headers)
        };
        let next = page("</v2/a/tags/list?n=2&last=b>; rel=\"next\"").unwrap().unwrap();
        assert_eq!(next.as_str(), "https://r.example/v2/a/tags/list?n=2&last=b");
        assert!(page("<https://evil.example/x>; rel=\"next\"").is_err());
        assert!(page("<http://r.example/x>; rel=\"next\"").is_err());
        assert!(page("</v2/a/tags/list?n=2>; rel=\"next\"").is_err());
        assert!(page("nonsense; rel=\"next\"").is_err());
        assert!(page("</x>; rel=\"prev\"").unwrap().is_none());
    }
}
