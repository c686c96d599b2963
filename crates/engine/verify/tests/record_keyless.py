#!/usr/bin/env python3
"""Writes keyless/world.json: a small Sigstore of our own (authority, certificate log, transparency log) made with Python's
`cryptography` and openssl, which share nothing with the crate, and signatures of it, good and bad.

    python3 record_keyless.py

Each case says which signature, for whom it is asked, and what the refusal must say (nothing when it is good).
"""
import base64, datetime as dt, hashlib, json, pathlib, subprocess, tempfile
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization as ser
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

UTC = dt.timezone.utc
START = dt.datetime(2026, 1, 1, tzinfo=UTC)
SIGNED = dt.datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
WHEN = int(SIGNED.timestamp()) + 60
DIGEST = "sha256:" + hashlib.sha256(b"the manifest").hexdigest()
b64 = lambda b: base64.b64encode(b).decode()
SCT = ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
spki = lambda key: key.public_key().public_bytes(ser.Encoding.DER, ser.PublicFormat.SubjectPublicKeyInfo)
der = lambda c: c.public_bytes(ser.Encoding.DER)
pem = lambda c: c.public_bytes(ser.Encoding.PEM).decode()
name = lambda text: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
sign = lambda key, data: key.sign(data, ec.ECDSA(hashes.SHA256()))


def authority(subject, key, issuer=None, issuer_key=None, hash_=hashes.SHA384(), length=None):
    builder = (x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer or subject))
               .public_key(key.public_key()).serial_number(x509.random_serial_number())
               .not_valid_before(START).not_valid_after(START + dt.timedelta(days=3650))
               .add_extension(x509.BasicConstraints(True, length), critical=True)
               .add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True))
    return builder.sign(issuer_key or key, hash_)


root_key, mid_key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
root = authority("root", root_key, length=1)
mid = authority("mid", mid_key, "root", root_key, length=0)
ct_key, rekor_key, other_log = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
stranger_key = ec.generate_private_key(ec.SECP256R1())
stranger = authority("mid", stranger_key, hash_=hashes.SHA256())


def sct(log, certificate, issuer):
    content = certificate.tbs_precertificate_bytes
    stamp = int(SIGNED.timestamp() * 1000).to_bytes(8, "big")
    issuer_hash = hashlib.sha256(issuer.public_key().public_bytes(ser.Encoding.DER, ser.PublicFormat.SubjectPublicKeyInfo)).digest()
    signed = b"\0\0" + stamp + b"\0\1" + issuer_hash + len(content).to_bytes(3, "big") + content + b"\0\0"
    signature = sign(log, signed)
    one = b"\0" + hashlib.sha256(spki(log)).digest() + stamp + b"\0\0" + b"\4\3" + len(signature).to_bytes(2, "big") + signature
    lists = len(one).to_bytes(2, "big") + one
    lists = len(lists).to_bytes(2, "big") + lists
    return (b"\x04\x81" + bytes([len(lists)]) if len(lists) > 127 else b"\x04" + bytes([len(lists)])) + lists


def leaf(key, issuer=mid, issuer_key=mid_key, log=ct_key, code=True, subject="ann@example.com", oidc="https://issuer.example",
         bad_sct=False, ca=False):
    alternative = x509.UniformResourceIdentifier(subject) if "://" in subject else x509.RFC822Name(subject)
    text = oidc.encode()
    builder = (x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(issuer.subject)
               .public_key(key.public_key()).serial_number(x509.random_serial_number())
               .not_valid_before(SIGNED).not_valid_after(SIGNED + dt.timedelta(minutes=10))
               .add_extension(x509.KeyUsage(True, False, False, False, False, ca, False, False, False), critical=True)
               .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING if code else ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
               .add_extension(x509.SubjectAlternativeName([alternative]), critical=True)
               .add_extension(x509.UnrecognizedExtension(ObjectIdentifier("1.3.6.1.4.1.57264.1.1"), text), critical=False)
               .add_extension(x509.UnrecognizedExtension(ObjectIdentifier("1.3.6.1.4.1.57264.1.8"), b"\x0c" + bytes([len(text)]) + text), critical=False))
    if ca:
        builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
    if log is None:
        return builder.sign(issuer_key, hashes.SHA256())
    draft = builder.add_extension(x509.UnrecognizedExtension(SCT, b"\x04\x02\0\0"), critical=False).sign(issuer_key, hashes.SHA256())
    promise = sct(log, draft, issuer)
    if bad_sct:
        promise = promise[:-1] + bytes([promise[-1] ^ 1])
    return builder.add_extension(x509.UnrecognizedExtension(SCT, promise), critical=False).sign(issuer_key, hashes.SHA256())


