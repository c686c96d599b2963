//! Checksums.

use fl_gotemplate::Functions;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::args::{S, bytes, fixed};

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "sha1sum", &[S], |_, a| Ok(hex(&Sha1::digest(bytes(a, 0))).into()));
    fixed(f, "sha256sum", &[S], |_, a| Ok(hex(&Sha256::digest(bytes(a, 0))).into()));
    fixed(f, "sha512sum", &[S], |_, a| Ok(hex(&Sha512::digest(bytes(a, 0))).into()));
    fixed(f, "adler32sum", &[S], |_, a| Ok(adler32(bytes(a, 0)).to_string().into()));
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|b| format!("{b:02x}")).collect()
}

fn adler32(data: &[u8]) -> u32 {
    const MODULUS: u32 = 65521;
    let (mut a, mut b) = (1u32, 0u32);
    // 5552 bytes is the largest chunk whose sums cannot overflow before they are reduced.
    for chunk in data.chunks(5552) {
        for byte in chunk {
            a += u32::from(*byte);
            b += a;
        }
        a %= MODULUS;
        b %= MODULUS;
    }
    b << 16 | a
}
