//! Which files may a compilation read, and what is in them?
//!
//! NVRTC does not list what it included. So all that a text may include is looked for, whatever
//! the conditions around it say, wherever NVRTC may look: files that are not there count as such.
//! The answer is one number; what can change a compilation changes it. Where that cannot be told,
//! it says why.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

/// Where includes are looked for.
pub(super) struct Search<'a> {
    /// The folder of the source.
    pub(super) beside: &'a Path,
    /// The include paths.
    pub(super) folders: &'a [PathBuf],
    /// Names and texts of headers that are no files.
    pub(super) headers: &'a [(String, String)],
    /// Headers that are included without a directive.
    pub(super) included: &'a [String],
}

/// A number for the contents of all files that compiling the text may read, or why there is none.
pub(super) fn fingerprint(search: &Search<'_>, text: &str) -> Result<[u8; 32], String> {
    let mut reader = Reader {
        search,
        digest: Sha256::new(),
        asked: HashSet::new(),
        unread: vec![(text.as_bytes().to_vec(), search.beside.to_owned())],
        macros: BTreeMap::new(),
        included_macros: Vec::new(),
    };
    for (name, text) in search.headers {
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        reader
            .unread
            .push((text.as_bytes().to_vec(), folder.to_owned()));
    }
    for name in search.included {
        reader.ask(name.as_bytes(), search.beside)?;
    }
    while let Some((text, folder)) = reader.unread.pop() {
        reader.read(&text, &folder)?;
    }
    for name in &reader.included_macros {
        // One that no text defines is an option's, whose value is a text too.
        if reader.macros.get(name) != Some(&true) {
            return Err(format!(
                "`#include {name}` names a file that only the compiler can tell"
            ));
        }
    }
    Ok(reader.digest.finalize().into())
}