key_id = lambda key: hashlib.sha256(spki(key)).digest()
canonical = lambda value: json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def log_json(key, start=START, end=None):
    period = {"start": start.isoformat().replace("+00:00", "Z"), **({"end": end.isoformat().replace("+00:00", "Z")} if end else {})}
    return {"baseUrl": "https://log.example", "hashAlgorithm": "SHA2_256", "logId": {"keyId": b64(key_id(key))},
            "publicKey": {"rawBytes": b64(spki(key)), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": period}}


def trusted_root(**change):
    made = {"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log_json(other_log), log_json(rekor_key)], "ctlogs": [log_json(ct_key)],
            "certificateAuthorities": [{"subject": {"organization": "o", "commonName": "c"}, "uri": "https://ca.example",
                                        "certChain": {"certificates": [{"rawBytes": b64(der(mid))}, {"rawBytes": b64(der(root))}]},
                                        "validFor": {"start": "2026-01-01T00:00:00.000Z"}}],
            "timestampAuthorities": []}
    made.update(change)
    return made


def promise(body, when=WHEN, index=7, log=rekor_key):
    payload = {"body": b64(body), "integratedTime": when, "logID": key_id(log).hex(), "logIndex": index}
    return payload, sign(log, canonical(payload))


def simple(key, certificate, payload=None, when=WHEN, log=rekor_key, about=None, logged=None):
    payload = payload or json.dumps({"critical": {"identity": {"docker-reference": "r/x"}, "image": {"docker-manifest-digest": DIGEST},
                                                  "type": "cosign container image signature"}, "optional": None}).encode()
    signature = sign(key, payload)
    body = canonical({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {
        "data": {"hash": {"algorithm": "sha256", "value": hashlib.sha256(about or payload).hexdigest()}},
        "signature": {"content": b64(signature), "publicKey": {"content": b64(pem(logged or certificate).encode())}}}})
    entry, signed = promise(body, when, log=log)
    return {"payload": b64(payload), "signature": b64(signature), "certificate": pem(certificate),
            "bundle": json.dumps({"SignedEntryTimestamp": b64(signed), "Payload": entry})}


def tree(leaves, index):
    """The root and the way to it from one leaf (RFC 6962, 2.1.1)."""
    node = lambda a, b: hashlib.sha256(b"\1" + a + b).digest()

    def head(part):
        if len(part) == 1:
            return hashlib.sha256(b"\0" + part[0]).digest()
        k = 1 << (len(part) - 1).bit_length() - 1
        return node(head(part[:k]), head(part[k:]))

    def path(m, part):
        if len(part) == 1:
            return []
        k = 1 << (len(part) - 1).bit_length() - 1
        return path(m, part[:k]) + [head(part[k:])] if m < k else path(m - k, part[k:]) + [head(part[:k])]

    return head(leaves), path(index, leaves)


def bundle(key, certificate, kind="dsse", digest=DIGEST, position=3, size=7, with_promise=True):
    statement = json.dumps({"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://sigstore.dev/cosign/sign/v1",
                            "subject": [{"digest": {"sha256": digest.removeprefix("sha256:")}}], "predicate": {}}).encode()
    kind_ = "application/vnd.in-toto+json"
    signature = sign(key, b"DSSEv1 %d %s %d " % (len(kind_), kind_.encode(), len(statement)) + statement)
    payload_hash = {"algorithm": "sha256", "value": hashlib.sha256(statement).hexdigest()}
    holder = b64(pem(certificate).encode())
    if kind == "dsse":
        body = {"apiVersion": "0.0.1", "kind": "dsse", "spec": {
            "envelopeHash": {"algorithm": "sha256", "value": "00" * 32}, "payloadHash": payload_hash,
            "signatures": [{"signature": b64(signature), "verifier": holder}]}}
    else:
        body = {"apiVersion": "0.0.2", "kind": "intoto", "spec": {"content": {
            "envelope": {"payloadType": kind_, "signatures": [{"publicKey": holder, "sig": b64(b64(signature).encode())}]},
            "hash": {"algorithm": "sha256", "value": "00" * 32}, "payloadHash": payload_hash}}}
    body = canonical(body)
    leaves = [b"entry %d" % i for i in range(size)]
    leaves[position] = body
    top, way = tree(leaves, position)
    note = f"log.example - 1\n{size}\n{b64(top)}\n"
    checkpoint = note + f"\n\u2014 log.example {b64(key_id(rekor_key)[:4] + sign(rekor_key, note.encode()))}\n"
    entry, signed = promise(body, index=1000 + position)
    made = {"logIndex": str(1000 + position), "logId": {"keyId": b64(key_id(rekor_key))}, "kindVersion": {"kind": kind, "version": "0.0.1"},
            "integratedTime": str(WHEN), "canonicalizedBody": b64(body),
            "inclusionProof": {"logIndex": str(position), "rootHash": b64(top), "treeSize": str(size),
                               "hashes": [b64(h) for h in way], "checkpoint": {"envelope": checkpoint}}}
    if with_promise:
        made["inclusionPromise"] = {"signedEntryTimestamp": b64(signed)}
    return {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {"certificate": {"rawBytes": b64(der(certificate))}, "tlogEntries": [made]},
            "dsseEnvelope": {"payload": b64(statement), "payloadType": kind_, "signatures": [{"sig": b64(signature)}]}}


cases = []
roots = {"good": trusted_root()}


def case(title, want, content, root_="good", issuer="^https://issuer\\.example$", subject="^ann@example\\.com$", digest=DIGEST):
    cases.append({"name": title, "want": want, "root": root_, "issuer": issuer, "subject": subject, "digest": digest, **content})


key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
good = leaf(key)
S = lambda **k: {"simple": k}
case("good", "", S(**simple(key, good)))
case("any identity", "", S(**simple(key, good)), issuer=".*", subject=".*")
case("a workflow", "", S(**simple(key, leaf(key, subject="https://github.example/o/r/.github/workflows/x.yml@refs/heads/main"))), subject="^https://github\\.example/o/")
case("wrong identity", "none of the expected identities matched", S(**simple(key, good)), subject="^bob@")
case("wrong issuer", "none of the expected identities matched", S(**simple(key, good)), issuer="^https://other")
case("expired", "not valid when it was used", S(**simple(key, good, when=WHEN + 3600)))
case("before its time", "not valid when it was used", S(**simple(key, good, when=WHEN - 3600)))
case("no log", "no entry in a transparency log", S(**{k: v for k, v in simple(key, good).items() if k != "bundle"}))
case("no certificate", "no certificate", S(**{k: v for k, v in simple(key, good).items() if k != "certificate"}))
case("unknown authority", "no chain leads to one", S(**simple(key, leaf(key, stranger, stranger_key))))
case("no SCT", "it has none at all", S(**simple(key, leaf(key, log=None))))
case("SCT of another log", "no log of the trusted root made the signature", S(**simple(key, leaf(key, log=other_log))))
case("changed SCT", "no log of the trusted root made the signature", S(**simple(key, leaf(key, bad_sct=True))))
case("not for code", "not for signing code", S(**simple(key, leaf(key, code=False))))
case("an authority signs", "an authority itself", S(**simple(key, leaf(key, ca=True))))
case("unknown log", "log is not in the trusted root", S(**simple(key, good, log=ct_key)))
case("entry about something else", "about another signature", S(**simple(key, good, about=b"x")))
case("entry of another certificate", "about another signature", S(**simple(key, good, logged=leaf(key))))
case("another key signed", "not made by this key", S(**simple(other, good)))
case("another image", "not sha256:" + "0" * 64, S(**simple(key, good)), digest="sha256:" + "0" * 64)
for title, field, value, want in [("changed time", "integratedTime", WHEN + 1, "log's signature does not match"),
                                  ("changed index", "logIndex", 8, "log's signature does not match"),
                                  ("changed body", "body", b64(b"{}"), "log's signature does not match")]:
    made = simple(key, good)
    entry = json.loads(made["bundle"])
    entry["Payload"][field] = value
    case(title, want, S(**{**made, "bundle": json.dumps(entry)}))
roots["log ended"] = trusted_root(tlogs=[log_json(rekor_key, end=START + dt.timedelta(days=1))])
roots["certificate log ended"] = trusted_root(ctlogs=[log_json(ct_key, end=START + dt.timedelta(days=1))])
ended = trusted_root()
ended["certificateAuthorities"][0]["validFor"]["end"] = "2026-02-01T00:00:00Z"
roots["authority ended"] = ended
short = trusted_root()
short["certificateAuthorities"][0]["certChain"]["certificates"].pop()
roots["only the issuer"] = short
mixed = trusted_root()
mixed["certificateAuthorities"][0]["certChain"]["certificates"][1] = {"rawBytes": b64(der(stranger))}
roots["broken chain"] = mixed
case("log ended", "key was not valid then", S(**simple(key, good)), "log ended")
case("certificate log ended", "no log of the trusted root", S(**simple(key, good)), "certificate log ended")
case("authority ended", "no chain leads to one", S(**simple(key, good)), "authority ended")
case("only the issuer", "", S(**simple(key, good)), "only the issuer")
case("broken chain", "no chain leads to one", S(**simple(key, good)), "broken chain")

B = lambda made: {"bundle": made}
for position, size in [(0, 1), (0, 2), (1, 2), (3, 7), (6, 7), (4, 5), (7, 8)]:
    case(f"bundle, entry {position} of {size}", "", B(bundle(key, good, position=position, size=size)))
case("bundle of the older kind", "", B(bundle(key, good, "intoto")))
case("bundle, wrong identity", "none of the expected identities matched", B(bundle(key, good)), subject="bob")
case("bundle about another image", "signature is about", B(bundle(key, good, digest="sha256:" + "1" * 64)))
case("bundle of another key", "not made by this key", B(bundle(other, good)))
case("bundle of an unknown authority", "no chain leads to one", B(bundle(key, leaf(key, stranger, stranger_key))))
case("bundle without SCT", "it has none at all", B(bundle(key, leaf(key, log=None))))
case("bundle without promise", "nobody has signed when the signature was made", B(bundle(key, good, with_promise=False)))

# Timestamps by openssl, whose clock is now: the certificate must be valid now, and the logs too.
NOW = dt.datetime.now(UTC).replace(microsecond=0)
tsa_root_key, tsa_key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP256R1())
tsa_root = authority("tsa root", tsa_root_key)
tsa = (x509.CertificateBuilder().subject_name(name("tsa")).issuer_name(name("tsa root")).public_key(tsa_key.public_key())
       .serial_number(x509.random_serial_number()).not_valid_before(START).not_valid_after(START + dt.timedelta(days=3650))
       .add_extension(x509.BasicConstraints(False, None), critical=True)
       .add_extension(x509.KeyUsage(True, False, False, False, False, False, False, False, False), critical=True)
       .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True).sign(tsa_root_key, hashes.SHA384()))


