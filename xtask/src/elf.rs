//! Hardening of the linked program: position independent, with full RELRO.

use std::path::Path;

use anyhow::{Context, bail};

const ET_DYN: u16 = 3;
const PT_DYNAMIC: u32 = 2;
const PT_GNU_RELRO: u32 = 0x6474_e552;
const DT_BIND_NOW: u64 = 24;
const DT_FLAGS: u64 = 30;
const DF_BIND_NOW: u64 = 8;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_1_NOW: u64 = 1;

/// Fails unless the binary can be loaded at a random address and its relocated data becomes read-only before it starts.
/// Anything that is not a 64-bit little-endian ELF file (macOS, Windows) is not checked.
pub(crate) fn check_hardening(binary: &Path) -> anyhow::Result<()> {
    let bytes = std::fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return Ok(());
    }
    match missing(&bytes).with_context(|| format!("{} ends inside its headers", binary.display()))? {
        None => Ok(()),
        Some(what) => bail!("{} is not {what}", binary.display()),
    }
}

/// What the binary lacks; none in the outer option when its headers are cut off.
fn missing(bytes: &[u8]) -> Option<Option<&'static str>> {
    if u16_at(bytes, 16)? != ET_DYN {
        return Some(Some("position independent"));
    }
    let (mut relro, mut bind_now) = (false, false);
    let table = usize::try_from(u64_at(bytes, 32)?).ok()?;
    let size = usize::from(u16_at(bytes, 54)?);
    for header in 0..usize::from(u16_at(bytes, 56)?) {
        let header = table.checked_add(header * size)?;
        match u32_at(bytes, header)? {
            PT_GNU_RELRO => relro = true,
            PT_DYNAMIC => bind_now |= binds_now(bytes, header)?,
            _ => {}
        }
    }
    Some((!(relro && bind_now)).then_some("linked with full RELRO"))
}

/// Whether the dynamic section asks for all symbols to be bound before the program starts.
fn binds_now(bytes: &[u8], header: usize) -> Option<bool> {
    let begin = usize::try_from(u64_at(bytes, header + 8)?).ok()?;
    let length = usize::try_from(u64_at(bytes, header + 32)?).ok()?;
    for entry in (begin..begin.checked_add(length)?).step_by(16) {
        let (tag, value) = (u64_at(bytes, entry)?, u64_at(bytes, entry + 8)?);
        let now = match tag {
            DT_BIND_NOW => true,
            DT_FLAGS => value & DF_BIND_NOW != 0,
            DT_FLAGS_1 => value & DF_1_NOW != 0,
            _ => false,
        };
        if now {
            return Some(true);
        }
    }
    Some(false)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn this_program_is_hardened_and_a_fixed_address_is_found() {
        let path = std::env::current_exe().expect("the path of this test");
        check_hardening(&path).expect("Rust's defaults");
        let mut bytes = std::fs::read(path).expect("the bytes of this test");
        let without_relro: Vec<u8> = {
            let table = u64_at(&bytes, 32).expect("a header") as usize;
            let mut changed = bytes.clone();
            for header in 0..usize::from(u16_at(&bytes, 56).expect("a count")) {
                let at = table + header * usize::from(u16_at(&bytes, 54).expect("a size"));
                if u32_at(&bytes, at) == Some(PT_GNU_RELRO) {
                    changed[at..at + 4].copy_from_slice(&0u32.to_le_bytes());
                }
            }
            changed
        };
        assert_eq!(missing(&without_relro), Some(Some("linked with full RELRO")));
        bytes[16] = 2; // ET_EXEC, as `-no-pie` links
        assert_eq!(missing(&bytes), Some(Some("position independent")));
        assert_eq!(missing(&bytes[..40]), Some(Some("position independent")));
        bytes[16] = 3;
        assert_eq!(missing(&bytes[..40]), None, "a file that is cut off");
    }
}