struct Reader<'a> {
    search: &'a Search<'a>,
    digest: Sha256,
    asked: HashSet<PathBuf>,
    /// Texts and their folders.
    unread: Vec<(Vec<u8>, PathBuf)>,
    /// Macros, and whether each definition is the name of a header.
    macros: BTreeMap<String, bool>,
    included_macros: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, text: &[u8], folder: &Path) -> Result<(), String> {
        let text = spliced(text);
        for clock in ["__DATE__", "__TIME__", "__TIMESTAMP__"] {
            if find(&text, clock.as_bytes()).is_some() {
                return Err(format!("`{clock}` is another one each time"));
            }
        }
        for directive in directives(&text) {
            let (word, line) = word(blanks(directive));
            match word {
                b"include" | b"include_next" | b"import" | b"embed" => {
                    match header_name(blanks(line)) {
                        Some((name, _)) => self.ask(name, folder)?,
                        None => self.include_macro(self::word(blanks(line)).0),
                    }
                }
                b"define" => self.define(blanks(line), folder)?,
                b"if" | b"elif" => self.mentioned(line, &[], folder)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// `NAME <header>`, `NAME(a, b) body`
    fn define(&mut self, line: &[u8], folder: &Path) -> Result<(), String> {
        let (name, body) = word(line);
        let (parameters, body) = match body.strip_prefix(b"(") {
            Some(list) => {
                let end = find(list, b")").unwrap_or(list.len());
                let (list, body) = list.split_at(end);
                let parameters = list.split(|&byte| byte == b',');
                (parameters.map(|one| word(blanks(one)).0).collect(), body)
            }
            None => (Vec::new(), body),
        };
        let is_header = parameters.is_empty()
            && header_name(blanks(body)).is_some_and(|(_, behind)| ends(blanks(behind)));
        let name = String::from_utf8_lossy(name).into_owned();
        *self.macros.entry(name).or_insert(true) &= is_header;
        self.mentioned(body, &parameters, folder)
    }

    /// What a condition or a macro may ask for: whatever looks like the name of a header.
    fn mentioned(
        &mut self,
        line: &[u8],
        parameters: &[&[u8]],
        folder: &Path,
    ) -> Result<(), String> {
        for at in 0..line.len() {
            if let Some((name, _)) = header_name(&line[at..]) {
                self.ask(name, folder)?;
            }
            let asks = [b"__has_include_next".as_slice(), b"__has_include"]
                .into_iter()
                .find_map(|asks| line[at..].strip_prefix(asks));
            if let Some(argument) = asks.and_then(|line| blanks(line).strip_prefix(b"(")) {
                let (name, _) = word(blanks(argument));
                if !name.is_empty() && !parameters.contains(&name) {
                    self.include_macro(name);
                }
            }
        }
        Ok(())
    }

    fn include_macro(&mut self, name: &[u8]) {
        if !name.is_empty() {
            self.included_macros
                .push(String::from_utf8_lossy(name).into_owned());
        }
    }

    /// Counts all files that the name may stand for.
    fn ask(&mut self, name: &[u8], folder: &Path) -> Result<(), String> {
        let Ok(name) = std::str::from_utf8(name) else {
            return Err("the name of a header is no UTF-8".to_owned());
        };
        let beside = [folder, self.search.beside];
        let folders = self.search.folders.iter().map(PathBuf::as_path);
        for folder in beside.into_iter().chain(folders) {
            let path = folder.join(name);
            if !self.asked.insert(path.clone()) {
                continue;
            }
            let shown = path.as_os_str().as_encoded_bytes();
            self.digest.update(shown.len().to_le_bytes());
            self.digest.update(shown);
            let Some(text) = contents(&path)? else {
                self.digest.update([0]);
                continue;
            };
            self.digest.update([1]);
            self.digest.update(text.len().to_le_bytes());
            self.digest.update(&text);
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            self.unread.push((text, folder));
        }
        Ok(())
    }
}

/// What is in a file; none if there is none that can be read.
///
/// What only looks like the name of a header may be that of a device, or of a file of gigabytes.
fn contents(path: &Path) -> Result<Option<Vec<u8>>, String> {
    const LARGE: u64 = 64 << 20;
    match fs::metadata(path) {
        Err(_) => Ok(None),
        Ok(about) if about.is_dir() => Ok(None),
        Ok(about) if about.is_file() && about.len() <= LARGE => Ok(fs::read(path).ok()),
        Ok(_) => Err(format!("{} is named, and is no header", path.display())),
    }
}

/// The text with lines joined that a backslash continues.
fn spliced(text: &[u8]) -> Vec<u8> {
    let mut spliced = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        let (before, from) = rest.split_at(at);
        spliced.extend_from_slice(before);
        let behind = from[1..].trim_ascii_start();
        let skipped = &from[1..from.len() - behind.len()];
        match skipped.iter().position(|&byte| byte == b'\n') {
            Some(newline) => rest = &from[newline + 2..],
            None => {
                spliced.push(b'\\');
                rest = &from[1..];
            }
        }
    }
    spliced.extend_from_slice(rest);
    spliced
}

/// All directives, each from behind its mark to the end of its line. A mark begins one if in front of
/// it, on its line, there are only blanks and comments; within a text or a comment of several
/// lines it counts too.
fn directives(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    (0..text.len()).filter_map(move |at| {
        if text[at] == b'\n' {
            start = at + 1;
        }
        let marks: [&[u8]; 3] = [b"#", b"%:", b"??="];
        let behind = marks
            .into_iter()
            .find_map(|mark| text[at..].strip_prefix(mark))?;
        is_blank(&text[start..at]).then(|| line(behind))
    })
}

/// Whether a line that goes so far holds nothing but blanks behind its last comment.
fn is_blank(line: &[u8]) -> bool {
    let comment = line.windows(2).rposition(|window| window == b"*/");
    line[comment.map_or(0, |at| at + 2)..]
        .trim_ascii()
        .is_empty()
}

/// To the end of the line, which a comment may hide.
fn line(text: &[u8]) -> &[u8] {
    let mut at = 0;
    while at < text.len() && text[at] != b'\n' {
        at += comment(&text[at..]).unwrap_or(1);
    }
    &text[..at.min(text.len())]
}

/// The length of the comment `/* .. */` that the text begins with.
fn comment(text: &[u8]) -> Option<usize> {
    let inner = text.strip_prefix(b"/*")?;
    let end = find(inner, b"*/").unwrap_or(inner.len());
    Some((end + 4).min(text.len()))
}

/// What stands behind blanks and comments.
fn blanks(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        match comment(text) {
            Some(len) => text = &text[len..],
            None => return text,
        }
    }
}

/// Whether nothing more stands in a line.
fn ends(line: &[u8]) -> bool {
    line.is_empty() || line.starts_with(b"//")
}

/// The name that a text begins with, and what stands behind it.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_' && byte.is_ascii());
    text.split_at(end.unwrap_or(text.len()))
}

