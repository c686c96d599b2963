//! AES modes of OpenPGP: CFB with a zero IV, key wrapping (RFC 3394), OCB (RFC 7253) and GCM.

use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::aes::cipher::{BlockCipherDecrypt as _, BlockCipherEncrypt as _};
use aes_gcm::aes::{Aes128, Aes192, Aes256};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use hkdf::Hkdf;
use sha2::Sha256;

/// Block size in bytes.
pub(super) const SIZE: usize = 16;
type Block = [u8; SIZE];

/// AES with one of its key lengths.
pub(super) enum Cipher {
    Aes128(Box<Aes128>),
    Aes192(Box<Aes192>),
    Aes256(Box<Aes256>),
}

impl Cipher {
    /// The cipher by OpenPGP's algorithm number; `None` for algorithms other than AES and for wrong key
    /// lengths.
    pub(super) fn new(algorithm: u8, key: &[u8]) -> Option<Self> {
        Some(match algorithm {
            7 => Cipher::Aes128(Box::new(Aes128::new_from_slice(key).ok()?)),
            8 => Cipher::Aes192(Box::new(Aes192::new_from_slice(key).ok()?)),
            9 => Cipher::Aes256(Box::new(Aes256::new_from_slice(key).ok()?)),
            _ => return None,
        })
    }

    fn encrypt(&self, block: &Block) -> Block {
        let mut block = (*block).into();
        match self {
            Cipher::Aes128(aes) => aes.encrypt_block(&mut block),
            Cipher::Aes192(aes) => aes.encrypt_block(&mut block),
            Cipher::Aes256(aes) => aes.encrypt_block(&mut block),
        }
        block.into()
    }

    fn decrypt(&self, block: &Block) -> Block {
        let mut block = (*block).into();
        match self {
            Cipher::Aes128(aes) => aes.decrypt_block(&mut block),
            Cipher::Aes192(aes) => aes.decrypt_block(&mut block),
            Cipher::Aes256(aes) => aes.decrypt_block(&mut block),
        }
        block.into()
    }

    /// Decrypts CFB with a zero IV.
    pub(super) fn open_cfb(&self, sealed: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(sealed.len());
        let mut register = [0; SIZE];
        for chunk in sealed.chunks(SIZE) {
            let mask = self.encrypt(&register);
            plain.extend(chunk.iter().zip(mask).map(|(a, b)| a ^ b));
            register[..chunk.len()].copy_from_slice(chunk);
        }
        plain
    }

    /// Unwraps a key; `None` if it was wrapped with another key.
    pub(super) fn unwrap(&self, wrapped: &[u8]) -> Option<Vec<u8>> {
        let count = wrapped.len() / 8;
        if count < 3 || !wrapped.len().is_multiple_of(8) || wrapped.len() > 256 {
            return None;
        }
        let mut parts: Vec<[u8; 8]> = wrapped.chunks(8).map(|c| c.try_into().ok()).collect::<Option<_>>()?;
        for step in (1..=6 * (count - 1)).rev() {
            let at = (step - 1) % (count - 1) + 1;
            let number = u64::from_be_bytes(parts[0]) ^ step as u64;
            let mut block = [0; SIZE];
            block[..8].copy_from_slice(&number.to_be_bytes());
            block[8..].copy_from_slice(&parts[at]);
            let block = self.decrypt(&block);
            parts[0].copy_from_slice(&block[..8]);
            parts[at].copy_from_slice(&block[8..]);
        }
        constant_time_eq(&parts[0], &[0xa6; 8]).then(|| parts[1..].concat())
    }

    /// Decrypts OCB with a 16-byte tag after the ciphertext.
    fn open_ocb(&self, nonce: &[u8], data: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        if nonce.len() >= SIZE || nonce.is_empty() {
            return None;
        }
        let (sealed, tag) = sealed.split_at_checked(sealed.len().checked_sub(SIZE)?)?;
        let star = self.encrypt(&[0; SIZE]);
        let dollar = double(&star);
        let level = |index: usize| (0..=index.trailing_zeros()).fold(dollar, |l, _| double(&l));
        let mut offset = self.ocb_start(nonce);
        let (mut plain, mut sum) = (Vec::with_capacity(sealed.len()), [0; SIZE]);
        let (blocks, rest) = sealed.as_chunks::<SIZE>();
        for (i, block) in blocks.iter().enumerate() {
            offset = xor(&offset, &level(i + 1));
            let open = xor(&offset, &self.decrypt(&xor(block, &offset)));
            sum = xor(&sum, &open);
            plain.extend_from_slice(&open);
        }
        if !rest.is_empty() {
            offset = xor(&offset, &star);
            let pad = self.encrypt(&offset);
            let open: Vec<u8> = rest.iter().zip(pad).map(|(a, b)| a ^ b).collect();
            sum = xor(&sum, &padded(&open));
            plain.extend_from_slice(&open);
        }
        let found =
            xor(&self.encrypt(&xor(&xor(&sum, &offset), &dollar)), &self.ocb_hash(data, &star, &dollar));
        constant_time_eq(&found, tag).then_some(plain)
    }

