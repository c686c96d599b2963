//! The difference of two texts, cut into the same pieces as the reference: Myers' algorithm from both ends, with its
//! shortcuts and its clean-up, because the number of pieces is part of what people read.

/// What happened to a run of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Same,
    Removed,
    Added,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    kind: Kind,
    items: Vec<u32>,
}

fn piece(kind: Kind, items: &[u32]) -> Piece {
    Piece { kind, items: items.to_vec() }
}

/// The pieces that lead from one text to the other, line by line; a line's end belongs to it.
pub(super) fn compare(from: &str, to: &str) -> Vec<(Kind, String)> {
    let mut table: Vec<String> = Vec::new();
    let mut numbers = |text: &str| -> Vec<u32> {
        let number = |line: &str| match table.iter().position(|known| known == line) {
            Some(at) => at as u32,
            None => {
                table.push(line.to_owned());
                (table.len() - 1) as u32
            }
        };
        text.split_inclusive('\n').map(number).collect()
    };
    let (a, b) = (numbers(from), numbers(to));
    let text = |p: &Piece| p.items.iter().map(|i| table[*i as usize].as_str()).collect();
    diff(&a, &b).iter().map(|p| (p.kind, text(p))).collect()
}

fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

fn common_suffix(a: &[u32], b: &[u32]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count()
}

fn find(long: &[u32], short: &[u32], from: usize) -> Option<usize> {
    if short.len() > long.len() {
        return None;
    }
    (from..=long.len() - short.len()).find(|i| long[*i..].starts_with(short))
}

fn diff(a: &[u32], b: &[u32]) -> Vec<Piece> {
    if a == b {
        return if a.is_empty() { Vec::new() } else { vec![piece(Kind::Same, a)] };
    }
    let prefix = common_prefix(a, b);
    let (a_rest, b_rest) = (&a[prefix..], &b[prefix..]);
    let suffix = common_suffix(a_rest, b_rest);
    let (a_mid, b_mid) = (&a_rest[..a_rest.len() - suffix], &b_rest[..b_rest.len() - suffix]);
    let mut pieces = middle(a_mid, b_mid);
    if prefix > 0 {
        pieces.insert(0, piece(Kind::Same, &a[..prefix]));
    }
    if suffix > 0 {
        pieces.push(piece(Kind::Same, &a[a.len() - suffix..]));
    }
    clean_up(pieces)
}

fn middle(a: &[u32], b: &[u32]) -> Vec<Piece> {
    if a.is_empty() {
        return vec![piece(Kind::Added, b)];
    }
    if b.is_empty() {
        return vec![piece(Kind::Removed, a)];
    }
    let (long, short, outside) = if a.len() > b.len() { (a, b, Kind::Removed) } else { (b, a, Kind::Added) };
    if let Some(at) = find(long, short, 0) {
        return vec![
            piece(outside, &long[..at]),
            piece(Kind::Same, short),
            piece(outside, &long[at + short.len()..]),
        ];
    }
    if short.len() == 1 {
        return vec![piece(Kind::Removed, a), piece(Kind::Added, b)];
    }
    if let Some(half) = half_match(a, b) {
        let mut pieces = diff(half.a_before, half.b_before);
        pieces.push(Piece { kind: Kind::Same, items: half.common });
        pieces.extend(diff(half.a_after, half.b_after));
        return pieces;
    }
    bisect(a, b)
}

struct Half<'a> {
    a_before: &'a [u32],
    a_after: &'a [u32],
    b_before: &'a [u32],
    b_after: &'a [u32],
    common: Vec<u32>,
}

