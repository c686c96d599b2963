//! A single encrypted value: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`

use aes_gcm::AesGcm;
use aes_gcm::aead::consts::{U12, U16, U32};
use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::ValueError;
use crate::tree::Item;

const PREFIX: &str = "ENC[AES256_GCM,data:";

/// Decrypts a value. The path of keys is authenticated with it, so values cannot be moved.
pub(crate) fn open(value: &str, key: &[u8], path: &str) -> Result<Item, ValueError> {
    if value.is_empty() {
        return Ok(Item::Text(String::new()));
    }
    let inner = value
        .strip_prefix(PREFIX)
        .and_then(|v| v.split_once(']').map(|(v, _)| v))
        .ok_or(ValueError::Format)?;
    let (rest, kind) = inner.rsplit_once(",type:").ok_or(ValueError::Format)?;
    let (rest, tag) = rest.rsplit_once(",tag:").ok_or(ValueError::Format)?;
    let (data, iv) = rest.rsplit_once(",iv:").ok_or(ValueError::Format)?;
    let decode = |text: &str| STANDARD.decode(text).map_err(|_| ValueError::Base64);
    let (mut sealed, iv, tag) = (decode(data)?, decode(iv)?, decode(tag)?);
    sealed.extend_from_slice(&tag);
    let payload = Payload { msg: &sealed, aad: path.as_bytes() };
    let key: &[u8; 32] = key.try_into().map_err(|_| ValueError::KeyLength)?;
    let plain = match iv.len() {
        32 => AesGcm::<Aes256, U32>::new(key.into())
            .decrypt(iv.as_slice().try_into().map_err(|_| ValueError::Authentication)?, payload),
        16 => AesGcm::<Aes256, U16>::new(key.into())
            .decrypt(iv.as_slice().try_into().map_err(|_| ValueError::Authentication)?, payload),
        12 => AesGcm::<Aes256, U12>::new(key.into())
            .decrypt(iv.as_slice().try_into().map_err(|_| ValueError::Authentication)?, payload),
        _ => return Err(ValueError::Nonce),
    }
    .map_err(|_| ValueError::Authentication)?;
    typed(plain, kind)
}

fn typed(plain: Vec<u8>, kind: &str) -> Result<Item, ValueError> {
    // Strings in SOPS are bytes: files in the binary format have this type.
    if matches!(kind, "bytes" | "str") {
        return Ok(String::from_utf8(plain).map_or_else(|e| Item::Bytes(e.into_bytes()), Item::Text));
    }
    let text = String::from_utf8(plain).map_err(|_| ValueError::Type("not text"))?;
    Ok(match kind {
        "time" | "comment" => Item::Text(text),
        "int" => Item::Int(text.parse().map_err(|_| ValueError::Type("no whole number"))?),
        "float" => Item::Float(text.parse().map_err(|_| ValueError::Type("no number"))?),
        "bool" => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Item::Bool(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Item::Bool(false),
            _ => return Err(ValueError::Type("no truth value")),
        },
        _ => return Err(ValueError::UnknownType(kind.to_owned())),
    })
}
