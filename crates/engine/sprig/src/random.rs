//! Random strings, numbers and identifiers. The bytes come from the host.

use fl_gotemplate::{CallError, Context, Functions, Value, runes};

use crate::args::{I, Out, S, bytes, fixed, int, string};
use crate::host::HostContext;

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "randAlphaNum", &[I], |cx, a| letters(cx, int(a, 0), u8::is_ascii_alphanumeric));
    fixed(f, "randAlpha", &[I], |cx, a| letters(cx, int(a, 0), u8::is_ascii_alphabetic));
    fixed(f, "randNumeric", &[I], |cx, a| letters(cx, int(a, 0), u8::is_ascii_digit));
    fixed(f, "randAscii", &[I], |cx, a| letters(cx, int(a, 0), |c| (32..127).contains(c)));
    fixed(f, "randBytes", &[I], |cx, a| {
        let count = usize::try_from(int(a, 0))
            .map_err(|_| CallError::new("runtime error: makeslice: len out of range"))?;
        cx.reserve(count as u64 * 2)?;
        let mut data = vec![0; count];
        HostContext::of(cx)?.host().random(&mut data);
        string(cx, crate::encoding::base64_encode(&data))
    });
    fixed(f, "randInt", &[I, I], |cx, a| {
        let (min, max) = (int(a, 0), int(a, 1));
        let span = max.wrapping_sub(min);
        if span <= 0 {
            return Err(CallError::new("invalid argument to Intn"));
        }
        Ok(Value::int(min.wrapping_add(below(cx, span as u64)? as i64)))
    });
    fixed(f, "uuidv4", &[], |cx, _| {
        let mut data = [0u8; 16];
        HostContext::of(cx)?.host().random(&mut data);
        data[6] = data[6] & 0x0f | 0x40;
        data[8] = data[8] & 0x3f | 0x80;
        let hex: String = data.iter().map(|b| format!("{b:02x}")).collect();
        let text = format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        Ok(text.into())
    });
    fixed(f, "shuffle", &[S], |cx, a| {
        let mut all: Vec<char> = runes::runes(bytes(a, 0)).map(|(_, c, _)| c).collect();
        for i in (1..all.len()).rev() {
            let j = below(cx, i as u64 + 1)? as usize;
            all.swap(i, j);
        }
        string(cx, all.into_iter().collect::<String>())
    });
}

/// A number below `bound`, without bias.
fn below(cx: &mut Context<'_>, bound: u64) -> Result<u64, CallError> {
    let host = HostContext::of(cx)?;
    let zone = u64::MAX - u64::MAX % bound;
    loop {
        // Counted, so that a generator that repeats itself ends at the step limit.
        cx.step(1)?;
        let mut data = [0u8; 8];
        host.host().random(&mut data);
        let n = u64::from_le_bytes(data);
        if n < zone {
            return Ok(n % bound);
        }
    }
}

fn letters(cx: &mut Context<'_>, count: i64, wanted: fn(&u8) -> bool) -> Out {
    // A negative count is an error that Sprig ignores, returning an empty string.
    let count = usize::try_from(count).unwrap_or(0);
    cx.reserve(count as u64)?;
    cx.step(count as u64)?;
    let host = HostContext::of(cx)?;
    let mut out = Vec::with_capacity(count);
    let mut pool = [0u8; 256];
    while out.len() < count {
        cx.step(1)?;
        host.host().random(&mut pool);
        // Seven bits give every ASCII character the same probability; other characters are dropped.
        let fresh = pool.iter().map(|b| b & 0x7f).filter(wanted);
        out.extend(fresh.take(count - out.len()));
    }
    Ok(Value::str(out))
}