/// A run both share that is at least half as long as the longer one: the problem splits there.
fn half_match<'a>(a: &'a [u32], b: &'a [u32]) -> Option<Half<'a>> {
    let (long, short) = if a.len() > b.len() { (a, b) } else { (b, a) };
    if long.len() < 4 || short.len() * 2 < long.len() {
        return None;
    }
    let first = seeded(long, short, long.len().div_ceil(4));
    let second = seeded(long, short, long.len().div_ceil(2));
    let best = match (first, second) {
        (Some(x), Some(y)) => Some(if x.common.len() > y.common.len() { x } else { y }),
        (x, y) => x.or(y),
    }?;
    if a.len() > b.len() {
        return Some(best);
    }
    Some(Half {
        a_before: best.b_before,
        a_after: best.b_after,
        b_before: best.a_before,
        b_after: best.a_after,
        common: best.common,
    })
}

fn seeded<'a>(long: &'a [u32], short: &'a [u32], at: usize) -> Option<Half<'a>> {
    let seed = &long[at..at + long.len() / 4];
    let (mut best, mut best_length) = (None, 0);
    let mut next = find(short, seed, 0);
    while let Some(j) = next {
        let (after, before) =
            (common_prefix(&long[at..], &short[j..]), common_suffix(&long[..at], &short[..j]));
        if best_length < before + after {
            best_length = before + after;
            best = Some(Half {
                a_before: &long[..at - before],
                a_after: &long[at + after..],
                b_before: &short[..j - before],
                b_after: &short[j + after..],
                common: short[j - before..j + after].to_vec(),
            });
        }
        next = find(short, seed, j + 1);
    }
    best.filter(|_| best_length * 2 >= long.len())
}

/// Myers' shortest path, walked from both ends until the walks meet.
fn bisect(a: &[u32], b: &[u32]) -> Vec<Piece> {
    let (n, m) = (a.len() as isize, b.len() as isize);
    let most = (n + m + 1) / 2;
    let size = (2 * most) as usize;
    let (mut forward, mut backward) = (vec![-1_isize; size.max(2)], vec![-1_isize; size.max(2)]);
    let at = |k: isize| (most + k) as usize;
    if at(1) < forward.len() {
        forward[at(1)] = 0;
        backward[at(1)] = 0;
    }
    let delta = n - m;
    let meets_forward = delta % 2 != 0;
    let (mut f_start, mut f_end, mut b_start, mut b_end) = (0, 0, 0, 0);
    let step = |v: &[isize], k: isize, d: isize| {
        if k == -d || (k != d && v[at(k - 1)] < v[at(k + 1)]) { v[at(k + 1)] } else { v[at(k - 1)] + 1 }
    };
    for d in 0..most {
        let mut k = -d + f_start;
        while k <= d - f_end {
            let mut x = step(&forward, k, d);
            let mut y = x - k;
            while x < n && y < m && a[x as usize] == b[y as usize] {
                x += 1;
                y += 1;
            }
            forward[at(k)] = x;
            if x > n {
                f_end += 2;
            } else if y > m {
                f_start += 2;
            } else if meets_forward {
                let other = most + delta - k;
                if other >= 0
                    && (other as usize) < size
                    && backward[other as usize] != -1
                    && x >= n - backward[other as usize]
                {
                    return split(a, b, x as usize, y as usize);
                }
            }
            k += 2;
        }
        let mut k = -d + b_start;
        while k <= d - b_end {
            let mut x = step(&backward, k, d);
            let mut y = x - k;
            while x < n && y < m && a[(n - x - 1) as usize] == b[(m - y - 1) as usize] {
                x += 1;
                y += 1;
            }
            backward[at(k)] = x;
            if x > n {
                b_end += 2;
            } else if y > m {
                b_start += 2;
            } else if !meets_forward {
                let other = most + delta - k;
                if other >= 0 && (other as usize) < size && forward[other as usize] != -1 {
                    let front = forward[other as usize];
                    if front >= n - x {
                        return split(a, b, front as usize, (most + front - other) as usize);
                    }
                }
            }
            k += 2;
        }
    }
    vec![piece(Kind::Removed, a), piece(Kind::Added, b)]
}

