//! Base64 and base32, with the error messages of Go's decoders.

use fl_gotemplate::Functions;

use crate::args::{S, bytes, fixed, string};

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "b64enc", &[S], |cx, a| string(cx, base64_encode(bytes(a, 0))));
    fixed(f, "b64dec", &[S], |cx, a| match base64_decode(bytes(a, 0)) {
        Ok(data) => string(cx, data),
        Err(at) => string(cx, format!("illegal base64 data at input byte {at}")),
    });
    fixed(f, "b32enc", &[S], |cx, a| string(cx, encode(bytes(a, 0), BASE32, 5)));
    fixed(f, "b32dec", &[S], |cx, a| match decode(bytes(a, 0), BASE32, 5) {
        Ok(data) => string(cx, data),
        Err(at) => string(cx, format!("illegal base32 data at input byte {at}")),
    });
}

const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Standard base64 with padding.
pub(crate) fn base64_encode(data: &[u8]) -> String {
    encode(data, BASE64, 6)
}

/// Standard base64; line breaks are skipped. The error is the offset in Go's message.
pub(crate) fn base64_decode(text: &[u8]) -> Result<Vec<u8>, usize> {
    decode(text, BASE64, 6)
}

/// Characters in a full group: 4 for base64, 8 for base32.
fn group(bits: u32) -> usize {
    if bits == 6 { 4 } else { 8 }
}

fn encode(data: &[u8], alphabet: &[u8], bits: u32) -> String {
    let mut out = String::with_capacity(data.len() * 8 / bits as usize + 8);
    let (mut held, mut count) = (0u32, 0);
    for byte in data {
        held = held << 8 | u32::from(*byte);
        count += 8;
        while count >= bits {
            count -= bits;
            out.push(alphabet[(held >> count) as usize & ((1 << bits) - 1)] as char);
        }
        held &= (1 << count) - 1;
    }
    if count > 0 {
        out.push(alphabet[(held << (bits - count)) as usize & ((1 << bits) - 1)] as char);
    }
    while !out.len().is_multiple_of(group(bits)) {
        out.push('=');
    }
    out
}

fn decode(text: &[u8], alphabet: &[u8], bits: u32) -> Result<Vec<u8>, usize> {
    // Base32 removes line breaks before counting offsets; base64 counts every byte.
    let stripped: Vec<u8>;
    let text = if bits == 5 {
        stripped = text.iter().copied().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
        &stripped[..]
    } else {
        text
    };
    let size = group(bits);
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    loop {
        let mut values = [0u8; 8];
        let mut have = 0;
        let mut last = false;
        while have < size {
            let Some(&c) = text.get(at) else {
                if have == 0 {
                    return Ok(out);
                }
                return Err(at - have);
            };
            at += 1;
            if matches!(c, b'\r' | b'\n') {
                continue;
            }
            if let Some(value) = alphabet.iter().position(|a| *a == c) {
                values[have] = value as u8;
                have += 1;
                continue;
            }
            if c != b'=' {
                return Err(at - 1);
            }
            at = padding(text, at, have, bits)?;
            last = true;
            break;
        }
        let (mut held, mut count) = (0u64, 0);
        for value in &values[..have] {
            held = held << bits | u64::from(*value);
            count += bits;
        }
        let whole = count / 8;
        for i in 0..whole {
            out.push((held >> (count - 8 * (i + 1))) as u8);
        }
        if last {
            return Ok(out);
        }
    }
}

/// Checks the padding after its first character and that nothing follows it; returns the offset after it.
fn padding(text: &[u8], mut at: usize, have: usize, bits: u32) -> Result<usize, usize> {
    let allowed: &[usize] = if bits == 6 { &[2, 3] } else { &[2, 4, 5, 7] };
    if !allowed.contains(&have) {
        return Err(at - 1);
    }
    for _ in have + 1..group(bits) {
        while matches!(text.get(at), Some(b'\r' | b'\n')) {
            at += 1;
        }
        match text.get(at) {
            Some(b'=') => at += 1,
            Some(_) => return Err(if bits == 6 { at } else { at - 1 }),
            None => return Err(text.len()),
        }
    }
    while matches!(text.get(at), Some(b'\r' | b'\n')) {
        at += 1;
    }
    if at < text.len() {
        return Err(at);
    }
    Ok(at)
}