/// `name` of `"name"` or `<name>`, and what stands behind it.
fn header_name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = match text.first()? {
        b'"' => b'"',
        b'<' => b'>',
        _ => return None,
    };
    let inner = &text[1..];
    let end = inner
        .iter()
        .position(|&byte| byte == end || byte == b'\n')?;
    let (name, behind) = inner.split_at(end);
    (!name.is_empty() && behind[0] != b'\n').then(|| (name, &behind[1..]))
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Folder {
            let name = format!("gridcall-includes-{}-{test}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(folder.join("inc/deep")).unwrap();
            Folder(folder)
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.0.join(path), text).unwrap();
        }

        fn fingerprint(&self, text: &str) -> Result<[u8; 32], String> {
            let search = Search {
                beside: &self.0,
                folders: &[self.0.join("inc")],
                headers: &[],
                included: &[],
            };
            fingerprint(&search, text)
        }

        /// Whether a change of the file changes the number.
        fn sees(&self, text: &str, path: &str) -> bool {
            let before = self.fingerprint(text).unwrap();
            self.write(path, "#define CHANGED\n");
            let after = self.fingerprint(text).unwrap();
            self.write(path, "");
            before != after
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn whatever_spelling_of_an_include_is_seen() {
        let folder = Folder::new("spelling");
        for (number, text) in [
            "#include \"a.h\"",
            "#include <a.h>",
            "  #  include /* here */ <a.h> // a",
            "/* first */ # /* then */ include \"a.h\"",
            "/* over\n lines */ #include \"a.h\"",
            "/* # */ #include \"a.h\"",
            "#inc\\\nlude \\\n\"a.h\"",
            "%:include <a.h>",
            "#if 0\n#include <a.h>\n#endif",
            "#if /*\n*/ __has_include(<a.h>)\n#endif",
            "#define HAS(x) __has_include(x)\n#if HAS(\"a.h\")\n#endif",
            "#define A <a.h>\n#include A",
            "#define A \"a.h\" // that one\n#include A",
            "#include_next <a.h>",
            "const char* quote = \"/*\";\n#include <a.h>",
        ]
        .into_iter()
        .enumerate()
        {
            assert!(folder.sees(text, "inc/a.h"), "{number}: {text}");
            assert!(!folder.sees(text, "inc/b.h"), "{number}: {text}");
        }
    }

    #[test]
    fn what_is_no_directive_is_none() {
        let folder = Folder::new("none");
        for text in [
            "// see #include the_macro",
            "#error \"#include the header\"",
            "#define TEXT(x) #x // and #include that",
        ] {
            assert!(!folder.sees(text, "inc/a.h"), "{text}");
        }
    }

    #[test]
    fn headers_of_headers_are_seen() {
        let folder = Folder::new("headers");
        folder.write("inc/first.h", "#include \"deep/second.h\"");
        folder.write("inc/deep/second.h", "#include \"third.h\"");
        assert!(folder.sees("#include <first.h>", "inc/deep/third.h"));
    }

    #[test]
    fn a_file_that_comes_in_front_of_another_is_seen() {
        let folder = Folder::new("front");
        folder.write("inc/a.h", "");
        let before = folder.fingerprint("#include \"a.h\"").unwrap();
        folder.write("a.h", "");
        assert_ne!(folder.fingerprint("#include \"a.h\"").unwrap(), before);
    }

    #[test]
    fn what_cannot_be_told_is_said() {
        let folder = Folder::new("unknown");
        for (text, part) in [
            ("#define NAME(x) #x\n#include NAME(a.h)", "#include NAME"),
            ("#include FROM_NOWHERE", "FROM_NOWHERE"),
            (
                "#define A <a.h>\n#undef A\n#define A B\n#include A",
                "#include A",
            ),
            ("#if __has_include(OTHER)\n#endif", "OTHER"),
            ("const char* made = __TIME__;", "__TIME__"),
            #[cfg(unix)]
            ("#define SOURCE \"/dev/zero\"", "/dev/zero is named"),
        ] {
            let said = folder.fingerprint(text).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn any_bytes_end() {
        let folder = Folder::new("bytes");
        for text in [
            "#",
            "#include",
            "#include <",
            "#define",
            "#define A(",
            "/*",
            "\\",
            "#if \"",
            "??=include \"",
        ] {
            assert!(folder.fingerprint(text).is_ok(), "{text}");
        }
    }
}
