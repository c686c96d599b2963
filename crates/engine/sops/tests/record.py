#!/usr/bin/env python3
"""Writes golden/*: SOPS files made by an implementation that shares nothing with the crate (Python's `cryptography`).

    python3 record.py

Keys and nonces come from one fixed seed, so the files are the same every time.
"""
import base64, hashlib, json, random, re, sys
from cryptography.hazmat.primitives import hashes, hmac, serialization as ser
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

rnd = random.Random(20261116)
B64, RAW = base64.b64encode, ser.Encoding.Raw
raw64 = lambda b: B64(b).decode().rstrip("=")
hkdf = lambda key, salt, info: HKDF(hashes.SHA256(), 32, salt, info).derive(key)


def bech32(prefix, data):
    chars = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    bits = "".join(f"{b:08b}" for b in data)
    bits += "0" * (-len(bits) % 5)
    values = [int(bits[i:i + 5], 2) for i in range(0, len(bits), 5)]

    def polymod(vs):
        check = 1
        for v in vs:
            top = check >> 25
            check = (check & 0x1FFFFFF) << 5 ^ v
            for i, g in enumerate([0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3]):
                check ^= g if top >> i & 1 else 0
        return check

    head = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    mod = polymod(head + values + [0] * 6) ^ 1
    return prefix + "1" + "".join(chars[v] for v in values + [mod >> 5 * (5 - i) & 31 for i in range(6)])


def age(recipient, content):
    file_key, eph = rnd.randbytes(16), X25519PrivateKey.from_private_bytes(rnd.randbytes(32))
    share = eph.public_key().public_bytes(RAW, ser.PublicFormat.Raw)
    pub = recipient.public_key().public_bytes(RAW, ser.PublicFormat.Raw)
    wrap = hkdf(eph.exchange(recipient.public_key()), share + pub, b"age-encryption.org/v1/X25519")
    body = raw64(ChaCha20Poly1305(wrap).encrypt(bytes(12), file_key, None))
    header = f"age-encryption.org/v1\n-> X25519 {raw64(share)}\n{body}\n---".encode()
    mac = hmac.HMAC(hkdf(file_key, None, b"header"), hashes.SHA256())
    mac.update(header)
    nonce = rnd.randbytes(16)
    sealed = ChaCha20Poly1305(hkdf(file_key, nonce, b"payload")).encrypt(bytes(11) + b"\1", content, None)
    text = B64(header + b" " + raw64(mac.finalize()).encode() + b"\n" + nonce + sealed).decode()
    lines = "\n".join(text[i:i + 64] for i in range(0, len(text), 64))
    return f"-----BEGIN AGE ENCRYPTED FILE-----\n{lines}\n-----END AGE ENCRYPTED FILE-----\n"


identity = X25519PrivateKey.from_private_bytes(rnd.randbytes(32))
secret = identity.private_bytes(RAW, ser.PrivateFormat.Raw, ser.NoEncryption())
key, modified = rnd.randbytes(32), "2026-11-16T00:00:00Z"


def enc(value, path):
    kind, text = {bool: ("bool", str(value)), int: ("int", str(value)), float: ("float", repr(value))}.get(type(value), ("str", value))
    iv = rnd.randbytes(32)
    c = Cipher(algorithms.AES256(key), modes.GCM(iv)).encryptor()
    c.authenticate_additional_data(path.encode())
    data = c.update(text.encode()) + c.finalize()
    return f"ENC[AES256_GCM,data:{B64(data).decode()},iv:{B64(iv).decode()},tag:{B64(c.tag).decode()},type:{kind}]"


def walk(v, path, regex, digest):
    if isinstance(v, dict):
        return {k: walk(x, path + [k], regex, digest) for k, x in v.items()}
    if isinstance(v, list):
        return [walk(x, path, regex, digest) for x in v]
    digest.update(str(v).encode())
    hit = regex is None or any(re.search(regex, p) for p in path)
    return enc(v, ":".join(path) + ":") if hit and v != "" else v


def sops(tree, regex):
    digest = hashlib.sha512()
    tree = walk(tree, [], regex, digest)
    meta = {"age": [{"recipient": bech32("age", identity.public_key().public_bytes(RAW, ser.PublicFormat.Raw)), "enc": age(identity, key)}],
            "lastmodified": modified, "mac": enc(digest.hexdigest().upper(), modified), "version": "3.13.2"}
    if regex:
        meta["encrypted_regex"] = regex
    return tree, meta


def write(name, text):
    with open("golden/" + name, "w") as f:
        f.write(text)


write("key.agekey", "# a test key\n" + bech32("age-secret-key-", secret).upper() + "\n")
other = X25519PrivateKey.from_private_bytes(rnd.randbytes(32)).private_bytes(RAW, ser.PrivateFormat.Raw, ser.NoEncryption())
write("other.agekey", bech32("age-secret-key-", other).upper() + "\n")
tree, meta = sops({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
                   "stringData": {"password": "hunter2", "empty": "", "lines": "a\nb\n"}}, "^(data|stringData)$")
write("secret.json", json.dumps({**tree, "sops": meta}, indent=1))
# JSON is YAML; SOPS writes the MAC without quotes, which is how files are recognised.
write("secret.yaml", "# made by record.py\n" + "\n".join(f"{k}: {json.dumps(v)}" for k, v in tree.items())
      + "\nsops:\n" + "\n".join(f"  {k}: {v if k == 'mac' else json.dumps(v)}" for k, v in meta.items()) + "\n")
tree, meta = sops({"list": [1, 2.5, True, "x"], "plain": {"deep": {"er": "value"}}}, None)
write("values.json", json.dumps({**tree, "sops": meta}, indent=1))
tree, meta = sops({"data": "any bytes\nat all\n"}, None)
write("file.binary", json.dumps({**tree, "sops": meta}, indent=1))
tree, meta = sops({"USER": "ann", "TOKEN": "a=b\nc"}, None)
flat = [f"{k}={v}" for k, v in tree.items()]
flat += [f"sops_age__list_0__map_{k}=" + v.replace("\n", "\\n") for k, v in meta["age"][0].items()]
flat += [f"sops_{k}={meta[k]}" for k in ("lastmodified", "mac", "version")]
write("file.env", "\n".join(flat) + "\n")
