//! The built-in example, which is written to the state directory.

use std::path::Path;

use anyhow::Context as _;

/// Path and content of every file.
const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("example/README.md")),
    ("charts/cache/Chart.yaml", include_str!("example/charts/cache/Chart.yaml")),
    ("charts/cache/templates/cache.yaml", include_str!("example/charts/cache/templates/cache.yaml")),
    ("charts/cache/values.yaml", include_str!("example/charts/cache/values.yaml")),
    ("cluster/kustomization.yaml", include_str!("example/cluster/kustomization.yaml")),
    ("cluster/namespaces.yaml", include_str!("example/cluster/namespaces.yaml")),
    ("cluster/newsletter.yaml", include_str!("example/cluster/newsletter.yaml")),
    ("cluster/platform.yaml", include_str!("example/cluster/platform.yaml")),
    ("cluster/production.yaml", include_str!("example/cluster/production.yaml")),
    ("cluster/staging.yaml", include_str!("example/cluster/staging.yaml")),
    ("newsletter/kustomization.yaml", include_str!("example/newsletter/kustomization.yaml")),
    ("newsletter/sender.yaml", include_str!("example/newsletter/sender.yaml")),
    ("platform/cache.yaml", include_str!("example/platform/cache.yaml")),
    ("platform/kustomization.yaml", include_str!("example/platform/kustomization.yaml")),
    ("shop/base/kustomization.yaml", include_str!("example/shop/base/kustomization.yaml")),
    ("shop/base/shop.properties", include_str!("example/shop/base/shop.properties")),
    ("shop/base/web.yaml", include_str!("example/shop/base/web.yaml")),
    ("shop/production/kustomization.yaml", include_str!("example/shop/production/kustomization.yaml")),
    ("shop/staging/kustomization.yaml", include_str!("example/shop/staging/kustomization.yaml")),
];

/// The directory of the example that is delivered.
pub(super) const PATH: &str = "cluster";

/// Writes the example if it does not exist; edits are kept.
pub(super) fn write(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    // Written to another directory and renamed: an interrupted start must not leave a part of it.
    let mut new = folder.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    let write = || -> std::io::Result<()> {
        if new.exists() {
            std::fs::remove_dir_all(new)?;
        }
        for (path, text) in FILES {
            let place = new.join(path);
            if let Some(parent) = place.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(place, text)?;
        }
        std::fs::rename(new, folder)
    };
    write().with_context(|| format!("cannot write the example to {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_kept_and_every_file_is_included() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("example");
        write(&folder).unwrap();
        let edited = folder.join("newsletter/sender.yaml");
        assert!(std::fs::read_to_string(&edited).unwrap().contains("busybox: 1.37"), "the mistake is in");
        std::fs::write(&edited, "mine").unwrap();
        write(&folder).unwrap();
        assert_eq!(std::fs::read_to_string(&edited).unwrap(), "mine");

        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/example");
        let mut todo = vec![source.clone()];
        let mut found = 0;
        while let Some(directory) = todo.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                } else {
                    let name = path.strip_prefix(&source).unwrap().to_str().unwrap();
                    assert!(FILES.iter().any(|(p, _)| *p == name), "{name} is not in the binary");
                    found += 1;
                }
            }
        }
        assert_eq!(found, FILES.len());
    }
}