def stamp(message, signer=tsa, signer_key=tsa_key):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "message").write_bytes(message)
        (folder / "tsa.pem").write_text(pem(signer))
        (folder / "tsa.key").write_bytes(signer_key.private_bytes(ser.Encoding.PEM, ser.PrivateFormat.PKCS8, ser.NoEncryption()))
        (folder / "serial").write_text("01")
        (folder / "conf").write_text(f"[tsa]\ndefault_tsa=t\n[t]\nserial={folder}/serial\nsigner_cert={folder}/tsa.pem\n"
                                     f"signer_key={folder}/tsa.key\nsigner_digest=sha256\ndefault_policy=1.2.3\ndigests=sha256\n"
                                     "ess_cert_id_alg=sha256\n")
        openssl = lambda *a: subprocess.run(["openssl", "ts", *a], check=True, capture_output=True)
        openssl("-query", "-data", f"{folder}/message", "-sha256", "-cert", "-out", f"{folder}/q")
        openssl("-reply", "-config", f"{folder}/conf", "-queryfile", f"{folder}/q", "-out", f"{folder}/r")
        return (folder / "r").read_bytes()


SIGNED = NOW - dt.timedelta(minutes=1)
fresh = leaf(key)
late = leaf(key)
authority_json = lambda *chain: [{"certChain": {"certificates": [{"rawBytes": b64(der(c))} for c in chain]}, "validFor": {"start": "2026-01-01T00:00:00Z"}}]
roots["timestamps"] = trusted_root(timestampAuthorities=authority_json(tsa, tsa_root))
roots["timestamps of the root"] = trusted_root(timestampAuthorities=authority_json(tsa_root))