fn split(a: &[u32], b: &[u32], x: usize, y: usize) -> Vec<Piece> {
    let mut pieces = diff(&a[..x], &b[..y]);
    pieces.extend(diff(&a[x..], &b[y..]));
    pieces
}

/// Joins neighbours, takes what removals and additions share out of them, and slides edits where that saves a piece.
fn clean_up(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    let (mut removed, mut added): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for next in pieces.into_iter().chain([piece(Kind::Same, &[])]) {
        match next.kind {
            Kind::Added => added.extend(next.items),
            Kind::Removed => removed.extend(next.items),
            Kind::Same => {
                let mut same = next.items;
                if !removed.is_empty() && !added.is_empty() {
                    let prefix = common_prefix(&added, &removed);
                    push(&mut out, Kind::Same, &added[..prefix]);
                    added.drain(..prefix);
                    removed.drain(..prefix);
                    let suffix = common_suffix(&added, &removed);
                    same.splice(0..0, added.split_off(added.len() - suffix));
                    removed.truncate(removed.len() - suffix);
                }
                push(&mut out, Kind::Removed, &removed);
                push(&mut out, Kind::Added, &added);
                removed.clear();
                added.clear();
                push(&mut out, Kind::Same, &same);
            }
        }
    }
    let mut changed = false;
    let mut i = 1;
    while i + 1 < out.len() {
        if out[i - 1].kind == Kind::Same && out[i + 1].kind == Kind::Same {
            let (before, after) = (out[i - 1].items.clone(), out[i + 1].items.clone());
            if out[i].items.ends_with(&before) {
                let kept = out[i].items.len() - before.len();
                let edit = [&before, &out[i].items[..kept]].concat();
                out[i].items = edit;
                out[i + 1].items = [before, after].concat();
                out.remove(i - 1);
                changed = true;
            } else if out[i].items.starts_with(&after) {
                out[i - 1].items.extend(&after);
                let edit = [&out[i].items[after.len()..], &after].concat();
                out[i].items = edit;
                out.remove(i + 1);
                changed = true;
            }
        }
        i += 1;
    }
    if changed { clean_up(out) } else { out }
}

fn push(out: &mut Vec<Piece>, kind: Kind, items: &[u32]) {
    if items.is_empty() {
        return;
    }
    match out.last_mut() {
        Some(last) if last.kind == kind => last.items.extend(items),
        _ => out.push(piece(kind, items)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(from: &str, to: &str) -> Vec<(char, String)> {
        let sign = |kind| match kind {
            Kind::Same => ' ',
            Kind::Removed => '-',
            Kind::Added => '+',
        };
        compare(from, to).into_iter().map(|(k, t)| (sign(k), t)).collect()
    }

    #[test]
    fn runs_of_lines_stay_together() {
        let pieces = signs("one\ntwo\nthree\n", "one\ntwo changed\nand more\nthree\n");
        let expected = [(' ', "one\n"), ('-', "two\n"), ('+', "two changed\nand more\n"), (' ', "three\n")];
        assert_eq!(pieces, expected.map(|(s, t)| (s, t.to_owned())));
        assert_eq!(
            signs("beta", "beta\ngamma\n"),
            [('-', "beta".to_owned()), ('+', "beta\ngamma\n".to_owned())]
        );
        assert_eq!(signs("a\n", "a\n"), [(' ', "a\n".to_owned())]);
    }

    #[test]
    fn diff_pieces_reconstruct_both_texts() {
        let texts =
            ["a\nb\nc\nd\ne\n", "a\nx\nc\ny\ne\n", "", "e\nd\nc\nb\na\n", "a\na\nb\na\nc\n", "b\na\nc\na\nb"];
        for from in texts {
            for to in texts {
                let pieces = signs(from, to);
                let join = |skip: char| {
                    pieces.iter().filter(|(s, _)| *s != skip).map(|(_, t)| t.as_str()).collect::<String>()
                };
                assert_eq!((join('+'), join('-')), (from.to_owned(), to.to_owned()));
            }
        }
    }
}
