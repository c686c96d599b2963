//! A fake OCI registry in memory.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use fl_archive::{Mode, TarWriter};
use fl_oci::{
    Descriptor, Error as OciError, Manifest, Reference as OciReference, RegistryOptions, Repository,
    Signatures,
};
use fl_source::oci::{OciClient, OciRegistry};
use futures::FutureExt;
use futures::future::BoxFuture;

#[derive(Debug, Default)]
struct OciState {
    /// Manifest and layer by `repository:tag` and `repository@digest`.
    images: BTreeMap<String, (String, Manifest)>,
    blobs: BTreeMap<String, Vec<u8>>,
    /// By the digest of what was signed.
    signatures: BTreeMap<String, Signatures>,
    failure: Option<(u16, String)>,
    requests: u64,
}

/// A fake registry.
#[derive(Clone, Debug, Default)]
pub struct FakeOci {
    state: Arc<Mutex<OciState>>,
}

impl FakeOci {
    fn with<R>(&self, act: impl FnOnce(&mut OciState) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Pushes files as one layer under a tag; returns the digest. `repository` as in `oci://<repository>`.
    pub fn push(
        &self,
        repository: &str,
        tag: &str,
        files: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> String {
        let mut tar = TarWriter::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for (path, content) in files {
            let content: String = content.into();
            tar.file(&path.into(), Mode::File, content.len() as u64, &mut content.as_bytes())
                .expect("in memory");
        }
        let layer = tar.finish().expect("in memory").finish().expect("in memory");
        let digest = fl_oci::digest_of(&layer);
        let manifest = Manifest {
            schema_version: 2,
            layers: vec![Descriptor {
                media_type: fl_oci::media_type::FLUX_CONTENT.to_owned(),
                digest: digest.clone(),
                size: layer.len() as u64,
                ..Descriptor::default()
            }],
            ..Manifest::default()
        };
        let whole = fl_oci::digest_of(format!("{tag} {digest}").as_bytes());
        self.with(|s| {
            s.blobs.insert(digest, layer);
            s.images.insert(format!("{repository}:{tag}"), (whole.clone(), manifest.clone()));
            s.images.insert(format!("{repository}@{whole}"), (whole.clone(), manifest));
        });
        whole
    }

    /// Adds signatures to a pushed image, which gets the digest that they are for.
    pub fn sign(&self, repository: &str, tag: &str, signatures: Signatures) {
        self.with(|s| {
            let digest = signatures.digest.clone();
            if let Some((old, manifest)) = s.images.remove(&format!("{repository}:{tag}")) {
                s.images.remove(&format!("{repository}@{old}"));
                s.images.insert(format!("{repository}:{tag}"), (digest.clone(), manifest.clone()));
                s.images.insert(format!("{repository}@{digest}"), (digest.clone(), manifest));
            }
            s.signatures.insert(digest, signatures);
        });
    }

    /// From now on every request is rejected; `None` ends that.
    pub fn fail(&self, refusal: Option<(u16, &str)>) {
        self.with(|s| s.failure = refusal.map(|(code, text)| (code, text.to_owned())));
    }

    pub fn requests(&self) -> u64 {
        self.with(|s| s.requests)
    }

    fn ask(&self, method: &str, what: &str) -> Result<(), OciError> {
        self.with(|s| {
            s.requests += 1;
            match &s.failure {
                Some((status, text)) => Err(OciError::Refused {
                    method: method.to_owned(),
                    url: what.to_owned(),
                    status: *status,
                    text: text.clone(),
                }),
                None => Ok(()),
            }
        })
    }

    fn image(&self, reference: &OciReference) -> Result<(String, Manifest), OciError> {
        self.ask("GET", &reference.to_string())?;
        let missing = || OciError::Refused {
            method: "GET".to_owned(),
            url: reference.to_string(),
            status: 404,
            text: "MANIFEST_UNKNOWN: manifest unknown".to_owned(),
        };
        self.with(|s| s.images.get(&reference.to_string()).cloned()).ok_or_else(missing)
    }
}

impl OciClient for FakeOci {
    fn open(&self, _options: RegistryOptions) -> Result<Box<dyn OciRegistry>, OciError> {
        Ok(Box::new(self.clone()))
    }
}

impl OciRegistry for FakeOci {
    fn tags<'a>(&'a self, repository: &'a Repository) -> BoxFuture<'a, Result<Vec<String>, OciError>> {
        async move {
            self.ask("GET", &repository.to_string())?;
            let prefix = format!("{repository}:");
            Ok(self.with(|s| {
                s.images.keys().filter_map(|k| k.strip_prefix(&prefix)).map(str::to_owned).collect()
            }))
        }
        .boxed()
    }

    fn resolve<'a>(&'a self, reference: &'a OciReference) -> BoxFuture<'a, Result<String, OciError>> {
        async move { Ok(self.image(reference)?.0) }.boxed()
    }

    fn manifest<'a>(&'a self, reference: &'a OciReference) -> BoxFuture<'a, Result<Manifest, OciError>> {
        async move { Ok(self.image(reference)?.1) }.boxed()
    }

    fn signatures<'a>(&'a self, reference: &'a OciReference) -> BoxFuture<'a, Result<Signatures, OciError>> {
        async move {
            self.ask("GET", &reference.to_string())?;
            let digest = reference.identifier();
            let found = self.with(|s| s.signatures.get(digest).cloned());
            Ok(found.unwrap_or(Signatures { digest: digest.to_owned(), ..Signatures::default() }))
        }
        .boxed()
    }

    fn layer<'a>(
        &'a self,
        repository: &'a Repository,
        layer: &'a Descriptor,
    ) -> BoxFuture<'a, Result<Box<dyn Read + Send>, OciError>> {
        async move {
            self.ask("GET", &repository.to_string())?;
            let bytes = self.with(|s| s.blobs.get(&layer.digest).cloned()).unwrap_or_default();
            let checked = fl_oci::VerifiedBlob::new(std::io::Cursor::new(bytes), &layer.digest, layer.size)?;
            Ok(Box::new(checked) as Box<dyn Read + Send>)
        }
        .boxed()
    }
}
