//! Fetches one revision from a local `git upload-pack` and lists its tree: a check of the protocol against the real thing.
//!
//! `cargo run -p fl-git --example clone -- REPOSITORY [REF]`

use std::io::{Cursor, Write};
use std::process::{Command, Stdio};

use fl_git::{Advertisement, EntryKind, FetchRequest, FetchResponse, HashKind, Limits, ObjectKind, Pack};

fn upload_pack(repository: &str, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let advertise = if request.is_empty() { "--advertise-refs" } else { "--stateless-rpc" };
    let mut child = Command::new("git")
        .args(["upload-pack", "--stateless-rpc", advertise, repository])
        .env("GIT_PROTOCOL", "version=2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
    input.write_all(request)?;
    drop(input);
    Ok(child.wait_with_output()?.stdout)
}

fn walk(
    pack: &mut Pack<Cursor<Vec<u8>>>,
    tree: &fl_git::ObjectId,
    at: &str,
    hash: HashKind,
) -> Result<u64, fl_git::Error> {
    let content = pack.read_kind(tree, ObjectKind::Tree)?;
    let mut bytes = 0;
    for entry in fl_git::parse_tree(&content, hash)? {
        let path = format!("{at}{}", entry.name);
        bytes += match entry.kind {
            EntryKind::Directory => walk(pack, &entry.id, &format!("{path}/"), hash)?,
            EntryKind::File | EntryKind::Executable => {
                pack.read_kind(&entry.id, ObjectKind::Blob)?.len() as u64
            }
            EntryKind::Symlink | EntryKind::Submodule => 0,
        };
    }
    Ok(bytes)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let repository = std::env::args().nth(1).ok_or("usage: clone REPOSITORY [REF]")?;
    let wanted = std::env::args().nth(2).unwrap_or_else(|| "HEAD".to_owned());
    let server = Advertisement::read(upload_pack(&repository, &[])?.as_slice())?;
    let hash = server.hash();
    let answer = upload_pack(&repository, &fl_git::ls_refs_request(hash, &[&wanted]))?;
    let refs = fl_git::read_refs(answer.as_slice(), 100_000)?;
    let head = refs.first().ok_or("no such reference")?;
    let request = FetchRequest { wants: vec![head.id], depth: Some(1), ..FetchRequest::default() };
    let mut bytes = Vec::new();
    let response = FetchResponse::read(
        upload_pack(&repository, &request.encode(hash))?.as_slice(),
        &mut bytes,
        1 << 32,
    )?;
    let mut pack = Pack::open(Cursor::new(bytes), hash, Limits::default())?;
    let commit = fl_git::parse_commit(&pack.read_kind(&head.peeled.unwrap_or(head.id), ObjectKind::Commit)?)?;
    let files = walk(&mut pack, &commit.tree, "", hash)?;
    println!(
        "{} {}: {} objects, {} pack bytes, {files} bytes of files",
        head.id,
        head.name,
        pack.len(),
        response.pack_bytes
    );
    println!("{} ({} shallow)", commit.message.lines().next().unwrap_or_default(), response.shallow.len());
    Ok(())
}
