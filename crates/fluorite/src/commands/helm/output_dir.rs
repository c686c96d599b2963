//! `--output-dir`: manifests as files instead of on stdout.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fl_helm::{Release, push_document};

/// Writes files below a folder and notes what it wrote.
pub(super) struct OutputDir {
    root: PathBuf,
    /// Where manifests go: the root, or a folder in it named like the release.
    manifests: PathBuf,
    written: HashSet<PathBuf>,
    report: String,
}

impl OutputDir {
    pub(super) fn new(root: &Path, release_folder: Option<&str>) -> Self {
        let manifests = release_folder.map_or_else(|| root.to_owned(), |name| root.join(name));
        Self { root: root.to_owned(), manifests, written: HashSet::new(), report: String::new() }
    }

    /// Writes a release; what comes back goes to stdout.
    pub(super) fn write(
        mut self,
        release: &Release,
        crds: bool,
        hooks: bool,
        tests: bool,
    ) -> anyhow::Result<String> {
        let (root, manifests) = (self.root.clone(), self.manifests.clone());
        for crd in release.crds.iter().filter(|_| crds) {
            self.document(&root, &crd.source, &crd.data.read()?.to_text(), false)?;
        }
        for manifest in &release.manifests {
            self.document(&manifests, &manifest.source, &manifest.content, false)?;
        }
        for hook in release.hooks.iter().filter(|hook| hooks && (tests || !hook.is_test())) {
            // Helm appends hooks to whatever is there.
            self.document(&manifests, &hook.path, &hook.manifest, true)?;
        }
        self.report.push('\n');
        Ok(self.report)
    }

    fn document(&mut self, folder: &Path, source: &str, content: &str, keep: bool) -> anyhow::Result<()> {
        let path = folder.join(source);
        refuse_links(&self.root, &path)?;
        let parent = path.parent().context("a file has a folder")?;
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let append = keep || self.written.contains(&path);
        let mut text = String::new();
        push_document(&mut text, source, content);
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(append).write(true).truncate(!append);
        let mut file = options.open(&path).with_context(|| format!("cannot write {}", path.display()))?;
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        self.report.push_str(&format!("wrote {}\n", path.display()));
        self.written.insert(path);
        Ok(())
    }
}

/// A link below the output folder could lead writes anywhere.
fn refuse_links(root: &Path, path: &Path) -> anyhow::Result<()> {
    let below = path.strip_prefix(root).context("manifests stay below the output folder")?;
    let mut here = root.to_owned();
    for part in below.components() {
        match part {
            std::path::Component::Normal(name) => here.push(name),
            _ => bail!("{} leads out of {}", path.display(), root.display()),
        }
        if here.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            bail!("{} is a symbolic link; writes do not follow links", here.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D02: a link below the output folder is not followed, wherever it points.
    #[test]
    fn d02_writes_never_follow_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let outside = folder.path().join("outside");
        std::fs::write(&outside, "untouched").expect("a file");
        for (link, target) in [("c/templates/a.yaml", &outside), ("c/templates", &folder.path().to_owned())] {
            let root = tempfile::tempdir_in(folder.path()).expect("a folder");
            let place = root.path().join(link);
            std::fs::create_dir_all(place.parent().expect("a parent")).expect("folders");
            std::os::unix::fs::symlink(target, &place).expect("a link");
            let mut output = OutputDir::new(root.path(), None);
            let written = output.document(root.path(), "c/templates/a.yaml", "a: 1", false);
            assert!(written.is_err_and(|error| error.to_string().contains("symbolic link")), "{link}");
        }
        assert_eq!(std::fs::read_to_string(&outside).expect("the file"), "untouched");
        assert!(!folder.path().join("a.yaml").exists());
    }

    /// D01: a name that leads out writes nothing.
    #[test]
    fn d01_names_do_not_lead_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("out");
        let mut output = OutputDir::new(&root, None);
        assert!(output.document(&root, "../x.yaml", "a: 1", false).is_err());
        assert!(!folder.path().join("x.yaml").exists());
    }
}
