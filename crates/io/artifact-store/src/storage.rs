//! Writing, checking and removing artifacts.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fl_archive::TarWriter;
use fl_types::{Algorithm, Digest};
use flate2::write::GzEncoder;

use crate::digest::DigestWriter;
use crate::path::{self, Location};
use crate::{Error, Retention};

/// How a store is set up.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    pub root: PathBuf,
    /// Host, and port where it is not 80, under which others reach [`crate::serve`].
    pub advertised: String,
    pub algorithm: Algorithm,
    pub retention: Retention,
}

/// A directory of artifacts.
#[derive(Clone, Debug)]
pub struct Store {
    options: StoreOptions,
}

/// What is known of a published file; `status.artifact` is made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Relative to the store, with slashes.
    pub path: String,
    pub url: String,
    pub digest: Digest,
    pub size: u64,
    /// RFC 3339, whole seconds.
    pub last_update_time: String,
}

/// The state of a file that was published earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    Intact,
    Missing,
    /// The bytes are no longer those that were published.
    Damaged,
}

/// A compressed tar being written; hand it to an archive routine.
pub type TarGz<'a> = TarWriter<GzEncoder<&'a mut dyn Write>>;

/// Files that begin so are unfinished; a crash leaves them, the next start removes them.
const UNFINISHED: &str = ".unfinished-";

impl Store {
    /// Opens (and makes) the directory and clears what a crash left unfinished.
    pub fn open(options: StoreOptions) -> Result<Self, Error> {
        DigestWriter::new(io::sink(), &options.algorithm)?;
        make_directory(&options.root)?;
        clear_unfinished(&options.root, 4)?;
        Ok(Self { options })
    }

    pub fn root(&self) -> &Path {
        &self.options.root
    }

    pub(crate) fn retention(&self) -> Retention {
        self.options.retention
    }

    /// The address of a path for consumers. It is computed each time, because the host may change.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.options.advertised)
    }

    /// Where an artifact's file is on disk.
    pub fn file(&self, path: &str) -> Result<PathBuf, Error> {
        path.split('/').try_for_each(path::check)?;
        Ok(self.options.root.join(path))
    }

    /// Publishes what `write` produces as `file`. On any failure nothing changes.
    pub fn publish<E: From<Error>>(
        &self,
        at: &Location,
        file: &str,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<Artifact, E> {
        at.path(file)?;
        self.publish_named(at, |out| write(out).map(|()| file.to_owned()))
    }

    /// The same for content that is known by its name only at its end.
    fn publish_named<E: From<Error>>(
        &self,
        at: &Location,
        write: impl FnOnce(&mut dyn Write) -> Result<String, E>,
    ) -> Result<Artifact, E> {
        let directory = self.options.root.join(at.directory());
        make_directory(&directory)?;
        let unfinished = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .permissions(fs::Permissions::from_mode(0o600))
            .tempfile_in(&directory)
            .map_err(Error::io("create a file in", &directory))?;
        let mut out = DigestWriter::new(BufWriter::new(unfinished), &self.options.algorithm)?;
        let file = write(&mut out)?;
        let path = at.path(&file)?;
        let (buffered, digest, size) = out.finish()?;
        let unfinished = buffered.into_inner().map_err(|e| Error::io("write", &directory)(e.into_error()))?;
        unfinished.as_file().sync_data().map_err(Error::io("sync", &directory))?;
        let place = directory.join(&file);
        unfinished.persist(&place).map_err(|e| Error::io("publish", &place)(e.error))?;
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        Ok(Artifact { url: self.url(&path), path, digest, size, last_update_time: now })
    }

    /// Publishes a tree as a compressed tar; `fill` adds the entries.
    pub fn publish_tree<E: From<Error>>(
        &self,
        at: &Location,
        file: &str,
        fill: impl FnOnce(&mut TarGz<'_>) -> Result<(), E>,
    ) -> Result<Artifact, E> {
        at.path(file)?;
        self.publish_tree_named(at, |tar| fill(tar).map(|()| file.to_owned()))
    }

    /// The same for a tree that is known by its name only when it is read: `fill` answers the name of the file.
    pub fn publish_tree_named<E: From<Error>>(
        &self,
        at: &Location,
        fill: impl FnOnce(&mut TarGz<'_>) -> Result<String, E>,
    ) -> Result<Artifact, E> {
        self.publish_named(at, |out| {
            let mut tar = TarWriter::new(GzEncoder::new(out, flate2::Compression::default()));
            let file = fill(&mut tar)?;
            let gzip = tar.finish().map_err(Error::from)?;
            let failed = |source| Error::Io { action: "compress", path: file.as_str().into(), source };
            gzip.finish().map_err(failed)?;
            Ok(file)
        })
    }

    /// Points `link` (as `latest.tar.gz`) at a published file of the same directory; answers its address.
    pub fn link(&self, at: &Location, file: &str, link: &str) -> Result<String, Error> {
        let path = at.path(link)?;
        at.path(file)?;
        let directory = self.options.root.join(at.directory());
        let fresh = directory.join(format!("{UNFINISHED}{link}"));
        let _ = fs::remove_file(&fresh);
        symlink(file, &fresh).map_err(Error::io("link", &fresh))?;
        fs::rename(&fresh, directory.join(link)).map_err(Error::io("link", &directory))?;
        Ok(self.url(&path))
    }

    /// Reads a published file again and compares its digest.
    pub fn check(&self, path: &str, digest: &Digest) -> Result<Check, Error> {
        Ok(self.open_checked(path, digest)?.0)
    }

    /// The same, with the file when it is intact: what is read from it was compared, whatever its name means by then.
    pub fn open_checked(&self, path: &str, digest: &Digest) -> Result<(Check, Option<File>), Error> {
        let place = self.file(path)?;
        let mut file = match File::open(&place) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((Check::Missing, None)),
            Err(e) => return Err(Error::io("open", &place)(e)),
        };
        let mut sum = DigestWriter::new(io::sink(), digest.algorithm())?;
        io::copy(&mut BufReader::new(&mut file), &mut sum).map_err(Error::io("read", &place))?;
        let (_, found, _) = sum.finish()?;
        if found != *digest {
            return Ok((Check::Damaged, None));
        }
        file.rewind().map_err(Error::io("read", &place))?;
        Ok((Check::Intact, Some(file)))
    }

    /// Removes one file, as after a failed check.
    pub fn remove(&self, path: &str) -> Result<(), Error> {
        let place = self.file(path)?;
        gone(fs::remove_file(&place)).map_err(Error::io("remove", &place))
    }

    /// Removes all artifacts of a deleted object. Answers whether there were any.
    pub fn remove_all(&self, at: &Location) -> Result<bool, Error> {
        let directory = self.options.root.join(at.directory());
        match fs::remove_dir_all(&directory) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(Error::io("remove", &directory)(e)),
        }
    }
}

/// Removing what is not there has succeeded already.
fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn make_directory(path: &Path) -> Result<(), Error> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Error::io("create", path))
}

fn clear_unfinished(directory: &Path, depth: usize) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(Error::io("list", directory))? {
        let entry = entry.map_err(Error::io("list", directory))?;
        let kind = entry.file_type().map_err(Error::io("look at", &entry.path()))?;
        if kind.is_dir() && depth > 0 {
            clear_unfinished(&entry.path(), depth - 1)?;
        } else if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            gone(fs::remove_file(entry.path())).map_err(Error::io("remove", &entry.path()))?;
        }
    }
    Ok(())
}