    fn ocb_start(&self, nonce: &[u8]) -> Block {
        let mut block = [0; SIZE];
        block[SIZE - nonce.len()..].copy_from_slice(nonce);
        block[SIZE - nonce.len() - 1] |= 1;
        let bottom = usize::from(block[SIZE - 1] & 0x3f);
        block[SIZE - 1] &= 0xc0;
        let top = self.encrypt(&block);
        let mut stretch = top.to_vec();
        stretch.extend((0..8).map(|i| top[i] ^ top[i + 1]));
        let (bytes, bits) = (bottom / 8, bottom % 8);
        std::array::from_fn(|i| {
            let pair = u16::from(stretch[bytes + i]) << 8 | u16::from(stretch[(bytes + i + 1).min(23)]);
            (pair << bits).to_be_bytes()[0]
        })
    }

    fn ocb_hash(&self, data: &[u8], star: &Block, dollar: &Block) -> Block {
        let level = |index: usize| (0..=index.trailing_zeros()).fold(*dollar, |l, _| double(&l));
        let (mut sum, mut offset) = ([0; SIZE], [0; SIZE]);
        let (blocks, rest) = data.as_chunks::<SIZE>();
        for (i, block) in blocks.iter().enumerate() {
            offset = xor(&offset, &level(i + 1));
            sum = xor(&sum, &self.encrypt(&xor(block, &offset)));
        }
        if !rest.is_empty() {
            offset = xor(&offset, star);
            sum = xor(&sum, &self.encrypt(&xor(&padded(rest), &offset)));
        }
        sum
    }
}

fn xor(a: &Block, b: &Block) -> Block {
    std::array::from_fn(|i| a[i] ^ b[i])
}

fn double(block: &Block) -> Block {
    let number = u128::from_be_bytes(*block);
    let carry = if number >> 127 == 1 { 0x87 } else { 0 };
    (number << 1 ^ carry).to_be_bytes()
}

fn padded(rest: &[u8]) -> Block {
    let mut block = [0; SIZE];
    block[..rest.len()].copy_from_slice(rest);
    block[rest.len()] = 0x80;
    block
}

/// Constant-time comparison.
pub(super) fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}

/// Decrypts one authenticated chunk in the mode with this number.
fn open_chunk(cipher: u8, mode: u8, key: &[u8], nonce: &[u8], data: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let payload = Payload { msg: sealed, aad: data };
    match (mode, cipher) {
        (2, _) => Cipher::new(cipher, key)?.open_ocb(nonce, data, sealed),
        (3, 7) => Aes128Gcm::new_from_slice(key).ok()?.decrypt(nonce.try_into().ok()?, payload).ok(),
        (3, 9) => Aes256Gcm::new_from_slice(key).ok()?.decrypt(nonce.try_into().ok()?, payload).ok(),
        // EAX was an early choice that is no longer in use.
        _ => None,
    }
}

/// A chunked message: the nonce of each chunk contains its number, and a final empty chunk authenticates the
/// total length.
struct Chunks<'a> {
    cipher: u8,
    mode: u8,
    key: &'a [u8],
    size: usize,
    body: &'a [u8],
}

impl Chunks<'_> {
    fn open(
        &self,
        nonce: impl Fn(u64) -> Vec<u8>,
        piece_data: impl Fn(u64) -> Vec<u8>,
        final_data: impl Fn(u64, u64) -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        let (mut rest, last) = self.body.split_at_checked(self.body.len().checked_sub(SIZE)?)?;
        let (mut plain, mut index) = (Vec::new(), 0u64);
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.len().min(self.size + SIZE));
            let nonce = nonce(index);
            plain.extend(open_chunk(self.cipher, self.mode, self.key, &nonce, &piece_data(index), piece)?);
            index += 1;
            rest = later;
        }
        let data = final_data(index, plain.len() as u64);
        open_chunk(self.cipher, self.mode, self.key, &nonce(index), &data, last)?;
        Some(plain)
    }
}

