#!/usr/bin/env python3
"""Writes sops/*: files that the real `sops` encrypted with keys that the real `gpg` and `sops` made, and what it decrypts them to.

    SOPS=path/to/sops python3 record_sops.py      (needs gpg and Python's `cryptography`)

A case is a pair: `<keys>.<rule>.<name>` is encrypted, `<same>.want` is the plain file as sops prints it. The keys are made anew
each time, so every file changes. One message is written here and not by gpg: the AEAD packet of GnuPG 2.3 and later.
"""
import base64, http.server, json, os, pathlib, re, shutil, subprocess, tempfile, threading

SOPS = os.environ.get("SOPS", "sops")
OUT = pathlib.Path(__file__).parent / "sops"
HOME = tempfile.mkdtemp()
os.chmod(HOME, 0o700)
ENV = {"PATH": os.environ["PATH"], "HOME": HOME, "GNUPGHOME": HOME}
shutil.rmtree(OUT, ignore_errors=True)
OUT.mkdir()


def run(*args, stdin=None, env=ENV):
    done = subprocess.run(args, input=stdin, env=env, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{args}: {done.stderr.decode()}")
    return done.stdout


INPUTS = {
    "secret.yaml": """# a comment above
apiVersion: v1
kind: Secret
metadata:
    name: s
    labels:
        app_unencrypted: plain
stringData: # beside
    zeta: "007"
    alpha: hunter2
    empty: ""
    lines: |
        a: b
          deeper

        end
    truth: "yes"
    colon: 'a: b # c'
numbers:
    - 1
    - 2.5
    - true
    - null
    - nested:
        - x
        - k: v
          w: [1, 2]
""",
    "values.json": '{"b": {"deep": {"er": "<va&lue>"}}, "a": [1, 2.5, true, null, "x", []], "e": {}, "key_unencrypted": "open"}\n',
    "app.env": "# who\nUSER=ann\nTOKEN=a=b\\nc\n#last\nEMPTY=\nQ=\"quoted # x\"\n",
    "app.ini": "top = 1\n\n; about the section\n[db]\n; the user\nuser = ann\nlonger_name = \"x ; y\"\npass = p#1\n\n[empty]\n\n[web]\nport = 80\n",
    "file.bin": bytes(range(256)) + b"end",
}
RULES = {
    "all": [],
    "regex": ["--encrypted-regex", "^(data|stringData|db|USER|b)$"],
    "unregex": ["--unencrypted-regex", "^(metadata|numbers|web|a)$"],
    "suffix": ["--encrypted-suffix", "Data"],
    "maconly": None,
}


def gpg_key(name, *algorithms):
    run("gpg", "--batch", "--passphrase", "", "--quick-gen-key", f"{name} <{name}@example.com>", *algorithms[0], "never")
    listing = run("gpg", "--list-secret-keys", "--with-colons", name).decode()
    fingerprint = re.search(r"^fpr:+([0-9A-F]{40}):", listing, re.M).group(1)
    if len(algorithms) > 1:
        run("gpg", "--batch", "--passphrase", "", "--quick-add-key", fingerprint, *algorithms[1], "never")
    (OUT / f"{name}.asc").write_bytes(run("gpg", "--batch", "--armor", "--export-secret-keys", fingerprint))
    return fingerprint


PGP = {
    "rsa2048": gpg_key("rsa2048", ["rsa2048", "sign"], ["rsa2048", "encr"]),
    "cv25519": gpg_key("cv25519", ["ed25519", "sign"], ["cv25519", "encr"]),
    "nistp256": gpg_key("nistp256", ["nistp256", "sign"], ["nistp256", "encr"]),
    "nistp384": gpg_key("nistp384", ["nistp384", "sign"], ["nistp384", "encr"]),
    "nistp521": gpg_key("nistp521", ["nistp521", "sign"], ["nistp521", "encr"]),
}
from cryptography.hazmat.primitives import serialization as ser  # noqa: E402
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # noqa: E402


def bech32(prefix, data):
    chars = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    bits = "".join(f"{b:08b}" for b in data)
    bits += "0" * (-len(bits) % 5)
    values = [int(bits[i:i + 5], 2) for i in range(0, len(bits), 5)]
    check = 1
    for v in [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix] + values + [0] * 6:
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ v
        for i, g in enumerate([0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3]):
            check ^= g if top >> i & 1 else 0
    check ^= 1
    return prefix + "1" + "".join(chars[v] for v in values + [check >> 5 * (5 - i) & 31 for i in range(6)])


identity = X25519PrivateKey.generate()
raw = identity.private_bytes(ser.Encoding.Raw, ser.PrivateFormat.Raw, ser.NoEncryption())
RECIPIENT = bech32("age", identity.public_key().public_bytes(ser.Encoding.Raw, ser.PublicFormat.Raw))
(OUT / "key.agekey").write_text(bech32("age-secret-key-", raw).upper() + "\n")
AGE_ENV = {**ENV, "SOPS_AGE_KEY_FILE": str(OUT / "key.agekey")}
FORMATS = {".yaml": "yaml", ".json": "json", ".env": "dotenv", ".ini": "ini", ".bin": "binary"}


MAC_ONLY = pathlib.Path(HOME) / "maconly.yaml"
MAC_ONLY.write_text(json.dumps({"creation_rules": [
    {"mac_only_encrypted": True, "encrypted_regex": "^(stringData|db|TOKEN|b)$", "age": RECIPIENT}]}))


def case(keys, rule, name, arguments, env=AGE_ENV):
    config = "/dev/null" if RULES[rule] is not None else str(MAC_ONLY)
    arguments = arguments + RULES[rule] if RULES[rule] is not None else []
    content = INPUTS[name]
    path = pathlib.Path(HOME) / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    kind = FORMATS[path.suffix]
    both = ["--input-type", kind, "--output-type", kind]
    sealed = run(SOPS, "--config", config, "encrypt", *both, *arguments, str(path), env=env)
    target = OUT / f"{keys}.{rule}.{name}"
    target.write_bytes(sealed)
    (OUT / f"{keys}.{rule}.{name}.want").write_bytes(run(SOPS, "decrypt", *both, str(target), env=env))


for name in INPUTS:
    for rule in RULES if not name.endswith(".bin") else ["all"]:
        case("age", rule, name, ["--age", RECIPIENT])
    for key in ["rsa2048", "cv25519"]:
        case(key, "all", name, ["--pgp", PGP[key]])
for key in ["nistp256", "nistp384", "nistp521"]:
    case(key, "all", "values.json", ["--pgp", PGP[key]])

# Groups with shares: two of three are needed.
groups = {"creation_rules": [{"shamir_threshold": 2, "key_groups": [
    {"age": [RECIPIENT]}, {"pgp": [PGP["cv25519"]]}, {"pgp": [PGP["rsa2048"]]}]}]}
config = pathlib.Path(HOME) / "groups.yaml"
config.write_text(json.dumps(groups))
for name in INPUTS:
    path = pathlib.Path(HOME) / name
    kind = FORMATS[path.suffix]
    both = ["--input-type", kind, "--output-type", kind]
    target = OUT / f"groups.all.{name}"
    target.write_bytes(run(SOPS, "--config", str(config), "encrypt", *both, str(path), env=AGE_ENV))
    (OUT / f"groups.all.{name}.want").write_bytes(run(SOPS, "decrypt", *both, str(target), env=AGE_ENV))


# Servers that answer as Vault and AWS do; the "encryption" is base64, and the requests for decryption are kept.
class Fake(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        target = self.headers.get("X-Amz-Target", "")
        if "decrypt" in self.path or target.endswith("Decrypt"):
            kept = {k: v for k, v in self.headers.items() if k.lower() in
                    ("x-vault-token", "x-amz-date", "x-amz-target", "authorization", "content-type", "x-amz-security-token", "host",
                     "content-length", "amz-sdk-invocation-id", "amz-sdk-request", "accept-encoding", "user-agent")}
            REQUESTS.append({"method": "POST", "path": self.path, "headers": kept, "body": body})
        answer = {}
        if "/encrypt/" in self.path:
            answer = {"data": {"ciphertext": "vault:v1:" + body["plaintext"]}}
        elif "/decrypt/" in self.path:
            answer = {"data": {"plaintext": body["ciphertext"].removeprefix("vault:v1:")}}
        elif target.endswith("Encrypt"):
            answer = {"CiphertextBlob": body["Plaintext"], "KeyId": body["KeyId"]}
        elif target.endswith("Decrypt"):
            answer = {"Plaintext": body["CiphertextBlob"], "KeyId": body["KeyId"]}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_PUT = do_POST

    def log_message(self, *args):
        pass


REQUESTS = []
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
env = {**ENV, "VAULT_TOKEN": "vault-canary", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "aws-canary",
       "AWS_ENDPOINT_URL_KMS": url}
case("vault", "all", "values.json", ["--hc-vault-transit", f"{url}/v1/transit/keys/sops"], env)
case("awskms", "all", "values.json", ["--kms", "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555",
                                      "--encryption-context", "app:web,team:blue"], env)
for number, request in enumerate(REQUESTS):
    (OUT / f"request-{number}.json").write_text(json.dumps(request, indent=1) + "\n")
text = (OUT / "vault.all.values.json").read_text().replace(url, "http://127.0.0.1:8200")
(OUT / "vault.all.values.json").write_text(text)

# Messages as GnuPG 2.3 and later (packet 20) and RFC 9580 (packet 18, version 2) have them.
import hashlib  # noqa: E402
from cryptography.hazmat.primitives import hashes  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import padding, rsa  # noqa: E402
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESOCB3  # noqa: E402
from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: E402

mpi = lambda n: n.bit_length().to_bytes(2, "big") + n.to_bytes((n.bit_length() + 7) // 8, "big")
packet = lambda tag, body: bytes([0xC0 | tag, 255]) + len(body).to_bytes(4, "big") + body


def armor(kind, data):
    lines = base64.b64encode(data).decode()
    lines = "\n".join(lines[i:i + 64] for i in range(0, len(lines), 64))
    return f"-----BEGIN PGP {kind}-----\n\n{lines}\n-----END PGP {kind}-----\n"


private = rsa.generate_private_key(65537, 2048)
n = private.private_numbers()
public = bytes([4, 0, 0, 0, 1, 1]) + mpi(n.public_numbers.n) + mpi(n.public_numbers.e)
secret = mpi(n.d) + mpi(n.q) + mpi(n.p) + mpi(pow(n.q, -1, n.p))
body = public + b"\0" + secret + (sum(secret) & 0xFFFF).to_bytes(2, "big")
(OUT / "aead.asc").write_text(armor("PRIVATE KEY BLOCK", packet(5, body)))
print_ = hashlib.sha1(b"\x99" + len(public).to_bytes(2, "big") + public).digest()
content = packet(11, b"b\0\0\0\0\0" + bytes(range(200)) * 3)
session = os.urandom(32)
check = (sum(session) & 0xFFFF).to_bytes(2, "big")
wrap = lambda data: mpi(int.from_bytes(private.public_key().encrypt(data, padding.PKCS1v15()), "big"))
v3 = packet(1, b"\x03" + print_[12:] + b"\x01" + wrap(b"\x09" + session + check))
v6 = packet(1, b"\x06\x15\x04" + print_ + b"\x01" + wrap(session + check))


def pieces(open_, content, data, final):
    size, out, index = 64, b"", 0
    while content:
        out += open_(index, content[:size], data(index))
        content, index = content[size:], index + 1
    return out + open_(index, b"", final(index))


start, head = os.urandom(15), bytes([0xD4, 1, 9, 2, 0])
nonce = lambda i: start[:7] + bytes(a ^ b for a, b in zip(start[7:], i.to_bytes(8, "big")))
seal = lambda i, text, data: AESOCB3(session).encrypt(nonce(i), text, data)
number = lambda i: i.to_bytes(8, "big")
sealed = pieces(seal, content, lambda i: head + number(i), lambda i: head + number(i) + number(len(content)))
(OUT / "gnupg-ocb.msg").write_text(armor("MESSAGE", v3 + packet(20, head[1:] + start + sealed)))
for name, mode, cipher, length in [("rfc9580-ocb", 2, AESOCB3, 15), ("rfc9580-gcm", 3, AESGCM, 12)]:
    salt, head = os.urandom(32), bytes([0xD2, 2, 9, mode, 0])
    made = HKDF(hashes.SHA256(), 32 + length - 8, salt, head).derive(session)
    seal = lambda i, text, data: cipher(made[:32]).encrypt(made[32:] + number(i), text, data)
    sealed = pieces(seal, content, lambda i: head, lambda i: head + number(len(content)))
    (OUT / f"{name}.msg").write_text(armor("MESSAGE", v6 + packet(18, head[1:] + salt + sealed)))

# A key that asks for a passphrase.
run("gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "word", "--quick-gen-key", "locked", "rsa2048", "encr,sign", "never")
(OUT / "locked.asc").write_bytes(
    run("gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "word", "--armor", "--export-secret-keys", "locked"))
