//! Reads as much of a program's header as is needed to know whether a library can be put before it.
//!
//! Source: System V ABI, chapters 4 and 5; `elf(5)`.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// A program's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// For this machine.
    Native {
        /// The dynamic loader; a static program has none.
        loader: Option<PathBuf>,
        /// Made by Go's toolchain, which makes system calls without the C library.
        go: bool,
    },
    /// For another machine: its number in the header.
    Foreign(u16),
    /// A script, with the interpreter that runs it.
    Script(PathBuf),
    /// Neither.
    Unknown,
}

const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 56;
const ENTRIES_MAX: u16 = 256;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
/// Of a loader's path, or a note that is looked at.
const SEGMENT_BYTES_MAX: u64 = 4096;

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

/// Looks at a file.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn inspect(path: &Path) -> io::Result<Program> {
    let file = File::open(path)?;
    let mut start = Vec::new();
    (&file).take(256).read_to_end(&mut start)?;
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let interpreter = line.split_whitespace().next().map(PathBuf::from);
        return Ok(interpreter.map_or(Program::Unknown, Program::Script));
    }
    Ok(header(&file, &start).unwrap_or(Program::Unknown))
}

fn header(file: &File, start: &[u8]) -> Option<Program> {
    const ELF64_LITTLE: [u8; 2] = [2, 1];
    let header = start.get(..HEADER_BYTES)?.strip_prefix(b"\x7fELF")?;
    let machine = if header[1] == 1 { u16_at(start, 18)? } else { u16_at(start, 18)?.swap_bytes() };
    if header[..2] != ELF64_LITTLE || machine != MACHINE {
        return Some(Program::Foreign(machine));
    }
    let (offset, size, count) = (u64_at(start, 32)?, u16_at(start, 54)?, u16_at(start, 56)?);
    if usize::from(size) != ENTRY_BYTES || count > ENTRIES_MAX {
        return None;
    }
    let mut entries = vec![0; ENTRY_BYTES * usize::from(count)];
    file.read_exact_at(&mut entries, offset).ok()?;
    let (mut loader, mut go) = (None, false);
    for entry in entries.chunks_exact(ENTRY_BYTES) {
        let kind = u32_at(entry, 0)?;
        if kind != PT_INTERP && kind != PT_NOTE {
            continue;
        }
        let mut segment = vec![0; u64_at(entry, 32)?.min(SEGMENT_BYTES_MAX) as usize];
        file.read_exact_at(&mut segment, u64_at(entry, 8)?).ok()?;
        if kind == PT_INTERP {
            let path = segment.split(|byte| *byte == 0).next().unwrap_or_default();
            loader = Some(PathBuf::from(String::from_utf8_lossy(path).into_owned()));
        } else {
            // A note: sizes of name and content, type, name.
            go |= segment.get(12..16) == Some(b"Go\0\0");
        }
    }
    Some(Program::Native { loader, go })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    fn scratch(name: &str, content: &[u8]) -> PathBuf {
        let path = env::temp_dir().join(format!("ri2n-elf-{}-{name}", std::process::id()));
        fs::write(&path, content).unwrap();
        path
    }

    fn inspect_bytes(name: &str, content: &[u8]) -> Program {
        let path = scratch(name, content);
        let program = inspect(&path).unwrap();
        fs::remove_file(path).unwrap();
        program
    }

    #[test]
    fn this_very_program_is_dynamic() {
        let own = inspect(&env::current_exe().unwrap()).unwrap();
        assert!(matches!(own, Program::Native { loader: Some(_), go: false }), "{own:?}");
    }

    #[test]
    fn files_are_told_apart() {
        let own = fs::read(env::current_exe().unwrap()).unwrap();
        let count = usize::from(u16_at(&own, 56).unwrap());
        let at = |k: usize| u64_at(&own, 32).unwrap() as usize + k * ENTRY_BYTES;

        let mut without_loader = own.clone();
        let interp = (0..count).find(|k| u32_at(&own, at(*k)) == Some(PT_INTERP)).unwrap();
        without_loader[at(interp)..at(interp) + 4].copy_from_slice(&0x6fff_ffff_u32.to_le_bytes());
        assert_eq!(inspect_bytes("static", &without_loader), Program::Native { loader: None, go: false });

        let mut foreign = own.clone();
        foreign[18..20].copy_from_slice(&21_u16.to_le_bytes());
        assert_eq!(inspect_bytes("foreign", &foreign), Program::Foreign(21));

        assert_eq!(inspect_bytes("cut", &own[..70]), Program::Unknown);
        assert_eq!(inspect_bytes("empty", b""), Program::Unknown);
        assert_eq!(inspect_bytes("script", b"#! /bin/sh -e\n"), Program::Script("/bin/sh".into()));
        assert_eq!(inspect_bytes("bare", b"#!\n"), Program::Unknown);
    }
}
