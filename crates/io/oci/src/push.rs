//! Writing: blobs, manifests, tags.

use bytes::Bytes;
use fl_http::{HeaderMap, HeaderValue, Method, header};
use url::Url;

use crate::{Descriptor, Error, Reference, Registry, Repository, digest_of};

fn content_type(media_type: &str) -> Result<HeaderMap, Error> {
    let value = HeaderValue::from_str(media_type).map_err(|_| Error::Malformed {
        url: String::new(),
        problem: "the media type has odd characters".to_owned(),
    })?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, value);
    Ok(headers)
}

impl Registry {
    /// Puts a blob into a repository, unless it is there already.
    pub async fn push_blob(
        &self,
        repository: &Repository,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<Descriptor, Error> {
        let digest = digest_of(&bytes);
        let descriptor = Descriptor {
            media_type: media_type.to_owned(),
            digest: digest.clone(),
            size: bytes.len() as u64,
            ..Descriptor::default()
        };
        let path = format!("blobs/{digest}");
        match self.call(repository, Method::HEAD, &path, HeaderMap::new(), Bytes::new()).await {
            Ok(_) => return Ok(descriptor),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        let begun =
            self.call(repository, Method::POST, "blobs/uploads/", HeaderMap::new(), Bytes::new()).await?;
        let target = upload_target(begun.url(), begun.headers(), &digest)?;
        let headers = content_type("application/octet-stream")?;
        self.call_url(repository, Method::PUT, target.as_str(), headers, bytes).await?;
        Ok(descriptor)
    }

    /// Puts a manifest under a tag or its digest; answers its digest.
    pub async fn push_manifest(
        &self,
        reference: &Reference,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<String, Error> {
        let digest = digest_of(&bytes);
        if let Reference::Digest { digest: wanted, .. } = reference
            && *wanted != digest
        {
            let reference = reference.to_string();
            return Err(Error::WrongDigest { found: digest, wanted: wanted.clone(), reference });
        }
        let path = format!("manifests/{}", reference.identifier());
        self.call(reference.repository(), Method::PUT, &path, content_type(media_type)?, bytes).await?;
        Ok(digest)
    }

    /// Gives a manifest that is there another tag.
    pub async fn tag(&self, from: &Reference, tag: &str) -> Result<(), Error> {
        let raw = self.raw_manifest(from).await?;
        let to = from.repository().tag(tag)?;
        self.push_manifest(&to, &raw.media_type, raw.bytes).await?;
        Ok(())
    }
}

/// The address of an upload. It must be on the registry's own host, because the token is sent to it.
fn upload_target(here: &Url, headers: &HeaderMap, digest: &str) -> Result<Url, Error> {
    let bad = |problem: &str| Error::Malformed { url: here.to_string(), problem: problem.to_owned() };
    let location = headers.get(header::LOCATION).and_then(|v| v.to_str().ok());
    let mut target = location
        .and_then(|l| here.join(l).ok())
        .ok_or_else(|| bad("the registry did not say where to upload to"))?;
    if target.host_str() != here.host_str() || (here.scheme() == "https" && target.scheme() != "https") {
        return Err(bad("the registry sends uploads to another host"));
    }
    target.query_pairs_mut().append_pair("digest", digest);
    Ok(target)
}