/// Nonce length by mode: OCB, GCM.
fn nonce_length(mode: u8) -> Option<usize> {
    match mode {
        2 => Some(15),
        3 => Some(12),
        _ => None,
    }
}

/// Decrypts a version 2 packet of RFC 9580: message key and IV are derived from the session key.
pub(super) fn open_v2(body: &[u8], session: &[u8]) -> Option<Vec<u8>> {
    let (head, rest) = body.split_at_checked(3)?;
    let (salt, body) = rest.split_at_checked(32)?;
    let [cipher, mode, size] = *head else { return None };
    let length = match cipher {
        7 => 16,
        8 => 24,
        9 => 32,
        _ => return None,
    };
    let data = [0xd2, 2, cipher, mode, size];
    let start = nonce_length(mode)? - 8;
    let mut made = vec![0; length + start];
    Hkdf::<Sha256>::new(Some(salt), session).expand(&data, &mut made).ok()?;
    let (key, start) = made.split_at(length);
    let pieces = Chunks { cipher, mode, key, size: 1 << (size.min(16) + 6), body };
    pieces.open(
        |index| [start, &index.to_be_bytes()].concat(),
        |_| data.to_vec(),
        |_, total| [data.as_slice(), &total.to_be_bytes()].concat(),
    )
}

/// Decrypts GnuPG's packet: the session key is the message key, and the chunk number is mixed into the nonce.
pub(super) fn open_gnupg(body: &[u8], session: &[u8]) -> Option<Vec<u8>> {
    let (head, rest) = body.split_at_checked(3)?;
    let [cipher, mode, size] = *head else { return None };
    let (start, body) = rest.split_at_checked(nonce_length(mode)?)?;
    let data = |index: u64| [[0xd4, 1, cipher, mode, size].as_slice(), &index.to_be_bytes()].concat();
    let pieces = Chunks { cipher, mode, key: session, size: 1 << (size.min(16) + 6), body };
    pieces.open(
        |index| {
            let mut nonce = start.to_vec();
            let end = nonce.len() - 8;
            nonce[end..].iter_mut().zip(index.to_be_bytes()).for_each(|(a, b)| *a ^= b);
            nonce
        },
        data,
        |index, total| [data(index).as_slice(), &total.to_be_bytes()].concat(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hex")).collect()
    }

    /// Test vectors of RFC 7253, appendix A.
    #[test]
    fn ocb_matches_rfc_7253() {
        let cipher = Cipher::new(7, &hex("000102030405060708090A0B0C0D0E0F")).expect("a key");
        let cases = [
            ("BBAA99887766554433221100", "", "", "785407BFFFC8AD9EDCC5520AC9111EE6"),
            (
                "BBAA99887766554433221101",
                "0001020304050607",
                "0001020304050607",
                "6820B3657B6F615A5725BDA0D3B4EB3A257C9AF1F8F03009",
            ),
            (
                "BBAA9988776655443322110D",
                "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F2021222324252627",
                "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F2021222324252627",
                "D5CA91748410C1751FF8A2F618255B68A0A12E093FF454606E59F9C1D0DDC54B65E8628E568BAD7AED07BA06A4A69483A7035490C5769E60",
            ),
        ];
        for (nonce, data, plain, sealed) in cases {
            let found = cipher.open_ocb(&hex(nonce), &hex(data), &hex(sealed));
            assert_eq!(found, Some(hex(plain)), "{nonce}");
        }
    }

    /// Test vectors of RFC 3394, 4.1 and 4.6.
    #[test]
    fn key_wrap_matches_rfc_3394() {
        let small = Cipher::new(7, &hex("000102030405060708090A0B0C0D0E0F")).expect("a key");
        let wrapped = hex("1FA68B0A8112B447AEF34BD8FB5A7B829D3E862371D2CFE5");
        assert_eq!(small.unwrap(&wrapped), Some(hex("00112233445566778899AABBCCDDEEFF")));
        let large = hex("000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F");
        let large = Cipher::new(9, &large).expect("a key");
        let wrapped = hex("28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21");
        let plain = hex("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F");
        assert_eq!(large.unwrap(&wrapped), Some(plain));
        assert_eq!(small.unwrap(&wrapped), None);
    }
}