def stamped(certificate=fresh, message=None, **who):
    made = bundle(key, certificate, with_promise=False)
    signature = base64.b64decode(made["dsseEnvelope"]["signatures"][0]["sig"])
    token = stamp(message or signature, **who)
    made["verificationMaterial"]["timestampVerificationData"] = {"rfc3161Timestamps": [{"signedTimestamp": b64(token)}]}
    return made


case("timestamp", "", B(stamped()), "timestamps")
case("timestamp of a certificate that came along", "", B(stamped()), "timestamps of the root")
case("timestamp without authority", "no timestamp authority", B(stamped()))
case("timestamp of another signature", "about another signature", B(stamped(message=b"x")), "timestamps")
case("timestamp of a stranger", "no timestamp authority", B(stamped(signer_key=stranger_key, signer=(
    x509.CertificateBuilder().subject_name(name("tsa")).issuer_name(name("tsa root")).public_key(stranger_key.public_key())
    .serial_number(7).not_valid_before(START).not_valid_after(START + dt.timedelta(days=3650))
    .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True).sign(stranger_key, hashes.SHA256())))), "timestamps")
case("timestamp after the certificate", "not valid when it was used", B(stamped(certificate=good)), "timestamps")
made = stamped()
raw = bytearray(base64.b64decode(made["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"][0]["signedTimestamp"]))
at = raw.find(NOW.strftime("%Y%m%d").encode())
raw[at + 3] ^= 1
made["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"][0]["signedTimestamp"] = b64(bytes(raw))
case("changed timestamp", "not about its content", B(made), "timestamps")
SIGNED = dt.datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)


