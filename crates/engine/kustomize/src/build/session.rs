//! State that all kustomizations of a build share: files, parsed objects, schemas, warnings.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fl_yaml::Node;

use super::remote::{self, Repository};
use super::target::Target;
use super::{LoadRestrictor, Options, directory_place};
use crate::decode::Located;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::files::{Files, clean};
use crate::input::{InputError, Purpose, read_objects};
use crate::kustomization::Kustomization;
use crate::resource::Resource;
use crate::schema::Schemas;

/// A directory with a kustomization, and its parent.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) dir: PathBuf,
    pub(super) parent: Option<Rc<Root>>,
    depth: usize,
    /// The checkout of another repository that it is part of, and that it must not leave.
    checkout: Option<Rc<Path>>,
}

/// Limit on nesting, because a build recurses.
const MAX_DEPTH: usize = 128;

/// A parsed kustomization, with the location and name of its file.
pub(super) type LoadedKustomization = (Rc<Kustomization>, Place, String);

pub(super) struct Session<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) options: &'a Options<'a>,
    pub(super) schemas: Schemas,
    pub(super) reads: BTreeSet<PathBuf>,
    pub(super) warnings: Vec<String>,
    contents: HashMap<PathBuf, Rc<[u8]>>,
    objects: HashMap<PathBuf, Rc<[Node]>>,
    kustomizations: HashMap<PathBuf, LoadedKustomization>,
}

/// Why a path could not be loaded as a file.
pub(super) enum LoadError {
    /// The path is a directory.
    Directory(PathBuf),
    /// The path does not exist.
    Missing(ErrorKind),
    /// The path is not allowed, or cannot be read.
    Denied(ErrorKind),
}

impl LoadError {
    pub(super) fn into_kind(self) -> ErrorKind {
        match self {
            LoadError::Directory(path) => ErrorKind::Read {
                path: path.display().to_string(),
                reason: "it is a directory, a file is wanted".to_owned(),
            },
            LoadError::Missing(kind) | LoadError::Denied(kind) => kind,
        }
    }
}

impl<'a> Session<'a> {
    pub(super) fn new(files: &'a dyn Files, options: &'a Options<'a>) -> Self {
        Self {
            files,
            options,
            schemas: Schemas::default(),
            reads: BTreeSet::new(),
            warnings: Vec::new(),
            contents: HashMap::new(),
            objects: HashMap::new(),
            kustomizations: HashMap::new(),
        }
    }

    /// The root of the build.
    pub(super) fn root(&mut self, directory: &Path) -> Result<Rc<Root>> {
        let place = Place::file(directory.display().to_string());
        let read = |reason: String| ErrorKind::Read { path: place.file.clone(), reason };
        let (dir, is_dir) = self
            .files
            .resolve(directory)
            .map_err(|e| Error::new(place.clone(), read(format!("must build at directory: {e}"))))?;
        if !is_dir {
            return Err(Error::new(
                place.clone(),
                read("must build at directory, this is a file".to_owned()),
            ));
        }
        self.inside(None, &dir).map_err(|kind| Error::new(place, kind))?;
        Ok(Rc::new(Root { dir, parent: None, depth: 0, checkout: None }))
    }

    /// Checks that a path is inside of what a root may read.
    pub(super) fn within(&self, root: &Root, path: &Path) -> Result<(), ErrorKind> {
        self.inside(root.checkout.as_deref(), path)
    }

