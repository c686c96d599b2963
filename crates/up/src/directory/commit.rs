//! The commit of uncommitted files, with the id that Git would compute.

use std::collections::BTreeMap;

use fl_git::{Error, HashKind, Hasher, ObjectId, ObjectKind};

use super::work_tree::WorkTreeFile;

/// One directory: what is in it by name.
#[derive(Default)]
struct Folder {
    files: BTreeMap<String, WorkTreeFile>,
    folders: BTreeMap<String, Folder>,
}

/// Id and text of the commit.
pub(super) fn of_files(
    files: &BTreeMap<String, WorkTreeFile>,
    hash: HashKind,
    parent: Option<ObjectId>,
    seconds: i64,
) -> Result<(ObjectId, Vec<u8>), Error> {
    let mut root = Folder::default();
    for (path, saved) in files {
        let mut folder = &mut root;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                folder.files.insert(part.to_owned(), *saved);
            } else {
                folder = folder.folders.entry(part.to_owned()).or_default();
            }
        }
    }
    let tree = root.id(hash)?;
    let parent = parent.map_or_else(String::new, |p| format!("parent {p}\n"));
    let who = format!("fluorite up <up@localhost> {seconds} +0000");
    let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\nfiles as they are saved\n");
    Ok((id(hash, ObjectKind::Commit, text.as_bytes())?, text.into_bytes()))
}

impl Folder {
    fn id(&self, hash: HashKind) -> Result<ObjectId, Error> {
        // Git compares directories as if their names ended in a slash.
        let mut entries: BTreeMap<String, (&str, &str, ObjectId)> = BTreeMap::new();
        for (name, saved) in &self.files {
            let mode = if saved.executable { "100755" } else { "100644" };
            entries.insert(name.clone(), (mode, name, saved.id));
        }
        for (name, folder) in &self.folders {
            entries.insert(format!("{name}/"), ("40000", name, folder.id(hash)?));
        }
        let mut text = Vec::new();
        for (mode, name, id) in entries.values() {
            text.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            text.extend_from_slice(id.as_bytes());
        }
        id(hash, ObjectKind::Tree, &text)
    }
}

fn id(hash: HashKind, kind: ObjectKind, content: &[u8]) -> Result<ObjectId, Error> {
    let mut hasher = Hasher::for_object(hash, kind, content.len() as u64);
    hasher.update(content);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::work_tree::blob_id;
    use super::*;

    #[test]
    fn tree_ids_match_git() {
        let saved =
            |text: &[u8], executable| WorkTreeFile { executable, id: blob_id(text, HashKind::Sha1).unwrap() };
        let files = BTreeMap::from([
            ("a.txt".to_owned(), saved(b"one\n", false)),
            ("a/run.sh".to_owned(), saved(b"#!/bin/sh\n", true)),
            ("a-b/x".to_owned(), saved(b"x\n", false)),
        ]);
        let (_, text) = of_files(&files, HashKind::Sha1, None, 0).unwrap();
        // `git write-tree` of the same three files.
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("tree 47f78fecf4e66e4643b428826f5b73f86635f7f8\n"), "{text}");
    }
}
