//! What was compiled, kept on disk.
//!
//! An entry is one file, named by the hash of all that it was made of. It is written beside its
//! place and renamed into it, so that no process sees half of one; each holds its own checksum, and
//! one that is damaged is as one that is not there. Nothing that goes wrong here is an error: the
//! text is compiled then, and the answer says why.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, SystemTime},
};

use sha2::{Digest, Sha256};

/// Where compiled programs are kept between runs of the program.
///
/// A program is found again only if nothing changed that it is made of: the source, the options,
/// the name expressions and declared kernels, every header that it may include, the architecture,
/// the compiler. Any number of processes may share a folder.
///
/// The folder is `$GRIDCALL_CACHE_DIR`, or `gridcall` in `$XDG_CACHE_HOME` or `~/.cache` (on
/// Windows `%LOCALAPPDATA%`). If `GRIDCALL_CACHE_DIR` is set to nothing, nothing is kept.
///
/// ```
/// use gridcall::nvrtc::{Cache, Program};
///
/// let here = Cache::in_folder("target/kernels").max_bytes(16 << 20);
/// let program = Program::new("__global__ void f() {}").cache(here);
/// let uncached = Program::new("__global__ void f() {}").cache(Cache::off());
/// ```
#[derive(Clone, Debug)]
pub struct Cache {
    /// Or why there is none.
    folder: Result<PathBuf, &'static str>,
    max_bytes: u64,
}

/// Whether a program came from the [`Cache`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cached {
    /// It was found there, and not compiled.
    Found,
    /// It was compiled, and is kept.
    Stored,
    /// It was compiled, and is not kept, for this reason: the cache is off, the disk is full or
    /// cannot be written, or what the program is made of cannot be told.
    Not(String),
}

/// The version of the files' form.
const FORMAT: u32 = 1;
const MAGIC: &[u8; 16] = b"gridcall nvrtc\0\0";
const DIGEST: usize = 32;

const OFF: &str = "the cache is off";

impl Default for Cache {
    fn default() -> Cache {
        Cache {
            folder: default_folder(),
            max_bytes: 256 << 20,
        }
    }
}

impl Cache {
    /// A cache in a folder, which is made when it is needed.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Cache {
        Cache {
            folder: Ok(folder.into()),
            ..Cache::default()
        }
    }

    /// Nothing is looked up or kept.
    #[must_use]
    pub fn off() -> Cache {
        Cache {
            folder: Err(OFF),
            ..Cache::default()
        }
    }

    /// The bytes that all entries take at most, 256 MiB if not said: beyond that the ones that were
    /// not used for the longest time go.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Cache {
        self.max_bytes = bytes;
        self
    }

    /// An error that says why, if nothing is kept.
    pub(super) fn is_on(&self) -> Result<(), String> {
        match self.folder {
            Ok(_) => Ok(()),
            Err(why) => Err(why.to_owned()),
        }
    }

    /// What is kept under the key, if it is whole.
    pub(super) fn find(&self, key: &[u8; DIGEST]) -> Option<Vec<u8>> {
        let path = path(self.folder.as_ref().ok()?, key);
        let bytes = fs::read(&path).ok()?;
        let payload = unwrap(key, &bytes);
        match payload {
            // Its age is that of its last use.
            Some(_) => {
                let _ = fs::File::options()
                    .append(true)
                    .open(&path)
                    .and_then(|file| file.set_modified(SystemTime::now()));
            }
            None => {
                let _ = fs::remove_file(&path);
            }
        }
        payload.map(<[u8]>::to_vec)
    }

    /// Keeps a result under the key.
    pub(super) fn store(&self, key: &[u8; DIGEST], payload: &[u8]) -> Result<(), String> {
        let folder = self.folder.as_ref().map_err(|why| (*why).to_owned())?;
        let bytes = wrap(key, payload);
        if bytes.len() as u64 > self.max_bytes {
            return Err(format!(
                "the result takes {} bytes, and the cache has {}",
                bytes.len(),
                self.max_bytes
            ));
        }
        let failed = |error: io::Error| format!("cannot write to {}: {error}", folder.display());
        make_folder(folder).map_err(failed)?;
        write_whole(&path(folder, key), &bytes).map_err(failed)?;
        self.evict(folder);
        Ok(())
    }

    /// Removes the entries that were not used for the longest time, and what other processes left
    /// half written.
    fn evict(&self, folder: &Path) {
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for file in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = file.path();
            let Ok(about) = file.metadata() else { continue };
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("nvrtc") => entries.push((used, about.len(), path)),
                Some("part")
                    if used.elapsed().unwrap_or_default() > Duration::from_secs(60 * 60) =>
                {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        let mut total: u64 = entries.iter().map(|(_, size, _)| size).sum();
        if total <= self.max_bytes {
            return;
        }
        // Somewhat below, so that it is not the turn of one at each store.
        let enough = self.max_bytes / 4 * 3;
        entries.sort();
        // The last is the one that was stored just now.
        entries.pop();
        for (_, size, path) in entries {
            if total <= enough {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }
}

fn path(folder: &Path, key: &[u8; DIGEST]) -> PathBuf {
    let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    folder.join(name + ".nvrtc")
}

fn default_folder() -> Result<PathBuf, &'static str> {
    if let Some(folder) = env::var_os("GRIDCALL_CACHE_DIR") {
        return if folder.is_empty() {
            Err(OFF)
        } else {
            Ok(PathBuf::from(folder))
        };
    }
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let of_user = if cfg!(windows) {
        set("LOCALAPPDATA").map(PathBuf::from)
    } else {
        // The XDG specification has relative paths ignored.
        let xdg = set("XDG_CACHE_HOME").map(PathBuf::from);
        xdg.filter(|path| path.is_absolute())
            .or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")))
    };
    match of_user {
        Some(of_user) => Ok(of_user.join("gridcall")),
        None if cfg!(windows) => Err("neither GRIDCALL_CACHE_DIR nor LOCALAPPDATA names a folder"),
        None => Err("none of GRIDCALL_CACHE_DIR, XDG_CACHE_HOME and HOME names a folder"),
    }
}

/// Makes a folder that nobody else writes to: what lies in it runs on the device.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes a file that other processes see whole or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    // Processes of several machines may share a folder, and so the number of a process.
    let unique = format!("{}-{number}-{}.part", process::id(), since.as_nanos());
    let part = path.with_extension(unique);
    let written = fs::File::create_new(&part)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

fn wrap(key: &[u8; DIGEST], payload: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(&Sha256::digest(payload));
    bytes.extend_from_slice(payload);
    bytes
}

/// The payload, if all in front of it is right.
fn unwrap<'a>(key: &[u8; DIGEST], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let rest = rest.strip_prefix(&FORMAT.to_le_bytes())?;
    let rest = rest.strip_prefix(key)?;
    let (digest, payload) = rest.split_at_checked(DIGEST)?;
    (Sha256::digest(payload).as_slice() == digest).then_some(payload)
}

