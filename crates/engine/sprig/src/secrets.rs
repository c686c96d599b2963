//! Passwords and ciphers: bcrypt, the Master Password algorithm, AES.

use aes::Aes256;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use fl_gotemplate::{CallError, Context, Functions, IntKind, Type, Value};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::args::{Out, S, bytes, fixed, int, string, text};
use crate::keys::HostRng;

/// Steps counted per slow hash, so that a loop of them ends at the step limit.
const SLOW_HASH_STEPS: u64 = 500_000;
const BLOCK: usize = 16;

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "bcrypt", &[S], |cx, a| Ok(hashed(cx, bytes(a, 0))?.into()));
    fixed(f, "htpasswd", &[S, S], |cx, a| {
        let user = text(a, 0);
        if user.contains(':') {
            return Ok(format!("invalid username: {user}").into());
        }
        Ok(format!("{user}:{}", hashed(cx, bytes(a, 1))?).into())
    });
    fixed(f, "derivePassword", &[Type::Int(IntKind::Uint32), S, S, S, S], derive);
    fixed(f, "encryptAES", &[S, S], encrypt);
    fixed(f, "decryptAES", &[S, S], decrypt);
}

/// bcrypt's base64: a different alphabet, no padding.
fn bcrypt_base64(data: &[u8]) -> String {
    const STANDARD_ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const BCRYPT_ALPHABET: &[u8] = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let standard = crate::encoding::base64_encode(data);
    standard
        .bytes()
        .filter_map(|b| STANDARD_ALPHABET.iter().position(|o| *o == b))
        .map(|i| BCRYPT_ALPHABET[i] as char)
        .collect()
}

fn hashed(cx: &mut Context<'_>, password: &[u8]) -> Result<String, CallError> {
    const COST: u32 = 10;
    if password.len() > 72 {
        return Ok(
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes".to_owned()
        );
    }
    cx.step(SLOW_HASH_STEPS)?;
    let salt: [u8; 16] = HostRng::of(cx)?.array();
    let mut terminated = password.to_vec();
    terminated.push(0);
    let hash = bcrypt::bcrypt(COST, salt, &terminated[..terminated.len().min(72)]);
    Ok(format!("$2a${COST:02}${}{}", bcrypt_base64(&salt), bcrypt_base64(&hash[..23])))
}

/// Templates of the Master Password algorithm, by password type.
fn templates(kind: &[u8]) -> Option<&'static [&'static str]> {
    Some(match kind {
        b"maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        b"long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        b"medium" => &["CvcnoCvc", "CvcCvcno"],
        b"short" => &["Cvcn"],
        b"basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        b"pin" => &["nnnn"],
        _ => return None,
    })
}

/// Characters of a template character class.
fn characters(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

fn derive(cx: &mut Context<'_>, a: &[Value]) -> Out {
    const SCOPE: &[u8] = b"com.lyndir.masterpassword";
    let (counter, password, user, site) = (int(a, 0) as u32, bytes(a, 2), bytes(a, 3), bytes(a, 4));
    let Some(patterns) = templates(bytes(a, 1)) else {
        return string(cx, format!("cannot find password template {}", text(a, 1)));
    };
    cx.step(SLOW_HASH_STEPS * 2)?;
    let failed = |e: &dyn std::fmt::Display| CallError::new(format!("failed to derive password: {e}"));
    let length = |s: &[u8]| (s.len() as u32).to_be_bytes();
    let salt = [SCOPE, &length(user), user].concat();
    let params = scrypt::Params::new(15, 8, 2).map_err(|e| failed(&e))?;
    let mut key = [0u8; 64];
    scrypt::scrypt(password, &salt, &params, &mut key).map_err(|e| failed(&e))?;
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&key).map_err(|e| failed(&e))?;
    mac.update(&[SCOPE, &length(site), site, &counter.to_be_bytes()].concat());
    let seed = mac.finalize().into_bytes();
    let pattern = patterns[usize::from(seed[0]) % patterns.len()].as_bytes();
    let made: Vec<u8> = pattern
        .iter()
        .zip(&seed[1..])
        .map(|(class, byte)| {
            let set = characters(*class);
            set[usize::from(*byte) % set.len()]
        })
        .collect();
    Ok(Value::str(made))
}

/// The password as key: truncated or padded with zeros, as in Sprig.
fn cipher(password: &[u8]) -> Aes256 {
    let mut key = [0u8; 32];
    let length = password.len().min(32);
    key[..length].copy_from_slice(&password[..length]);
    Aes256::new(&key.into())
}

fn encrypt(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let plain = bytes(a, 1);
    if plain.is_empty() {
        return Ok("".into());
    }
    let cipher = cipher(bytes(a, 0));
    let padding = BLOCK - plain.len() % BLOCK;
    let mut content = plain.to_vec();
    content.resize(plain.len() + padding, padding as u8);
    let mut previous: [u8; BLOCK] = HostRng::of(cx)?.array();
    let mut out = previous.to_vec();
    for chunk in content.chunks(BLOCK) {
        let mut block = [0u8; BLOCK];
        for (slot, (x, y)) in block.iter_mut().zip(chunk.iter().zip(&previous)) {
            *slot = x ^ y;
        }
        let mut sealed = block.into();
        cipher.encrypt_block(&mut sealed);
        previous = sealed.into();
        out.extend_from_slice(&previous);
    }
    string(cx, crate::encoding::base64_encode(&out))
}

fn decrypt(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let sealed = bytes(a, 1);
    if sealed.is_empty() {
        return Ok("".into());
    }
    let data = crate::encoding::base64_decode(sealed)
        .map_err(|at| CallError::new(format!("illegal base64 data at input byte {at}")))?;
    if data.len() < BLOCK {
        return Err(CallError::new(format!(
            "runtime error: slice bounds out of range [:16] with capacity {}",
            data.len()
        )));
    }
    if data.len() % BLOCK != 0 {
        return Err(CallError::new("crypto/cipher: input not full blocks"));
    }
    let cipher = cipher(bytes(a, 0));
    let mut out = Vec::with_capacity(data.len());
    for pair in data.chunks(BLOCK).collect::<Vec<_>>().windows(2) {
        let mut block = [0u8; BLOCK];
        block.copy_from_slice(pair[1]);
        let mut opened = block.into();
        cipher.decrypt_block(&mut opened);
        out.extend(opened.iter().zip(pair[0]).map(|(x, y)| x ^ y));
    }
    let Some(&padding) = out.last() else {
        return Err(CallError::new("runtime error: index out of range [-1]"));
    };
    match out.len().checked_sub(usize::from(padding)) {
        Some(length) => string(cx, &out[..length]),
        None => Err(CallError::new(format!(
            "runtime error: slice bounds out of range [:{}]",
            out.len() as i64 - i64::from(padding)
        ))),
    }
}
