//! Camel, snake and kebab case with the word rules of `xstrings`.

use fl_gotemplate::runes::{self, is_letter, is_space, is_upper};
use unicode_general_category::{GeneralCategory as G, get_general_category};

use crate::letter_case::{to_lower, to_upper};

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || is_space(c)
}

/// `unicode.IsPunct`
fn is_punct(c: char) -> bool {
    use G::{
        ClosePunctuation, ConnectorPunctuation, DashPunctuation, FinalPunctuation, InitialPunctuation,
        OpenPunctuation, OtherPunctuation,
    };
    matches!(
        get_general_category(c),
        ClosePunctuation
            | ConnectorPunctuation
            | DashPunctuation
            | FinalPunctuation
            | InitialPunctuation
            | OpenPunctuation
            | OtherPunctuation
    )
}

/// `unicode.IsNumber`
fn is_number(c: char) -> bool {
    matches!(get_general_category(c), G::DecimalNumber | G::LetterNumber | G::OtherNumber)
}

/// Letters but not ideographs, which have no case and no word breaks.
fn is_alphabet(c: char) -> bool {
    is_letter(c)
        && !matches!(c, '\u{4e00}'..='\u{9fcc}' | '\u{3400}'..='\u{4d85}' | '\u{20000}'..='\u{2b81d}')
}

/// `xstrings.ToPascalCase`
pub(crate) fn pascal_case(s: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(s.len());
    let mut all = runes::runes(s).map(|(_, c, _)| c);
    let mut current = None;
    let mut first_upper = false;
    for c in all.by_ref() {
        if !is_connector(c) {
            first_upper = is_upper(c);
            current = Some(to_upper(c));
            break;
        }
        runes::push(&mut out, c);
        current = None;
    }
    let rest: Vec<char> = all.collect();
    let Some(mut current) = current else {
        // Only connectors: `xstrings` writes the last one twice.
        if let Some((c, _)) = runes::decode_last(s) {
            runes::push(&mut out, c);
        }
        return out;
    };
    for next in rest {
        let previous = current;
        current = next;
        if is_connector(current) && is_connector(previous) {
            runes::push(&mut out, previous);
            continue;
        }
        if is_connector(previous) {
            first_upper = is_upper(current);
            current = to_upper(current);
        } else {
            if first_upper {
                if is_upper(current) {
                    current = to_lower(current);
                } else {
                    first_upper = false;
                }
            }
            runes::push(&mut out, previous);
        }
    }
    runes::push(&mut out, current);
    out
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    Invalid,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punct,
    Other,
}

/// The next valid rune; invalid bytes before it count into the size. At the end, the previous rune again.
fn next_rune(s: &[u8], previous: char) -> (char, usize) {
    let mut size = 0;
    for (_, c, width) in runes::runes(s) {
        size += width;
        if c != runes::REPLACEMENT {
            return (c, size);
        }
    }
    (previous, size)
}

/// Advances while the class matches; returns the end offset.
fn run(s: &[u8], mut at: usize, mut last: char, class: impl Fn(char) -> bool) -> usize {
    while at < s.len() {
        let (c, size) = next_rune(&s[at..], last);
        last = c;
        if size == 0 || !class(c) {
            break;
        }
        at += size;
    }
    at
}

fn next_word(s: &[u8]) -> (Word, &[u8], &[u8]) {
    if s.is_empty() {
        return (Word::Invalid, s, s);
    }
    let (c, size) = next_rune(s, runes::REPLACEMENT);
    let split = |word: Word, at: usize| (word, &s[..at], &s[at..]);
    let lower_run = |from: usize, last: char| run(s, from, last, |c| is_alphabet(c) && !is_upper(c));
    if c == runes::REPLACEMENT {
        return split(Word::Invalid, size);
    }
    if is_connector(c) {
        return split(Word::Connector, run(s, size, c, is_connector));
    }
    if is_punct(c) {
        return split(Word::Punct, run(s, size, c, is_punct));
    }
    if is_upper(c) {
        if size >= s.len() {
            return split(Word::Upper, size);
        }
        let (second, second_size) = next_rune(&s[size..], c);
        if is_upper(second) {
            let mut at = size + second_size;
            let mut previous_size = second_size;
            let mut last = second;
            while at < s.len() {
                let (next, next_size) = next_rune(&s[at..], last);
                last = next;
                if !is_upper(next) {
                    break;
                }
                previous_size = next_size;
                at += next_size;
            }
            // The last capital belongs to the next word: `HTTPServer`.
            if at < s.len() && is_alphabet(last) {
                at -= previous_size;
            }
            return split(Word::Upper, at);
        }
        if is_alphabet(second) {
            return split(Word::Upper, lower_run(size + second_size, second));
        }
        return split(Word::Upper, size);
    }
    if is_alphabet(c) {
        return split(Word::Alphabet, lower_run(size, c));
    }
    if is_number(c) {
        return split(Word::Number, run(s, size, c, is_number));
    }
    let other = |c: char| !(is_connector(c) || is_alphabet(c) || is_number(c) || is_punct(c));
    split(Word::Other, run(s, size, c, other))
}

fn write_word(out: &mut Vec<u8>, kind: Word, word: &[u8], connector: char) {
    if kind != Word::Upper && kind != Word::Connector {
        return out.extend_from_slice(word);
    }
    for (_, c, _) in runes::runes(word) {
        let mapped = if is_connector(c) {
            connector
        } else if is_upper(c) {
            to_lower(c)
        } else {
            c
        };
        runes::push(out, mapped);
    }
}

/// `xstrings.ToSnakeCase` and `ToKebabCase`
pub(crate) fn lower_case(s: &[u8], connector: char) -> Vec<u8> {
    let mut out = Vec::with_capacity(s.len() + 8);
    let (mut kind, mut word, mut rest) = next_word(s);
    while !rest.is_empty() {
        if kind != Word::Connector {
            write_word(&mut out, kind, word, connector);
        }
        let (previous, previous_word) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match previous {
            Word::Number => {
                while matches!(kind, Word::Alphabet | Word::Number) {
                    write_word(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if !matches!(kind, Word::Invalid | Word::Punct | Word::Connector) {
                    runes::push(&mut out, connector);
                }
            }
            Word::Connector => write_word(&mut out, previous, previous_word, connector),
            Word::Punct => {}
            _ if kind != Word::Number => {
                if !matches!(kind, Word::Connector | Word::Punct) {
                    runes::push(&mut out, connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word, rest) = next_word(rest);
                if kind != Word::Alphabet {
                    write_word(&mut out, Word::Number, number, connector);
                    if !matches!(kind, Word::Connector | Word::Punct) {
                        runes::push(&mut out, connector);
                    }
                    continue;
                }
                runes::push(&mut out, connector);
                write_word(&mut out, Word::Number, number, connector);
                while matches!(kind, Word::Alphabet | Word::Number) {
                    write_word(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if !matches!(kind, Word::Invalid | Word::Connector | Word::Punct) {
                    runes::push(&mut out, connector);
                }
            }
        }
    }
    write_word(&mut out, kind, word, connector);
    out
}