    fn inside(&self, checkout: Option<&Path>, path: &Path) -> Result<(), ErrorKind> {
        match checkout.or(self.options.boundary.as_deref()) {
            Some(boundary) if !path.starts_with(boundary) => Err(ErrorKind::Boundary {
                path: path.display().to_string(),
                boundary: boundary.display().to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// Resolves a directory that an entry of a kustomization refers to.
    pub(super) fn enter(&mut self, root: &Rc<Root>, path: &str) -> Result<Rc<Root>, ErrorKind> {
        let read = |reason: String| ErrorKind::Read { path: path.to_owned(), reason };
        let (wanted, checkout) = if let Some(repository) = Repository::parse(path) {
            let url = remote::redacted(path);
            let fetcher = self.options.fetcher.ok_or_else(|| ErrorKind::RemoteOff(url.clone()))?;
            let checkout =
                fetcher.checkout(&repository).map_err(|reason| ErrorKind::Fetch { url, reason })?;
            (clean(&checkout.join(&repository.directory)), Some(checkout.into()))
        } else {
            if path.is_empty() {
                return Err(read("new root cannot be empty".to_owned()));
            }
            if Path::new(path).is_absolute() {
                return Err(read("new root cannot be absolute".to_owned()));
            }
            (clean(&root.dir.join(path)), root.checkout.clone())
        };
        let (dir, is_dir) = self.files.resolve(&wanted).map_err(|e| read(e.to_string()))?;
        if !is_dir {
            return Err(read("file is not directory".to_owned()));
        }
        self.inside(checkout.as_deref(), &dir)?;
        check_cycle(root, &dir)?;
        let max_depth = self.options.max_depth.unwrap_or(MAX_DEPTH);
        if root.depth >= max_depth {
            return Err(ErrorKind::Depth(max_depth));
        }
        Ok(Rc::new(Root { dir, parent: Some(root.clone()), depth: root.depth + 1, checkout }))
    }

    /// Loads a file that a kustomization refers to.
    pub(super) fn load(&mut self, root: &Root, path: &str) -> Result<(PathBuf, Rc<[u8]>), LoadError> {
        let read = |reason: String| ErrorKind::Read { path: path.to_owned(), reason };
        if remote::is_file_address(path) {
            let url = remote::redacted(path);
            let Some(fetcher) = self.options.fetcher else {
                return Err(LoadError::Denied(ErrorKind::RemoteOff(url)));
            };
            return match fetcher.file(path) {
                Ok(content) => Ok((url.into(), content.into())),
                Err(reason) => Err(LoadError::Missing(ErrorKind::Fetch { url, reason })),
            };
        }
        let wanted = clean(&root.dir.join(path));
        let (resolved, is_dir) =
            self.files.resolve(&wanted).map_err(|e| LoadError::Missing(read(e.to_string())))?;
        if is_dir {
            return Err(LoadError::Directory(resolved));
        }
        let parent = resolved.parent().unwrap_or(&resolved);
        if self.options.load_restrictor == LoadRestrictor::RootOnly && !parent.starts_with(&root.dir) {
            return Err(LoadError::Denied(ErrorKind::Restricted {
                path: resolved.display().to_string(),
                root: root.dir.display().to_string(),
            }));
        }
        self.within(root, &resolved).map_err(LoadError::Denied)?;
        // A remote kustomization reads only its own files, independent of the restrictor.
        if root.checkout.is_some() {
            self.inside(Some(&root.dir), &resolved).map_err(LoadError::Denied)?;
        }
        if let Some(content) = self.contents.get(&resolved) {
            return Ok((resolved, content.clone()));
        }
        let content: Rc<[u8]> =
            self.files.read(&resolved).map_err(|e| LoadError::Denied(read(e.to_string())))?.into();
        self.reads.insert(resolved.clone());
        Ok((resolved, content))
    }

    /// [`Session::load`] for a field of a kustomization.
    pub(super) fn load_entry(
        &mut self,
        target: &Target,
        entry: &Located<String>,
    ) -> Result<(PathBuf, Rc<[u8]>)> {
        let (path, content) = self
            .load(&target.root, &entry.value)
            .map_err(|e| Error::new(target.place.at(entry.at), e.into_kind()))?;
        // Several kustomizations may refer to the same files of generators, patches and configurations.
        self.contents.entry(path.clone()).or_insert_with(|| content.clone());
        Ok((path, content))
    }

    /// The objects of a file, parsed once.
    pub(super) fn objects(&mut self, path: &Path, content: &[u8]) -> Result<Vec<Resource>, InputError> {
        let nodes = match self.objects.get(path) {
            Some(nodes) => nodes.clone(),
            None => {
                let nodes: Rc<[Node]> = read_objects(content, Purpose::Objects)?.into();
                self.objects.insert(path.to_path_buf(), nodes.clone());
                nodes
            }
        };
        let source: Rc<str> = path.display().to_string().into();
        Ok(nodes
            .iter()
            .map(|node| {
                let mut resource = Resource::new(node.clone(), &mut self.schemas);
                resource.source = Some(source.clone());
                resource
            })
            .collect())
    }

    /// The kustomization of a directory, parsed once.
    pub(super) fn kustomization(&mut self, root: &Root) -> Result<LoadedKustomization> {
        if let Some(loaded) = self.kustomizations.get(&root.dir) {
            return Ok(loaded.clone());
        }
        let place = directory_place(root);
        let mut found: Option<(String, PathBuf, Rc<[u8]>)> = None;
        for name in ["kustomization.yaml", "kustomization.yml", "Kustomization"] {
            match self.load(root, name) {
                Ok((path, content)) => {
                    if found.replace((name.to_owned(), path, content)).is_some() {
                        return Err(Error::new(
                            place,
                            ErrorKind::ManyKustomizations(root.dir.display().to_string()),
                        ));
                    }
                }
                Err(LoadError::Denied(
                    kind @ (ErrorKind::Restricted { .. } | ErrorKind::Boundary { .. }),
                )) => {
                    return Err(Error::new(place, kind));
                }
                Err(_) => {}
            }
        }
        // A file that is added to the directory later would be used, too.
        self.reads.insert(root.dir.clone());
        let Some((name, _, content)) = found else {
            return Err(Error::new(place, ErrorKind::NoKustomization(root.dir.display().to_string())));
        };
        let place = Place::file(root.dir.join(&name).display().to_string());
        let node = crate::input::read_one(&content)
            .map_err(|e| Error::new(place.at(e.at()), ErrorKind::Yaml(e.message().to_owned())))?;
        let kustomization = crate::kustomization::read(&node, &place)?;
        for warning in &kustomization.warnings {
            self.warnings.push(format!("{place}: {warning}"));
        }
        let loaded = (Rc::new(kustomization), place, name);
        self.kustomizations.insert(root.dir.clone(), loaded.clone());
        Ok(loaded)
    }

    /// Applies the `openapi` field of a kustomization.
    pub(super) fn choose_schema(&mut self, root: &Root, target: &Target, is_root: bool) -> Result<()> {
        let open_api = &target.kustomization.open_api;
        let document = match &open_api.path {
            None => None,
            Some(path) => {
                let loaded = self.load(root, &path.value);
                let (_, content) = loaded.map_err(|e| Error::new(target.place.at(path.at), e.into_kind()))?;
                Some(content)
            }
        };
        self.schemas.choose(open_api.version.as_deref(), document.as_deref(), is_root).map_err(|error| {
            let reason = error.to_string();
            let at = open_api.path.as_ref().map_or((0, 0), |p| p.at);
            Error::new(target.place.at(at), ErrorKind::Invalid { what: "openapi".to_owned(), reason })
        })
    }
}

/// Rejects a directory that is being built, or that contains one.
fn check_cycle(root: &Rc<Root>, candidate: &Path) -> Result<(), ErrorKind> {
    let mut chain = Vec::new();
    let mut at = Some(root);
    while let Some(visited) = at {
        chain.push(visited.dir.display().to_string());
        if visited.dir.starts_with(candidate) {
            chain.reverse();
            chain.push(candidate.display().to_string());
            return Err(ErrorKind::Cycle {
                candidate: candidate.display().to_string(),
                visited: visited.dir.display().to_string(),
                chain: chain.join(" -> "),
            });
        }
        at = visited.parent.as_ref();
    }
    Ok(())
}
