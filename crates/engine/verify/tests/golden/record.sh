#!/bin/bash
# Makes fresh keys and signatures with gpg, ssh-keygen and openssl. Run inside this directory.
set -eu
export GNUPGHOME=$(mktemp -d)
printf 'tree 0\nauthor A <a@b> 1 +0000\n\nmessage\n' > payload.txt
for kind in rsa2048 ed25519 nistp256; do
  gpg --batch -q --passphrase '' --quick-gen-key "Test $kind <t@example.com>" $kind sign never
  print=$(gpg --batch --with-colons --list-keys "Test $kind" | awk -F: '/^fpr/{print $10; exit}')
  gpg --batch --armor --export $print > pgp-$kind.asc
  gpg --batch -q --armor --detach-sign -u $print -o pgp-$kind.sig payload.txt
  echo ${print: -16} > pgp-$kind.id
done
gpg --batch -q --passphrase '' --quick-gen-key "Test subkey <t@example.com>" ed25519 cert never
print=$(gpg --batch --with-colons --list-keys "Test subkey" | awk -F: '/^fpr/{print $10; exit}')
gpg --batch -q --passphrase '' --quick-add-key $print ed25519 sign never
gpg --batch --armor --export $print > pgp-subkey.asc
gpg --batch -q --armor --detach-sign -u $print -o pgp-subkey.sig payload.txt
echo ${print: -16} > pgp-subkey.id
for kind in "ed25519 256" "rsa 2048" "ecdsa 256"; do set -- $kind
  rm -f ssh-key ssh-key.pub
  ssh-keygen -q -t $1 -b $2 -N '' -C test -f ssh-key
  ssh-keygen -q -Y sign -n git -f ssh-key - < payload.txt > ssh-$1.sig 2>/dev/null
  cp ssh-key.pub ssh-$1.pub
  ssh-keygen -lf ssh-key.pub | awk '{print $2}' > ssh-$1.id
done
ssh-keygen -q -Y sign -n file -f ssh-key - < payload.txt > ssh-namespace.sig 2>/dev/null
rm -f ssh-key ssh-key.pub
digest=sha256:$(printf x | sha256sum | cut -d' ' -f1)
echo $digest > image.digest
printf '{"critical":{"identity":{"docker-reference":"r/x"},"image":{"docker-manifest-digest":"%s"},"type":"cosign container image signature"},"optional":null}' $digest > simple.json
openssl ecparam -genkey -name prime256v1 -noout -out k.pem
openssl ec -in k.pem -pubout -out cosign.pub 2>/dev/null
openssl dgst -sha256 -sign k.pem simple.json | base64 -w0 > simple.sig
statement="{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"\",\"digest\":{\"sha256\":\"${digest#*:}\"}}],\"predicateType\":\"https://sigstore.dev/cosign/sign/v1\",\"predicate\":{}}"
type=application/vnd.in-toto+json
sig=$(printf 'DSSEv1 %d %s %d %s' ${#type} $type ${#statement} "$statement" | openssl dgst -sha256 -sign k.pem | base64 -w0)
printf '{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"x"}},"dsseEnvelope":{"payload":"%s","payloadType":"%s","signatures":[{"sig":"%s"}]}}' "$(printf %s "$statement" | base64 -w0)" $type "$sig" > bundle.json
openssl genrsa -out r.pem 2048 2>/dev/null; openssl rsa -in r.pem -pubout -out cosign-rsa.pub 2>/dev/null
openssl dgst -sha256 -sign r.pem simple.json | base64 -w0 > simple-rsa.sig
rm -f k.pem r.pem
rm -rf "$GNUPGHOME"