def changed(title, want, change):
    made = bundle(key, good)
    change(made["verificationMaterial"]["tlogEntries"][0], made)
    case(title, want, B(made))


def flip(text):
    raw = bytearray(base64.b64decode(text))
    raw[-1] ^= 1
    return b64(bytes(raw))


changed("bundle, changed proof", "does not lead to the root", lambda e, b: e["inclusionProof"]["hashes"].__setitem__(0, flip(e["inclusionProof"]["hashes"][0])))
changed("bundle, proof too long", "proof", lambda e, b: e["inclusionProof"]["hashes"].extend([e["inclusionProof"]["hashes"][0]] * 5))
changed("bundle, changed size", "proof", lambda e, b: e["inclusionProof"].__setitem__("treeSize", "99"))
changed("bundle, index outside", "outside of the log", lambda e, b: e["inclusionProof"].__setitem__("logIndex", "7"))
changed("bundle, changed checkpoint", "checkpoint", lambda e, b: e["inclusionProof"]["checkpoint"].__setitem__("envelope", e["inclusionProof"]["checkpoint"]["envelope"].replace("log.example - 1", "log.example - 2")))
changed("bundle, changed promise", "log's signature does not match", lambda e, b: e["inclusionPromise"].__setitem__("signedEntryTimestamp", flip(e["inclusionPromise"]["signedEntryTimestamp"])))
changed("bundle, changed statement", "not made by this key", lambda e, b: b["dsseEnvelope"].__setitem__("payload", b64(base64.b64decode(b["dsseEnvelope"]["payload"]) + b" ")))
changed("bundle without entry", "no entry in a transparency log", lambda e, b: b["verificationMaterial"].__setitem__("tlogEntries", []))
changed("bundle without certificate", "no certificate", lambda e, b: b["verificationMaterial"].pop("certificate"))

out = pathlib.Path(__file__).parent / "keyless"
out.mkdir(exist_ok=True)
lines = ",\n".join(json.dumps(c) for c in cases)
(out / "world.json").write_text(f'{{"roots": {json.dumps(roots)},\n"cases": [\n{lines}\n]}}\n')
print(len(cases), "cases")