/// Puts texts one behind the other, each behind its length.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.0
            .extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }
}

/// Takes them apart again.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.0.split_first_chunk::<8>()?;
        let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
        let (bytes, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.take()?.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(test: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("gridcall-cache-{}-{test}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let files = fs::read_dir(folder).into_iter().flatten();
        files.map(|file| file.unwrap().path()).collect()
    }

    #[test]
    fn an_entry_that_is_damaged_anywhere_is_none() {
        let folder = folder("damaged");
        let cache = Cache::in_folder(&folder);
        let key = [7; DIGEST];
        cache.store(&key, b"payload").unwrap();
        assert_eq!(cache.find(&key).unwrap(), b"payload");
        assert_eq!(cache.find(&[8; DIGEST]), None);
        let path = files(&folder).pop().unwrap();
        let whole = fs::read(&path).unwrap();
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            assert_eq!(cache.find(&key), None, "cut to {len}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 1;
            fs::write(&path, other).unwrap();
            assert_eq!(cache.find(&key), None, "changed at {at}");
            assert!(!path.exists());
        }
        fs::write(&path, [whole.as_slice(), b"more"].concat()).unwrap();
        assert_eq!(cache.find(&key), None);
        fs::write(&path, whole).unwrap();
        assert!(cache.find(&key).is_some());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn entries_that_were_not_used_go_first() {
        let folder = folder("evict");
        let cache = Cache::in_folder(&folder).max_bytes(10_000);
        let payload = [0_u8; 2_000];
        let long_ago = SystemTime::now() - Duration::from_secs(1_000);
        for number in 0..4 {
            cache.store(&[number; DIGEST], &payload).unwrap();
            let entry = path(&folder, &[number; DIGEST]);
            let file = fs::File::options().append(true).open(entry).unwrap();
            file.set_modified(long_ago + Duration::from_secs(u64::from(number)))
                .unwrap();
        }
        assert!(cache.find(&[0; DIGEST]).is_some());
        cache.store(&[4; DIGEST], &payload).unwrap();
        let kept: Vec<u8> = (0..5)
            .filter(|number| path(&folder, &[*number; DIGEST]).exists())
            .collect();
        assert_eq!(kept, [0, 3, 4]);
        let too_large = cache.store(&[5; DIGEST], &[0; 10_000]).unwrap_err();
        assert!(too_large.contains("the cache has 10000"), "{too_large}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_told() {
        let file = folder("file");
        fs::write(&file, "").unwrap();
        let cache = Cache::in_folder(file.join("below"));
        let said = cache.store(&[0; DIGEST], b"").unwrap_err();
        assert!(said.contains("cannot write to"), "{said}");
        assert_eq!(cache.find(&[0; DIGEST]), None);
        fs::remove_file(file).unwrap();
    }
}
