//! One line of an ignore file.

use crate::glob::Glob;

/// What a line says about a path it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Exclude,
    Include,
}

#[derive(Clone, Debug)]
enum Segment {
    /// The empty segment before a leading slash (or between doubled ones).
    Anchor,
    /// `**`: any number of directories.
    Directories,
    /// A `**` glued to other characters, or a malformed glob: nothing matches from here on.
    Never,
    Name(Glob),
}

/// A parsed line, scoped to the directory (`domain`) of the file it came from.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    domain: Vec<String>,
    segments: Vec<Segment>,
    verdict: Verdict,
    directories_only: bool,
}

impl Pattern {
    pub(crate) fn parse(line: &str, domain: &[&str]) -> Self {
        let (verdict, line) = match line.strip_prefix('!') {
            Some(rest) => (Verdict::Include, rest),
            None => (Verdict::Exclude, line),
        };
        let line = if line.ends_with("\\ ") { line } else { line.trim_end_matches(' ') };
        let (directories_only, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        // Only a line with a slash can mean `**` or an anchor; a bare name is one glob, whatever it holds.
        let anchored = line.contains('/');
        let segments = line
            .split('/')
            .map(|text| match text {
                "" if anchored => Segment::Anchor,
                "**" if anchored => Segment::Directories,
                glued if anchored && glued.contains("**") => Segment::Never,
                name => Glob::parse(name).map_or(Segment::Never, Segment::Name),
            })
            .collect();
        Self { domain: domain.iter().map(|&d| d.to_owned()).collect(), segments, verdict, directories_only }
    }

    pub(crate) fn judge(&self, path: &[&str], is_dir: bool) -> Option<Verdict> {
        let (scope, inner) = path.split_at_checked(self.domain.len())?;
        if inner.is_empty() || scope != self.domain {
            return None;
        }
        let hit = match self.segments.as_slice() {
            [Segment::Name(glob)] => self.name_anywhere(glob, inner, is_dir),
            [Segment::Never] => false,
            _ => self.path_from_domain(inner, is_dir),
        };
        hit.then_some(self.verdict)
    }

    /// A bare name matches at any depth, and everything below a directory of that name.
    fn name_anywhere(&self, glob: &Glob, path: &[&str], is_dir: bool) -> bool {
        match path.iter().position(|name| glob.matches(name)) {
            Some(at) => !(self.directories_only && !is_dir && at == path.len() - 1),
            None => false,
        }
    }

    /// A line with a slash matches from its domain downwards; what lies below the last matched segment matches too.
    fn path_from_domain(&self, path: &[&str], is_dir: bool) -> bool {
        let (mut rest, mut matched, mut descend) = (path, false, false);
        for (i, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Anchor => descend = false,
                // A trailing `**` adds nothing: what was matched so far already covers everything below.
                Segment::Directories if i + 1 == self.segments.len() => break,
                Segment::Directories => descend = true,
                Segment::Never => return false,
                Segment::Name(glob) => {
                    let span = if std::mem::take(&mut descend) { rest.len() } else { rest.len().min(1) };
                    let Some(at) = rest[..span].iter().position(|name| glob.matches(name)) else {
                        return false;
                    };
                    matched = true;
                    rest = &rest[at + 1..];
                }
            }
        }
        matched && !(self.directories_only && !is_dir && rest.is_empty())
    }
}
