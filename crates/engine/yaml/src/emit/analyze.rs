//! The styles that a scalar can be written in.

use crate::character_class::{break_len, byte, is_blank};

/// libyaml's analysis of a scalar before it selects a style.
#[derive(Debug, Clone, Copy)]
pub(super) struct Analysis {
    pub(super) multiline: bool,
    #[expect(dead_code, reason = "for the style-keeping emitter")]
    pub(super) flow_plain: bool,
    pub(super) block_plain: bool,
    pub(super) single_quoted: bool,
    pub(super) block: bool,
}

/// Whether a character is written unescaped: line feed, printable ASCII, and the basic plane without control
/// characters and byte order mark.
pub(super) fn is_printable(b: &[u8], at: usize) -> bool {
    match byte(b, at) {
        0x0A | 0x20..=0x7E => true,
        0xC2 => byte(b, at + 1) >= 0xA0,
        0xC3..=0xEC | 0xEE => true,
        0xED => byte(b, at + 1) < 0xA0,
        0xEF => !matches!((byte(b, at + 1), byte(b, at + 2)), (0xBB, 0xBF) | (0xBF, 0xBE | 0xBF)),
        _ => false,
    }
}

pub(super) fn width(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    }
}

/// `tabs` is whether block scalars may have tabs: `yaml.v3` writes them, `yaml.v2` escapes them.
pub(super) fn analyze(text: &str, tabs: bool) -> Analysis {
    let b = text.as_bytes();
    if b.is_empty() {
        return Analysis {
            multiline: false,
            flow_plain: false,
            block_plain: true,
            single_quoted: true,
            block: false,
        };
    }
    let marker = text.starts_with("---") || text.starts_with("...");
    let (mut block_indicators, mut flow_indicators) = (marker, marker);
    let (mut line_breaks, mut special, mut tab) = (false, false, false);
    let (mut edge_space, mut trailing_space) = (false, false);
    let (mut break_space, mut space_break) = (false, false);
    let (mut previous_space, mut previous_break, mut preceded_by_blank) = (false, false, true);
    let mut i = 0;
    while i < b.len() {
        let c = b[i];
        let w = width(c);
        let end = i + w >= b.len();
        let followed_by_blank = end || is_blank(b[i + w]);
        match c {
            b'#' | b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"'
            | b'%' | b'@' | b'`'
                if i == 0 =>
            {
                (flow_indicators, block_indicators) = (true, true);
            }
            b'-' if i == 0 && followed_by_blank => (flow_indicators, block_indicators) = (true, true),
            b'?' if i == 0 => {
                flow_indicators = true;
                block_indicators |= followed_by_blank;
            }
            b',' | b'?' | b'[' | b']' | b'{' | b'}' => flow_indicators = true,
            b':' => {
                flow_indicators = true;
                block_indicators |= followed_by_blank;
            }
            b'#' if preceded_by_blank => (flow_indicators, block_indicators) = (true, true),
            _ => {}
        }
        if c == b'\t' && tabs {
            tab = true;
        } else {
            special |= !is_printable(b, i);
        }
        let is_break = break_len(b, i) > 0;
        if c == b' ' {
            edge_space |= i == 0 || end;
            trailing_space |= end;
            break_space |= previous_break;
            (previous_space, previous_break) = (true, false);
        } else if is_break {
            line_breaks = true;
            edge_space |= i == 0 || end;
            space_break |= previous_space;
            (previous_space, previous_break) = (false, true);
        } else {
            (previous_space, previous_break) = (false, false);
        }
        preceded_by_blank = is_blank(c) || is_break || c == 0;
        i += w;
    }
    let quotable = !(break_space || space_break || tab || special);
    let plain = quotable && !edge_space && !line_breaks;
    Analysis {
        multiline: line_breaks,
        flow_plain: plain && !flow_indicators,
        block_plain: plain && !block_indicators,
        single_quoted: quotable,
        block: !(trailing_space || space_break || special),
    }
}
