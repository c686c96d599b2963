//! One line of an ignore file.

use crate::glob::Glob;

/// What a matching line decides about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchResult {
    Exclude,
    Include,
}

#[derive(Clone, Debug)]
enum Segment {
    /// The empty segment before a leading slash or between two slashes.
    Anchor,
    /// `**`: any number of directories.
    Directories,
    /// `**` next to other characters, or a malformed glob: such a line matches no path.
    Never,
    Name(Glob),
}

/// A parsed line, scoped to the directory (`domain`) of the file it came from.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    domain: Vec<String>,
    segments: Vec<Segment>,
    result: MatchResult,
    directories_only: bool,
}

impl Pattern {
    pub(crate) fn parse(line: &str, domain: &[&str]) -> Self {
        let (result, line) = match line.strip_prefix('!') {
            Some(rest) => (MatchResult::Include, rest),
            None => (MatchResult::Exclude, line),
        };
        let line = if line.ends_with("\\ ") { line } else { line.trim_end_matches(' ') };
        let (directories_only, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        // `**` and anchors have a meaning only in a line with a slash; a bare name is always one glob.
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
        Self { domain: domain.iter().map(|&d| d.to_owned()).collect(), segments, result, directories_only }
    }

    pub(crate) fn match_path(&self, path: &[&str], is_dir: bool) -> Option<MatchResult> {
        let (scope, inner) = path.split_at_checked(self.domain.len())?;
        if inner.is_empty() || scope != self.domain {
            return None;
        }
        let hit = match self.segments.as_slice() {
            [Segment::Name(glob)] => self.name_anywhere(glob, inner, is_dir),
            [Segment::Never] => false,
            _ => self.path_from_domain(inner, is_dir),
        };
        hit.then_some(self.result)
    }

    /// A bare name matches at any depth, and everything below a directory of that name.
    fn name_anywhere(&self, glob: &Glob, path: &[&str], is_dir: bool) -> bool {
        match path.iter().position(|name| glob.matches(name)) {
            Some(at) => !(self.directories_only && !is_dir && at == path.len() - 1),
            None => false,
        }
    }

    /// A line with a slash matches from its domain downwards, including everything below the last matched
    /// segment.
    fn path_from_domain(&self, path: &[&str], is_dir: bool) -> bool {
        let (mut rest, mut matched, mut descend) = (path, false, false);
        for (i, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Anchor => descend = false,
                // A trailing `**` is redundant: everything below the match is covered already.
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
