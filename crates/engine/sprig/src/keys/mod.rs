//! Keys and certificates, generated with the host's randomness.

mod cert;
mod der;
mod key;

use std::any::Any;
use std::borrow::Cow;
use std::convert::Infallible;
use std::rc::Rc;

use fl_gotemplate::{CallError, Context, Functions, Object, Str, Type, Value};

use crate::args::{I, Out, S, bytes, fixed, int};
use crate::host::HostContext;
use cert::{Issuer, Request, addresses, create, dns_names};
use key::PrivateKey;

const L: Type = Type::List;
const CERTIFICATE: Type = Type::Named("sprig.certificate");

/// Steps counted per generated key, so that malicious templates cannot keep a machine busy.
const KEY_STEPS: u64 = 1_000_000;

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "genPrivateKey", &[S], generate);
    fixed(f, "buildCustomCert", &[S, S], build_custom);
    fixed(f, "genCA", &[S, I], |cx, a| {
        let key = new_rsa(cx)?;
        authority(cx, a, &key)
    });
    fixed(f, "genCAWithKey", &[S, I, S], |cx, a| {
        let key = given_key(cx, a, 2)?;
        authority(cx, a, &key)
    });
    fixed(f, "genSelfSignedCert", &[S, L, L, I], |cx, a| {
        let key = new_rsa(cx)?;
        self_signed(cx, a, &key)
    });
    fixed(f, "genSelfSignedCertWithKey", &[S, L, L, I, S], |cx, a| {
        let key = given_key(cx, a, 4)?;
        self_signed(cx, a, &key)
    });
    fixed(f, "genSignedCert", &[S, L, L, I, CERTIFICATE], |cx, a| {
        let key = new_rsa(cx)?;
        signed(cx, a, &key)
    });
    fixed(f, "genSignedCertWithKey", &[S, L, L, I, CERTIFICATE, S], |cx, a| {
        let key = given_key(cx, a, 5)?;
        signed(cx, a, &key)
    });
}

/// The host's randomness as RNG for the key libraries.
pub(crate) struct HostRng(Rc<HostContext>);

impl HostRng {
    pub(crate) fn of(cx: &Context<'_>) -> Result<Self, CallError> {
        Ok(HostRng(HostContext::of(cx)?))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut data = [0; N];
        self.0.host().random(&mut data);
        data
    }
}

impl rand_core::TryRng for HostRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(self.array()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes(self.array()))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.0.host().random(out);
        Ok(())
    }
}

impl rand_core::TryCryptoRng for HostRng {}

/// Sprig's `certificate` struct.
#[derive(Debug)]
struct Certificate {
    cert: Str,
    key: Str,
}

impl Object for Certificate {
    fn type_name(&self) -> Cow<'static, str> {
        "sprig.certificate".into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Cert" => Some(Value::Str(self.cert.clone())),
            "Key" => Some(Value::Str(self.key.clone())),
            _ => None,
        }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("Cert", Value::Str(self.cert.clone())), ("Key", Value::Str(self.key.clone()))]
    }
}

fn new_rsa(cx: &mut Context<'_>) -> Result<PrivateKey, CallError> {
    cx.step(KEY_STEPS)?;
    PrivateKey::rsa(&mut HostRng::of(cx)?, 2048)
}

fn given_key(cx: &mut Context<'_>, a: &[Value], i: usize) -> Result<PrivateKey, CallError> {
    cx.step(KEY_STEPS / 10)?;
    PrivateKey::from_pem(bytes(a, i)).map_err(|e| e.context("parsing private key"))
}

fn generate(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let mut rng = HostRng::of(cx)?;
    let key = match bytes(a, 0) {
        b"" | b"rsa" => {
            cx.step(KEY_STEPS * 8)?;
            PrivateKey::rsa(&mut rng, 4096)?
        }
        b"dsa" => {
            cx.step(KEY_STEPS * 8)?;
            PrivateKey::dsa(&mut rng)?
        }
        b"ecdsa" => {
            cx.step(KEY_STEPS / 10)?;
            PrivateKey::ec(&mut rng)
        }
        b"ed25519" => PrivateKey::ed25519(&mut rng),
        other => return Ok(Value::str(format!("Unknown type {}", String::from_utf8_lossy(other)))),
    };
    Ok(key.to_pem()?.into())
}

fn certificate(cert: impl Into<Str>, key: impl Into<Str>) -> Value {
    Value::object(Certificate { cert: cert.into(), key: key.into() })
}

fn list_arg(a: &[Value], i: usize) -> &[Value] {
    match &a[i] {
        Value::List(list) => list.items(),
        _ => &[],
    }
}

fn now(cx: &Context<'_>) -> Result<i64, CallError> {
    Ok(HostContext::of(cx)?.host().now().0)
}

fn authority(cx: &mut Context<'_>, a: &[Value], key: &PrivateKey) -> Out {
    let request = Request {
        common_name: bytes(a, 0),
        ips: Vec::new(),
        names: Vec::new(),
        days: int(a, 1),
        authority: true,
    };
    let cert = create(&mut HostRng::of(cx)?, now(cx)?, &request, key, None)?;
    Ok(certificate(cert, key.to_pem()?))
}

/// The arguments that self-signed and signed certificates have in common.
fn request(a: &[Value]) -> Result<Request<'_>, CallError> {
    Ok(Request {
        common_name: bytes(a, 0),
        ips: addresses(list_arg(a, 1))?,
        names: dns_names(list_arg(a, 2))?,
        days: int(a, 3),
        authority: false,
    })
}

fn self_signed(cx: &mut Context<'_>, a: &[Value], key: &PrivateKey) -> Out {
    let cert = create(&mut HostRng::of(cx)?, now(cx)?, &request(a)?, key, None)?;
    Ok(certificate(cert, key.to_pem()?))
}

fn signed(cx: &mut Context<'_>, a: &[Value], key: &PrivateKey) -> Out {
    let Some(ca) = a[4].as_object::<Certificate>() else {
        return Err(CallError::new("unable to decode certificate"));
    };
    let Some((_, data)) = der::from_pem(&ca.cert) else {
        return Err(CallError::new("unable to decode certificate"));
    };
    let issuer = Issuer::read(&data).ok_or_else(|| {
        CallError::new("error parsing certificate: decodedSignerCert.Bytes: x509: malformed certificate")
    })?;
    let signer = PrivateKey::from_pem(&ca.key).map_err(|e| e.context("error parsing private key"))?;
    let cert = create(&mut HostRng::of(cx)?, now(cx)?, &request(a)?, key, Some((&issuer, &signer)))?;
    Ok(certificate(cert, key.to_pem()?))
}

fn build_custom(_: &mut Context<'_>, a: &[Value]) -> Out {
    let decoded = |i: usize, what: &str| {
        crate::encoding::base64_decode(bytes(a, i))
            .map_err(|_| CallError::new(format!("unable to decode base64 {what}")))
    };
    let cert = decoded(0, "certificate")?;
    let key = decoded(1, "private key")?;
    let Some((_, data)) = der::from_pem(&cert) else {
        return Err(CallError::new("unable to decode certificate"));
    };
    if Issuer::read(&data).is_none() {
        return Err(CallError::new(
            "error parsing certificate: decodedCert.Bytes: x509: malformed certificate",
        ));
    }
    PrivateKey::from_pem(&key).map_err(|e| e.context("error parsing private key"))?;
    Ok(certificate(cert, key))
}
